package hooks

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/reconcile/webhook"
)

// delivery is one webhook on its way.
type delivery struct {
	*Sender
	hook  shop.Webhook
	id    string
	fate  Fate
	taken atomic.Bool // a receiver answered with 2xx
}

// run sends the webhook, its copies and the forged one beside it, and returns
// when all of them are through. Its error is of the outbox, or the end of ctx.
func (d *delivery) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if d.fate.Forgery != Genuine {
		group.Go(func() error { return d.forge(ctx) })
	}
	group.Go(func() error {
		return d.insist(ctx, func() {
			for n := range d.fate.Copies {
				group.Go(func() error { return d.again(ctx, n) })
			}
		})
	})
	if err := group.Wait(); err != nil {
		return err
	}
	d.count(func(t *Tally) {
		d.over++
		if !d.taken.Load() {
			t.Lost++
		}
	})
	return nil
}

// insist sends the webhook until a receiver answers with 2xx, or once with
// Options.Once. It calls leaving when the first attempt is about to leave.
func (d *delivery) insist(ctx context.Context, leaving func()) error {
	if err := pause(ctx, d.hold("first", 0)); err != nil {
		return err
	}
	for n := 1; ; n++ {
		if n <= d.fate.Dropped {
			d.count(func(t *Tally) { t.Dropped++ })
		} else {
			if n == d.fate.Dropped+1 {
				leaving()
			}
			if heard, err := d.attempt(ctx, "attempt", n); err != nil || heard {
				return err
			}
		}
		if d.opts.Once {
			return nil
		}
		if err := pause(ctx, d.backoff(n)); err != nil {
			return err
		}
	}
}

// again sends a copy. It is sent once, whatever is answered.
func (d *delivery) again(ctx context.Context, n int) error {
	if err := pause(ctx, d.hold("copy", n)); err != nil {
		return err
	}
	d.count(func(t *Tally) { t.Copies++ })
	_, err := d.attempt(ctx, "copy", n)
	return err
}

// attempt sends the webhook once and reports whether it was acknowledged.
func (d *delivery) attempt(ctx context.Context, what string, n int) (bool, error) {
	h := http.Header{}
	if err := sign(h, d.opts.Secret, d.id, time.Now(), d.hook.Body); err != nil {
		return false, err
	}
	status, err := d.post(ctx, d.receiver(what, n), h, d.hook.Body)
	if err != nil {
		return false, err
	}
	heard := status/100 == 2
	d.count(func(t *Tally) {
		t.Sent++
		if !heard {
			t.Unheard++
		}
	})
	if !heard {
		return false, nil
	}
	d.taken.Store(true)
	return true, d.outbox.Acknowledge(ctx, d.hook.Seq)
}

// post sends a body and returns the answer's status, 0 when none came. Its only
// error is the end of ctx.
func (d *delivery) post(ctx context.Context, url string, h http.Header, body []byte) (int, error) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = h
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, ctx.Err()
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// receiver chooses where an attempt goes.
func (d *delivery) receiver(what string, n int) string {
	return d.opts.Receivers[d.opts.choose(len(d.opts.Receivers), nth("receiver/"+what, n), d.id)]
}

// hold is how long an attempt is held up. A third of them are not, so that some
// arrive together.
func (d *delivery) hold(what string, n int) time.Duration {
	draw := d.opts.draw(nth("hold/"+what, n), d.id)
	return time.Duration(max(0, draw*1.5-0.5) * float64(d.opts.Spread))
}

// backoff is the pause after the nth attempt: up to a twentieth of Spread after
// the first and twice that after each further one, but no longer than Spread.
func (d *delivery) backoff(n int) time.Duration {
	most := min(d.opts.Spread, d.opts.Spread/20<<min(n-1, 10))
	return most/2 + time.Duration(d.opts.draw(nth("pause", n), d.id)*float64(most/2))
}

// sign signs a body as the shop does.
func sign(h http.Header, secret, id string, at time.Time, body []byte) error {
	return webhook.SignStandard(h, secret, id, at, body)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
