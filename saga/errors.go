package saga

import (
	"errors"
	"fmt"
	"time"
)

// steer is an error by which an action steers the saga.
type steer struct {
	class Class
	after time.Duration
	hold  bool
	said  bool // the destination has answered
	away  bool // no connection to it was to be had
	err   error
}

func (e *steer) Error() string { return e.err.Error() }
func (e *steer) Unwrap() error { return e.err }

// Permanent marks err as a definitive refusal: the destination has understood the request, will not
// do it, and has not done it in this attempt. Before the pivot the saga turns to compensation;
// after it, to review.
func Permanent(err error) error { return mark(Refused, 0, err) }

// KeyRefused marks err as a refusal that the destination has saved under [Call.Key] as its first result: it refuses every request under
// the key, also one that comes late, until it forgets the key. So no attempt of a [Action.Keyed] step has had an effect, or will, and
// nothing is owed an undo, where [Permanent] says so of the last attempt alone. A later retry by a person takes a new key. Say it
// only where the destination's contract does: an answer about the request itself (its form, its rate, its credentials) is saved nowhere.
func KeyRefused(err error) error { return mark(RefusedKey, 0, err) }

// CannotUndo marks err, of an undo, as final: what it should undo is there and cannot be undone any more, as after the time for refunds.
// The instance goes to review; a person says that it stands, and the way back goes on, or undoes it by hand.
func CannotUndo(err error) error { return mark(NotUndoable, 0, err) }

// NotSent marks err as provably without effect: nothing left this process, or the destination's
// contract says that such an answer means "not executed". The step may be tried again whatever its
// kind.
func NotSent(err error) error { return mark(Unsent, 0, err) }

// PreviousGone marks err as the destination's word that the thing is not there which an earlier
// revision left and the action was to change ([Call.PreviousID]). Nothing is undone for it. The
// step is made again, under a new key, when the attempt has settled and [Action.Find] has found
// nothing: the destination may answer from a replica that lags. Without a Find a person decides.
func PreviousGone(err error) error { return mark(Gone, 0, err) }

// RetryAfter asks that the next attempt or lookup wait at least d. It says nothing about the
// effect: wrap a [NotSent] error in it when there was none.
func RetryAfter(d time.Duration, err error) error {
	class, _ := Classify(err)
	return mark(class, max(d, 0), err)
}

// HoldBack marks err as the destination's word about itself and not about this request: it has too
// much to do, as an HTTP 429 or 503 says. With the wait of [RetryAfter] nothing at all is sent to
// that destination meanwhile; without one the mark changes nothing.
func HoldBack(err error) error {
	return also(err, steer{hold: true})
}

// Answered marks err as the destination's answer: whatever has come of the request, it is not at
// work there any more, as behind an HTTP 500. Without the mark, an attempt whose effect is unknown
// keeps its place in a limited destination until it has settled.
func Answered(err error) error {
	return also(err, steer{said: true})
}

// Unreachable marks err as that of a destination to which no connection is to be had, such as a port at which nothing listens. That is no
// fault of an order: what fails so for ten seconds is an outage, however few the orders. It says nothing about the effect: wrap a
// [NotSent] error in it. Package sagahttp marks its own.
func Unreachable(err error) error {
	return also(err, steer{away: true})
}

// also adds a mark to what err says already. No error stays none.
func also(err error, s steer) error {
	if err == nil {
		return nil
	}
	s.class, s.after = Classify(err)
	s.err = err
	return &s
}

func unreachable(err error) bool { return has(err, func(s *steer) bool { return s.away }) }

// has reports whether err, or one it wraps, has a mark.
func has(err error, mark func(*steer) bool) bool {
	for s := (*steer)(nil); errors.As(err, &s); err = s.err {
		if mark(s) {
			return true
		}
	}
	return false
}

// answered reports whether err, or one it wraps, is the destination's answer.
func answered(err error) bool { return has(err, func(s *steer) bool { return s.said }) }

// holdsBack reports whether err, or one it wraps, says that the whole destination is to be left
// alone.
func holdsBack(err error) bool { return has(err, func(s *steer) bool { return s.hold }) }

func mark(c Class, after time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &steer{class: c, after: after, err: err}
}

// Classify reports the class of an action's error and the wait it asked for, if any. The outermost
// mark wins.
func Classify(err error) (Class, time.Duration) {
	var s *steer
	if !errors.As(err, &s) {
		return Unknown, 0
	}
	after := s.after
	for inner := s; after == 0 && errors.As(inner.err, &inner); {
		after = inner.after
	}
	return s.class, after
}

// faultError is what a [Call] panics with when the action asks for something that is not there. The
// machine turns it into a [Fault]; nothing has been sent.
type faultError struct{ msg string }

func (e *faultError) Error() string { return "definition fault: " + e.msg }

func faultf(format string, args ...any) *faultError {
	return &faultError{msg: fmt.Sprintf(format, args...)}
}
