package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/hostlock"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// alive is the file that this process keeps locked from its first session on.
type alive struct {
	dir string

	mu   sync.Mutex
	lock *hostlock.Lock
	err  error // why there is none
}

// hold makes the file and locks it, unless it is there.
func (a *alive) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		if a.lock, a.err = hostlock.Hold(a.dir); a.err != nil {
			a.lock = nil
		}
	}
}

// name is what goes on record, "" when there is no lock.
func (a *alive) name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		return ""
	}
	return a.lock.Name()
}

func (a *alive) path() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		return "", a.err
	}
	return a.lock.Path(), nil
}

func (a *alive) release() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		return nil
	}
	err := a.lock.Release()
	a.lock, a.err = nil, errors.New("the database was closed")
	return err
}

// buryGone buries the sessions whose processes are proven to have ended on this host, frees the objects that they
// leased, and removes their files then. A process may have had several: those that it lost are not buried before their leases end.
func (db *DB) buryGone(ctx context.Context, lease *ledger.Lease) error {
	sessions, err := sqlstore.Locked(ctx, db.store)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	for name, tokens := range sessions {
		lock, gone := hostlock.Gone(name)
		if !gone {
			continue
		}
		for _, t := range tokens {
			if err := errors.Join(db.Bury(ctx, t), sqlstore.Free(ctx, db.store, t, false)); err != nil {
				_ = lock.Close() // the next session finds it again
				return fmt.Errorf("open session: %w", err)
			}
		}
		_ = lock.Release() // it has served
		lease.Live = slices.DeleteFunc(lease.Live, func(t machine.Token) bool { return slices.Contains(tokens, t) })
	}
	return nil
}
