package plan_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// world is three sides at random.
type world struct {
	source, destination []plan.Seen
	ledger              []plan.Head
	how                 plan.Comparison
}

// digest is a fingerprint as whoever lists would make it.
func digest(f plan.Fields) plan.Fingerprint {
	sum := sha256.Sum256([]byte(fmt.Sprint(f)))
	return plan.Fingerprint(sum[:16])
}

var somewhere = []plan.Fields{sold, changed, {"total": "4200", "customer": "cus_8"}}

func drawWorld(r *rapid.T) *world {
	w := &world{how: plan.Comparison{Policy: &plan.Policy{
		Recreate: rapid.Bool().Draw(r, "recreate"),
		Fields:   map[string]plan.Rule{"total": rapid.SampledFrom([]plan.Rule{plan.Review, plan.Enforce, plan.Ignore}).Draw(r, "rule")},
	}, Complete: rapid.Bool().Draw(r, "complete")}}
	digest := digest
	if rapid.IntRange(0, 4).Draw(r, "fingerprints") == 0 {
		digest = func(plan.Fields) (none plan.Fingerprint) { return none } // who lists makes none
	}
	for k := range rapid.IntRange(0, 8).Draw(r, "keys") {
		key := fmt.Sprintf("shop:order:%d", k)
		for n := range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2}).Draw(r, "objects") {
			w.source = append(w.source, plan.Seen{
				Key: key, ID: fmt.Sprint(k, n), Revision: rapid.SampledFrom([]string{"", "1", "2"}).Draw(r, "revision"),
				Wanted: rapid.Bool().Draw(r, "wanted"), Unreadable: rapid.IntRange(0, 9).Draw(r, "unreadable") == 0, Fields: sold, Fingerprint: digest(sold),
			})
		}
		for n := range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(r, "documents") {
			fields := rapid.SampledFrom(somewhere).Draw(r, "fields")
			w.destination = append(w.destination, plan.Seen{
				Key: key, ID: fmt.Sprint("inv", k, n), Fields: fields, Fingerprint: digest(fields), Created: monday.Add(time.Duration(-n) * time.Hour),
				Void: rapid.Bool().Draw(r, "void"), Locked: rapid.Bool().Draw(r, "locked"), Foreign: rapid.Bool().Draw(r, "foreign"),
			})
		}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 1, 2}).Draw(r, "works") {
			w.ledger = append(w.ledger, plan.Head{Key: key, Known: plan.Known{
				Works: 1, Revision: rapid.SampledFrom([]string{"1", "2"}).Draw(r, "applied"), Overdue: rapid.IntRange(0, 5).Draw(r, "overdue") == 0,
				Status: rapid.SampledFrom([]saga.Status{saga.Running, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Completed, saga.Completed, saga.Compensated}).Draw(r, "status"),
			}})
		}
	}
	return w
}

// stream hands out rows that are at hand.
func stream[T any](rows []T) plan.Stream[T] {
	return func(row *T) (bool, error) {
		if len(rows) == 0 {
			return false, nil
		}
		*row, rows = rows[0], rows[1:]
		return true, nil
	}
}

func (w *world) sides() plan.Sides {
	return plan.Sides{Source: stream(w.source), Destination: stream(w.destination), Ledger: stream(w.ledger)}
}

