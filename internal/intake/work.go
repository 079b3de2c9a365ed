package intake

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/asking"
)

// Due is when the entry should be looked at; zero means never, unless something new is heard.
func (p *Policy) Due(e *Entry, now time.Time) time.Time {
	switch {
	case e.Blocked != "":
		return time.Time{}
	case e.Undelivered():
		return now
	case len(e.Parked) > 0 && e.FetchRequested == e.FetchCompleted:
		return earlier(later(now, p.parkedUntil(e)), e.Reread)
	}
	return p.fetchDue(e, now)
}

// fetchDue is when the source should be asked; zero means never. A hint that names no newer version
// waits for the second look that is planned anyway: thousands of hints are two fetches.
func (p *Policy) fetchDue(e *Entry, now time.Time) time.Time {
	switch {
	case e.FetchRequested == e.FetchCompleted:
		return e.Reread
	case !e.Missing.IsZero():
		return later(now, e.Missing.Add(p.Settle))
	case e.Newest.Compare(e.Version) <= 0 && !e.Reread.IsZero():
		return later(now, e.Reread)
	default:
		return now
	}
}

// parkedUntil is when the oldest of the parked deltas has waited for long enough.
func (p *Policy) parkedUntil(e *Entry) time.Time {
	var oldest time.Time
	for i := range e.Parked {
		oldest = earlier(oldest, e.Parked[i].Received)
	}
	return oldest.Add(p.Park)
}

// postpone lets a second look that is planned wait until the source has settled after one more
// hint, but not for ever: thousands of hints are two fetches, and an object that is hinted at
// without end is still read.
func (p *Policy) postpone(e *Entry, now time.Time) {
	if !e.Reread.IsZero() {
		e.Reread = Latest(e.Reread, earlier(now.Add(p.Settle), p.putOff(e)))
	}
}

// putOff is until when a second look may be put off after the last work on the entry.
func (p *Policy) putOff(e *Entry) time.Time { return e.Until.Add(2*e.Version.Step + 5*p.Settle) }

// Lease gives the entry to holder until span from now, and turns what came due by time into reasons
// to fetch.
func Lease(e *Entry, holder string, now time.Time, span time.Duration, p *Policy) {
	impatient := len(e.Parked) > 0 && !p.parkedUntil(e).After(now)
	reread := !e.Reread.IsZero() && !e.Reread.After(now)
	if (impatient || reread) && e.FetchRequested == e.FetchCompleted {
		e.FetchAgain()
	}
	hastened := e.Reread.After(now) && p.MustFetch(e, now)
	if hastened || e.Reread.Equal(p.putOff(e)) {
		e.Reread = time.Time{} // it would have waited longer: the source may not have settled, this look is not the last
		e.FetchAgain()
	}
	e.Holder, e.Until, e.Fence = holder, now.Add(span), e.Fence+1
}

// MustFetch reports whether the source is to be asked now.
func (p *Policy) MustFetch(e *Entry, now time.Time) bool {
	return e.FetchRequested > e.FetchCompleted && !p.fetchDue(e, now).After(now)
}

// Round is what was done under one lease.
type Round struct {
	FetchSeq int64 // what FetchRequested was when it began
	Accepted int64 // the state that was delivered, or would have been
	Fetch    error // why the source could not be asked, or must be asked again
	Deliver  error // why the saga could not take it over

	Passed    bool // nothing was done for it, because a person has accepted what stands
	Withdraws bool // what was to be delivered is a withdrawal
	Held      bool // and a person has to release it
}

// Err is what went wrong, in one line of the entry.
func (r *Round) Err() error { return errors.Join(r.Fetch, r.Deliver) }

// hopeless reports whether nothing but news can help: the source refuses for good, there is no
// newer reason to ask it, and no delivery is left to try; or the saga refuses for good and the
// source has nothing more to say.
func (r *Round) hopeless(e *Entry) bool {
	refused := asking.IsPermanent(r.Fetch) && e.FetchRequested <= r.FetchSeq && (r.Deliver == nil || asking.IsPermanent(r.Deliver))
	return refused || asking.IsPermanent(r.Deliver) && e.FetchRequested == e.FetchCompleted && e.Reread.IsZero()
}

// undecidedWait is how long an object waits before it is looked whether a person has decided.
const undecidedWait = time.Minute

// Finish ends a lease after a round of work. News that came meanwhile is worked on at once,
// whatever became of the old.
func Finish(e *Entry, r *Round, now time.Time, p *Policy) {
	e.Holder, e.Until = "", now
	e.deliver(r, now)
	err := r.Err()
	if err == nil {
		e.lift()
		if e.Due = p.Due(e, now); r.Passed {
			e.LastError = "nothing was done for the latest version: a person has accepted what stands"
		}
		return
	}
	if _, waits := errors.AsType[*Undecided](r.Deliver); waits && r.Fetch == nil { // D2
		e.lift()
		if e.LastError, e.Due = Brief(err), now; e.Accepted == r.Accepted {
			e.Due = earlier(now.Add(undecidedWait), p.fetchDue(e, now)) // the source may say that it is cancelled
		}
		return
	}
	e.Attempts++
	e.LastError = Brief(err)
	switch {
	case e.Accepted > r.Accepted:
		e.Due = now
	case r.hopeless(e):
		e.Blocked, e.Due = e.LastError, time.Time{}
	case r.Deliver == nil && errors.Is(err, errBehind):
		e.Due = now.Add(p.Settle + p.backoff(e.Object, e.Attempts))
		if !e.Behind.IsZero() && !now.Before(e.Behind.Add(patient*p.Settle)) { // R10
			e.Blocked = e.LastError
		}
	default:
		e.Due = now.Add(max(asking.Wait(r.Fetch), asking.Wait(r.Deliver), p.backoff(e.Object, e.Attempts)))
	}
}

// Release ends a lease whose work was cut short: another process may have it at once.
func Release(e *Entry, r *Round, now time.Time) {
	e.deliver(r, now)
	e.Holder, e.Until, e.Due = "", now, now
}

// maxReason is how much of an error an entry keeps.
const maxReason = 500

func Brief(err error) string {
	s := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "�")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// later returns the later of two times; zero is never, and stays so.
func later(now, t time.Time) time.Time {
	if t.Before(now) && !t.IsZero() {
		return now
	}
	return t
}

// Latest returns the latest of several times.
func Latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
