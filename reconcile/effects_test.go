package reconcile_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile"
)

// A document that stands shows that its step was done; where none stands nothing is said of it; and
// what cannot be read is an error, not a step without a result.
func TestMade(t *testing.T) {
	t.Parallel()
	one := []plan.Document{{ID: "inv_1"}}
	unread := errors.New("unread")
	for _, c := range []struct {
		name   string
		live   []plan.Document
		output func(*plan.Document) (any, error)
		want   map[string]reconcile.Effect
		err    error
	}{
		{name: "one", live: one, want: map[string]reconcile.Effect{"invoice": {ExternalID: "inv_1", Output: "inv_1"}}},
		{name: "none", want: map[string]reconcile.Effect{}},
		{
			name: "its output", live: one, output: func(d *plan.Document) (any, error) { return "the whole " + d.ID, nil },
			want: map[string]reconcile.Effect{"invoice": {ExternalID: "inv_1", Output: "the whole inv_1"}},
		},
		{name: "unread", live: one, output: func(*plan.Document) (any, error) { return nil, unread }, err: unread},
	} {
		got, err := reconcile.ByStep("invoice", c.output)(nil, c.live, nil)
		if !errors.Is(err, c.err) || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, err, c.want, c.err)
		}
	}
}
