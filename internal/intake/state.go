package intake

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// state is a state of an object as an event or a fetch tells it.
type state struct {
	version     Version
	rank        int
	ticket      int64
	fingerprint Digest
	deleted     bool
	body        json.RawMessage
}

// known reports whether any state of the object was ever accepted.
func (e *Entry) known() bool {
	return e.Accepted > 0 || e.Deleted || e.Origin > 0 || e.Version.Clock != NoClock || len(e.Body) > 0
}

// holds reports whether the accepted state is the content of s.
func (e *Entry) holds(s *state) bool {
	switch {
	case !e.known() || e.Deleted != s.deleted:
		return false
	case s.deleted:
		return true
	case e.Fingerprint.IsZero() || s.fingerprint.IsZero():
		return bytes.Equal(e.Body, s.body)
	default:
		return e.Fingerprint == s.fingerprint
	}
}

// accept makes s the accepted state. The saga is owed a delivery when the content is another one,
// unless it is our own doing, or the end of an object of which no saga ever heard.
func (e *Entry) accept(s *state, p *Policy) {
	news := !e.holds(s)
	e.Version = e.Version.followedBy(s.version, news)
	e.spoken(e.Version)
	e.Origin, e.FetchSeq = s.rank, s.ticket
	e.Deleted = s.deleted
	e.Missing = time.Time{}
	if !s.deleted || len(e.Body) == 0 { // a tombstone keeps the last words: undoing may need them
		e.Body, e.Fingerprint = s.body, s.fingerprint
	}
	if !news || (s.deleted && e.Accepted == 0) || (p.Echo != nil && !s.deleted && p.Echo(e.Object, s.body)) {
		return
	}
	e.Accepted++
	e.lift()
}

// spoken notes that an event or an answer spoke of v. What the source has shown since counts
// against a newer one only.
func (e *Entry) spoken(v Version) {
	if v.Compare(e.Newest) > 0 {
		e.Newest, e.Behind = v, time.Time{}
	}
}

// FetchAgain notes one more reason to ask the source.
func (e *Entry) FetchAgain() {
	e.FetchRequested++
	if e.Blocked != "" {
		e.lift()
	}
}

// lift ends what an earlier failure has put in the way: there is something new to try.
func (e *Entry) lift() {
	e.Blocked, e.LastError, e.Attempts = "", "", 0
}

// followedBy is the version of an entry at v whose next accepted state is told to be at o. A state
// of which the source tells no version keeps the one before. When o cannot be told from v and yet
// the content differs, because a second is long, the version grows by a nanosecond, which compares
// as equal within its resolution and names a revision of its own.
func (v Version) followedBy(o Version, news bool) Version {
	switch {
	case o.Clock == NoClock:
		return v
	case v.Clock == NoClock || v.Compare(o) != 0:
		return o
	}
	step := max(v.Step, o.Step)
	if v.Clock == CounterClock || !news {
		return Version{Epoch: v.Epoch, Clock: v.Clock, N: max(v.N, o.N), Step: step}
	}
	if next := v.N + 1; floor(next, int64(max(step, 1))) == floor(v.N, int64(max(step, 1))) {
		v.N = next
	}
	return Version{Epoch: v.Epoch, Clock: v.Clock, N: max(v.N, o.N), Step: step}
}

// newer returns the newer of two versions, a when they cannot be told apart.
func newer(a, b Version) Version {
	if b.Compare(a) > 0 {
		return b
	}
	return a
}

// sameClock reports whether a and b can be compared: one of them tells nothing, or both count
// alike, or an operator said where one way of counting ended.
func sameClock(a, b Version) bool {
	return a.Clock == NoClock || b.Clock == NoClock || a.Clock == b.Clock || a.Epoch != b.Epoch
}

// future reports whether v is a time that cannot have come yet.
func (p *Policy) future(v Version, now time.Time) bool {
	return v.Time().After(now.Add(p.Skew)) // counters are never
}

