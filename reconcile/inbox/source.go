package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Source is one source of truth as a [Hearer] knows it.
type Source struct {
	// Fetch asks the source for an object. An answer that there is none is [Fetched.Gone]; only a plain "not
	// found" is one. Whatever keeps us from an answer (no permission, too many requests, a timeout) is an
	// error: it is never a deletion. It asks with the API version that the source's webhooks have, and reads
	// every page of the lists inside the object. See [Later] and [Permanent].
	Fetch func(ctx context.Context, o Object) (Fetched, error)
	// Deliver turns an accepted state into work: it starts a saga, or a newer revision of it, or cancels it. It
	// may be called again with the same change, so the start is keyed by the object and Change.Revision. The
	// same object is never delivered by two at once for as long as the context is heeded.
	Deliver func(ctx context.Context, c Change) error
	// Policy says what may be believed of the source.
	Policy Policy
	// Rate is how many fetches a second the source is asked for at most, by each process, and Burst how many of
	// them at once. 10, and as many as a second's.
	Rate  float64
	Burst int
	// Quota, if set, bounds the fetches instead of Rate and Burst. Sweeps of the same source share it.
	Quota *Quota
	// Workers is how many objects of the source are worked on at once, so that a slow source keeps no worker
	// from the others. Three quarters of Options.Workers.
	Workers int
}

func (s Source) withDefaults(workers int) Source {
	s.Policy = s.Policy.withDefaults()
	if s.Quota == nil {
		s.Quota = NewQuota(Limits{PerSecond: s.Rate, Burst: s.Burst})
	}
	s.Workers = cmp.Or(s.Workers, max(1, workers*3/4))
	return s
}

func (s *Source) validate() error {
	var faults []error
	if s.Fetch == nil {
		faults = append(faults, errors.New("it has no Fetch: a webhook is only a hint, so there must be a way to ask"))
	}
	if s.Deliver == nil {
		faults = append(faults, errors.New("it has no Deliver: nothing would follow from what is heard"))
	}
	if s.Rate < 0 || s.Burst < 0 || s.Workers < 0 {
		faults = append(faults, errors.New("its Rate, Burst or Workers is negative"))
	}
	if s.Quota != nil && (s.Rate != 0 || s.Burst != 0) {
		faults = append(faults, errors.New("it has a Quota and a Rate or Burst beside it: say it once, in the limits of the quota"))
	}
	return errors.Join(append(faults, s.Policy.validate())...)
}

// source is a Source at work.
type source struct {
	Source
	mu      sync.Mutex
	working int       // objects in hand
	queue   time.Time // the end of the queue of fetches that wait for their turn
}

// admit says whether an object may be worked on, or how long from now its turn will be. A turn is not a
// promise: newer hints may come first.
func (s *source) admit(fetch bool, now time.Time) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working < s.Workers && (!fetch || s.Quota.hint(now)) {
		s.working++
		return 0, true
	}
	s.queue = latest(s.queue, now, s.Quota.closedUntil()).Add(s.Quota.turn())
	return s.queue.Sub(now), false
}

// shortestTurn keeps a source that may be asked very often from being looked after without a pause.
const shortestTurn = 10 * time.Millisecond

// nextTurn is how long from now the next object that was put off comes due, none if nothing waits.
func (s *source) nextTurn(now time.Time, none time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queue.After(now) {
		return none
	}
	return max(shortestTurn, s.Quota.closedUntil().Sub(now), s.Quota.turn())
}

func (s *source) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working--
}

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// newSources checks and completes the sources of a hearer.
func newSources(given map[string]Source, workers int) (map[string]*source, error) {
	var faults []error
	sources := make(map[string]*source, len(given))
	for name, s := range given {
		if err := s.validate(); err != nil {
			faults = append(faults, fmt.Errorf("source %q: %w", name, err))
		}
		sources[name] = &source{Source: s.withDefaults(workers)}
	}
	return sources, errors.Join(faults...)
}
