package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

var controlCases = []testCase{
	{name: "bad values", run: controlBad},
	{name: "sixteen at once", run: controlRace, needs: tellsAll},
	{name: "a death at once", run: controlDeath},
}

// nonces are drawn in order: what counts is that none comes twice.
var nonces atomic.Int64

// control is a control as a process would set it first.
func control(kind ledger.ControlKind, name, body string) ledger.Control {
	c := ledger.Control{Kind: kind, Name: name, Nonce: nonces.Add(1)}
	if body != "" {
		c.Body = json.RawMessage(body)
	}
	return c
}

// after makes c a set that was decided on was.
func after(was, c ledger.Control) ledger.Control {
	c.Version = was.Version
	return c
}

// by makes c what a person does.
func by(c ledger.Control, actor, reason string) ledger.Control {
	c.Actor, c.Reason = actor, reason
	return c
}

func (b *bench) set(t machine.Token, c ledger.Control) ledger.Control {
	b.Helper()
	is, err := b.SetControl(b.Context(), t, c)
	if err != nil {
		b.Fatalf("set %s %q: %v", c.Kind, c.Name, err)
	}
	return is
}

func (b *bench) controls() ([]ledger.Control, int64) {
	b.Helper()
	all, newest, err := b.Controls(b.Context())
	if err != nil {
		b.Fatalf("controls: %v", err)
	}
	return all, newest
}

func (b *bench) acts(c ledger.Control, limit int) []ledger.Control {
	b.Helper()
	acts, err := b.Acts(b.Context(), c.Kind, c.Name, limit)
	if err != nil {
		b.Fatalf("acts of %s %q: %v", c.Kind, c.Name, err)
	}
	return acts
}

func sameControl(a, c ledger.Control) bool {
	return a.Kind == c.Kind && a.Name == c.Name && a.Version == c.Version && string(a.Body) == string(c.Body) &&
		(a.Body == nil) == (c.Body == nil) && a.Actor == c.Actor && a.Reason == c.Reason && a.Session == c.Session &&
		a.Nonce == c.Nonce && a.At.Equal(c.At)
}

func (b *bench) wantControls(when string, want ...ledger.Control) {
	b.Helper()
	if got, _ := b.controls(); !slices.EqualFunc(got, want, sameControl) {
		b.Errorf("%s the controls are\n\t%+v, want\n\t%+v", when, got, want)
	}
}

// What cannot be stored is refused before anything is sent, the same on every engine.
func controlBad(b *bench) {
	t := b.session()
	good := control(ledger.ControlDestination, books, `1`)
	for what, change := range map[string]func(c *ledger.Control){
		"no kind":            func(c *ledger.Control) { c.Kind = "" },
		"an unknown kind":    func(c *ledger.Control) { c.Kind = "Pause" },
		"no name":            func(c *ledger.Control) { c.Name = "" },
		"a long name":        func(c *ledger.Control) { c.Name = strings.Repeat("x", ledger.MaxText+1) },
		"a name with a NUL":  func(c *ledger.Control) { c.Name = "a\x00" },
		"a name in no UTF-8": func(c *ledger.Control) { c.Name = "\xff" },
		"a body of no JSON":  func(c *ledger.Control) { c.Body = json.RawMessage(`{`) },
		"a body in no UTF-8": func(c *ledger.Control) { c.Body = json.RawMessage("\"\xff\"") },
		"an actor's NUL":     func(c *ledger.Control) { c.Actor = "\x00" },
		"a reason's NUL":     func(c *ledger.Control) { c.Actor, c.Reason = "ann", "\x00" },
		"a reason alone":     func(c *ledger.Control) { c.Reason = "why" },
		"no nonce":           func(c *ledger.Control) { c.Nonce = 0 },
		"a negative version": func(c *ledger.Control) { c.Version = -1 },
	} {
		c := good
		change(&c)
		_, err := b.SetControl(b.Context(), t, c)
		b.wantError(what, err, ledger.ErrInvalid)
	}
	_, err := b.SetControl(b.Context(), 0, good)
	b.wantError("a person without a name", err, ledger.ErrInvalid)
	b.wantControls("after bad values")
}
