package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// kind is a source of truth: how it versions its objects and what its events tell.
type kind struct {
	name    string
	version func(o *object, n int) intake.Version // of the n-th state, as the source tells it when asked
	event   func(o *object, n int) intake.Event   // what is told of the n-th change
	lag     time.Duration                         // reads may be this old
	policy  inbox.Policy
}

// settle is longer than any lag, as an operator would set it.
const settle = 2 * time.Second

func kinds() []*kind {
	stamped := func(step time.Duration) func(o *object, n int) intake.Version {
		return func(o *object, n int) intake.Version {
			return intake.At(o.states[n].at.Truncate(step), step)
		}
	}
	counted := func(_ *object, n int) intake.Version { return intake.Counter(int64(n + 1)) }
	none := func(*object, int) intake.Version { return intake.Version{} }
	seconds, millis := stamped(time.Second), stamped(time.Millisecond)
	eventTime := func(o *object, n int) intake.Version {
		v := seconds(o, n)
		v.Clock = intake.EventClock
		return v
	}
	return []*kind{
		{name: "seconds", version: seconds, event: whole(seconds)},
		{name: "millis", version: millis, event: whole(millis)},
		{name: "counter", version: counted, event: whole(counted), policy: inbox.Policy{Dense: true}},
		{name: "deltas", version: counted, event: deltas, policy: inbox.Policy{Dense: true, Merge: merge}},
		{name: "unversioned", version: none, event: whole(none)},
		{name: "events", version: none, event: whole(eventTime), lag: 1500 * time.Millisecond},
		{name: "hints", version: seconds, event: func(o *object, n int) intake.Event { return strip(whole(seconds)(o, n)) }, lag: 1500 * time.Millisecond},
		{name: "lagging", version: seconds, event: whole(seconds), lag: 1900 * time.Millisecond},
		{name: "asked", version: millis, event: whole(millis), lag: 500 * time.Millisecond, policy: inbox.Policy{AlwaysFetch: true}},
	}
}

// object is one object of a source and all that ever happens to it.
type object struct {
	intake.Object
	kind   *kind
	states []state
	told   bool // somebody is told of the last change, after it
}

// state is what an object is from some time on.
type state struct {
	at      time.Time
	content string
	deleted bool
}

// at is the number of the state at t, or -1 before the first.
func (o *object) at(t time.Time) int {
	n := len(o.states) - 1
	for n >= 0 && o.states[n].at.After(t) {
		n--
	}
	return n
}

// body is the object's JSON in its n-th state. Deltas add a field each, other kinds replace the
// content; what is "seen" differs in every body and means nothing.
func (o *object) body(n int, seen string) json.RawMessage {
	fields := map[string]string{"id": o.ID, "seen": seen}
	if o.kind.name == "deltas" {
		for i := range n + 1 {
			fields[fmt.Sprint("change ", i)] = o.states[i].content
		}
	} else {
		fields["is"] = o.states[n].content
	}
	return encode(fields)
}

func encode(fields map[string]string) json.RawMessage {
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return b
}

func fingerprint(body json.RawMessage) intake.Digest {
	fp, err := intake.Fingerprint(body, "seen")
	if err != nil {
		panic(err)
	}
	return fp
}

// whole tells the whole object, and a deletion with or without its version, as providers do.
func whole(version func(*object, int) intake.Version) func(*object, int) intake.Event {
	return func(o *object, n int) intake.Event {
		ev := intake.Event{Object: o.Object, Topic: "changed", Payload: intake.Whole, Version: version(o, n), At: o.states[n].at}
		if o.states[n].deleted {
			ev.Topic, ev.Payload, ev.Deleted = "deleted", intake.Thin, true
			if len(o.states[n].content)%2 == 0 {
				ev.Version = intake.Version{}
			}
			ev.Body = encode(map[string]string{"id": o.ID})
			return ev
		}
		ev.Body = o.body(n, "told")
		ev.Fingerprint = fingerprint(ev.Body)
		return ev
	}
}

// deltas tells the first state whole and then only what changed.
func deltas(o *object, n int) intake.Event {
	ev := whole(o.kind.version)(o, n)
	if n > 0 && !o.states[n].deleted && !o.states[n-1].deleted {
		ev.Payload, ev.Fingerprint = intake.Delta, intake.Digest{}
		ev.Body = encode(map[string]string{fmt.Sprint("change ", n): o.states[n].content})
	}
	return ev
}

