package scan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
)

// divided is a bench whose shop lists its orders in ten parts, by the first digit of their ids, and
// counts them.
func divided(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.config.Page, b.config.Workers = 3, 1
	b.config.Source.Partitions = func(context.Context) ([]scan.Partition, error) {
		var parts []scan.Partition
		for i := range 10 {
			p := scan.Partition{Name: fmt.Sprint(i)}
			for id := range b.orders {
				if strings.HasPrefix(id, p.Name) {
					p.Count++
				}
			}
			parts = append(parts, p)
		}
		return parts, nil
	}
	for i := range 100 {
		b.put(fmt.Sprintf("%02d", i), 1, 0)
	}
	return b
}

// U1: "each seen object stamped": what was there when the source rested is what the listing holds,
// and what is gone is discarded with the next complete one.
func TestU1SightingsAreTheSource(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.ok(b.list())
	delete(b.orders, "17")
	b.put("new", 1, 0) // in no part: nobody lists it
	b.put("5x", 2, 0)
	r := b.list()
	if b.ok(r); r.Listed.Complete.Rows != 100 || r.Listed.Before != 100 || r.Listed.Complete.Scan != 2 {
		t.Errorf("listed %+v, complete %+v", r.Listed, r.Listed.Complete)
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(b.orders)), func(id string) bool { return id == "new" })
	if got := slices.Sorted(maps.Keys(b.sightings(0))); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// U1: "error-free": one part that fails keeps the listing from being complete, the others are
// listed, and the next run lists what is missing, and nothing else.
func TestU1FailedPart(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.before = func(q *scan.Query) error {
		if q.Partition == "4" && q.Cursor != "" {
			return errors.New("503 service unavailable")
		}
		return nil
	}
	r := b.list()
	if r.Result != scan.Partial || r.Listed.Complete != nil || r.Listed.Done != 9 || !strings.Contains(r.Why, `part "4": 503`) {
		t.Errorf("report %+v", r)
	}
	b.before, b.asked = nil, nil
	r = b.list()
	if b.ok(r); r.Listed.Complete == nil || r.Listed.Complete.Scan != 1 {
		t.Errorf("report %+v", r)
	}
	for _, q := range b.asked {
		if q.Partition != "4" || q.Cursor == "" {
			t.Errorf("it asked for %+v again", q)
		}
	}
}

// U1: "count-checked": a listing that ends before it has shown what the provider counts proves
// nothing (a partial listing never creates orphans), and is taken up anew.
func TestU1ShortListing(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.after = func(q *scan.Query, p *scan.Page) {
		if q.Partition == "4" {
			p.Next = "" // and that is said to be all
		}
	}
	r := b.list()
	if r.Result != scan.Partial || r.Listed.Complete != nil || !r.Listed.Open || !strings.Contains(r.Why, "counts 10, its listing shows 3") {
		t.Errorf("report %+v", r)
	}
	b.put("4x", 1, 0)
	b.put("4y", 1, 0)
	b.after = func(_ *scan.Query, p *scan.Page) { // two more than before, and two less than there are
		p.Objects = slices.DeleteFunc(p.Objects, func(o scan.Listed) bool { return o.ID == "40" || o.ID == "4y" })
	}
	if r := b.list(); r.Result != scan.Partial || r.Listed.Complete != nil {
		t.Errorf("report %+v", r)
	}
	b.after = nil
	b.ok(b.list())
}

// U1: an empty answer where there were objects is no listing.
func TestU1EmptyListing(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.ok(b.list())
	b.after = func(_ *scan.Query, p *scan.Page) { *p = scan.Page{} }
	r := b.list()
	if r.Result != scan.Partial || !r.Listed.Open || r.Listed.Complete.Scan != 1 || len(b.sightings(1)) != 100 {
		t.Errorf("report %+v; %d sightings", r, len(b.sightings(1)))
	}
}

// U1: a source that ignores the part lists everything everywhere; counted by part that cannot be
// right.
func TestU1PartsIgnored(t *testing.T) {
	t.Parallel()
	b := divided(t)
	inner := b.config.Source.All
	b.config.Source.All = func(ctx context.Context, q scan.Query) (scan.Page, error) {
		q.Partition = "all"
		return inner(ctx, q)
	}
	if r := b.list(); r.Result != scan.Partial || r.Listed.Complete != nil || r.Violations == 0 {
		t.Errorf("report %+v", r)
	}
}

// U1: an object that is shown twice on the way makes up for none that was not shown.
func TestU1TwiceIsOnce(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.after = func(q *scan.Query, p *scan.Page) {
		if q.Partition == "4" && q.Cursor != "" && p.Next == "" {
			p.Objects = append(p.Objects[:0:0], b.orders["40"].object(b.step))
		}
	}
	if r := b.list(); r.Result != scan.Partial || r.Listed.Complete != nil {
		t.Errorf("report %+v", r)
	}
}

// U1: objects come and go while they are listed: the count is to be reached as it was at the
// beginning or is at the end.
func TestU1CountsMove(t *testing.T) {
	t.Parallel()
	b := divided(t)
	n := 0
	b.after = func(q *scan.Query, _ *scan.Page) {
		if n++; q.Cursor == "" {
			delete(b.orders, q.Partition+"9")
			b.put(q.Partition+"x", 1, 0) // new ones come last
			delete(b.orders, q.Partition+"8")
		}
	}
	b.ok(b.list())
}

