package intake

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Judge decides what an event does to the entry of its object, and says why. It is pure: e is not
// changed, the entry it returns is. The rules are J1 to J13 of RULES.md.
func Judge(e Entry, d *Delivery, now time.Time, p *Policy) (Entry, Disposition, string) {
	j := judgement{e: e, ev: &d.Event, now: now, p: p.WithDefaults()}
	if d.Outcome != "" && e.Blocked != "" { // J12: an operator replays it
		j.e.lift()
	}
	accepted, dirty := j.e.Accepted, j.e.FetchRequested
	disposition, why := j.judge()
	if len(j.e.Parked) > 0 {
		j.e.unpark(&j.p)
	}
	if j.e.Accepted > accepted || j.e.FetchRequested > dirty || disposition == Parked {
		j.e.Cause = d.Number
	}
	if j.e.Attempts == 0 || j.e.Accepted > accepted || j.e.Due.IsZero() {
		j.e.Due = j.p.Due(&j.e, now)
	}
	return j.e, disposition, why
}

// judgement is one event before the gate.
type judgement struct {
	e   Entry
	ev  *Event
	now time.Time
	p   Policy
}

// judge takes the rules in their order; the first that fits decides.
func (j *judgement) judge() (Disposition, string) {
	e, ev := &j.e, j.ev
	switch v := ev.Version; {
	case ev.Disposition == Malformed:
		return Malformed, ev.Why
	case ev.Object.ID == "" || ev.Object.Type == "": // J13
		return cmp.Or(ev.Disposition, Malformed), "it names no object that the source could be asked about"
	case ev.Disposition == Conflict && ev.Why != "": // J13
		return Conflict, "an earlier event has this id and says something else; and the door: " + ev.Why
	case ev.Disposition == Conflict: // J2
		return j.hint(Conflict, "an earlier event has this id and says something else; the source is asked")
	case ev.Disposition != "": // J12
		return j.hint(Hint, "replayed; the source is asked")
	case v.Clock == NoClock && ev.Deleted: // J3
		j.believeMissing()
		return j.hint(Hint, cmp.Or(ev.Why, "it is said to be gone, without a version")+"; the source is asked")
	case v.Clock == NoClock: // J3
		return j.hint(Hint, cmp.Or(ev.Why, "it tells no version")+"; the source is asked")
	case j.p.future(v, j.now): // J4
		return j.hint(Hint, fmt.Sprintf("its version %s lies more than %s in the future and is not believed; the source is asked", v.Revision(), j.p.Skew))
	case j.p.leaps(v, e): // J4
		return j.hint(Hint, fmt.Sprintf("its version %s is too far ahead to be believed; the source is asked", v.Revision()))
	case v.Clock == EventClock: // J5
		return j.eventClock()
	case !sameClock(v, e.Version) || !sameClock(v, e.Newest): // J6
		return j.hint(Hint, fmt.Sprintf("its version %s is of another kind than the stored %s; the source is asked", v.Revision(), newer(e.Version, e.Newest).Revision()))
	case e.newEpoch(v): // J6
		return j.hint(Hint, "it is the first of a new epoch, which may be stamped on what is old; the source is asked")
	}
	return j.compare()
}

// compare judges an event whose version can be compared with the accepted one.
func (j *judgement) compare() (Disposition, string) {
	e, ev := &j.e, j.ev
	order := ev.Version.Compare(e.Version)
	switch {
	case order < 0 && e.doubtful(ev.Version): // J7
		return j.hint(Hint, fmt.Sprintf("version %s is so much older than %s that one of them may not be the object's own; the source is asked", ev.Version.Revision(), e.Version.Revision()))
	case order < 0: // J7
		return Stale, fmt.Sprintf("version %s is older than %s", ev.Version.Revision(), e.Version.Revision())
	case ev.Payload == Delta && !ev.Deleted: // J11
		return j.delta(order)
	case order == 0:
		return j.equal()
	case j.p.AlwaysFetch:
		if ev.Deleted {
			j.believeMissing()
		}
		return j.newsHint("this source is always asked")
	case ev.Deleted: // J9
		e.accept(j.told(), &j.p)
		return Tombstoned, "the object is gone"
	case ev.Payload == Thin || len(ev.Body) == 0: // J3; a body is erased when it is old, and its event may be replayed
		return j.newsHint("it says that there is a newer state, not which; the source is asked")
	case e.Deleted: // J10
		return j.newsHint("the object was gone; the source is asked whether it is back")
	}
	return j.apply() // J1
}

