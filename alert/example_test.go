package alert_test

import (
	"context"
	"os"

	"github.com/amends-dev/amends/alert"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store"
)

// What needs people is told to a webhook.
func ExampleNew() {
	_ = func(ctx context.Context, db store.DB, c *coordinator.Coordinator) error {
		send, err := alert.Webhook("https://hooks.example/ops", os.Getenv("ALERT_SECRET")) // or alert.Command("notify-ops"), or a function of yours
		if err != nil {
			return err
		}
		alerts, err := alert.New(ctx, db, c, send, &alert.Options{Link: "https://ops.example/amends"})
		if err != nil {
			return err
		}
		return c.Run(ctx, alerts)
	}
	// Output:
}
