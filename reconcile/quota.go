package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrSpent is matched by the error of [Quota.Take] when there will be no turn for a long time: what sweeps may use of
// the day is used up, or the other side asked us to stay away. What was asked for is left for a later run.
var ErrSpent = errors.New("the quota is spent")

// Limits say how often one system may be asked. Zero fields take the default named at each.
type Limits struct {
	// PerSecond is how many calls a second are made at most, by each process, and Burst how many of them at once. 10,
	// and as many as a second's.
	PerSecond float64
	Burst     int
	// PerDay is how many calls the provider allows in a day of UTC. Zero is no bound.
	PerDay int64
	// Reserved is the share of both that sweeps leave to hints, so that they never starve what is live. 0.3.
	Reserved float64
	// Patience is how long a sweep waits when the other side asked us to stay away. 1 minute.
	Patience time.Duration
}

func (l Limits) withDefaults() Limits {
	l.PerSecond = cmp.Or(l.PerSecond, 10)
	l.Burst = cmp.Or(l.Burst, max(1, int(l.PerSecond)))
	l.Reserved = cmp.Or(l.Reserved, 0.3)
	l.Patience = cmp.Or(l.Patience, time.Minute)
	return l
}

// Validate returns every fault of l.
func (l Limits) Validate() error {
	var faults []error
	if !(l.PerSecond >= 0) || math.IsInf(l.PerSecond, 1) || l.Burst < 0 || l.PerDay < 0 {
		faults = append(faults, errors.New("PerSecond, Burst or PerDay is not a number of calls"))
	}
	if !(l.Reserved >= 0 && l.Reserved < 1) {
		faults = append(faults, fmt.Errorf("the share Reserved for hints is %v; it lies between 0 and 1, and sweeps need a rest", l.Reserved))
	}
	if l.Patience < 0 {
		faults = append(faults, errors.New("the Patience is negative"))
	}
	return errors.Join(faults...)
}

// Quota counts and bounds the calls to one system, for everybody in this process who asks it: a [Hearer] on behalf of
// hints, and sweeps. Hints go first: sweeps may use the share of the rate and of the day that Limits.Reserved leaves. A
// [Later] silences both for as long as was asked, and halves the rate of both. A nil Quota bounds nothing. All methods
// are safe for concurrent use.
//
// The rate is that of this process. Of the day's calls those of sweeps are counted across processes and restarts, as
// each sweep keeps its own in the store and tells them here; those of hints are forgotten with the process.
type Quota struct {
	limits Limits

	mu     sync.Mutex
	bucket *rate.Limiter // everybody's
	sweeps *rate.Limiter // what of it sweeps may use
	paused time.Time     // the other side asked not to be asked before
	day    string
	hints  int64            // calls of the day, on behalf of hints
	spent  map[string]int64 // calls of the day, by sweep
}

// NewQuota returns a quota that is full. It takes limits that [Limits.Validate] has no fault to find with.
func NewQuota(l Limits) *Quota {
	l = l.withDefaults()
	share := 1 - l.Reserved
	return &Quota{
		limits: l,
		bucket: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst),
		sweeps: rate.NewLimiter(rate.Limit(l.PerSecond*share), max(1, int(float64(l.Burst)*share))),
		spent:  map[string]int64{},
	}
}

// Take waits for a turn of a sweep and counts one call of it. It fails with [ErrSpent] when there will be none soon,
// and with what ended ctx.
func (q *Quota) Take(ctx context.Context, who string) error {
	for q != nil {
		wait, err := q.turnOf(who, time.Now())
		if err != nil {
			return err
		}
		if wait <= 0 {
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
	return nil
}

// turnOf gives a sweep its turn, or says how long from now it may ask again.
func (q *Quota) turnOf(who string, now time.Time) (time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roll(now)
	if pause := q.paused.Sub(now); pause > q.limits.Patience {
		return 0, fmt.Errorf("%w: the other side asked not to be asked before %s", ErrSpent, q.paused.UTC().Format(time.RFC3339))
	} else if pause > 0 {
		return pause, nil
	}
	if err := q.left(); err != nil {
		return 0, err
	}
	if wait := max(until(q.sweeps, now), until(q.bucket, now)); wait > 0 {
		return wait, nil
	}
	q.sweeps.AllowN(now, 1)
	q.bucket.AllowN(now, 1)
	q.spent[who]++
	return 0, nil
}

// left says why sweeps may make no more calls today.
func (q *Quota) left() error {
	if q.limits.PerDay == 0 {
		return nil
	}
	share := q.share()
	if sweeps := q.swept(); sweeps >= share || sweeps+q.hints >= q.limits.PerDay {
		return fmt.Errorf("%w: of the %d calls of %s (UTC) sweeps have used %d, of which they may use %d, and hints %d",
			ErrSpent, q.limits.PerDay, q.day, sweeps, share, q.hints)
	}
	return nil
}

// share is how many of the day's calls sweeps may make.
func (q *Quota) share() int64 { return int64(float64(q.limits.PerDay) * (1 - q.limits.Reserved)) }

// until is how long from now a bucket has a whole token.
func until(b *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - b.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(b.Limit()) * float64(time.Second)))
}

