// Package valid holds what every ledger refuses before anything is sent to a database, so that all
// of them refuse the same.
package valid

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Text refuses what no SQL text column holds.
func Text(what, s string) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", what)
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("%s holds a NUL character", what)
	}
	return nil
}

// Key refuses a text that an index could not hold.
func Key(what, s string) error {
	if len(s) > ledger.MaxText {
		return fmt.Errorf("%s has %d bytes, the limit is %d", what, len(s), ledger.MaxText)
	}
	return Text(what, s)
}

// Entry says why an entry cannot be stored, with every reason.
func Entry(e *ledger.Entry) error {
	r := &e.Record
	err := errors.Join(ledger.Refuse(e),
		Text("saga", e.ID.Saga), Text("work id", e.ID.Work), Key("external id", r.ExternalID),
		Text("revision", r.Revision), Text("the revision it is at", e.Revision), Text("step", r.Step), Text("error", r.Error),
		Text("note", r.Note), Text("actor", r.Actor), Text("actor's words", r.Why), Text("cause", r.Cause),
		Text("body", string(r.Body)), Text("snapshot", string(r.Snapshot)))
	if a := r.Dispatch; a != nil {
		err = errors.Join(err, Text("armed step", a.Step), Text("key", a.Key))
	}
	for i := range e.Waits {
		if err = errors.Join(err, Wait(&e.Waits[i])); e.Waits[i].ID != e.ID {
			err = errors.Join(err, fmt.Errorf("it makes a wait of %s findable", e.Waits[i].ID))
		}
	}
	return err
}

// Signal says why a signal cannot be stored, with every reason. Its error matches
// [ledger.ErrInvalid].
func Signal(s *machine.Signal) error {
	errs := []error{
		Key("key", s.Key), Text("actor", s.Actor), Text("reason", s.Reason),
		Text("step", s.Step), Text("direction", string(s.Direction)), Key("external id", s.ExternalID),
		Text("revision", s.Revision), body("output", s.Output), body("input", s.Input),
		Key("message", s.Message), Key("message key", s.Said.MessageKey), Key("message id", s.Said.MessageID), Text("failed", s.Failed),
	}
	if !slices.Contains(signals, s.Kind) {
		errs = append(errs, fmt.Errorf("%q is no kind of signal", string(s.Kind)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrInvalid, err)
	}
	return nil
}

// Wait says why a wait cannot be stored, with every reason. Its error matches [ledger.ErrInvalid].
func Wait(w *ledger.Wait) error {
	errs := []error{
		Key("the name", w.Name), Key("the key", w.Key), Text("the saga", w.ID.Saga), Text("the work", w.ID.Work), Key("the step", w.Step),
		Key("the step's key", w.StepKey),
	}
	if w.Key == "" || w.Step == "" {
		errs = append(errs, errors.New("it names no step, or no key"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: a wait of %s: %w", ledger.ErrInvalid, w.ID, err)
	}
	return nil
}

// Message says why a message cannot be stored, with every reason. Its error matches [ledger.ErrInvalid].
func Message(m *program.Message) error {
	var errs []error
	for _, f := range []struct{ what, text string }{{"name", m.Name}, {"key", m.Key}, {"id", m.ID}} {
		if f.text == "" || len(f.text) > program.MaxWork {
			errs = append(errs, fmt.Errorf("its %s has %d bytes; one to %d are allowed", f.what, len(f.text), program.MaxWork))
		}
		errs = append(errs, Text("its "+f.what, f.text))
	}
	if len(m.Body) > program.MaxAnswer {
		errs = append(errs, fmt.Errorf("its body has %d bytes; at most %d are allowed", len(m.Body), program.MaxAnswer))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: the message: %w", ledger.ErrInvalid, err)
	}
	return nil
}

// Returns says why works cannot be given back, with every reason. Its error matches
// [ledger.ErrInvalid].
func Returns(works []ledger.Return) error {
	var errs []error
	for i := range works {
		if err := Key("the destination of number "+strconv.FormatInt(works[i].Number, 10), works[i].WaitsFor); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrInvalid, err)
	}
	return nil
}

// Control says why a control cannot be set by session t, with every reason. Its error matches
// [ledger.ErrInvalid].
func Control(t machine.Token, c *ledger.Control) error {
	errs := []error{Key("name", c.Name), body("body", c.Body), Text("actor", c.Actor), Text("reason", c.Reason)}
	refuse := func(is bool, why string) {
		if is {
			errs = append(errs, errors.New(why))
		}
	}
	refuse(!slices.Contains(controls, c.Kind), strconv.Quote(string(c.Kind))+" is no kind of control")
	refuse(c.Name == "", "it has no name")
	refuse(c.Version < 0, "its version is less than 0")
	refuse(c.Nonce == 0, "it has no nonce, by which it would be known when it is set again")
	refuse(c.Actor == "" && t == 0, "it is of no session, and names no actor")
	refuse(c.Actor == "" && c.Reason != "", "it has a reason and no actor")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrInvalid, err)
	}
	return nil
}

// Look refuses what cannot be put on record of who looked at what.
func Look(what string, by saga.Actor) error {
	c := ledger.Control{Kind: ledger.ControlPause, Name: what, Actor: by.Name, Reason: by.Reason, Nonce: 1}
	return Control(0, &c)
}

var controls = []ledger.ControlKind{ledger.ControlDestination, ledger.ControlShare, ledger.ControlPause, ledger.ControlRetention, ledger.ControlHold}

// body refuses what is no JSON, by syntax or by encoding.
func body(what string, b json.RawMessage) error {
	if len(b) > 0 && !json.Valid(b) {
		return fmt.Errorf("%s is not valid JSON", what)
	}
	return Text(what, string(b))
}

var signals = []machine.SignalKind{
	machine.SignalCancel, machine.SignalResolve, machine.SignalConflict, machine.SignalLate, machine.SignalWake, machine.SignalRevise,
	machine.SignalKeep, machine.SignalPause, machine.SignalResume, machine.SignalRetry, machine.SignalSkip, machine.SignalEndWait,
	machine.SignalAnswer, machine.SignalExtend, machine.SignalVote,
}

// Cut makes any text fit for a column with an index: what is not text becomes a question mark, and
// what is too long ends at the limit.
func Cut(s string) string {
	s = Printable(s)
	if len(s) <= ledger.MaxText {
		return s
	}
	return strings.ToValidUTF8(s[:ledger.MaxText], "")
}

// Printable makes any text fit for a text column.
func Printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}
