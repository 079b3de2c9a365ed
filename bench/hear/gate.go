package hear

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Acceptor makes deliveries durable.
type Acceptor interface {
	Accept(ctx context.Context, events []intake.Event) error
	Close() error
}

// Deliver delivers an event of its own.
func Deliver(ctx context.Context, a Acceptor, n int) error {
	return a.Accept(ctx, []intake.Event{event(int64(n)+1, int64(n)+1, 1)})
}

// Versions is how many versions of each object Fill delivers. By their order a third is stale.
const Versions = 3

var order = [Versions]int64{1, 3, 2}

// Fill delivers three versions of each object in no order.
func Fill(ctx context.Context, a Acceptor, objects int64) error {
	var events []intake.Event
	var n int64
	for _, v := range order {
		for object := range objects {
			n++
			events = append(events, event(n, object, v))
			if len(events) == 500 || object == objects-1 {
				if err := a.Accept(ctx, events); err != nil {
					return err
				}
				events = events[:0]
			}
		}
	}
	return nil
}

// Judge has judges empty the inbox through the gate, batch deliveries at a time, and returns how many
// deliveries it judged, and how many of them were news.
func Judge(ctx context.Context, g intake.Gate, judges, batch int) (judged, applied int64, err error) {
	var all, news atomic.Int64
	each, ctx := errgroup.WithContext(ctx)
	for range judges {
		each.Go(func() error {
			for { // until it is handed none: what is left is locked by others
				var applied int64
				n, err := g.Judge(ctx, batch, func(now time.Time, ds []intake.Delivery, es map[inbox.Object]*intake.Entry) error {
					applied = judge(now, ds, es)
					return nil
				})
				if n == 0 || err != nil {
					return err
				}
				all.Add(int64(n))
				news.Add(applied)
			}
		})
	}
	err = each.Wait()
	return all.Load(), news.Load(), err
}

func judge(now time.Time, ds []intake.Delivery, es map[inbox.Object]*intake.Entry) (news int64) {
	for i := range ds {
		e := es[ds[i].Object]
		*e, ds[i].Outcome, ds[i].Because = intake.Judge(*e, &ds[i], now, &intake.Policy{})
		if ds[i].Outcome == intake.Applied {
			news++
		}
	}
	return news
}
