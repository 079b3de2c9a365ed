package sweep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/sweep"
)

// A hearer that asks by Get learns what a sweep would tell of the object: the same version, body and fingerprint. An
// error is never a deletion.
func TestFetch(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := sweep.Source{Get: func(_ context.Context, id string) (*sweep.Object, error) {
		switch id {
		case "there":
			return &sweep.Object{ID: id, Version: reconcile.Counter(3), Body: []byte(`{"a":1}`)}, nil
		case "deleted":
			return &sweep.Object{ID: id, Deleted: true}, nil
		case "gone":
			return nil, nil
		default:
			return nil, broken
		}
	}}
	ask := func(id string) (reconcile.Fetched, error) { return s.Fetch(t.Context(), reconcile.Object{ID: id}) }

	digest, err := reconcile.Fingerprint([]byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := ask("there"); err != nil || f.Gone || f.Version != reconcile.Counter(3) || string(f.Body) != `{"a":1}` || f.Fingerprint != digest {
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
