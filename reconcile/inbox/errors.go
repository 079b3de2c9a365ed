package inbox

import (
	"errors"
	"time"
)

// ErrNotFound matches the error of a reader that was asked for a delivery that is not there.
var ErrNotFound = errors.New("no such delivery")

// Permanent marks an error of [Source.Fetch] or [Source.Apply] that trying again cannot mend. The object is
// blocked at once, with the error as the reason, until something new is heard of it or an operator replays.
func Permanent(err error) error { return permanentError{err} }

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Later marks an error of [Source.Fetch] or [Source.Apply] with the time the other side asked us to wait: a
// Retry-After. The whole source is asked less often for a while.
func Later(err error, wait time.Duration) error { return laterError{err, wait} }

type laterError struct {
	error
	wait time.Duration
}

func (e laterError) Unwrap() error { return e.error }

// IsPermanent reports whether err is marked by [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// askedToWait is the wait the other side asked for, or zero.
func askedToWait(err error) time.Duration {
	later, _ := errors.AsType[laterError](err)
	return later.wait
}
