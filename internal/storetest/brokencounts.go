package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

// What breaks the rules of what is counted.

// reasonBlind: why works are in review is not told.
type reasonBlind struct{ Store }

func (r reasonBlind) Totals(ctx context.Context) ([]ledger.Total, error) {
	ts, err := r.Store.Totals(ctx)
	for i := range ts {
		ts[i].Reason = ""
	}
	return ts, err
}

// dueBlind: what lies ahead is not due, and counts as none.
type dueBlind struct{ Store }

func (d dueBlind) Totals(ctx context.Context) ([]ledger.Total, error) {
	ts, err := d.Store.Totals(ctx)
	if err != nil {
		return nil, err
	}
	o, err := d.Store.Overview(ctx)
	for i := range ts {
		if ts[i].OldestDue.After(o.At) {
			ts[i].OldestDue = time.Time{}
		}
	}
	return ts, err
}

// signalBlind: there is never a signal to read.
type signalBlind struct{ Store }

func (s signalBlind) Overview(ctx context.Context) (ledger.Overview, error) {
	o, err := s.Store.Overview(ctx)
	o.OldestSignal = time.Time{}
	return o, err
}

// layerless: what the version gate turned away is not counted.
type layerless struct{ Store }

func (l layerless) BlockedDays(ctx context.Context, since time.Time) ([]ledger.BlockedDay, error) {
	days, err := l.Store.BlockedDays(ctx, since)
	return slices.DeleteFunc(days, func(d ledger.BlockedDay) bool { return d.By == ledger.ByVersion }), err
}

// recounting: days are made of the deliveries that are there now.
type recounting struct{ Store }

func (r recounting) BlockedDays(ctx context.Context, _ time.Time) ([]ledger.BlockedDay, error) {
	all, err := r.Stopped(ctx, intake.StoppedFilter{})
	if len(all) == 0 {
		return nil, err
	}
	copies := ledger.BlockedDay{Day: ledger.DayOf(time.Now()), By: ledger.ByReceiver}
	known := ledger.BlockedDay{Day: copies.Day, By: ledger.ByVersion}
	for _, s := range all {
		copies.Count, known.Count = copies.Count+s.Copies, known.Count+s.Known
	}
	return []ledger.BlockedDay{copies, known}, err
}
