// Package asking is how another system is asked: in its turn, so often as it bears, and what its
// errors say of asking again.
package asking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/nap"
)

// ErrSpent is matched by the error of [Quota.Take] when the other side asked not to be asked for
// longer than Limits.Patience. What was asked for is left for a later run.
var ErrSpent = errors.New("no turn for now")

// Limits are inbox.Limits: how often one system may be asked.
type Limits struct {
	PerSecond float64
	Burst     int
	Patience  time.Duration
}

// reserved is the share of the rate that sweeps leave to hints, so that they never starve what is
// live.
const reserved = 0.3

func (l Limits) withDefaults() Limits {
	if !(l.PerSecond > 0) || math.IsInf(l.PerSecond, 1) { // NaN is neither
		l.PerSecond = 10
	}
	l.Burst = cmp.Or(max(l.Burst, 0), max(1, int(l.PerSecond)))
	l.Patience = cmp.Or(max(l.Patience, 0), time.Minute)
	return l
}

// Quota bounds the rate of the calls to one system by this process: those of a processor on behalf
// of hints, and those of sweeps. Hints go first: sweeps use at most seven tenths of the rate. A
// [saga.RetryAfter] silences both for as long as was asked, and halves the rate of both. A nil
// Quota bounds nothing. All methods are safe for concurrent use.
type Quota struct {
	limits Limits

	mu     sync.Mutex
	bucket *rate.Limiter // everybody's
	sweeps *rate.Limiter // what of it sweeps may use
	paused time.Time     // the other side asked not to be asked before
}

// NewQuota returns a quota that is full.
func NewQuota(l Limits) *Quota {
	l = l.withDefaults()
	const share = 1 - reserved
	return &Quota{
		limits: l,
		bucket: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst),
		sweeps: rate.NewLimiter(rate.Limit(l.PerSecond*share), max(1, int(float64(l.Burst)*share))),
	}
}

// Take waits for a turn of a sweep. It fails with [ErrSpent] when there will be none soon, and with
// what ended ctx.
func (q *Quota) Take(ctx context.Context) error {
	for q != nil {
		wait, err := q.sweepTurn(time.Now())
		if err != nil {
			return err
		}
		if wait <= 0 {
			return nil
		}
		if nap.For(ctx, wait) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// sweepTurn gives a sweep its turn, or says how long from now it may ask again.
func (q *Quota) sweepTurn(now time.Time) (time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if pause := q.paused.Sub(now); pause > q.limits.Patience {
		return 0, fmt.Errorf("%w: the other side asked not to be asked before %s", ErrSpent, q.paused.UTC().Format(time.RFC3339))
	} else if pause > 0 {
		return pause, nil
	}
	if wait := max(until(q.sweeps, now), until(q.bucket, now)); wait > 0 {
		return wait, nil
	}
	q.sweeps.AllowN(now, 1)
	q.bucket.AllowN(now, 1)
	return 0, nil
}

// until is how long from now a bucket has a whole token.
func until(b *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - b.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(b.Limit()) * float64(time.Second)))
}

// Hint takes a turn on behalf of a hint, if there is one.
func (q *Quota) Hint(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.paused.After(now) && q.bucket.AllowN(now, 1)
}

// ClosedUntil is when the other side may be asked again; a time in the past if it may.
func (q *Quota) ClosedUntil() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.paused
}

// Turn is the time between two calls.
func (q *Quota) Turn() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Duration(float64(time.Second) / float64(q.bucket.Limit()))
}

// slowest is how far the rate may shrink.
const slowest = 1.0 / 64

// Answered learns from how the other side answered: it is asked half as often when it said that it
// was too often (see [Wait]), and with every answer a little more often again.
func (q *Quota) Answered(err error) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now, limit := time.Now(), float64(q.bucket.Limit())
	switch wait := Wait(err); {
	case wait > 0:
		if until := now.Add(wait); until.After(q.paused) {
			q.paused = until
		}
		limit = max(limit/2, q.limits.PerSecond*slowest)
	case err == nil && limit < q.limits.PerSecond:
		limit = min(limit*1.1, q.limits.PerSecond)
	default:
		return
	}
	q.bucket.SetLimitAt(now, rate.Limit(limit))
	q.sweeps.SetLimitAt(now, rate.Limit(limit*(1-reserved)))
}
