package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/valid"
)

// control is what names one.
type control struct {
	kind ledger.ControlKind
	name string
}

// Controls returns "every control there is, by kind and name, and the newest version".
func (db *DB) Controls(ctx context.Context) (all []ledger.Control, version int64, err error) {
	err = db.do(ctx, func(time.Time) error {
		all, version = make([]ledger.Control, 0, len(db.controls)), db.version
		for _, c := range db.controls {
			all = append(all, copyControl(c))
		}
		slices.SortFunc(all, func(a, b ledger.Control) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		return nil
	}, "read the controls")
	return all, version, err
}

// SetControl stores c "if the control still has version c.Version, 0 if there is none yet".
func (db *DB) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	return in(ctx, db, func(now time.Time) (ledger.Control, error) {
		if err := valid.Control(t, &c); err != nil {
			return ledger.Control{}, err
		}
		if err := db.same(t); err != nil {
			return ledger.Control{}, err
		}
		is := db.controls[control{c.Kind, c.Name}]
		switch {
		case is.Version > c.Version && is.Session == t && is.Nonce == c.Nonce: // "what an earlier call stored"
			return copyControl(is), nil
		case t != 0 && !db.live(t, now):
			return ledger.Control{}, ledger.ErrSessionDead
		case is.Version != c.Version:
			return ledger.Control{}, ledger.ErrChanged
		}
		db.version++
		c = copyControl(c)
		c.Version, c.Session, c.At = db.version, t, now
		db.controls[control{c.Kind, c.Name}] = c
		if c.Actor != "" {
			db.act(c)
		}
		return copyControl(c), nil
	}, "set %s %q", c.Kind, c.Name)
}

// Acts returns "what was set with an Actor, of one control, the newest first".
func (db *DB) Acts(ctx context.Context, kind ledger.ControlKind, name string, limit int) ([]ledger.Control, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Control, error) {
		var acts []ledger.Control
		for _, c := range slices.Backward(db.acts) {
			if c.Kind == kind && c.Name == name && len(acts) < cmp.Or(max(limit, 0), pageSize) {
				acts = append(acts, copyControl(c.Control))
			}
		}
		return acts, nil
	}, "acts of %s %q", kind, name)
}
