package hear

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// Acceptor makes deliveries durable.
type Acceptor interface {
	Accept(ctx context.Context, events []intake.Event) error
	Close() error
}

// Store is what is measured.
type Store interface {
	Acceptor
	intake.Gate
}

// SQLite opens a store on a file that does not exist yet.
func SQLite(ctx context.Context, path string) (Store, error) { return sqlite.Open(ctx, path, nil) }

// Postgres opens a store on an empty database.
func Postgres(ctx context.Context, url string) (Store, error) {
	return postgres.Open(ctx, url, &postgres.Options{Migrate: true})
}

// Judged is how fast the gate was.
type Judged struct {
	Deliveries int
	Wall       time.Duration
	Cost       cost.Reading // of all of them
}

// Decisions is a load of the gate: three versions of each object in no order, judged by the gate of
// package inbox.
type Decisions struct {
	Objects int
	Batch   int // deliveries at a time
	Judges  int // batches at a time
	Meter   cost.Meter
}

// Drive fills the inbox and empties it through the gate.
func (d Decisions) Drive(ctx context.Context, s Store) (j Judged, err error) {
	if err := fill(ctx, s, int64(d.Objects)); err != nil {
		return j, fmt.Errorf("fill the inbox: %w", err)
	}
	before, err := d.Meter.Read(ctx)
	if err != nil {
		return j, err
	}
	var judged, applied atomic.Int64
	start := time.Now()
	g, judging := errgroup.WithContext(ctx)
	for range d.Judges {
		g.Go(func() error { return d.judge(judging, s, &judged, &applied) })
	}
	if err := g.Wait(); err != nil {
		return j, err
	}
	j.Deliveries, j.Wall = int(judged.Load()), time.Since(start)
	after, err := d.Meter.Read(ctx)
	if err != nil {
		return j, err
	}
	j.Cost = after.Sub(before)
	if want := versions * d.Objects; j.Deliveries != want || int(applied.Load()) < d.Objects {
		return j, fmt.Errorf("the gate judged %d of %d deliveries and applied %d", j.Deliveries, want, applied.Load())
	}
	return j, nil
}

// judge judges batches until the store hands out none: the deliveries that are left are locked by
// other workers.
func (d Decisions) judge(ctx context.Context, s Store, judged, applied *atomic.Int64) error {
	policy := intake.Policy{}
	for {
		var news int64
		n, err := s.Judge(ctx, d.Batch, func(now time.Time, ds []intake.Delivery, es map[inbox.Object]*intake.Entry) error {
			news = 0
			for i := range ds {
				e := es[ds[i].Object]
				*e, ds[i].Outcome, ds[i].Because = intake.Judge(*e, &ds[i], now, &policy)
				if ds[i].Outcome == intake.Applied {
					news++
				}
			}
			return nil
		})
		if n == 0 || err != nil {
			return err
		}
		judged.Add(int64(n))
		applied.Add(news)
	}
}

// versions is how many versions of each object are delivered.
const versions = 3

// order is one of the orders of three versions: by it a third of the deliveries are stale.
var order = [versions]int64{1, 3, 2}

func fill(ctx context.Context, s Store, objects int64) error {
	var events []intake.Event
	var n int64
	for _, v := range order {
		for object := range objects {
			n++
			events = append(events, event(n, object, v))
			if len(events) == 500 || object == objects-1 {
				if err := s.Accept(ctx, events); err != nil {
					return err
				}
				events = events[:0]
			}
		}
	}
	return nil
}
