package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// exit is the status amends ends with. Scripts depend on the numbers and on the words: neither
// changes.
type exit int

const (
	exitDone        exit = 0
	exitFailed      exit = 1
	exitUsage       exit = 2
	exitNotFound    exit = 3
	exitNotAllowed  exit = 4
	exitConflict    exit = 5
	exitFindings    exit = 6
	exitTimedOut    exit = 7
	exitInterrupted exit = 130
)

// exits is the one table of what amends can end with. The help text and the errors in JSON are made
// from it.
var exits = []struct {
	exit  exit
	word  string // "code" of an error in JSON
	means string
}{
	{exitDone, "done", "done; a list may be empty"},
	{exitFailed, "failed", "failed: no connection, no ledger there, a schema that does not fit; a run that failed"},
	{exitUsage, "usage", "the command line is wrong, or does not say which of several is meant; a question was not answered"},
	{exitNotFound, "not-found", "no such work, delivery, object, job or plan"},
	{exitNotAllowed, "not-allowed", "not allowed: credentials, permissions, a read-only database"},
	{exitConflict, "conflict", "refused: things do not stand as the command takes for granted, or a person decides"},
	{exitFindings, "findings", "check found something; other commands only with --exit-code"},
	{exitTimedOut, "timed-out", "--wait ran out; what was asked for is stored, and goes on without the command"},
	{exitInterrupted, "interrupted", "stopped by Ctrl-C or a signal"},
}

func (e exit) word() string {
	for _, x := range exits {
		if x.exit == e {
			return x.word
		}
	}
	return "failed"
}

// failure is an error for the person who must act: what happened, why, and what to do next.
type failure struct {
	exit    exit
	what    string
	next    string // "" when there is nothing sensible to suggest
	err     error  // why; may be nil
	details any    // for programs, in JSON only
}

func (f *failure) Error() string {
	why := ""
	if f.err != nil {
		why = strings.TrimSuffix(f.err.Error(), ".")
	}
	parts := slices.DeleteFunc([]string{f.what, why, f.next}, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}

func (f *failure) Unwrap() error { return f.err }

// usage returns the error for a mistake in the command as typed. It holds every reason at once, so
// that the user can mend them all together.
func usage(next string, reasons ...string) error {
	return &failure{exit: exitUsage, what: strings.Join(reasons, "; "), next: next}
}

// meanings says which errors of the layers below end amends how.
var meanings = []struct {
	err  error
	exit exit
}{
	{ledger.ErrNotFound, exitNotFound},
	{ledger.ErrCursor, exitUsage},
	{ledger.ErrChanged, exitConflict},
	{intake.ErrNotFound, exitNotFound},
	{coordinator.ErrNotInReview, exitConflict},
	{coordinator.ErrOtherStep, exitConflict},
	{coordinator.ErrFinished, exitConflict},
	{coordinator.ErrAtRest, exitConflict},
	{coordinator.ErrNotPaused, exitConflict},
	{coordinator.ErrPaused, exitConflict},
	{coordinator.ErrUnderWay, exitConflict},
	{coordinator.ErrNotWaiting, exitConflict},
	{coordinator.ErrNotAsking, exitConflict},
	{coordinator.ErrDeclined, exitConflict},
	{coordinator.ErrNotOpen, exitConflict},
	{coordinator.ErrOtherShown, exitConflict},
	{coordinator.ErrNoVote, exitConflict},
	{coordinator.ErrVoted, exitConflict},
	{coordinator.ErrOtherMessage, exitConflict},
	{coordinator.ErrChangesNothing, exitConflict},
	{coordinator.ErrInDoubt, exitConflict},
	{coordinator.ErrNotEnded, exitConflict},
	{coordinator.ErrWithdrawn, exitConflict},
	{ledger.ErrLocked, exitConflict},
	{schedule.ErrUnknown, exitNotFound},
	{schedule.ErrNotFound, exitNotFound},
	{schedule.ErrPaused, exitConflict},
	{plan.ErrNotFound, exitNotFound},
	{ledger.ErrReadOnly, exitNotAllowed},
	{fs.ErrPermission, exitNotAllowed},
}

// classify gives an error its exit status. What cobra refuses before a verb has begun is a mistake
// on the command line.
func (a *app) classify(ctx context.Context, err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return &failure{exit: exitInterrupted, what: "interrupted"}
	case !a.begun:
		return &failure{exit: exitUsage, what: err.Error(), next: "try: amends --help"}
	}
	if known := exitOf(err); known != exitFailed {
		return &failure{exit: known, err: err}
	}
	if deniedByPostgres(err) {
		return &failure{exit: exitNotAllowed, err: err, next: "look at the user, the password and the grants"}
	}
	return &failure{exit: exitFailed, err: err}
}

// exitOf is how an error of the layers below ends amends.
func exitOf(err error) exit {
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			return m.exit
		}
	}
	return exitFailed
}

// deniedByPostgres reports a wrong password, a refused user or a missing privilege.
func deniedByPostgres(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code.Class() == "28" || e.Code == "42501")
}

// fail tells the failure on stderr, as a line or as JSON, and returns its status.
func (a *app) fail(f *failure) exit {
	if !a.json {
		fmt.Fprintln(a.err, "amends: "+oneLine(withoutPassword(f.Error())))
		return f.exit
	}
	if err := writeJSON(a.err, versioned{f.json()}, ""); err != nil {
		fmt.Fprintln(a.err, "amends: "+oneLine(withoutPassword(f.Error())))
	}
	return f.exit
}

// passwords are those of an address that was typed where none belongs, such as that of a work: the
// error repeats what was typed.
var passwords = []*regexp.Regexp{
	regexp.MustCompile(`(://[^\s/@:]*:)\S*(@)`),
	regexp.MustCompile(`(?i)((?:password|passwd|pwd)\s*=\s*)(?:'[^']*'?|[^\s;&"']+)()`),
}

func withoutPassword(message string) string {
	for _, p := range passwords {
		message = p.ReplaceAllString(message, "${1}xxxxx$2")
	}
	return message
}

// errorJSON is a failure for programs.
type errorJSON struct {
	Code    string `json:"code"`
	Exit    exit   `json:"exit"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

func (f *failure) json() *errorJSON {
	return &errorJSON{f.exit.word(), f.exit, withoutPassword(f.Error()), f.details}
}
