package scan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/scan"
)

// A hearer that asks by Get learns what a sweep would tell of the object: the same version, body and fingerprint. An
// error is never a deletion.
func TestFetch(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := scan.Source{Get: func(_ context.Context, id string) (*scan.Object, error) {
		switch id {
		case "there":
			return &scan.Object{ID: id, Version: inbox.Counter(3), Body: []byte(`{"a":1}`)}, nil
		case "deleted":
			return &scan.Object{ID: id, Deleted: true}, nil
		case "gone":
			return nil, nil
		default:
			return nil, broken
		}
	}}
	ask := func(id string) (inbox.Fetched, error) { return s.Fetch(t.Context(), inbox.Object{ID: id}) }

	digest, err := inbox.Fingerprint([]byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := ask("there"); err != nil || f.Gone || f.Version != inbox.Counter(3) || string(f.Body) != `{"a":1}` || f.Fingerprint != digest {
		t.Errorf("there: %+v, %v", f, err)
	}
	for _, id := range []string{"gone", "deleted"} {
		if f, err := ask(id); err != nil || !f.Gone {
			t.Errorf("%s: %+v, %v", id, f, err)
		}
	}
	if f, err := ask("unknown"); !errors.Is(err, broken) || f.Gone {
		t.Errorf("an error: %+v, %v", f, err)
	}
}
