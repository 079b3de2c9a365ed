package intake

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/asking"
)

// errBehind matches the error of a fetch that found less than was heard of.
var errBehind = errors.New("the source is behind")

// Receive decides what a fetch's answer does to the entry, and says what came of it. ticket is what
// e.FetchRequested was before the source was asked. It is pure: e is not changed, the entry it returns is.
// An error says that the source must be asked again; what the answer was worth is in the entry all
// the same. The rules are R1 to R10 of RULES.md.
func Receive(e Entry, f *Fetched, ticket int64, now time.Time, p *Policy) (Entry, string, error) {
	r := receipt{e: e, f: f, ticket: ticket, now: now, p: p.WithDefaults()}
	what, err := r.receive()
	if len(r.e.Parked) > 0 {
		r.e.unpark(&r.p)
	}
	return r.e, what, err
}

// patient is how many settle times later an object is looked for once more that was never seen.
const patient = 10

// receipt is one answer of the source.
type receipt struct {
	e      Entry
	f      *Fetched
	ticket int64
	now    time.Time
	p      Policy
}

func (r *receipt) receive() (string, error) {
	e, v := &r.e, r.f.Version
	switch {
	case r.f.Gone && e.Deleted:
		e.Reread = r.secondLook(e)
		e.Missing = time.Time{}
		return r.clean("still gone")
	case r.f.Gone: // R6
		return r.gone()
	case r.p.future(v, r.now): // R8
		return "not believed", fmt.Errorf(NotYet+"%s, which lies more than %s in the future; its clock or ours is wrong", v.Revision(), r.p.Skew)
	case v.Clock == EventClock || !sameClock(v, e.Version) || (v.Clock == NoClock && e.Version.Clock != NoClock): // R9
		return "not comparable", asking.Permanent(fmt.Errorf("the source tells version %q and told %q before, which is another way of counting; begin a new epoch for it", v.Revision(), e.Version.Revision()))
	case e.Deleted && (v.Compare(e.Version) <= 0 || e.Origin == 1): // R7
		return r.back()
	}
	return r.found()
}

// found judges a state that the source has. R1 to R5.
func (r *receipt) found() (string, error) {
	e, f := &r.e, r.f
	before := *e
	order := f.Version.Compare(e.Version)
	told := &state{version: f.Version, rank: 1, ticket: r.ticket, fingerprint: f.Fingerprint, body: f.Body}
	what := "unchanged"
	switch {
	case order < 0:
		what = "older than what is known"
	case order == 0 && e.known() && e.Origin == 1 && r.ticket <= e.FetchSeq:
		what = "an answer that came too late"
	default:
		e.accept(told, &r.p)
		if e.Accepted > before.Accepted {
			what = "accepted"
		}
	}
	if f.Version.Compare(e.Newest) < 0 && f.Version.Clock != NoClock { // R4
		if err := r.behind(); err != nil {
			return what, err
		}
		what += "; a newer version, which was only spoken of, is forgotten"
	}
	e.Reread = r.secondLook(&before)
	return r.clean(what)
}

// believed is for how long the source has to show less than was spoken of until that is forgotten:
// no reader lags so far.
const believed = time.Hour

// behind says that the source must be asked again, because it shows less than was spoken of. When
// it has done so for long enough it is right: what only an event spoke of is forgotten. What was
// accepted has a revision, which only a new epoch gets behind: that is for a person. R10.
func (r *receipt) behind() error {
	e, v := &r.e, r.f.Version
	if e.Behind.IsZero() {
		e.Behind = r.now
	}
	if r.now.Before(e.Behind.Add(believed)) || v.Compare(e.Version) < 0 {
		return fmt.Errorf("%w: it shows version %s, and %s was spoken of; it has shown less since %s; if it was restored, or the version was never its own, "+
			"begin a new epoch for it", errBehind, v.Revision(), newer(e.Version, e.Newest).Revision(), e.Behind.UTC().Format(time.RFC3339))
	}
	e.Newest, e.Behind = e.Version, time.Time{}
	return nil
}

// secondLook is when the source is to be asked once more, because it may just have told less than
// it knew or may change the object without changing its version; zero if it need not be. R5.
func (r *receipt) secondLook(before *Entry) time.Time {
	v := r.f.Version
	only := r.ticket == before.FetchCompleted+1 && r.e.FetchRequested == r.ticket // one hint was answered, and none came since
	its := !before.Deleted && len(before.Parked) == 0                             // else another may have named what is newest
	named := its && before.Newest.Compare(before.Version) > 0 && before.Newest.Compare(v) <= 0
	running := v.Clock == ObjectClock && v.Step >= coarse && r.now.Before(v.Time().Add(v.Step+r.p.Skew))
	second := !before.Reread.IsZero() // lease leaves it to a look that begins when its time has come
	stable := r.e.Accepted == before.Accepted && r.e.FetchRequested == r.ticket
	if second && stable || only && named && !running {
		return time.Time{}
	}
	return r.now.Add(v.Step + r.p.Settle)
}

// coarse is the resolution in which two changes of one object do fall together.
const coarse = 10 * time.Millisecond

// gone judges the answer that there is no such object: a deletion, if it is said twice. R6.
func (r *receipt) gone() (string, error) {
	e := &r.e
	if e.Missing.IsZero() {
		e.Missing = r.now
		return "missing; a second look will tell", nil
	}
	if r.now.Before(e.Missing.Add(r.p.Settle)) {
		return "missing; it is too early to tell", nil
	}
	known := e.known()
	e.accept(&state{version: e.Version, rank: 1, ticket: r.ticket, deleted: true}, &r.p)
	// A hint that came since the first look may be of its return, which this look was too early to
	// show.
	e.Reread = r.now.Add(r.p.Settle)
	if !known { // an event spoke of it and no look found it: perhaps it is only slow to appear
		e.Reread = r.now.Add(patient * r.p.Settle)
	}
	return r.clean("gone")
}

// back judges the answer that an object is there which was gone. Unless its version is newer than
// that of the event that told of the deletion, it may be a state from before it, so it is believed
// if it is said twice. R7.
func (r *receipt) back() (string, error) {
	e := &r.e
	switch {
	case r.f.Version.Compare(newer(e.Version, e.Newest)) < 0:
		if err := r.behind(); err != nil {
			return "gone by now", err
		}
		return r.back()
	case e.Missing.IsZero():
		e.Missing = r.now
		return "there again; a second look will tell", nil
	case r.now.Before(e.Missing.Add(r.p.Settle)):
		return "there again; it is too early to tell", nil
	}
	return r.found()
}

// clean notes that every reason up to the ticket is answered, and what parked deltas waited for.
// R2.
func (r *receipt) clean(what string) (string, error) {
	overdue := func(ev Event) bool { return !ev.Received.Add(r.p.Park).After(r.now) }
	r.e.Parked = slices.DeleteFunc(slices.Clone(r.e.Parked), overdue)
	r.e.FetchCompleted = max(r.e.FetchCompleted, r.ticket)
	r.e.Behind = time.Time{}
	return what, nil
}
