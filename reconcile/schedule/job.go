package schedule

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/amends-dev/amends/internal/faults"
)

// Job is work that is to be done by a schedule. Zero fields take the default named at each.
type Job struct {
	// Name names the job in the database: letters, digits and . _ - : within, up to 100.
	Name string
	// Schedule and Zone are what [Parse] reads.
	Schedule, Zone string
	// Overlap says what becomes of an instant while an earlier run goes on. Skip.
	Overlap Overlap
	// CatchUp is how long ago an instant may be that is still made up for. All that were missed
	// within it are one late run. 24 hours.
	CatchUp time.Duration
	// Timeout ends the context of an attempt. 1 hour.
	Timeout time.Duration
	// Lease is how long after a crash another process waits before it takes the run over. 1 minute.
	Lease time.Duration
	// Fresh is for how many periods no run may end well before the job is stale. 3; negative: for
	// ever.
	Fresh int
	// Approved says that the job may change things from its first run on. Otherwise [Run.Approved]
	// is false until a person has approved the job, once.
	Approved bool
	// Work does it. Its context ends with the timeout, with the process, and when the run is no
	// longer its own. An error, or a panic, makes the run a failed one, whatever the outcome says;
	// an error because the process is being stopped gives the run to the next process.
	Work func(ctx context.Context, r *Run) (Outcome, error)
}

// Overlap is what becomes of an instant while an earlier run of the job goes on. Two runs of a job
// are never at work at once.
type Overlap string

// The ways.
const (
	Skip      Overlap = "skip"       // it is recorded as skipped
	BufferOne Overlap = "buffer-one" // one waits for the end of the other, those after it are skipped
	BufferAll Overlap = "buffer-all" // all wait for the end of the other, and are one run then: see [Run.Instants]
)

const (
	day        = 24 * time.Hour
	leastLease = time.Second
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,98}[A-Za-z0-9])?$`)

func (j Job) withDefaults() Job {
	j.Overlap = cmp.Or(j.Overlap, Skip)
	j.CatchUp = cmp.Or(j.CatchUp, day)
	j.Timeout = cmp.Or(j.Timeout, time.Hour)
	j.Lease = cmp.Or(j.Lease, time.Minute)
	j.Fresh = cmp.Or(j.Fresh, 3)
	return j
}

// validate returns every fault of a job with its defaults.
func (j *Job) validate() error {
	var wrong faults.List
	wrong.Whenf(!nameForm.MatchString(j.Name), "its name must be letters and digits, with . _ - : between them, up to 100")
	_, err := Parse(j.Schedule, j.Zone)
	wrong.Whenf(err != nil, "%w", err)
	wrong.Whenf(j.Overlap != Skip && j.Overlap != BufferOne && j.Overlap != BufferAll, "Overlap is %q; it is %s, %s or %s", j.Overlap, Skip, BufferOne, BufferAll)
	wrong.Whenf(j.Overlap == BufferAll && j.CatchUp < j.Timeout, "CatchUp is %s and Timeout %s: with %s what waits longer than CatchUp would be skipped", j.CatchUp, j.Timeout, BufferAll)
	wrong.Whenf(j.CatchUp < time.Minute, "CatchUp is %s; under a minute an instant could be too old before a process looks", j.CatchUp)
	wrong.Whenf(j.Timeout < 0, "Timeout is negative")
	wrong.Whenf(j.Lease < leastLease, "Lease is %s; no database answers in time under %s", j.Lease, leastLease)
	wrong.Whenf(j.Work == nil, "it has no Work")
	if err := wrong.Err(); err != nil {
		return fmt.Errorf("job %q: %w", j.Name, err)
	}
	return nil
}
