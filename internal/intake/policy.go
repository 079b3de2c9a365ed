package intake

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/faults"
)

// Policy is inbox.Policy: what may be believed of one source.
type Policy struct {
	Skew         time.Duration
	Settle       time.Duration
	AlwaysFetch  bool
	Dense        bool
	Merge        func(body, delta json.RawMessage) (json.RawMessage, error)
	Park         time.Duration
	ParkMost     int
	Volatile     []string
	Echo         func(o Object, body json.RawMessage) bool
	Initial, Max time.Duration
}

// WithDefaults fills in what zero stands for.
func (p Policy) WithDefaults() Policy {
	p.Skew = cmp.Or(p.Skew, 10*time.Minute)
	p.Settle = cmp.Or(p.Settle, 2*time.Second)
	p.Park = cmp.Or(p.Park, 30*time.Second)
	p.ParkMost = cmp.Or(p.ParkMost, 100)
	p.Initial = cmp.Or(p.Initial, time.Second)
	p.Max = cmp.Or(p.Max, time.Hour)
	return p
}

// Validate returns every fault.
func (p *Policy) Validate() error {
	var wrong faults.List
	wrong.Whenf(min(p.Skew, p.Settle, p.Park, p.Initial, p.Max) < 0 || p.ParkMost < 0, "a duration or bound of its policy is negative")
	wrong.Whenf(p.Merge != nil && !p.Dense,
		"its policy merges deltas, but does not say Dense: whether one is missing between two deltas could not be told")
	return wrong.Err()
}

// backoff is the wait after the n-th failure in a row. The jitter comes from the object and n, so
// that what is decided twice is decided equally, and objects that failed together do not return
// together.
func (p *Policy) backoff(o Object, n int) time.Duration {
	most := p.Max
	if shift := max(n, 1) - 1; shift < 32 && p.Initial <= p.Max>>shift {
		most = p.Initial << shift
	}
	d := DigestOf(o.Source, o.Tenant, o.Type, o.ID, strconv.Itoa(n))
	return time.Duration(binary.BigEndian.Uint16(d[:2])) * (most >> 16)
}
