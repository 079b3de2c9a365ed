package inbox

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Policy says what the gate may believe of one source. The zero value is a good one; each field names what zero
// stands for.
type Policy struct {
	// Skew is how far the source's clock may be ahead of ours. A version further in the future is not
	// believed. 10 minutes.
	Skew time.Duration
	// Settle is how long the source may take until everybody who asks is told of a change. What is not to be
	// found is looked for once more after it. 2 seconds.
	Settle time.Duration
	// AlwaysFetch takes every event for a hint, whatever it carries.
	AlwaysFetch bool
	// Dense says that the counter of an object grows by exactly one with every change.
	Dense bool
	// Merge applies a [Delta] to the state before it. Without it a delta is a hint. It must be pure: it is
	// called while the object is locked, and perhaps more than once.
	Merge func(body, delta json.RawMessage) (json.RawMessage, error)
	// Park is how long a delta waits for the one before it until the source is asked, and ParkMost how many may
	// wait for one object. 30 seconds, 100.
	Park     time.Duration
	ParkMost int
	// Volatile are the fields that [Fingerprint] leaves out of a merged body.
	Volatile []string
	// Echo recognises our own doing, by what we wrote: a mark, an id of ours. What it recognises becomes the
	// accepted state, and no work follows from it. It must be pure, as Merge.
	Echo func(o Object, body json.RawMessage) bool
	// Initial and Max bound the wait after a failure: exponential, with full jitter. 1 second, 1 hour.
	Initial, Max time.Duration
}

// withDefaults fills in what zero stands for.
func (p Policy) withDefaults() Policy {
	p.Skew = cmp.Or(p.Skew, 10*time.Minute)
	p.Settle = cmp.Or(p.Settle, 2*time.Second)
	p.Park = cmp.Or(p.Park, 30*time.Second)
	p.ParkMost = cmp.Or(p.ParkMost, 100)
	p.Initial = cmp.Or(p.Initial, time.Second)
	p.Max = cmp.Or(p.Max, time.Hour)
	return p
}

// validate returns every fault.
func (p *Policy) validate() error {
	var faults []error
	if min(p.Skew, p.Settle, p.Park, p.Initial, p.Max) < 0 || p.ParkMost < 0 {
		faults = append(faults, errors.New("a duration or bound of its policy is negative"))
	}
	if p.Merge != nil && !p.Dense {
		faults = append(faults, errors.New("its policy merges deltas, but does not say Dense: whether one is missing between two deltas could not be told"))
	}
	return errors.Join(faults...)
}

// backoff is the wait after the n-th failure in a row. The jitter comes from the object and n, so that what is
// decided twice is decided equally, and objects that failed together do not return together.
func (p *Policy) backoff(o Object, n int) time.Duration {
	most := p.Max
	if shift := max(n, 1) - 1; shift < 32 && p.Initial <= p.Max>>shift {
		most = p.Initial << shift
	}
	d := DigestOf(o.Source, o.Tenant, o.Type, o.ID, strconv.Itoa(n))
	return time.Duration(binary.BigEndian.Uint16(d[:2])) * (most >> 16)
}
