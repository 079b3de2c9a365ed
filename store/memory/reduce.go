package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// Reduce "lets go of what each reduction says, and answers at its own index whether it did".
func (db *DB) Reduce(ctx context.Context, all []ledger.Reduction) ([]bool, error) {
	return in(ctx, db, func(time.Time) ([]bool, error) {
		done := make([]bool, len(all))
		for i := range all {
			r := &all[i]
			w := db.number(r.Head.Number)
			if w == nil || w.head.ID != r.Head.ID || !w.rests() || w.head.Remains != r.Head.Remains || w.tail() != r.Tail || db.controls[control{ledger.ControlHold, ledger.HoldName(w.head.ID)}].Body != nil {
				continue
			}
			done[i] = true
			switch w.head.Base = 1; {
			case r.To == "":
				db.works = slices.DeleteFunc(db.works, func(other *work) bool { return other == w })
				delete(db.byID, w.head.ID)
				maps.DeleteFunc(db.duplicates, func(c counter, _ ledger.Duplicate) bool { return c.id == w.head.ID })
				continue
			case r.To == ledger.LeftRemains:
				w.head.Posted, w.head.Consumed, w.head.Salt, w.signals, w.read = 0, 0, machine.Salt{}, nil, make(map[int64]bool)
			}
			w.head.Remains = r.NowRemains()
			if r.To == ledger.LeftRemains {
				w.records = []machine.Record{ledger.Remembered(&w.head)}
			}
			for _, lost := range r.Records {
				w.records[lost.Seq-1] = copyRecord(lost)
			}
			for _, lost := range r.Signals {
				w.signals[lost.ID-1] = copySignal(lost)
			}
		}
		return done, nil
	}, "reduce %d works", len(all))
}

// rests reports whether something of the work may go: it has ended, is in no hands, and has nothing unread.
func (w *work) rests() bool {
	h := &w.head
	return h.Status.Terminal() && h.Session == 0 && h.Posted == h.Consumed
}

// tail is the number of the last record; 0: they have gone.
func (w *work) tail() int64 {
	if w.head.Left() == ledger.LeftRemains {
		return 0
	}
	return w.length()
}
