package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Refuse says why no ledger stores e, with every reason: what a record may say, whatever its chain.
// A ledger asks it before it appends, [Check] of what is stored. That texts are texts is for each
// database to see to.
func Refuse(e *Entry) (err error) {
	for i := range rules {
		if rules[i].broken(e) {
			err = errors.Join(err, errors.New(rules[i].says(e)))
		}
	}
	return err
}

// rules are what a record and its schedule may say.
var rules = []struct {
	broken func(*Entry) bool
	says   func(*Entry) string
}{
	{
		func(e *Entry) bool { return e.ID.Saga == "" || e.ID.Work == "" },
		func(e *Entry) string {
			return fmt.Sprintf("its saga %q or its work id %q is empty", e.ID.Saga, e.ID.Work)
		},
	}, {
		func(e *Entry) bool { return e.Record.Seq < 1 },
		func(e *Entry) string { return fmt.Sprintf("its number in the chain is %d", e.Record.Seq) },
	}, {
		func(e *Entry) bool { return !slices.Contains(kinds, e.Record.Kind) },
		func(e *Entry) string { return fmt.Sprintf("kind %q is none of the kinds", e.Record.Kind) },
	}, {
		func(e *Entry) bool { return !e.Record.Status.Valid() },
		func(e *Entry) string { return fmt.Sprintf("status %q is none of the statuses", e.Record.Status) },
	}, {
		func(e *Entry) bool { return (e.Record.Status == saga.Review) != (e.Record.Reason != "") },
		func(e *Entry) string {
			return fmt.Sprintf("status %q with reason %q: a review has a reason, and nothing else has", e.Record.Status, e.Record.Reason)
		},
	}, {
		func(e *Entry) bool { return e.Record.Reason != "" && !slices.Contains(reasons, e.Record.Reason) },
		func(e *Entry) string { return fmt.Sprintf("reason %q is none of the reasons", e.Record.Reason) },
	}, {
		func(e *Entry) bool { return e.Record.Direction != "" && !directed(e.Record.Direction) },
		func(e *Entry) string {
			return fmt.Sprintf("direction %q is none of the directions", e.Record.Direction)
		},
	}, {
		func(e *Entry) bool {
			return e.Record.ErrorClass != "" && !slices.Contains(classes, e.Record.ErrorClass)
		},
		func(e *Entry) string { return fmt.Sprintf("class %q is none of the classes", e.Record.ErrorClass) },
	}, {
		func(e *Entry) bool { return !whole(e.Record.Wait) },
		func(e *Entry) string {
			return fmt.Sprintf("wait %v is negative or not whole milliseconds", e.Record.Wait)
		},
	}, {
		func(e *Entry) bool { return e.Record.Until.Nanosecond()%int(time.Millisecond) != 0 },
		func(e *Entry) string { return fmt.Sprintf("until %s is not whole milliseconds", e.Record.Until) },
	}, {
		func(e *Entry) bool { return !whole(e.Record.Limit) },
		func(e *Entry) string {
			return fmt.Sprintf("limit %v is negative or not whole milliseconds", e.Record.Limit)
		},
	}, {
		func(e *Entry) bool {
			return (e.Record.Seq == 1 || e.Record.Kind == machine.KindRevised) && e.Record.Version < 1
		},
		func(e *Entry) string { return fmt.Sprintf("definition version %d is less than 1", e.Record.Version) },
	}, {
		func(e *Entry) bool { return e.Record.Seq == 1 && len(e.Record.Signals) > 0 },
		func(*Entry) string { return "it consumes signals, and nothing was posted before it" },
	}, {
		func(e *Entry) bool { a := e.Record.Dispatch; return a != nil && a.Attempt < 1 },
		func(e *Entry) string {
			return fmt.Sprintf("armed attempt %d is less than 1", e.Record.Dispatch.Attempt)
		},
	}, {
		func(e *Entry) bool { a := e.Record.Dispatch; return a != nil && !directed(a.Direction) },
		func(e *Entry) string {
			return fmt.Sprintf("armed direction %q is none of the directions", e.Record.Dispatch.Direction)
		},
	}, {
		func(e *Entry) bool { a := e.Record.Dispatch; return a != nil && !whole(a.Budget) },
		func(e *Entry) string {
			return fmt.Sprintf("budget %v is negative or not whole milliseconds", e.Record.Dispatch.Budget)
		},
	}, {
		func(e *Entry) bool {
			s := e.Schedule
			return s != nil && (s.Class < ClassCompensating || s.Class > ClassUnbegun)
		},
		func(e *Entry) string {
			return fmt.Sprintf("class %d in the order of claims is none of them", e.Schedule.Class)
		},
	}, {
		func(e *Entry) bool {
			s := e.Schedule
			return s != nil && s.Hold && GoesOn(e.Record.Status, e.Record.Reason) && e.Record.Session == 0
		},
		func(*Entry) string { return "it is to be held, and no session writes it" },
	},
}

// whole refuses a duration that milliseconds would round: the record read back would not have the
// hash it was stored under.
func whole(d time.Duration) bool { return d >= 0 && d%time.Millisecond == 0 }

func directed(d saga.Direction) bool { return d == saga.Forward || d == saga.Undo }

// The words of records. A new one costs no migration.
var (
	kinds = []machine.Kind{
		machine.KindDone, machine.KindStarted, machine.KindDispatched, machine.KindNotSent, machine.KindRefused, machine.KindUnknown,
		machine.KindLost, machine.KindFault, machine.KindFound, machine.KindUnfinished, machine.KindOther, machine.KindNotFound, machine.KindUnclear,
		machine.KindSeveral, machine.KindResolved, machine.KindCancelled, machine.KindNoted, machine.KindParked, machine.KindPaused,
		machine.KindResumed, machine.KindRetried, machine.KindSkipped, machine.KindHeard, machine.KindRevised, machine.KindForgotten, machine.KindAdopted,
		machine.KindWaiting, machine.KindOver, machine.KindOverdue, machine.KindApplies, machine.KindLeftOut,
		machine.KindAnswered, machine.KindAnswerKept, machine.KindAnsweredNo, machine.KindUnanswered, machine.KindExtended,
		machine.KindOpened, machine.KindVoted, machine.KindApproved, machine.KindRejected,
	}
	reasons = []saga.Reason{
		saga.ReasonInDoubt, saga.ReasonUndoFailed, saga.ReasonCannotUndo, saga.ReasonAfterPivot, saga.ReasonExhausted, saga.ReasonPoison, saga.ReasonConflict,
		saga.ReasonDeadline, saga.ReasonUnanswered, saga.ReasonLate, saga.ReasonHung,
	}
	// The last ones are of the machine's own making.
	classes = []saga.Class{saga.Unknown, saga.Unsent, saga.Refused, saga.RefusedKey, saga.NotUndoable, saga.Gone, saga.Fault, "stopped", "outage"}
)
