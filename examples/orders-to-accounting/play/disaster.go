package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/saga"
)

// outageLasts is how long the books are out of order with -outage. A step may be tried twenty times,
// two seconds apart at most: it stands for two hours with a policy that is as much longer.
const outageLasts = 20 * time.Second

// disaster is what happens half-way, if anything.
func (p *play) disaster(ctx context.Context) disaster {
	half := p.orders / 2
	switch {
	case p.loseLedger:
		return disaster{
			due: func(done int) bool { return done >= half },
			strike: func(now context.Context) (bool, error) {
				if err := p.lose(now); err != nil {
					return false, err
				}
				return true, p.amends.procs.start(ctx, p.workers) // not now: the processes outlive the syncs
			},
		}
	case p.outage:
		var began time.Time // as far as we have seen
		books := &p.amends.world.Outage
		books.After(max(1, half))
		return disaster{
			// They are out of order from the write on that was agreed upon, so that orders are under
			// way however fast they are done.
			due: func(int) bool { return books.On() },
			strike: func(now context.Context) (over bool, err error) {
				if began.IsZero() {
					began = time.Now()
				}
				if time.Since(began) < outageLasts {
					return false, nil
				}
				p.Outage, err = p.waited(now, time.Since(began))
				books.End()
				return true, err
			},
		}
	default:
		return disaster{}
	}
}

// loss is what became of the works of a ledger that was deleted.
type loss struct {
	Works       int `json:"works"`       // in the ledger when it was deleted
	Adopted     int `json:"adopted"`     // that the rebuilt one knew at once, from shop and books
	Unconfirmed int `json:"unconfirmed"` // of those, with a receipt of unknown outcome
}

// lose kills every process, deletes the ledger with all that was heard, and has the job rebuild it from
// the shop and the books.
func (p *play) lose(ctx context.Context) error {
	if err := p.amends.procs.crash(); err != nil {
		return err
	}
	before, err := count(ctx, p.records)
	if err != nil {
		return err
	}
	if err := settle(ctx, p.amends.procs.place); err != nil { // what was on its way has happened, or never will
		return err
	}
	if err := p.records.lose(ctx); err != nil {
		return err
	}
	if err := p.rebuild(ctx); err != nil {
		return err
	}
	after, err := count(ctx, p.records)
	if err != nil {
		return err
	}
	heads, err := ledger.First(ctx, p.records, ledger.Filter{Unconfirmed: true, Limit: max(after.works, 1)})
	for i := range heads { // it counts as sent
		p.lost = append(p.lost, heads[i].ID.Work)
	}
	p.Lost, p.quiet = &loss{before.works, after.works, len(p.lost)}, time.Time{}
	return err
}

// rebuild runs the process that rebuilds the ledger, to its end. It is killed once on the way.
func (p *play) rebuild(ctx context.Context) error {
	p.amends.procs.place.Lost = time.Now()
	procs := &supervisor{role: "rebuild", place: p.amends.procs.place, log: p.amends.procs.log, once: true}
	if err := procs.start(ctx, 1); err != nil {
		return err
	}
	killAfter := time.Duration(p.amends.random.IntN(400)) * time.Millisecond
	for began := time.Now(); ; {
		if ended, err := procs.done(); err != nil || ended {
			return errors.Join(err, procs.stop())
		}
		if killAfter > 0 && time.Since(began) > killAfter {
			procs.kill(p.amends.random)
			killAfter = 0
		}
		if err := outside.Pause(ctx, 20*time.Millisecond); err != nil {
			return errors.Join(err, procs.stop())
		}
	}
}

// outage is what became of the works while the books were out of order.
type outage struct {
	Seconds  float64 `json:"seconds"`
	Waiting  int     `json:"waiting"`  // works that were under way at its end
	Requests int     `json:"requests"` // that met it, those of the sync without a ledger not among them
	Undone   int     `json:"undone"`   // works that were compensated meanwhile, and neither cancelled nor refused
	Review   int     `json:"review"`   // works in review at its end, but for receipts
}

// waited looks at the works at the end of an outage.
func (p *play) waited(ctx context.Context, d time.Duration) (*outage, error) {
	is, err := count(ctx, p.records)
	if err != nil {
		return nil, err
	}
	o := &outage{Seconds: d.Seconds(), Requests: p.amends.world.Outage.Asked(), Waiting: is.live}
	for i := range is.review {
		if is.review[i].Reason != saga.ReasonInDoubt {
			o.Review++
		}
	}
	heads, err := ledger.First(ctx, p.records, ledger.Filter{Status: saga.Compensated, Limit: p.orders})
	for i := range heads {
		records, err := p.records.History(ctx, heads[i].ID)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(records, func(r machine.Record) bool { return r.Kind == machine.KindCancelled || r.Kind == machine.KindRefused }) {
			o.Undone++
		}
	}
	return o, err
}

// told says what became of the outage.
func (o *outage) told(w io.Writer) {
	fmt.Fprintf(w, "\nHalf-way the books were out of order for %.0f seconds; times are short here, and it\nmight have been two hours. %s found that out, while %s waited.\nNothing was undone or given up because of it.\n",
		o.Seconds, desk.Counted(o.Requests, "request", "requests"), desk.Counted(o.Waiting, "work", "works"))
}
