package coordinator

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/flow"
)

func latest(a, b time.Time) time.Time { return flow.Latest(a, b) }

func sleep(ctx context.Context, d time.Duration) error { return flow.Doze(ctx, nil, d) }
