package amends

import (
	"context"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/sqlite"
)

// SQLite opens amends on a database file that does not exist yet.
func SQLite(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	return onSQLite(ctx, path, steps, coordinator.Options{})
}

// SQLiteSingle is SQLite with one transaction for each record.
func SQLiteSingle(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	return onSQLite(ctx, path, steps, coordinator.Options{MaxBatch: 1})
}

func onSQLite(ctx context.Context, path string, steps *workload.Steps, opts coordinator.Options) (workload.Engine, error) {
	l, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return start(ctx, l, steps, opts)
}