func (w *world) compare(t interface{ Fatal(...any) }) ([]plan.Finding, *plan.Counts) {
	var found []plan.Finding
	counts, err := w.how.Compare(context.Background(), w.sides(), func(f *plan.Finding) error {
		found = append(found, *f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, counts
}

// slowly compares as slowly as can be: each key by itself, by Classify alone.
func (w *world) slowly() (found []plan.Finding, tallies map[plan.Class]int64) {
	keys := map[string]bool{}
	tallies = map[plan.Class]int64{}
	for _, s := range slices.Concat(w.source, w.destination) {
		keys[s.Key] = true
	}
	for _, h := range w.ledger {
		keys[h.Key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		f := w.classify(key)
		if f.Class == plan.InSync || f.Class == plan.DivergedForeign {
			tallies[f.Class]++
			continue
		}
		found = append(found, f)
	}
	return found, tallies
}

func (w *world) classify(key string) plan.Finding {
	i := plan.Item{Key: key}
	if w.how.Complete {
		i.Truth = &plan.Truth{Key: key}
	}
	objects := 0
	for _, s := range w.source {
		if s.Key != key {
			continue
		}
		if objects++; objects == 1 {
			i.Truth = &plan.Truth{Key: key, Revision: s.Revision, Wanted: s.Wanted, Fields: s.Fields, Proven: s.Revision == "" && !s.Wanted}
			if s.Unreadable {
				i.Truth.Unreadable = "the source's object " + s.ID + " cannot be read"
			}
		} else {
			i.Truth = &plan.Truth{Unreadable: fmt.Sprintf("the source has %d objects with this natural key, %s among them", objects, w.first(key))}
		}
	}
	for _, s := range w.destination {
		if s.Key == key {
			i.Documents = append(i.Documents, plan.Document{ID: s.ID, Key: key, Fields: s.Fields, Void: s.Void, Locked: s.Locked, Foreign: s.Foreign, Created: s.Created})
		}
	}
	for _, h := range w.ledger {
		if h.Key == key {
			works := 1
			if i.Known != nil {
				works = i.Known.Works + 1
			}
			known := h.Known
			known.Works = works
			i.Known = &known
		}
	}
	return plan.Classify(&i, w.how.Policy)
}

func (w *world) first(key string) string {
	return w.source[slices.IndexFunc(w.source, func(s plan.Seen) bool { return s.Key == key })].ID
}

// Whatever the sides are, one pass over them says what Classify says of each key, in the order of
// keys, and counts every key once.
func TestCompareIsClassify(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r)
		found, counts := w.compare(r)
		want, tallies := w.slowly()
		if !reflect.DeepEqual(found, want) {
			r.Fatalf("found %+v\nwant  %+v", found, want)
		}
		got := map[plan.Class]int64{}
		sum := int64(len(found))
		for _, tally := range counts.Tallies {
			got[tally.Class] = tally.Count
			sum += tally.Count
		}
		if !maps.Equal(got, tallies) {
			r.Fatalf("counted %v, want %v", got, tallies)
		}
		c := counts.Census
		if c.Keys != sum || c.Source != int64(len(w.source)) || c.Destination != int64(len(w.destination)) || c.Ledger != int64(len(w.ledger)) {
			r.Fatalf("%+v for %d keys", c, sum)
		}
	})
}

// Rows may come without their fields; then those of keys that differ are asked for, in the order of
// keys, and no other's. The findings are the same.
func TestFieldsOnDemand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r)
		want, _ := w.compare(r)
		bare := &world{source: slices.Clone(w.source), destination: slices.Clone(w.destination), ledger: w.ledger, how: w.how}
		for i := range bare.source {
			bare.source[i].Fields = nil
		}
		for i := range bare.destination {
			bare.destination[i].Fields = nil
		}
		last := ""
		bare.how.Fields = func(_ context.Context, key string) (object, document plan.Fields, err error) {
			if key <= last {
				r.Fatalf("%s is asked for after %s", key, last)
			}
			last = key
			i := slices.IndexFunc(w.destination, func(s plan.Seen) bool { return s.Key == key && !s.Void })
			return sold, w.destination[i].Fields, nil
		}
		if got, _ := bare.compare(r); !reflect.DeepEqual(got, want) {
			r.Fatalf("found %+v\nwant  %+v", got, want)
		}
	})
}

func seen(keys ...string) []plan.Seen {
	rows := make([]plan.Seen, len(keys))
	for i, key := range keys {
		rows[i] = plan.Seen{Key: key, ID: key, Revision: "1", Wanted: true, Fields: sold, Fingerprint: digest(sold)}
	}
	return rows
}

func heads(keys ...string) []plan.Head {
	rows := make([]plan.Head, len(keys))
	for i, key := range keys {
		rows[i] = plan.Head{Key: key, Known: *done()}
	}
	return rows
}

