package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// until makes r a record that begins a wait.
func until(r machine.Record, at time.Time, wait time.Duration) machine.Record {
	r.Until, r.Wait = at, wait
	return r
}
