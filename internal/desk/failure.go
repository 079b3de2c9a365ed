package desk

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/retention"
)

// Code is a kind of failure, for programs. None changes.
type Code string

const (
	Failed      Code = "failed"
	Misuse      Code = "usage"
	NotFound    Code = "not-found"
	NotAllowed  Code = "not-allowed"
	Conflict    Code = "conflict"
	Findings    Code = "findings"
	TimedOut    Code = "timed-out"
	Interrupted Code = "interrupted"
)

// Exits are the statuses that the command ends with.
var Exits = map[Code]int{"done": 0, Failed: 1, Misuse: 2, NotFound: 3, NotAllowed: 4, Conflict: 5, Findings: 6, TimedOut: 7, Interrupted: 130}

// Told is the failure in a document.
func (f *Failure) Told() *Told {
	return &Told{Code: f.Code, Exit: Exits[f.Code], Message: withoutPassword(f.Error()), Details: f.Details}
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

// Failure is an error for the person who must act: what happened, why, and what to do next.
type Failure struct {
	Code    Code
	What    string
	Why     error  // may be nil
	Stands  string // what is so all the same: "nothing was stored"
	Next    string // "" when there is nothing sensible to suggest
	Details any    // what there is to choose from, for programs
	Done    bool   // what was asked for is stored all the same
}

// Error is the whole of it, on one line or several.
func (f *Failure) Error() string { return joined(f.Plain(), f.Next) }

// Plain is what happened, why, and what is so all the same, without what to do.
func (f *Failure) Plain() string {
	why := ""
	if f.Why != nil {
		why = strings.TrimSuffix(f.Why.Error(), ".")
	}
	return joined(f.What, why, f.Stands)
}

func (f *Failure) Unwrap() error { return f.Why }

func joined(parts ...string) string { return joinedBy("; ", parts...) }

func joinedBy(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
}

// Usage is the error of what is wrong with what was asked, or nil where nothing is. It holds every reason at once, so
// that they can all be mended together.
func Usage(next string, reasons ...string) error {
	if len(reasons) == 0 {
		return nil
	}
	return &Failure{Code: Misuse, What: strings.Join(reasons, "; "), Next: next}
}

// Wrong is what is wrong with what was asked, in words.
type Wrong []string

// If adds what is wrong where something is so.
func (w *Wrong) If(is bool, words string) {
	if is {
		*w = append(*w, words)
	}
}

// Err adds an error, with words before it, where there is one.
func (w *Wrong) Err(before string, err error) {
	if err != nil {
		*w = append(*w, before+err.Error())
	}
}

// Empty is the error of a name that is empty. A shell makes one of a variable that was never set, and to
// take it for "none was said" would mean another instance, or all.
func Empty(what string) error {
	return Usage("if it came from a variable, the variable is empty", what+" is empty")
}

// named says what is to be named, where it is not.
func named(name, what string) (wrong Wrong) {
	wrong.If(name == "", "name the "+what)
	return wrong
}

// notFound is the error of what there is not. why may be "".
func notFound(what, why, next string) *Failure {
	return &Failure{Code: NotFound, What: what, Why: Either(why != "", errors.New(why), nil), Next: next}
}

// alarm is the finding that there is any of what should not be; nil: there is none.
func alarm(n int, what, next string) error {
	return Either[error](n > 0, &Failure{Code: Findings, What: what, Next: next}, nil)
}

func said(text string) bool { return strings.TrimSpace(text) != "" }

// codes say which errors of the layers below are which.
var codes = map[error]Code{
	ledger.ErrNotFound: NotFound, intake.ErrNotFound: NotFound, schedule.ErrUnknown: NotFound, schedule.ErrNotFound: NotFound, plan.ErrNotFound: NotFound,
	ledger.ErrCursor:    Misuse,
	retention.ErrReason: Misuse,
	ledger.ErrReadOnly:  NotAllowed, fs.ErrPermission: NotAllowed,
	ledger.ErrChanged: Conflict, ledger.ErrLocked: Conflict, schedule.ErrPaused: Conflict,
	coordinator.ErrNotInReview: Conflict, coordinator.ErrOtherStep: Conflict, coordinator.ErrFinished: Conflict, coordinator.ErrAtRest: Conflict,
	coordinator.ErrNotPaused: Conflict, coordinator.ErrPaused: Conflict, coordinator.ErrUnderWay: Conflict, coordinator.ErrNotWaiting: Conflict,
	coordinator.ErrNotAsking: Conflict, coordinator.ErrDeclined: Conflict, coordinator.ErrNotOpen: Conflict, coordinator.ErrOtherShown: Conflict,
	coordinator.ErrNoVote: Conflict, coordinator.ErrVoted: Conflict, coordinator.ErrOtherMessage: Conflict, coordinator.ErrChangesNothing: Conflict,
	coordinator.ErrInDoubt: Conflict, coordinator.ErrNotEnded: Conflict, coordinator.ErrWithdrawn: Conflict,
}

func codeOf(err error) Code {
	for known, code := range codes {
		if errors.Is(err, known) {
			return code
		}
	}
	return Failed
}

// FailureOf is an error as a failure.
func FailureOf(ctx context.Context, err error) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return &Failure{Code: Interrupted, What: "interrupted"}
	}
	if code := codeOf(err); code != Failed {
		return &Failure{Code: code, Why: err}
	}
	if deniedByPostgres(err) {
		return &Failure{Code: NotAllowed, Why: err, Next: "look at the user, the password and the grants"}
	}
	return &Failure{Code: Failed, Why: err}
}

// deniedByPostgres reports a wrong password, a refused user or a missing privilege.
func deniedByPostgres(err error) bool {
	var e interface{ SQLState() string }
	return errors.As(err, &e) && (strings.HasPrefix(e.SQLState(), "28") || e.SQLState() == "42501")
}
