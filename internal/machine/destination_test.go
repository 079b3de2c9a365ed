package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// destination is everything outside, and as dumb as the assumptions allow: it does what arrives,
// and counts. It knows nothing of chains, attempts or phases.
type destination struct {
	clock   func() time.Time
	network []request
	things  map[string][]object // by step
	keys    map[string]memory   // of Keyed steps
	effects map[string]int      // per step: how often something new came into being
	perKey  map[string]int      // the same per key
	fault   func(step, words string)
	lag     func() time.Duration // how much later than a settle time an effect is visible; nil: not at all
}

// object is one thing that a step made.
type object struct {
	id    string
	shown time.Time // from when on every lookup sees it
	half  bool      // created, and not posted
	says  int       // which content of the source object it shows
}

// refusedID is remembered of a key under which everything is refused.
const refusedID = "refused"

// memory is what a destination with keys remembers of one.
type memory struct {
	id    string
	until time.Time
}

// request is on its way.
type request struct {
	step     *program.StepSpec
	dir      saga.Direction
	key      string
	attempt  int
	id       string // an undo of this very thing; empty: of whatever goes by our reference
	previous string // what an earlier revision left: this very thing is changed
	says     int    // the content of the source object
	finish   bool   // goes on with what was half-made
	half     bool   // dies between creating and posting
	refuse   bool   // refused, which is saved under the key, unless something else is
	arrives  time.Time
	settled  time.Time       // a settle time after its deadline
	answered func(id string) // told when it takes effect; nil: nobody listens
}

func newDestination(clock func() time.Time, fault func(step, words string)) *destination {
	return &destination{
		clock: clock, fault: fault, things: map[string][]object{}, keys: map[string]memory{},
		effects: map[string]int{}, perKey: map[string]int{},
	}
}

// deliver lets everything arrive that is due by now, in the order of arrival.
func (d *destination) deliver() {
	now := d.clock()
	slices.SortStableFunc(d.network, func(a, b request) int { return a.arrives.Compare(b.arrives) })
	for len(d.network) > 0 && !d.network[0].arrives.After(now) {
		r := d.network[0]
		d.network = d.network[1:]
		id := d.take(&r)
		if r.answered != nil {
			r.answered(id)
		}
	}
}

func (d *destination) take(r *request) string {
	if r.dir == saga.Undo {
		d.remove(r)
		return ""
	}
	return d.make(r)
}

// remove undoes one thing by its id, or all that go by our reference. There may be nothing to
// remove.
func (d *destination) remove(r *request) {
	d.things[r.step.Name] = slices.DeleteFunc(d.things[r.step.Name], func(o object) bool { return r.id == "" || o.id == r.id })
}

func (d *destination) make(r *request) string {
	name := r.step.Name
	if r.finish {
		for i := range d.things[name] {
			return d.change(&d.things[name][i], r)
		}
		return ""
	}
	if there := d.things[name]; r.step.Repeat == program.RepeatIdempotent && len(there) > 0 {
		return d.change(&there[0], r) // a PUT under the work's own name
	}
	if m, ok := d.keys[r.key]; r.step.Repeat == program.RepeatKeyed && ok && r.arrives.Before(m.until) {
		return m.id
	}
	if r.refuse {
		d.keys[r.key] = memory{refusedID, r.arrives.Add(r.step.TTL)}
		return refusedID
	}
	var id string
	if i := slices.IndexFunc(d.things[name], func(o object) bool { return o.id == r.previous }); i >= 0 {
		id = d.change(&d.things[name][i], r)
	} else {
		id = d.create(r)
	}
	if r.step.Repeat == program.RepeatKeyed {
		d.keys[r.key] = memory{id, r.arrives.Add(r.step.TTL)}
	}
	return id
}

// change brings a thing to the request's content. Content that goes back is what must never happen.
func (d *destination) change(o *object, r *request) string {
	if o.says > r.says {
		d.fault(r.step.Name, fmt.Sprintf("the content goes back from %d to %d", o.says, r.says))
	}
	if o.says != r.says {
		o.shown = d.visible(r)
	}
	o.half, o.says = false, r.says
	return o.id
}

func (d *destination) create(r *request) string {
	name := r.step.Name
	if r.previous != "" {
		d.fault(name, fmt.Sprintf("it is told of %s, which is not there", r.previous))
	}
	d.effects[name]++
	d.perKey[r.key]++
	o := object{id: fmt.Sprintf("%s-%d", name, d.effects[name]), shown: d.visible(r), half: r.half, says: r.says}
	if r.step.Repeat == program.RepeatIdempotent {
		o.id = name
	}
	d.things[name] = append(d.things[name], o)
	return o.id
}

// visible is from when on every lookup sees what r does.
func (d *destination) visible(r *request) time.Time {
	if d.lag == nil {
		return r.settled
	}
	return r.settled.Add(d.lag())
}

// shows is what a lookup is shown of a content: everything whose attempt has settled (saga/A3), and of
// the rest what luck wants.
func (d *destination) shows(s *program.StepSpec, says int, lucky func() bool) (seen []object) {
	for _, o := range d.things[s.Name] {
		if (o.says == says || s.OncePerInstance()) && (!d.clock().Before(o.shown) || lucky()) {
			seen = append(seen, o)
		}
	}
	return seen
}

// onTheWay reports whether something for the step may still arrive and have an effect.
func (d *destination) onTheWay(step string) bool {
	return slices.ContainsFunc(d.network, func(r request) bool {
		m := d.keys[r.key]
		refused := m.id == refusedID && r.arrives.Before(m.until) && r.dir == saga.Forward && !r.finish // as whatever comes under its key
		return r.step.Name == step && !refused
	})
}

// keepOnly is a person who leaves one of the things that a step made for a content, or at all, and
// takes the others away.
func (d *destination) keepOnly(step string, keep object, once bool) {
	kept := false
	d.things[step] = slices.DeleteFunc(d.things[step], func(o object) bool {
		first := o.id == keep.id && !kept
		kept = kept || first
		return (once || o.says == keep.says) && !first
	})
	for i := range d.things[step] {
		if d.things[step][i].id == keep.id {
			d.things[step][i] = keep
		}
	}
}
