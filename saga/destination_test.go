package saga

import (
	"fmt"
	"slices"
	"time"
)

// destination is everything outside, and as dumb as the assumptions allow: it does what arrives, and counts.
// It knows nothing of chains, attempts or phases.
type destination struct {
	clock   func() time.Time
	network []request
	things  map[string][]object // by step
	keys    map[string]memory   // of Keyed steps
	effects map[string]int      // per step: how often something new came into being
	perKey  map[string]int      // the same per key
}

// object is one thing that a step made.
type object struct {
	id    string
	shown time.Time // from when on every lookup sees it
	half  bool      // created, and not posted
}

// memory is what a destination with keys remembers of one.
type memory struct {
	id    string
	until time.Time
}

// request is on its way.
type request struct {
	step     *StepSpec
	dir      Direction
	key      string
	id       string // an undo of this very thing; empty: of whatever goes by our reference
	finish   bool   // goes on with what was half-made
	half     bool   // dies between creating and posting
	arrives  time.Time
	settled  time.Time       // a settle time after its deadline
	answered func(id string) // told when it takes effect; nil: nobody listens
}

func newDestination(clock func() time.Time) *destination {
	return &destination{
		clock: clock, things: map[string][]object{}, keys: map[string]memory{},
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
	if r.dir == Undo {
		d.remove(r)
		return ""
	}
	return d.make(r)
}

// remove undoes one thing by its id, or all that go by our reference. There may be nothing to remove.
func (d *destination) remove(r *request) {
	d.things[r.step.Name] = slices.DeleteFunc(d.things[r.step.Name], func(o object) bool { return r.id == "" || o.id == r.id })
}

func (d *destination) make(r *request) string {
	name := r.step.Name
	if r.finish {
		for i := range d.things[name] {
			d.things[name][i].half = false
			return d.things[name][i].id
		}
		return ""
	}
	if there := d.things[name]; r.step.Repeat == RepeatIdempotent && len(there) > 0 {
		return there[0].id // a PUT under the work's own name
	}
	if m, ok := d.keys[r.key]; r.step.Repeat == RepeatKeyed && ok && r.arrives.Before(m.until) {
		return m.id
	}
	d.effects[name]++
	d.perKey[r.key]++
	o := object{id: fmt.Sprintf("%s-%d", name, d.effects[name]), shown: r.settled, half: r.half}
	if r.step.Repeat == RepeatIdempotent {
		o.id = name
	}
	d.things[name] = append(d.things[name], o)
	if r.step.Repeat == RepeatKeyed {
		d.keys[r.key] = memory{o.id, r.arrives.Add(r.step.TTL)}
	}
	return o.id
}

// shows is what a lookup is shown: everything whose attempt has settled (A3), and of the rest what luck wants.
func (d *destination) shows(s *StepSpec, lucky func() bool) (seen []object) {
	for _, o := range d.things[s.Name] {
		if !d.clock().Before(o.shown) || lucky() {
			seen = append(seen, o)
		}
	}
	return seen
}

// onTheWay reports whether something for the step may still arrive.
func (d *destination) onTheWay(step string) bool {
	return slices.ContainsFunc(d.network, func(r request) bool { return r.step.Name == step })
}
