package outside

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Play sells something every two seconds until ctx ends, and sends the webhooks of it to an address:
// each third order is changed, each fifth is cancelled, and the webhook of each seventh is lost. It
// logs what the shop does, and what the books have then.
func (w *World) Play(ctx context.Context, webhooks string, log *slog.Logger) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o := w.Put(Order{ID: fmt.Sprint(n), Status: "paid", Cents: int64(1000 + 250*(n%9))})
		w.say(ctx, webhooks, log, o, "the shop sold something", n%7 == 0)
		if n%3 == 0 {
			o.Cents += 500
			w.say(ctx, webhooks, log, w.Put(o), "the order was changed", false)
		}
		if n%5 == 0 {
			o.Status = "cancelled"
			w.say(ctx, webhooks, log, w.Put(o), "the order was cancelled", false)
		}
	}
}

// say sends the webhook of what happened, or loses it.
func (w *World) say(ctx context.Context, webhooks string, log *slog.Logger, o Order, what string, lost bool) {
	log = log.With("order", o.ID, "version", o.Version, "cents", o.Cents, "books", w.last())
	if lost {
		log.Info(what + ", and its webhook is lost")
		return
	}
	status, err := w.Tell(ctx, webhooks, Secret, o)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn(what+", and its webhook was not taken", "error", err)
	default:
		log.Info(what, "webhook", status)
	}
}

// last is the newest invoice in the books.
func (w *World) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.invoices) == 0 {
		return "empty"
	}
	return w.invoices[len(w.invoices)-1].String()
}
