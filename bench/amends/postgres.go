package amends

import (
	"context"
	"time"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/postgres"
)

// singleWriters is how many transactions of one record each run at a time when
// group commit is off: as many as a well-filled connection pool allows.
const singleWriters = 32

// Postgres opens amends on an empty database.
func Postgres(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	return onPostgres(ctx, address, steps, postgres.Options{}, coordinator.Options{}, 0)
}

// PostgresSingle is Postgres with one transaction for each record.
func PostgresSingle(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	return onPostgres(ctx, address, steps,
		postgres.Options{Writers: singleWriters}, coordinator.Options{Writers: singleWriters, MaxBatch: 1}, 0)
}

// PostgresSlow is Postgres with one slow destination.
func PostgresSlow(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	return onPostgres(ctx, address, steps, postgres.Options{}, coordinator.Options{}, slow)
}

func onPostgres(
	ctx context.Context, address string, steps *workload.Steps, lo postgres.Options, co coordinator.Options, delay time.Duration,
) (workload.Engine, error) {
	lo.Migrate = true
	l, err := postgres.Open(ctx, address, &lo)
	if err != nil {
		return nil, err
	}
	return start(ctx, l, steps, co, delay)
}
