package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres"
)

// A pooler in transaction mode is refused by its name, with what to do, each time; in session mode it is as good as none.
func TestPoolers(t *testing.T) {
	t.Parallel()
	for mode, works := range map[string]bool{"transaction": false, "session": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Pooler(t, migrated.URL(t), mode)
			for range 5 {
				l, err := postgres.Open(t.Context(), address, nil)
				if works && err == nil {
					_, err = l.OpenSession(t.Context(), 10*time.Second, "here", nil)
				}
				if l != nil {
					err = errors.Join(err, l.Close())
				}
				switch {
				case works && err != nil:
					t.Errorf("in session mode: %v", err)
				case !works && (!errors.Is(err, ledger.ErrUnsupported) || !strings.Contains(err.Error(), "pool_mode=session")):
					t.Errorf("in transaction mode: %v", err)
				}
			}
		})
	}
}