// NotYet begins the LastError of an entry whose source says that it is of a time that has not come (R8).
const NotYet = "the source says that the object is of "

// Future is that time; zero where the entry waits for none.
func (e *Entry) Future() time.Time {
	text, is := strings.CutPrefix(e.LastError, NotYet)
	if !is || e.Due.IsZero() {
		return time.Time{}
	}
	text, _, _ = strings.Cut(text, ",")
	at, _ := time.Parse(time.RFC3339Nano, text[strings.Index(text, "/")+1:]) // behind its epoch
	return at
}

const (
	maxCounter = 1 << 53 // beyond it JSON numbers are not exact in most languages
	maxMissed  = 10_000  // versions of a dense counter that may pass unheard
)

// leaps reports whether v is a counter that is not to be believed unless the source itself shows
// it: one such would keep out everything that comes after it.
func (p *Policy) leaps(v Version, e *Entry) bool {
	known := newer(e.Version, e.Newest)
	far := p.Dense && known.Clock == CounterClock && known.Epoch == v.Epoch && v.N-known.N > maxMissed
	return v.Clock == CounterClock && (v.N > maxCounter || far)
}

// doubtful reports whether a counter is so much lower than the accepted one, which only an event
// told, that it is not merely late.
func (e *Entry) doubtful(v Version) bool {
	return e.Origin == 0 && v.Clock == CounterClock && e.Version.Clock == CounterClock && v.Epoch == e.Version.Epoch && e.Version.N-v.N > maxMissed
}

// newEpoch reports whether v is the first of a later epoch than the object is known in.
func (e *Entry) newEpoch(v Version) bool {
	return (e.known() || e.Newest.Clock != NoClock) && v.Epoch > max(e.Version.Epoch, e.Newest.Epoch)
}

// unpark applies the parked deltas whose turn has come and drops those that came too late. Of an
// object that is gone, the source must tell what they mean.
func (e *Entry) unpark(p *Policy) {
	e.Parked = slices.DeleteFunc(slices.Clone(e.Parked), func(ev Event) bool { return ev.Version.Compare(e.Version) <= 0 })
	if e.Deleted && len(e.Parked) > 0 {
		e.Parked = nil
		e.FetchAgain()
	}
	for len(e.Parked) > 0 && follows(&e.Parked[0], e) {
		e.merge(&e.Parked[0], p) // if it fails the next does not follow, and the source is asked for all of it
		e.Parked = e.Parked[1:]
	}
}

// follows reports whether the delta is the very next change to the accepted state.
func follows(delta *Event, e *Entry) bool {
	d, v := delta.Version, e.Version
	return v.Clock == CounterClock && d.Clock == CounterClock && d.Epoch == v.Epoch && d.N == v.N+1 && !e.Deleted
}

// merge applies the delta that follows the accepted state. Where that fails the source is asked.
func (e *Entry) merge(ev *Event, p *Policy) (ok bool) {
	body, err := p.Merge(bytes.Clone(e.Body), ev.Body)
	if err == nil {
		var fp Digest
		if fp, err = Fingerprint(body, p.Volatile...); err == nil {
			e.accept(&state{version: ev.Version, fingerprint: fp, body: body}, p)
			return true
		}
	}
	e.FetchAgain()
	return false
}

// Snapshot is the accepted state as the user's function gets it. A deletion that the source gave no
// version of its own is named one step after the last state: a saga takes nothing over that is not
// newer than what it has heard.
func (e *Entry) Snapshot() Snapshot {
	named := e.Version
	if e.Deleted && e.Origin == 1 && named.N < math.MaxInt64 && (named.Clock == CounterClock || named.Clock == ObjectClock && named.Step <= 1) {
		named.N++
	}
	c := Snapshot{
		Object: e.Object, Version: e.Version, Revision: named.Revision(), Deleted: e.Deleted, Body: e.Body,
		Cause: deliveryName(e.Object.Source, e.Cause),
	}
	if c.Revision == "" {
		c.Revision = strconv.FormatInt(e.Accepted, 10)
	}
	return c
}
