package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/hostlock"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Hold names this process, and frees what those had under such names that are proven to have ended.
func (db *DB) Hold(ctx context.Context) (string, error) {
	db.alive.Hold()
	_, err := db.freeGone(ctx)
	return sqlstore.Holder(db.alive.Name()), err
}

// freeGone buries the sessions whose processes are proven to have ended on this host, frees the objects that
// they had, and removes their files then. A process may have had several sessions: those that it lost
// are not buried before their leases end. It returns what it buried.
func (db *DB) freeGone(ctx context.Context) (buried []machine.Token, err error) {
	sessions, err := sqlstore.Locked(ctx, db.store)
	if err != nil {
		return nil, fmt.Errorf("look for processes that have ended: %w", err)
	}
	holders, err := sqlstore.Lessees(ctx, db.store)
	if err != nil {
		return nil, fmt.Errorf("look for processes that have ended: %w", err)
	}
	for name := range holders {
		sessions[name] = append(sessions[name], nil...)
	}
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		lock, gone := hostlock.Gone(name)
		if !gone {
			continue
		}
		for _, t := range sessions[name] {
			if err == nil {
				err = db.Bury(ctx, t)
			}
		}
		if err == nil {
			err = sqlstore.Free(ctx, db.store, holders[name])
		}
		if err != nil {
			_ = lock.Close() // the next one finds it again
			return nil, fmt.Errorf("free what a process had that has ended: %w", err)
		}
		_ = lock.Release() // it has served
		buried = append(buried, sessions[name]...)
	}
	return buried, nil
}

// buryGone takes what was buried out of a lease that was opened.
func (db *DB) buryGone(ctx context.Context, lease *ledger.Lease) error {
	buried, err := db.freeGone(ctx)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	lease.Live = slices.DeleteFunc(lease.Live, func(t machine.Token) bool { return slices.Contains(buried, t) })
	return nil
}
