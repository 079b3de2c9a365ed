package coordinator_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/store/memory"
	"github.com/amends-dev/amends/store/sqlite"
)

// Several who adopt the same works at the same time come to one chain, on every kind of ledger.
func TestAdoptTogether(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) ledger.Ledger{
		"memory": func(*testing.T) ledger.Ledger { return memory.New(nil) },
		"sqlite": func(t *testing.T) ledger.Ledger {
			t.Helper()
			l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			return l
		},
		"postgres": func(t *testing.T) ledger.Ledger {
			t.Helper()
			l, _ := postgresAndItsDatabase(t)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			var rs []remains
			for i := range 60 {
				r := ruins()[i%9]
				r.work = fmt.Sprintf("%s %d", r.work, i)
				rs = append(rs, r)
			}
			var all sync.WaitGroup
			for range 3 {
				p := boot(t, l, &world{}, config{idle: true})
				all.Go(func() { p.takesOver(rs) })
			}
			all.Wait()
			ledgertest.MustCheck(t, l)
		})
	}
}
