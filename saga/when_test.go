package saga_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// A condition and a pivot may be said of every kind of step; a condition that panics is an error, and takes no process down.
func TestConditions(t *testing.T) {
	t.Parallel()
	act := func(context.Context, saga.Call[string]) (string, error) { return "", nil }
	read := func(saga.Call[string], saga.Message) (string, error) { return "", nil }
	large := func(c saga.Call[string]) bool { return c.Input[0] == 'l' }
	key := func(c saga.Call[string]) string { return c.Work }
	steps := map[string]func(when func(saga.Call[string]) bool) saga.Step[string]{
		"do": func(when func(saga.Call[string]) bool) saga.Step[string] {
			return saga.Do("s", act).Idempotent().NoUndo("a test").When(when).Pivot()
		},
		"await": func(when func(saga.Call[string]) bool) saga.Step[string] {
			return saga.Await("s", read).On("m", key).Once().Within(time.Hour, saga.AskPerson).When(when).Pivot()
		},
		"delay": func(when func(saga.Call[string]) bool) saga.Step[string] {
			return saga.Delay[string]("s", time.Hour).When(when).Pivot()
		},
		"until": func(when func(saga.Call[string]) bool) saga.Step[string] {
			return saga.Until("s", func(saga.Call[string]) time.Time { return time.Time{} }).When(when).Pivot()
		},
	}
	for name, step := range steps {
		d, err := saga.Define("s", 1, step(large))
		if err != nil {
			t.Fatal(name, err)
		}
		if s := d.Spec().Steps[0]; !s.Conditional || !s.Pivot {
			t.Errorf("%s: %+v", name, s)
		}
		for input, want := range map[string]bool{`"large"`: true, `"small"`: false} {
			if got, err := d.Applies(&program.Invocation{Work: "w", Step: "s", Input: []byte(input)}); got != want || err != nil {
				t.Errorf("%s of %s: %t, %v", name, input, got, err)
			}
		}
		if _, err := d.Applies(&program.Invocation{Work: "w", Step: "s", Input: []byte(`""`)}); err == nil || !strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: a condition that panics: %v", name, err)
		}
		if _, err := saga.Define("s", 1, step(nil)); err == nil || !strings.Contains(err.Error(), "When needs a function") {
			t.Errorf("%s without a function: %v", name, err)
		}
	}
	plain, err := saga.Define("s", 1, saga.Do("s", act).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	conditional, err := saga.Define("s", 1, saga.Do("s", act).Idempotent().NoUndo("a test").When(large))
	if err != nil || plain.Spec().Structure() == conditional.Spec().Structure() {
		t.Errorf("a condition is no part of the structure (%v)", err)
	}
	approve, err := saga.Define("s", 1, saga.Approve[string]("a").By("x").Within(time.Hour).Pivot())
	if err != nil || !approve.Spec().Steps[0].Pivot {
		t.Errorf("an approval is no pivot (%v)", err)
	}
}
