package saga

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// applied keeps the changes it was given.
type applied []Change

func (a *applied) Apply(_ context.Context, c Change) error {
	*a = append(*a, c)
	return nil
}

// A definition starts its own saga, with an input of its own type.
func TestStartOfADefinition(t *testing.T) {
	t.Parallel()
	type order struct{ Total int }
	d, err := Define("invoice-order", 1, Do("invoice", func(context.Context, Call[order]) (string, error) { return "", nil }).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	var c applied
	if err := d.Start(t.Context(), &c, "shop:order:1", order{3}); err != nil {
		t.Fatal(err)
	}
	want := Change{ID: ID{Saga: "invoice-order", Work: "shop:order:1"}, Input: order{3}}
	if len(c) != 1 || c[0] != want {
		t.Errorf("applied %+v; want %+v", c, want)
	}
}

// The output of a step is what its action returned, if the step is done and it was kept.
func TestOutput(t *testing.T) {
	t.Parallel()
	type invoice struct{ Number string }
	s := Summary{WorkID: "shop:order:1", Steps: map[string]StepSummary{
		"done":     {Done: true, ExternalID: "inv_1", Output: json.RawMessage(`{"Number":"2026-1"}`)},
		"not kept": {Done: true, ExternalID: "inv_1"},
		"undone":   {Output: json.RawMessage(`{"Number":"2026-1"}`)},
		"other":    {Done: true, Output: json.RawMessage(`3`)},
	}}
	if got, err := Output[invoice](s, "done"); err != nil || got.Number != "2026-1" {
		t.Errorf("%+v, %v", got, err)
	}
	for step, want := range map[string]string{"not kept": "external id", "undone": "not done", "unknown": "not done", "other": "no saga.invoice"} {
		if got, err := Output[invoice](s, step); err == nil || !strings.Contains(err.Error(), want) || got.Number != "" {
			t.Errorf("%s: %+v, %v; want an error with %q", step, got, err, want)
		}
	}
}