// When the listing began is told with it: what was made later is not proven absent.
func TestU2Started(t *testing.T) {
	t.Parallel()
	b := divided(t)
	began := b.now
	b.after = func(*scan.Query, *scan.Page) { b.now = b.now.Add(time.Second) }
	r := b.list()
	if c := r.Listed.Complete; c == nil || !c.Started.Equal(began) || !c.Ended.After(began.Add(30*time.Second)) {
		t.Errorf("complete is %+v, it began at %s", r.Listed.Complete, began)
	}
}

// "Resumable: (partition, cursor, generation)": killed behind any page, another process goes
// on, asks for no page twice, and completes the same generation.
func TestU5Resumes(t *testing.T) {
	t.Parallel()
	stopped := errors.New("the process was killed")
	for kill := 1; kill < 41; kill++ {
		b := divided(t)
		calls := 0
		b.config.Proceed = func(context.Context) error {
			if calls++; calls > kill {
				return stopped
			}
			return nil
		}
		if _, err := b.sweep().List(t.Context(), scan.SourceSide); !errors.Is(err, stopped) {
			t.Fatalf("kill at %d: %v", kill, err)
		}
		b.config.Proceed = nil
		r := b.list()
		b.ok(r)
		if r.Listed.Complete.Scan != 1 || len(b.sightings(1)) != 100 || len(b.asked) != 40 {
			t.Fatalf("killed at %d: %d pages were asked for, complete %+v", kill, len(b.asked), r.Listed.Complete)
		}
	}
}

// A listing that was begun with one mapping is not ended with another: its rows could not be
// compared with each other.
func TestAnotherMapping(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.kill(20)
	if _, err := b.sweep().List(t.Context(), scan.SourceSide); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	b.kill(-1)
	b.config.Mapping = "2"
	r := b.list()
	if b.ok(r); r.Listed.Complete.Scan != 2 || r.Listed.Complete.MappingVersion != "2" {
		t.Errorf("complete is %+v", r.Listed.Complete)
	}
	for id, row := range b.sightings(2) {
		if row.Fingerprint != scan.Fingerprint("2", row.Fields) {
			t.Errorf("order %s was mapped by the old mapping", id)
		}
	}
}

// Parts are listed side by side, no more at once than there are workers, and are the same in the
// end.
func TestWorkers(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.config.Workers = 4
	var mu sync.Mutex
	var at, most atomic.Int64
	together := make(chan struct{})
	inner := b.config.Source.All
	b.config.Source.All = func(ctx context.Context, q scan.Query) (scan.Page, error) {
		n := at.Add(1)
		defer at.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 4 && most.Load() == 4 {
			select {
			case <-together:
			default:
				close(together)
			}
		}
		<-together // until four are here
		mu.Lock()
		defer mu.Unlock()
		return inner(ctx, q)
	}
	r := b.list()
	if b.ok(r); most.Load() != 4 || len(b.sightings(1)) != 100 {
		t.Errorf("%d at once; report %+v", most.Load(), r)
	}
}

// A part whose cursor has expired, and one that gives the same page for ever, are listed from their
// beginning.
func TestPartBeginsAnew(t *testing.T) {
	t.Parallel()
	b := divided(t)
	once := true
	b.expired = func(cursor string) bool {
		expired := once && strings.HasSuffix(cursor, "45")
		once = once && !expired
		return expired
	}
	b.ok(b.list())
	b.after = func(q *scan.Query, p *scan.Page) {
		if q.Partition == "4" && q.Cursor != "" {
			p.Next = q.Cursor
		}
	}
	if r := b.list(); r.Result != scan.Partial || r.Violations != 1 {
		t.Errorf("report %+v", r)
	}
	b.after = nil
	b.ok(b.list())
}

// A cursor at which a part has failed for three runs in a row is taken for expired.
func TestPartFailsAtACursor(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.before = func(q *scan.Query) error {
		if strings.HasSuffix(q.Cursor, "45") {
			return errors.New("400 bad request")
		}
		return nil
	}
	for range 3 {
		if r := b.list(); r.Result != scan.Partial {
			t.Fatalf("report %+v", r)
		}
	}
	b.before, b.asked = nil, nil
	if b.ok(b.list()); b.asked[0].Partition != "4" || b.asked[0].Cursor != "" {
		t.Errorf("it asked for %+v", b.asked[0])
	}
}

// A Retry-After that is longer than the patience ends the run as partial, and no part is to
// blame; a run after it goes on where it stopped.
func TestU6LongRetryAfter(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.config.Source.Quota.Answered(saga.RetryAfter(time.Hour, errors.New("429")))
	if r := b.list(); r.Result != scan.Partial || r.Calls != 0 || !strings.Contains(r.Why, "asked not to be asked before") || len(r.Listed.Failed) > 0 {
		t.Errorf("report %+v", r)
	}
	b.config.Source.Quota = asking.NewQuota(asking.Limits{PerSecond: 1e6})
	b.ok(b.list())
}