// hint takes a turn on behalf of a hint, if there is one.
func (q *Quota) hint(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roll(now)
	if q.closed(now).After(now) || !q.bucket.AllowN(now, 1) {
		return false
	}
	q.hints++
	return true
}

// closedUntil is when hints may ask again; a time in the past if they may.
func (q *Quota) closedUntil(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roll(now)
	return q.closed(now)
}

func (q *Quota) closed(now time.Time) time.Time {
	if q.limits.PerDay > 0 && q.hints+q.swept() >= q.limits.PerDay {
		return latest(q.paused, now.UTC().Truncate(day).Add(day))
	}
	return q.paused
}

func (q *Quota) swept() (sum int64) {
	for _, n := range q.spent {
		sum += n
	}
	return sum
}

// turn is the time between two calls.
func (q *Quota) turn() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Duration(float64(time.Second) / float64(q.bucket.Limit()))
}

// slowest is how far the rate may shrink.
const slowest = 1.0 / 64

// Answered learns from how the other side answered: it is asked half as often when it said that it was too often (see
// [Later]), and with every answer a little more often again (E6).
func (q *Quota) Answered(err error) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now, limit := time.Now(), float64(q.bucket.Limit())
	switch wait := askedToWait(err); {
	case wait > 0:
		q.paused = latest(q.paused, now.Add(wait))
		limit = max(limit/2, q.limits.PerSecond*slowest)
	case err == nil && limit < q.limits.PerSecond:
		limit = min(limit*1.1, q.limits.PerSecond)
	default:
		return
	}
	q.bucket.SetLimitAt(now, rate.Limit(limit))
	q.sweeps.SetLimitAt(now, rate.Limit(limit*(1-q.limits.Reserved)))
}

// Spending is how many calls were made on one day of UTC.
type Spending struct {
	Day   string `json:"day,omitempty"` // 2026-11-20
	Calls int64  `json:"calls,omitempty"`
}

// Recall tells the quota what a sweep is known to have spent, by whatever process. It never lowers what is known.
func (q *Quota) Recall(who string, s Spending) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.roll(time.Now()); s.Day == q.day {
		q.spent[who] = max(q.spent[who], s.Calls)
	}
}

// Spent is what a sweep has spent today.
func (q *Quota) Spent(who string) Spending {
	if q == nil {
		return Spending{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roll(time.Now())
	return Spending{Day: q.day, Calls: q.spent[who]}
}

// Usage is what a quota says of itself.
type Usage struct {
	Day    string
	Hints  int64 // calls of the day, by this process
	Sweeps int64 // calls of the day, as far as this process knows
	PerDay int64 // zero: no bound
	Left   int64 // calls of the day that sweeps may still make; -1: no bound
	Rate   float64
	Paused time.Time // the other side asked not to be asked before
}

// Usage returns how much was used, for people.
func (q *Quota) Usage() Usage {
	if q == nil {
		return Usage{Left: -1}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roll(time.Now())
	left := int64(-1)
	if q.limits.PerDay > 0 {
		left = max(0, min(q.share()-q.swept(), q.limits.PerDay-q.swept()-q.hints))
	}
	return Usage{
		Day: q.day, Hints: q.hints, Sweeps: q.swept(), PerDay: q.limits.PerDay, Left: left,
		Rate: float64(q.bucket.Limit()), Paused: q.paused,
	}
}

// roll begins a new day. A clock that goes back begins none.
func (q *Quota) roll(now time.Time) {
	if today := now.UTC().Format(time.DateOnly); today > q.day {
		q.day, q.hints = today, 0
		clear(q.spent)
	}
}
