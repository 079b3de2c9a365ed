package saga

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// twoRequests is a step that creates a thing and then posts it; the second request ends as it is
// told.
func twoRequests(t *testing.T, second error) *Definition[string] {
	t.Helper()
	d, err := Define(order.Saga, 1, Do("a", func(_ context.Context, c Call[string]) (thing, error) {
		for _, err := range []error{c.Sending(), c.Sending()} {
			if err != nil {
				return thing{}, err
			}
		}
		return thing{}, second
	}).Find(func(context.Context, Call[string]) (Finding[thing], error) { return NotFound[thing](), nil }).EachRun().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// "machine/F7: ... Nor does one of an attempt's second request say anything of its first: the gate counts
// what it lets out. Not sent after a second request is in doubt likewise (machine/F5)".
func TestF7SecondRequest(t *testing.T) {
	inv := &program.Invocation{Step: "a", Direction: Forward, Input: []byte(`"x"`)}
	for what, c := range map[string]struct {
		err   error
		class Class
		maybe bool
	}{
		"refused under its key": {KeyRefused(errors.New("402")), RefusedKey, true}, "cannot undo": {CannotUndo(errors.New("late")), NotUndoable, true},
		"refused": {Permanent(errors.New("422")), Refused, true}, "not sent": {NotSent(errors.New("connection refused")), Unknown, false},
		"unknown": {errors.New("500"), Unknown, false}, "held back": {RetryAfter(time.Second, NotSent(errors.New("429"))), Unknown, false},
	} {
		inv.Gate = program.NewGate(nil)
		if o := twoRequests(t, c.err).Act(t.Context(), inv); o.Class != c.class || o.Maybe != c.maybe {
			t.Errorf("%s after two requests: %+v", what, o)
		}
	}
	g := program.NewGate(nil)
	for want := range 2 {
		if err := g.Pass(); err != nil || !g.Passed() || g.Again() != (want > 0) {
			t.Errorf("after %d requests again is %v (%v)", want+1, g.Again(), err)
		}
	}
	if o := failed(g, Permanent(errors.New("no"))); o.Class != Refused || !o.Maybe {
		t.Errorf("%+v", o)
	}
}

// An Identity that panics is an identity that cannot be compared. It takes no process
// down, neither the one that starts nor one that reads a newer version.
func TestCore16IdentityPanics(t *testing.T) {
	d, err := Define("s", 1, Identity(func(lines []string) any { return lines[0] }),
		Do("a", func(context.Context, Call[[]string]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Accept("w", []string{}); err == nil || !strings.Contains(err.Error(), "Identity panicked") {
		t.Errorf("the error is %v", err)
	}
	if _, err := d.Accept("w", []string{"x"}); err != nil {
		t.Error(err)
	}
}
