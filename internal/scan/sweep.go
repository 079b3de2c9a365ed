package scan

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/faults"
)

// Config sets up a [Sweep]. Zero fields take the default named at each.
type Config struct {
	// Name of the sweep, for one source, destination and store. Without a slash.
	Name        string
	Source      Source
	Destination Destination
	Store       Store
	// Proceed is asked before every call to the other side; its error ends the run where it is.
	// Nil: always.
	Proceed func(ctx context.Context) error
	// Mapping is the version of what Want makes of objects. It is part of every fingerprint.
	Mapping string

	// Page is how many objects a page is asked to have. 200.
	Page int
	// Workers is how many parts are listed at once. 4.
	Workers int
	// Begin is how far back the incremental sweep goes at first, and after a rebuild. Zero is the
	// beginning: everything that the source ever had is heard, and started where the ledger does
	// not know it, without the bounds and the approval of a comparison. Say when your sagas began,
	// and leave what is older to comparisons.
	Begin time.Time
	// Overlap is how far behind its cursor the incremental sweep looks, for what the source shows
	// late. 10 minutes.
	Overlap time.Duration
	// Safety is how old a change is to be before the cursor may stand on it. 5 seconds.
	Safety time.Duration
	// Skew is how far the source's clock may be ahead of ours. Times further ahead are not
	// believed. 10 minutes.
	Skew time.Duration
	// Timeout bounds one call, and Attempts is how often one is tried before the run ends as
	// partial. 1 minute, 4.
	Timeout  time.Duration
	Attempts int
	// Now is our clock. time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Page = cmp.Or(c.Page, 200)
	c.Workers = cmp.Or(c.Workers, 4)
	c.Overlap = cmp.Or(c.Overlap, 10*time.Minute)
	c.Safety = cmp.Or(c.Safety, 5*time.Second)
	c.Skew = cmp.Or(c.Skew, 10*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.Attempts = cmp.Or(c.Attempts, 4)
	if c.Source.Quota == nil {
		c.Source.Quota = asking.NewQuota(asking.Limits{})
	}
	c.Destination.quota = asking.NewQuota(asking.Limits(c.Destination.Limits))
	if c.Proceed == nil {
		c.Proceed = func(context.Context) error { return nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c *Config) validate() error {
	var wrong faults.List
	wrong.Whenf(c.Name == "" || strings.Contains(c.Name, "/") || len(c.Name) > maxName, "its Name is empty, long, or has a slash")
	wrong.Whenf(c.Store == nil, "it has no Store: where it has come to would be forgotten")
	wrong.Whenf(c.Source.Object.Source == "" || c.Source.Object.Type == "",
		"the Object of its Source names no source and type, so its events would name no object")
	wrong.Whenf(c.Source.Object.ID != "", "the Object of its Source has an ID: it names what all objects have in common")
	wrong.Whenf(c.Source.All != nil && c.Source.Want == nil, "its Source lists All and has no Want, which says what to compare")
	wrong.Whenf(min(c.Page, c.Workers, c.Attempts) < 0, "Page, Workers or Attempts is negative")
	wrong.Whenf(min(c.Overlap, c.Safety, c.Skew, c.Timeout) < 0, "Overlap, Safety, Skew or Timeout is negative")
	return wrong.Err()
}

// maxName is how long the name of a sweep or of a part may be.
const maxName = 200

// Sweep reads one source and one destination. Any number of processes may hold one of the same
// name; who finds that another has moved it on stops. All methods are safe for concurrent use.
type Sweep struct {
	Config

	by string // this sweep and no other
}

// New returns a sweep, or every fault of c.
func New(c Config) (*Sweep, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new sweep %q: %w", c.Name, err)
	}
	return &Sweep{Config: c.withDefaults(), by: rand.Text()[:10]}, nil
}

// Result says how a run ended.
type Result string

// The results. A partial run is none that counts as done: the next one goes on where it stopped.
const (
	OK      Result = "ok"
	Partial Result = "partial"
)

// Report says what a run of a sweep did.
type Report struct {
	Result Result
	// Why the run is partial, for the person who has to act.
	Why string

	Before, After string // where the sweep stood
	Pages         int64
	Seen          int64 // objects or documents that were listed, some of them more than once
	Calls         int64 // to the other side
	Violations    int64 // of what a listing promises: see the package's documentation
	// FullWanted says why only a full sweep can tell what the incremental one has missed. Empty: it
	// missed nothing.
	FullWanted string

	Listed Progress // full: how far the listing has come
}

// partial ends a report early.
func (r *Report) partial(why string) {
	if r.Result = Partial; r.Why != "" {
		why = r.Why + "; " + why
	}
	r.Why = why
}