// equal judges an event of the very version that is stored. J8.
func (j *judgement) equal() (Disposition, string) {
	v := j.ev.Version
	switch {
	case j.ev.Payload == Thin && !j.ev.Deleted && v.Clock == CounterClock && !j.e.Deleted:
		return Duplicate, "version " + v.Revision() + " is known"
	case j.ev.Payload == Thin && !j.ev.Deleted:
		return j.hint(Hint, "it may be a second change within the resolution of version "+v.Revision()+"; the source is asked")
	case j.e.holds(j.told()):
		return Duplicate, "version " + v.Revision() + " is known with this content"
	default:
		if j.ev.Deleted {
			j.believeMissing()
		}
		return j.hint(Tie, "version "+v.Revision()+" is known with another content; the source is asked")
	}
}

// apply accepts the whole state that an event carries. J1.
func (j *judgement) apply() (Disposition, string) {
	e, ev := &j.e, j.ev
	before, accepted := e.Version, e.Accepted
	e.accept(j.told(), &j.p)
	switch missed := ev.Version.N - before.N - 1; {
	case e.Accepted == accepted && j.p.Echo != nil && j.p.Echo(e.Object, ev.Body):
		return Echo, "our own doing; it is noted, and nothing follows from it"
	case e.Accepted == accepted:
		return Applied, "newer, and nothing that matters is different"
	case j.p.Dense && before.Clock == CounterClock && before.Epoch == ev.Version.Epoch && missed > 0:
		return Applied, fmt.Sprintf("newer; %d versions after %s were never heard of", missed, before.Revision())
	case accepted == 0:
		return Applied, "the first that is heard of it"
	default:
		return Applied, "newer than " + before.Revision()
	}
}

// eventClock judges an event of a source whose objects have no version: it may fill an empty entry,
// and proves nothing else. J5.
func (j *judgement) eventClock() (Disposition, string) {
	if j.e.known() || j.e.FetchRequested > 0 || j.ev.Deleted || j.ev.Payload != Whole || len(j.ev.Body) == 0 || j.p.AlwaysFetch {
		if j.ev.Deleted {
			j.believeMissing()
		}
		return j.hint(Hint, "the time of an event does not tell which state is newer; the source is asked")
	}
	s := j.told()
	s.version = Version{}
	accepted := j.e.Accepted
	j.e.accept(s, &j.p)
	if j.e.Accepted == accepted {
		return Echo, "our own doing; it is noted, and nothing follows from it"
	}
	return Applied, "the first that is heard of it"
}

// delta judges a change to the state before it. J11.
func (j *judgement) delta(order int) (Disposition, string) {
	e, ev := &j.e, j.ev
	v := ev.Version
	same := func(o Event) bool { return o.Version.Compare(v) == 0 }
	switch {
	case order == 0:
		return Duplicate, "version " + v.Revision() + " is known"
	case j.p.Merge == nil || v.Clock != CounterClock:
		return j.newsHint("a change that cannot be applied; the source is asked")
	case j.p.AlwaysFetch:
		return j.newsHint("this source is always asked")
	case e.Deleted:
		return j.newsHint("the object was gone; the source is asked whether it is back")
	case follows(ev, e):
		if !e.merge(ev, &j.p) {
			e.spoken(v)
			return Hint, "it does not fit the state before it; the source is asked"
		}
		return Applied, "the change after " + strconv.FormatInt(v.N-1, 10)
	case slices.ContainsFunc(e.Parked, same):
		return Duplicate, "version " + v.Revision() + " waits for its turn"
	case len(e.Parked) >= j.p.ParkMost:
		return j.newsHint(fmt.Sprintf("%d changes wait already for the one before them; the source is asked", len(e.Parked)))
	}
	if e.Blocked != "" {
		e.lift()
	}
	e.Parked = append(slices.Clone(e.Parked), *ev)
	slices.SortFunc(e.Parked, func(a, b Event) int { return a.Version.Compare(b.Version) })
	e.spoken(v)
	return Parked, fmt.Sprintf("the change before it has not come yet; after %s the source is asked", j.p.Park)
}

// hint notes that the source is to be asked.
func (j *judgement) hint(v Disposition, why string) (Disposition, string) {
	j.e.FetchAgain()
	j.p.postpone(&j.e, j.now)
	return v, why
}

// newsHint is a hint that names the version to look for.
func (j *judgement) newsHint(why string) (Disposition, string) {
	j.e.spoken(j.ev.Version)
	return j.hint(Hint, why)
}

// believeMissing lets a single look that finds nothing confirm the deletion that the event tells
// of. Neither may be older than the accepted state: that has to be old enough for every reader to
// be shown it by now.
func (j *judgement) believeMissing() {
	v := j.e.Version
	if !j.e.Deleted && v.Clock == ObjectClock && j.now.After(v.Time().Add(v.Step+j.p.Settle+j.p.Skew)) {
		j.e.Missing = j.now.Add(-j.p.Settle)
	}
}

// told is the state that the event tells.
func (j *judgement) told() *state {
	ev := j.ev
	return &state{version: ev.Version, fingerprint: ev.Fingerprint, deleted: ev.Deleted, body: ev.Body}
}
