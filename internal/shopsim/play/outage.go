package play

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// outageLasts is how long the books are out of order with -outage. A step may be tried twenty
// times, two seconds apart at most: it stands for two hours with a policy that is as much longer.
const outageLasts = 20 * time.Second

// outageReport is what became of the works while the books were out of order.
type outageReport struct {
	Seconds  float64 `json:"seconds"`
	Waiting  int     `json:"waiting"`  // works that were under way at its end
	Requests int     `json:"requests"` // that met it, those of the sync without a ledger not among them
	Undone   int     `json:"undone"`   // works that were compensated meanwhile, and neither cancelled nor refused
	Review   int     `json:"review"`   // works in review at its end, but for receipts
}

// outage is the disaster of -outage.
type outage struct {
	p     *play
	began time.Time // as far as we have seen
}

// due reports whether the books are out of order: they are from the write on that was agreed upon,
// so that orders are under way however fast they are done.
func (o *outage) due(int) bool { return o.p.amends.world.BooksOut() }

// strike brings the books back when it is time.
func (o *outage) strike(ctx context.Context) (over bool, err error) {
	if o.began.IsZero() {
		o.began = time.Now()
	}
	if time.Since(o.began) < outageLasts {
		return false, nil
	}
	r := &outageReport{Seconds: time.Since(o.began).Seconds(), Requests: o.p.amends.world.BooksAsked()}
	is, err := count(ctx, o.p.records)
	if err != nil {
		return false, err
	}
	r.Waiting = is.live
	if r.Undone, err = o.undone(ctx); err != nil {
		return false, err
	}
	for i := range is.review {
		if is.review[i].Reason != saga.ReasonInDoubt {
			r.Review++
		}
	}
	o.p.amends.world.BooksBack()
	o.p.Outage = r
	return true, nil
}

// undone counts works that were compensated although no person and no shop cancelled them and no
// answer was a refusal.
func (o *outage) undone(ctx context.Context) (n int, err error) {
	heads, err := ledger.First(ctx, o.p.records, ledger.Filter{Status: saga.Compensated, Limit: o.p.orders})
	for i := range heads {
		records, err := o.p.records.History(ctx, heads[i].ID)
		if err != nil {
			return n, err
		}
		if !slices.ContainsFunc(records, func(r machine.Record) bool { return r.Kind == machine.KindCancelled || r.Kind == machine.KindRefused }) {
			n++
		}
	}
	return n, err
}

// told says what became of the outage.
func (r *outageReport) told(w io.Writer) {
	fmt.Fprintf(w, "\nHalf-way the books were out of order for %.0f seconds; times are short here, and it\nmight have been two hours. %s found that out, while %s waited.\nNothing was undone or given up because of it.\n",
		r.Seconds, amount(r.Requests, "request", "requests"), amount(r.Waiting, "work", "works"))
}
