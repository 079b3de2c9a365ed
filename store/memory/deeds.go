package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Did puts "on record what a person did that is no control and no signal".
func (db *DB) Did(ctx context.Context, kind ledger.ControlKind, what string, by saga.Actor) error {
	return db.do(ctx, func(now time.Time) error {
		if err := valid.Look(what, by); err != nil {
			return err
		}
		db.act(ledger.Control{Kind: kind, Name: what, Actor: by.Name, Reason: by.Reason, At: now})
		return nil
	}, "put on record: %s %s", kind, what)
}

// act puts an act behind the last one, "in the order of being stored".
func (db *DB) act(c ledger.Control) {
	a := ledger.Act{Control: copyControl(c), Number: int64(len(db.acts)) + 1}
	a.Hash = a.Sum(db.lastAct().Hash)
	db.acts = append(db.acts, a)
}

func (db *DB) lastAct() (last ledger.Act) {
	if n := len(db.acts); n > 0 {
		last = db.acts[n-1]
	}
	return last
}

// ActChain returns acts "behind number after in the order of being stored", and "the head of this chain".
func (db *DB) ActChain(ctx context.Context, after int64, limit int) (acts []ledger.Act, head ledger.Act, err error) {
	err = db.do(ctx, func(time.Time) error {
		last := db.lastAct()
		behind := db.acts[min(max(after, 0), last.Number):]
		acts, head = slices.Clone(behind[:min(len(behind), cmp.Or(max(limit, 0), pageSize))]), ledger.Act{Number: last.Number, Hash: last.Hash}
		return nil
	}, "read the chain of acts")
	return acts, head, err
}

// Deeds returns "what people did before a time, the newest first, at most limit of them".
func (db *DB) Deeds(ctx context.Context, before time.Time, limit int) ([]ledger.Deed, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Deed, error) {
		var all []ledger.Deed
		for id, w := range db.byID {
			for i := range w.signals {
				if s := &w.signals[i]; s.ByHand {
					d := ledger.Deed{At: s.At, Kind: string(s.Kind), ID: id, Actor: s.Actor, Reason: s.Reason}
					if ledger.Decides(s.Kind) {
						d.Resolution = s.Resolution
					}
					all = append(all, d)
				}
			}
		}
		for i := range db.acts {
			c := &db.acts[i]
			all = append(all, ledger.Deed{At: c.At, Kind: string(c.Kind), Name: c.Name, Body: string(c.Body), Actor: c.Actor, Reason: c.Reason})
		}
		all = slices.DeleteFunc(all, func(d ledger.Deed) bool { return !before.IsZero() && !d.At.Before(before) })
		slices.SortStableFunc(all, func(a, b ledger.Deed) int { return b.At.Compare(a.At) })
		return all[:min(len(all), cmp.Or(max(limit, 0), pageSize))], nil
	}, "list what people did")
}