// A side that is not in the order of its keys, that cannot be read to its end, or that has rows
// without a key ends the comparison: it never makes a plan that takes what comes late for what is
// not there.
func TestBrokenSides(t *testing.T) {
	t.Parallel()
	broken := errors.New("cut off")
	cut := func(rows []plan.Seen) plan.Stream[plan.Seen] {
		next := stream(rows)
		return func(s *plan.Seen) (bool, error) {
			if more, _ := next(s); more {
				return true, nil
			}
			return false, broken
		}
	}
	good := func() plan.Sides {
		return plan.Sides{Source: stream(seen("1", "2", "3")), Destination: stream(seen("1", "2", "3")), Ledger: stream(heads("1", "2", "3"))}
	}
	for name, c := range map[string]struct {
		change func(*plan.Sides)
		says   string
	}{
		"source disordered":      {func(s *plan.Sides) { s.Source = stream(seen("1", "3", "2")) }, `the source is not in the order of its keys: "2" came after "3"`},
		"destination disordered": {func(s *plan.Sides) { s.Destination = stream(seen("2", "1")) }, "the destination is not in the order"},
		"ledger disordered":      {func(s *plan.Sides) { s.Ledger = stream(heads("1", "2", "10")) }, "the ledger is not in the order"},
		"by another order":       {func(s *plan.Sides) { s.Source = stream(seen("a", "B")) }, "not in the order"},
		"source cut":             {func(s *plan.Sides) { s.Source = cut(seen("1")) }, "read the source: cut off"},
		"destination cut":        {func(s *plan.Sides) { s.Destination = cut(nil) }, "read the destination: cut off"},
		"no key":                 {func(s *plan.Sides) { s.Source = stream(seen("", "1")) }, "has no natural key"},
		"no work id":             {func(s *plan.Sides) { s.Ledger = stream(heads("")) }, "a work without an id"},
		"no fields": {func(s *plan.Sides) {
			rows := seen("1")
			rows[0].Fields, rows[0].Fingerprint = nil, plan.Fingerprint{}
			s.Source = stream(rows)
		}, "listings have no fields"},
	} {
		sides := good()
		c.change(&sides)
		counts, err := (&plan.Comparison{Complete: true}).Compare(t.Context(), sides, func(*plan.Finding) error { return nil })
		if err == nil || counts != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v; want an error that says %q", name, counts, err, c.says)
		}
	}
	stop := errors.New("enough")
	_, err := (&plan.Comparison{}).Compare(t.Context(), plan.Sides{Source: stream(seen("1")), Destination: stream(seen()), Ledger: stream(heads())}, func(*plan.Finding) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("who is told says stop, and the comparison says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&plan.Comparison{}).Compare(ctx, good(), func(*plan.Finding) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// A key under which there are a million documents is one finding, and does not gather them.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const crowd = 1_000_000
	n := 0
	destination := func(s *plan.Seen) (bool, error) {
		n++
		*s = plan.Seen{Key: key, ID: "inv", Fields: sold}
		return n <= crowd, nil
	}
	var found []plan.Finding
	_, err := (&plan.Comparison{}).Compare(t.Context(), plan.Sides{Source: stream(seen(key)), Destination: destination, Ledger: stream(heads(key))}, func(f *plan.Finding) error {
		found = append(found, *f)
		return nil
	})
	if err != nil || len(found) != 1 || found[0].Class != plan.Duplicate || !strings.Contains(found[0].Reason, "1000000") || len(found[0].Documents) > 100 {
		t.Errorf("found %d, %v", len(found), err)
	}
}

// What does not carry our mark is counted, and nobody's finding.
func TestForeign(t *testing.T) {
	t.Parallel()
	w := world{destination: slices.Concat([]plan.Seen{{ID: "inv_8"}, {ID: "inv_9"}}, seen("1")), source: seen("1"), ledger: heads("1")}
	found, counts := w.compare(t)
	want := []plan.Tally{{Class: plan.InSync, Action: plan.Nothing, Count: 1}, {Class: plan.Foreign, Action: plan.Nothing, Count: 2}}
	if len(found) > 0 || !slices.Equal(counts.Tallies, want) {
		t.Errorf("found %v, counted %v", found, counts.Tallies)
	}
}

// The spread of a difference is counted over all documents that can be compared, apart for those of
// which the source has news: what the source changed is no sign of another mapping. What the policy
// ignores is not counted.
func TestSpread(t *testing.T) {
	t.Parallel()
	w := world{source: seen("1", "2", "3", "4", "5"), destination: seen("1", "2", "3", "4"), ledger: heads("1", "2", "3", "4", "5")}
	for i := range 3 {
		w.destination[i].Fields, w.destination[i].Fingerprint = plan.Fields{"total": "1", "customer": "cus_9"}, plan.Fingerprint{9}
	}
	w.source[0].Revision = "2"
	w.how.Policy = &plan.Policy{Fields: map[string]plan.Rule{"customer": plan.Ignore}}
	if _, counts := w.compare(t); counts.Spread.Compared != 4 || !slices.Equal(counts.Spread.Fields, []plan.Share{{Field: "total", Count: 2, NewerAtSource: 1}}) {
		t.Errorf("the spread is %+v; want 2 and 1 of 4 in total", counts.Spread)
	}
}

// Pages make the rows they are made of, whatever their size: nothing twice, nothing left out.
func TestPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.IntRange(0, 1000), 0, 50).Draw(r, "rows")
		slices.Sort(rows)
		rows = slices.Compact(rows)
		pages := 0
		stream := plan.Pages(rapid.IntRange(1, 60).Draw(r, "limit"), func(last *int, limit int) ([]int, error) {
			pages++
			from := 0
			if last != nil {
				from, _ = slices.BinarySearchFunc(rows, *last, func(a, b int) int { return cmp.Compare(a, b+1) })
			}
			return slices.Clone(rows[from:min(from+limit, len(rows))]), nil
		})
		var got []int
		var row int
		for {
			more, err := stream(&row)
			if err != nil {
				r.Fatal(err)
			}
			if !more {
				break
			}
			got = append(got, row)
		}
		asked := pages
		if more, err := stream(&row); more || err != nil || !slices.Equal(got, rows) && len(rows) > 0 || pages != asked {
			r.Fatalf("got %v, want %v; behind the end %v, %v", got, rows, more, err)
		}
	})
}
