package amends

import (
	"context"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store/postgres"
)

// singleWriters is how many transactions of one record each run at a time when
// group commit is off: as many as a well-filled connection pool allows.
const singleWriters = 32

// Postgres opens amends on an empty database.
func Postgres(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	return onPostgres(ctx, address, steps, postgres.Options{}, coordinator.Options{})
}

// PostgresSingle is Postgres with one transaction for each record.
func PostgresSingle(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	return onPostgres(ctx, address, steps,
		postgres.Options{Writers: singleWriters}, coordinator.Options{Writers: singleWriters, MaxBatch: 1})
}

func onPostgres(
	ctx context.Context, address string, steps *workload.Steps, lo postgres.Options, co coordinator.Options,
) (workload.Engine, error) {
	lo.Migrate = true
	l, err := postgres.Open(ctx, address, &lo)
	if err != nil {
		return nil, err
	}
	return start(ctx, l, steps, co)
}
