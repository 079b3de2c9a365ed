package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// validEntry refuses what a database's column types and CHECK constraints refuse, with every reason at once.
func validEntry(e *ledger.Entry) error {
	r := &e.Record
	errs := []error{
		text("saga", e.ID.Saga), text("work", e.ID.Work), text("revision", r.Revision), text("step", r.Step),
		text("external id", r.ExternalID), text("error", r.Error),
		oneOf("kind", r.Kind, kinds), oneOf("direction", r.Direction, directions), oneOf("class", r.Class, classes),
		whole("wait", r.Wait),
	}
	if e.ID.Saga == "" || e.ID.Work == "" {
		errs = append(errs, errors.New("saga and work must not be empty"))
	}
	if !r.Status.Valid() {
		errs = append(errs, fmt.Errorf("status %q is none of the statuses", r.Status))
	}
	if r.Status == saga.Review && r.Reason == "" {
		errs = append(errs, errors.New("a review needs a reason"))
	}
	errs = append(errs, oneOf("reason", r.Reason, reasons))
	if a := r.Arm; a != nil {
		errs = append(errs, text("armed step", a.Step), text("key", a.Key),
			oneOf("armed direction", a.Direction, directions), whole("budget", a.Budget))
	}
	return errors.Join(errs...)
}

func validSignal(s *saga.Signal) error {
	return errors.Join(
		oneOf("kind", s.Kind, signalKinds), text("key", s.Key), text("actor", s.Actor), text("reason", s.Reason),
		text("step", s.Step), oneOf("direction", s.Direction, directions), text("external id", s.ExternalID),
	)
}

// text refuses what no SQL text column holds.
func text(name, s string) error {
	switch {
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("%s holds a NUL character", name)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", name)
	default:
		return nil
	}
}

// whole refuses a duration that a column of milliseconds would round: the record read back would not have
// the hash it was stored under.
func whole(name string, d time.Duration) error {
	if d < 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("%s %v is negative or not whole milliseconds", name, d)
	}
	return nil
}

func oneOf[T ~string](name string, v T, known []T) error {
	if slices.Contains(known, v) {
		return nil
	}
	return fmt.Errorf("%s %q is none of the %ss", name, string(v), name)
}

var (
	kinds = []saga.Kind{
		saga.KindStarted, saga.KindArmed, saga.KindDone, saga.KindNotSent, saga.KindRefused, saga.KindUnknown,
		saga.KindLost, saga.KindFault, saga.KindFound, saga.KindUnfinished, saga.KindNotFound, saga.KindUnclear,
		saga.KindSeveral, saga.KindResolved, saga.KindCancelled, saga.KindNoted, saga.KindParked, saga.KindResumed,
	}
	directions  = []saga.Direction{"", saga.Forward, saga.Undo}
	classes     = []saga.Class{"", saga.Unknown, saga.Unsent, saga.Refused, saga.Fault}
	signalKinds = []saga.SignalKind{
		saga.SignalCancel, saga.SignalResolve, saga.SignalConflict, saga.SignalLate, saga.SignalResume,
	}
	reasons = []saga.Reason{
		"", saga.ReasonInDoubt, saga.ReasonUndoFailed, saga.ReasonAfterPivot, saga.ReasonExhausted,
		saga.ReasonUnknownVersion, saga.ReasonPoison, saga.ReasonConflict,
	}
)
