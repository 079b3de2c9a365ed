package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A Mapping looks in the wrong place. When it is corrected, a replay reads the delivery that is kept again, as its own.
func TestReplayReadsAgain(t *testing.T) {
	t.Parallel()
	for name, types := range map[string][]string{"unknown": nil, "malformed": {"order"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := memory.New(nil)
			sender := func(id string) *Sender {
				return &Sender{
					Provider: Standard(Mapping{ID: id, Version: "data.version"}), Secrets: []Secret{{"only", newSecret}}, Types: types, Tolerance: NoTolerance,
				}
			}
			work(t, db, sender("data.number"), func(r *Receiver) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/shop", strings.NewReader(paid))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = signed(t, "msg_1", paid)
				r.ServeHTTP(&plainWriter{}, req)
			})
			expect(t, db, `1 `+name+` "": it names no object: nothing is at "data.number", where the Mapping's ID should be`)

			replay(t, db)
			work(t, db, sender("data.no"), nil) // wrong still
			expect(t, db, `1 `+name+` "": read again, and it names no object: nothing is at "data.no", where the Mapping's ID should be (replayed by anna)`)

			for range 2 { // the second time it is a copy
				replay(t, db)
				if applied := work(t, db, sender("data.id"), nil); len(applied) != 0 && !slices.Equal(applied, []string{"shop:order:10492 3"}) {
					t.Errorf("applied is %q", applied)
				}
				expect(t, db,
					`2 applied "10492": the first that is heard of it`,
					`1 `+name+` "": read again: it names shop:order:10492, and is judged as a delivery of its own (replayed by anna)`)
			}
		})
	}
}

// work runs a processor until it has judged all, behind a door that is used first, and says what it applied.
func work(t *testing.T, db *memory.DB, s *Sender, use func(*Receiver)) (applied []string) {
	t.Helper()
	in, err := inbox.New(db, []*inbox.Source{{
		Name: "shop", Webhooks: s, Saga: "invoice",
		Fetch: func(context.Context, inbox.Object) (inbox.Fetched, error) {
			return inbox.Fetched{}, errors.New("not asked")
		},
		Decide: func(c inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: json.RawMessage(c.Body)}, nil },
		Apply: func(_ context.Context, c saga.Change) error {
			applied = append(applied, c.ID.Work+" "+c.Revision)
			return nil
		},
	}}, &inbox.Options{Poll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if use != nil {
		r, err := New(in, &Options{Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		use(r)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- in.Run(ctx) }()
	for quiet := false; !quiet; {
		ds, errUnjudged := db.Deliveries(t.Context(), intake.DeliveryFilter{Unjudged: true})
		es, errOwing := db.Entries(t.Context(), intake.EntryFilter{Owing: true})
		if err := errors.Join(errUnjudged, errOwing, t.Context().Err()); err != nil {
			t.Error(err)
			break
		}
		quiet = len(ds)+len(es) == 0
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return applied
}

func replay(t *testing.T, db *memory.DB) {
	t.Helper()
	if n, err := db.Replay(t.Context(), intake.DeliveryFilter{Numbers: []int64{1}}, "replayed by anna"); err != nil || n != 1 {
		t.Errorf("%d are replayed, %v", n, err)
	}
}

// expect compares what became of all deliveries, the newest first.
func expect(t *testing.T, db *memory.DB, want ...string) {
	t.Helper()
	ds, err := db.Deliveries(t.Context(), intake.DeliveryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		id, _ := json.Marshal(d.Object.ID)
		got = append(got, d.Name()[len("shop/"):]+" "+string(d.Outcome)+" "+string(id)+": "+d.Because)
	}
	if !slices.Equal(got, want) {
		t.Errorf("became of them:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