func merge(body, delta json.RawMessage) (json.RawMessage, error) {
	fields := map[string]string{}
	if err := errors.Join(json.Unmarshal(body, &fields), json.Unmarshal(delta, &fields)); err != nil {
		return nil, err
	}
	return encode(fields), nil
}

// strip leaves of an event only that something changed.
func strip(ev intake.Event) intake.Event {
	ev.Payload, ev.Deleted, ev.Version, ev.Body, ev.Fingerprint = intake.Thin, false, intake.Version{}, nil, intake.Digest{}
	return ev
}

// world is everything that is true.
type world struct {
	seed    uint64
	start   time.Time
	objects []*object
	byName  map[intake.Object]*object

	mu      sync.Mutex // guards what follows
	chance  *rand.Rand // of the sources' faults
	fetches int
	refused int
	calm    bool // the sources refuse nothing any more
}

// span is how long the world is changed.
const span = 20 * time.Minute

func newWorld(seed uint64, objects int, start time.Time) *world {
	w := &world{seed: seed, start: start, byName: map[intake.Object]*object{}, chance: rand.New(rand.NewPCG(seed, 3))}
	chance, kinds := rand.New(rand.NewPCG(seed, 1)), kinds()
	for i := range objects {
		k := kinds[i%len(kinds)]
		o := &object{Object: intake.Object{Source: k.name, Type: "order", ID: fmt.Sprint(i)}, kind: k}
		o.live(chance, start.Add(time.Duration(chance.Int64N(int64(span)))))
		w.objects = append(w.objects, o)
		w.byName[o.Object] = o
	}
	return w
}

// live makes up what happens to the object: up to five changes, many of them within one second of
// the one before.
func (o *object) live(chance *rand.Rand, at time.Time) {
	for n := range 1 + chance.IntN(5) {
		deleted := n > 0 && !o.states[n-1].deleted && chance.IntN(8) == 0
		o.states = append(o.states, state{at: at.Truncate(time.Millisecond), content: fmt.Sprintf("%s/%d/%x", o.ID, n, chance.Uint32()), deleted: deleted})
		gap := time.Duration(chance.IntN(900)+1) * time.Millisecond
		if chance.IntN(5) < 3 {
			gap = time.Duration(chance.IntN(120)+1) * time.Second
		}
		at = at.Add(gap)
	}
}

var (
	errBusy  = errors.New("429 too many requests")
	errAway  = errors.New("503 service unavailable")
	errNotUs = errors.New("403 forbidden")
)

// fetch answers like the source, with its faults and its lag.
func (w *world) fetch(ctx context.Context, name intake.Object) (inbox.Fetched, error) {
	o := w.byName[name]
	took, old, seen, fault := w.draw(o)
	if took > stalled { // a process that stands still hears no deadline; when it wakes up its lease is over
		ctx = context.WithoutCancel(ctx)
		defer pause(ctx, took) // as long as it takes
		took = 0
	}
	if err := pause(ctx, took); err != nil {
		return inbox.Fetched{}, err
	}
	if fault != nil {
		return inbox.Fetched{}, fault
	}
	n := o.at(time.Now().Add(-old))
	if n < 0 || o.states[n].deleted {
		return inbox.Fetched{Gone: true}, nil
	}
	body := o.body(n, seen)
	return inbox.Fetched{Version: o.kind.version(o, n), Body: body}, nil
}

// stalled is longer than any lease.
const stalled = time.Minute

// draw decides how one request ends.
func (w *world) draw(o *object) (took, old time.Duration, seen string, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetches++
	took, seen = time.Duration(5+w.chance.IntN(300))*time.Millisecond, fmt.Sprint("fetched ", w.fetches)
	if o.kind.lag > 0 {
		old = time.Duration(w.chance.Int64N(int64(o.kind.lag)))
	}
	if away := time.Since(w.start) % (5 * time.Minute); w.calm || away > 20*time.Second && w.chance.IntN(20) > 0 {
		return took, old, seen, nil
	}
	w.refused++
	switch w.chance.IntN(6) {
	case 0:
		fault = saga.RetryAfter(time.Duration(1+w.chance.IntN(5))*time.Second, errBusy)
	case 1:
		fault = errNotUs
	case 2:
		took = stalled // it never answers
	case 3:
		took = stalled + time.Duration(1+w.chance.IntN(300))*time.Second
	default:
		fault = errAway
	}
	return took, old, seen, fault
}

// pause waits in the world's time.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
