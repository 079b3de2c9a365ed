package asking

import (
	"errors"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Permanent marks an error that asking again cannot mend: what is asked about is blocked until a
// person or something new speaks.
func Permanent(err error) error { return permanentError{err} }

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// IsPermanent reports whether err is marked by [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// Refused reports whether asking again at once is in vain: err is permanent, or the other side
// refused the question.
func Refused(err error) bool {
	class, _ := saga.Classify(err)
	return class == saga.Refused || IsPermanent(err)
}

// Wait is the wait that the other side asked for by [saga.RetryAfter], or zero.
func Wait(err error) time.Duration {
	_, wait := saga.Classify(err)
	return wait
}
