package docs_test

import (
	"time"

	"github.com/amends-dev/amends/saga"
)

// What the pages show beside programs: it is compiled here.

type order struct{ Shop, Customer string }

func _() []saga.Step[order] {
	return []saga.Step[order]{
		saga.Tags(func(o order) map[string]string { return map[string]string{"shop": o.Shop, "customer": o.Customer} }),
	}
}

func _() saga.Defaults {
	quick := saga.Defaults{
		Timeout: 5 * time.Second, Settle: time.Second, // an attempt, and then until a lookup shows what it did
		Retry: saga.Retry{Attempts: 5, Within: time.Hour, Initial: time.Second, Max: time.Minute},
	}
	return quick
}
