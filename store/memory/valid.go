package memory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// validEntry refuses what a database's column types and CHECK constraints refuse, with every reason at once.
func validEntry(e *ledger.Entry) error {
	r := &e.Record
	errs := []error{
		name("saga", e.ID.Saga), name("work", e.ID.Work),
		valid.Text("revision", r.Revision), valid.Text("step", r.Step), valid.Key("external id", r.ExternalID),
		valid.Text("class", string(r.Class)), valid.Text("error", r.Error), valid.Text("reason", string(r.Reason)),
		valid.Text("body", string(r.Body)), valid.Text("snapshot", string(r.Snapshot)),
		oneOf("kind", r.Kind, kinds), oneOf("direction", r.Direction, directions), whole("wait", r.Wait),
	}
	if !r.Status.Valid() {
		errs = append(errs, fmt.Errorf("status %q is none of the statuses", r.Status))
	}
	if (r.Status == saga.Review) != (r.Reason != "") {
		errs = append(errs, fmt.Errorf("status %q with reason %q: a review has a reason, and nothing else has", r.Status, r.Reason))
	}
	if r.Seq == 1 && r.Version < 1 {
		errs = append(errs, fmt.Errorf("definition version %d is less than 1", r.Version))
	}
	if a := r.Arm; a != nil {
		errs = append(errs, valid.Text("armed step", a.Step), valid.Text("key", a.Key),
			oneOf("armed direction", a.Direction, directions[1:]), whole("budget", a.Budget))
		if a.Attempt < 1 {
			errs = append(errs, fmt.Errorf("armed attempt %d is less than 1", a.Attempt))
		}
	}
	return errors.Join(errs...)
}

// name is a text that must be there.
func name(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	return valid.Text(what, s)
}

// whole refuses a duration that a column of milliseconds would round: the record read back would not have
// the hash it was stored under.
func whole(what string, d time.Duration) error {
	if d < 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("%s %v is negative or not whole milliseconds", what, d)
	}
	return nil
}

func oneOf[T ~string](what string, v T, known []T) error {
	if slices.Contains(known, v) {
		return nil
	}
	return fmt.Errorf("%s %q is none of the %ss", what, string(v), what)
}

var (
	kinds = []saga.Kind{
		saga.KindStarted, saga.KindArmed, saga.KindDone, saga.KindNotSent, saga.KindRefused, saga.KindUnknown,
		saga.KindLost, saga.KindFault, saga.KindFound, saga.KindUnfinished, saga.KindNotFound, saga.KindUnclear,
		saga.KindSeveral, saga.KindResolved, saga.KindCancelled, saga.KindNoted, saga.KindParked, saga.KindPaused,
		saga.KindResumed, saga.KindRetried, saga.KindSkipped, saga.KindHeard, saga.KindRevised, saga.KindForgotten, saga.KindAdopted,
	}
	directions = []saga.Direction{"", saga.Forward, saga.Undo}
)
