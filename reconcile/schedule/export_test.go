package schedule

import "time"

// SetShortest lets @every be finer than users may have it.
func SetShortest(d time.Duration) { shortest = d }
