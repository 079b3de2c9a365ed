package amends

import (
	"context"
	"time"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/sqlite"
)

// slow is how long a slow destination takes. With 1,024 in flight that bears 2,560 sagas a second.
const slow = 400 * time.Millisecond

// SQLite opens amends on a database file that does not exist yet.
func SQLite(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	return onSQLite(ctx, path, steps, coordinator.Options{}, 0)
}

// SQLiteSingle is SQLite with one transaction for each record.
func SQLiteSingle(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	return onSQLite(ctx, path, steps, coordinator.Options{MaxBatch: 1}, 0)
}

// SQLiteSlow is SQLite with one slow destination.
func SQLiteSlow(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	return onSQLite(ctx, path, steps, coordinator.Options{}, slow)
}

func onSQLite(ctx context.Context, path string, steps *workload.Steps, opts coordinator.Options, delay time.Duration) (workload.Engine, error) {
	l, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return start(ctx, l, steps, opts, delay)
}
