package coordinator

import (
	"time"

	"github.com/amends-dev/amends/internal/flow"
)

func latest(a, b time.Time) time.Time { return flow.Latest(a, b) }
