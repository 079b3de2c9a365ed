package coordinator_test

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// What requests leave at the sites of a simulated fleet, and what lookups say of it.

// keyWindow is how long the shop remembers a key.
const keyWindow = 3 * time.Minute

// take carries a request out, as its kind of destination does.
func (w *sites) take(r *request) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.dir == saga.Undo {
		w.undo(r)
		return ""
	}
	all, now := w.byFor[r.purpose()], time.Now()
	twin := false
	for _, e := range all {
		switch {
		case e.undone:
			continue
		case e.id == r.target && r.target != "", r.step == "customer" || r.step == "stock" || r.step == "pack": // an update, an upsert
			e.revision, e.memo = r.revision, r.memo
			return e.id
		case r.step == "mark" && e.key == r.key && now.Sub(e.at) < keyWindow && w.clash[brokenKeys] == "":
			return e.id
		}
		twin = true
	}
	e := &made{
		id: fmt.Sprintf("%s-%d", r.step, len(w.effects)+1), of: r.id, step: r.step, key: r.key, revision: r.revision, memo: r.memo,
		at: now, shows: w.shows(r, now), twin: twin,
	}
	w.keep(e)
	if w.clash[brokenMail] != "" && (r.step == "receipt" || r.step == "label") {
		again := *e
		again.id, again.twin = e.id+"-again", true
		w.keep(&again)
	}
	return e.id
}

func (w *sites) keep(e *made) {
	w.counts.effects++
	w.effects = append(w.effects, e)
	w.byFor[purpose(e.of, e.step)] = append(w.byFor[purpose(e.of, e.step)], e)
}

// undo takes back what a request names, or all of it.
func (w *sites) undo(r *request) {
	if w.clash[brokenUndo] != "" {
		return
	}
	for _, e := range w.byFor[r.purpose()] {
		if r.target == "" || e.id == r.target {
			e.undone = true
		}
	}
}

// shows is when lookups see an effect that takes place now.
func (w *sites) shows(r *request, now time.Time) time.Time {
	d := dice(w.seed, r.purpose(), r.n, "lag")
	if !w.rules.lag || d.IntN(3) > 0 {
		return now
	}
	settled := now.Add(simSettle)
	if r.deadline.Before(now) {
		settled = r.deadline.Add(simSettle)
	}
	if w.rules.beyond && d.IntN(3) == 0 {
		if w.tainted[r.id] == "" {
			w.tainted[r.id] = r.step + " shows late"
		}
		return settled.Add(time.Duration(100+d.IntN(20_000)) * time.Millisecond)
	}
	if span := int64(settled.Sub(now)) * 9 / 10; span > 0 {
		return now.Add(time.Duration(d.Int64N(span)))
	}
	return now
}

// find answers a lookup for what a step of a work made for a revision. Something that only an
// earlier revision left is not it.
func (w *sites) find(c saga.Call[order], id saga.ID) (saga.Finding[thing], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.lookups++
	var found []thing
	for _, e := range w.byFor[purpose(id, c.Step)] {
		if !e.undone && !e.shows.After(time.Now()) && (e.id != c.PreviousID() || e.revision == c.Revision) {
			found = append(found, thing{ID: e.id})
		}
	}
	d := dice(w.seed, purpose(id, c.Step), w.counts.lookups, "lookup")
	if w.rules.lies && d.IntN(2) == 0 {
		return w.lie(d.IntN(5), id, found)
	}
	if d.Float64() < w.rules.trouble/2 {
		return saga.CannotTell[thing](), nil
	}
	return saga.Found(found...), nil
}

// lie answers a lookup wrongly.
func (w *sites) lie(n int, id saga.ID, found []thing) (saga.Finding[thing], error) {
	w.counts.lied++
	if w.tainted[id] == "" {
		w.tainted[id] = "a lookup lied"
	}
	ghost := thing{ID: fmt.Sprintf("ghost-%d", w.counts.lookups)}
	switch n {
	case 0:
		return saga.FoundUnfinished(ghost), nil
	case 1:
		return saga.Found(append(found, ghost)...), nil
	case 2:
		return saga.Found(ghost, ghost), nil
	default:
		return saga.NotFound[thing](), nil
	}
}

// standing returns what is alive at the destinations for a step of a work.
func (w *sites) standing(id saga.ID, step string) (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.byFor[purpose(id, step)] {
		if !e.undone {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// made returns everything a step of a work ever made.
func (w *sites) made(id saga.ID, step string) (all []made) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.byFor[purpose(id, step)] {
		all = append(all, *e)
	}
	return all
}

// sent returns the requests of a step of a work.
func (w *sites) sent(id saga.ID, step string) (all []request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests[purpose(id, step)] {
		all = append(all, *r)
	}
	return all
}

// repair is what a person does at a destination: of several things only the first is left, or none.
func (w *sites) repair(id saga.ID, step string, leave int) (left string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.byFor[purpose(id, step)] {
		switch {
		case e.undone:
		case leave > 0:
			left = e.id
			leave--
		default:
			e.undone = true
		}
	}
	return left
}
