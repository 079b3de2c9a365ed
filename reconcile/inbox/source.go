package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

// Source is one system whose objects decide which sagas run: a shop. What receives its webhooks,
// what processes them and what compares it with a destination have the same Source.
type Source struct {
	// Name of the source, in events and objects, in work ids and in the path of its webhooks: shop.
	// All processes that share a store have the same sources under the same names.
	Name string
	// Webhooks are how the source tells of changes: a webhook.Sender. Nil: it does not, and is
	// listed.
	Webhooks Webhooks
	// Fetch asks the source for an object. An answer that there is none is [Fetched.Gone]; only a
	// plain "not found" is one. Whatever keeps us from an answer (no permission, too many requests,
	// a timeout) is an error: it is never a deletion. It asks with the API version that the
	// source's webhooks have, and reads every page of the lists inside the object. After an
	// error it is called again, later and later, and not before the time that [saga.RetryAfter] says.
	Fetch func(ctx context.Context, o Object) (Fetched, error)
	// Saga is run for the objects of the source: an instance for each, whose work id is the
	// object's name.
	Saga string
	// Decide says what the instance of an object should be: it runs with an input, or nothing is to
	// be done for this state of the object, or it is withdrawn. What the change leaves empty is
	// filled in: the id, the revision and the cause. An object that is deleted is withdrawn,
	// whatever Decide says. It is pure, and the same for every process. An error says that the
	// object cannot be read: it is blocked until something new is heard of it.
	Decide func(c Snapshot) (saga.Change, error)
	// Apply carries a change out: it is the Apply of a coordinator. It may be called again with the
	// same change. Two never apply changes of one object at once for as long as the context is
	// heeded.
	Apply func(ctx context.Context, c saga.Change) error
	// Begin is when your sagas began. What changed since is started where the ledger does not know it, by webhooks and by listings,
	// without the bounds and the approval of a comparison; what is older is left to comparisons. A webhook that says an earlier time
	// is kept, and ignored, also where it would be a message; one that says no time cannot be told from a new one. An old object that changes again is
	// begun: where another program may have worked on it, the saga has [saga.TakeOver]. time.Unix(0, 0) is everything that the source ever had, and so is zero
	// where nothing is listed.
	Begin time.Time
	// Policy says what may be believed of the source.
	Policy Policy
	// Limits bound how often the source is asked by this process, on behalf of webhooks and of a
	// reconciler of the same Source together.
	Limits Limits
	// Withdrawals bound how much of what was done for the source is undone before a person is asked.
	Withdrawals WithdrawalBound
	// Workers is how many objects of the source are worked on at once, so that a slow source keeps
	// no worker from the others. Three quarters of Options.Workers.
	Workers int

	wake  func() // of the processor
	quota *asking.Quota
}

// Limits say how often one system may be asked. Fields that are not positive take the default named
// at each. An answer that asks for a wait ([saga.RetryAfter]; the client of package sagahttp reads
// it off a 429 and a 503) silences this process for as long, and halves the rate, which recovers
// with every answer.
type Limits struct {
	// PerSecond is how many calls a second are made at most, by each process, and Burst how many of
	// them at once. 10, and as many as a second's.
	PerSecond float64
	Burst     int
	// Patience is how long a listing waits when the other side asked us to stay away. 1 minute.
	Patience time.Duration
}

// WithdrawalBound is how many withdrawals of a source are let through, webhooks and listed changes together. One more than that is
// held when both numbers are exceeded, and so is every other one from then on, until a person releases or drops them
// (amends inbox release). Zero fields take the default named at each. A withdrawal counts if its instance, in the ledger of
// the inbox's own database, has done something that is not undone yet.
type WithdrawalBound struct {
	// Count is how many objects are withdrawn within a window at least, whatever else changes. 10; [Unbounded] holds none.
	Count int64
	// Percent is which share of the objects that change within a window is withdrawn at least, however many that are. 10.
	Percent float64
	// Window is how far back both look. 1 hour.
	Window time.Duration
}

// Unbounded as the Count of a [WithdrawalBound] lets every withdrawal through.
const Unbounded = -1

// Quota is what bounds the calls to the source: one for all that ask it. What is made of the Source
// asks for it when it is made.
func (s *Source) Quota() *asking.Quota {
	if s.quota == nil {
		s.quota = asking.NewQuota(asking.Limits(s.Limits))
	}
	return s.quota
}

// Webhooks are how a source tells of changes: who signs them, and what they say. Package webhook
// has them; its receiver refuses any other kind.
type Webhooks interface {
	// Validate reports everything that is wrong with the webhooks of the source of that name, in
	// one error.
	Validate(source string) error
}

// Wake tells the processor of the source, if this process has one, that events were stored, so that
// they do not wait for its next poll. It never blocks.
func (s *Source) Wake() {
	if s.wake != nil {
		s.wake()
	}
}

// Change is what Decide says of a state of an object, completed.
func (s *Source) Change(c Snapshot) (saga.Change, error) {
	var ch saga.Change
	var err error
	if len(c.Body) > 0 || !c.Deleted {
		ch, err = s.Decide(c)
	}
	if c.Deleted {
		ch.Want, ch.Reason, err = saga.WantWithdrawn, cmp.Or(ch.Reason, "deleted at the source"), nil
	}
	ch.ID.Saga, ch.ID.Work = cmp.Or(ch.ID.Saga, s.Saga), cmp.Or(ch.ID.Work, c.String())
	ch.Revision, ch.Cause = cmp.Or(ch.Revision, c.Revision), cmp.Or(ch.Cause, c.Cause)
	return ch, err
}

// deliver decides what follows from an accepted state, and applies it unless weigh has an error for
// a withdrawal, or undecided for what runs.
func (s *Source) deliver(ctx context.Context, c Snapshot, weigh func(context.Context, saga.ID) error, undecided func(context.Context, *saga.Change) error) error {
	ch, err := s.Change(c)
	if err != nil {
		return asking.Permanent(fmt.Errorf("decide what %s should be: %w", c.Object, err))
	}
	ch.Actor = cmp.Or(ch.Actor, "webhook")
	switch {
	case ch.Message != nil:
	case ch.Want == saga.WantWithdrawn:
		err = weigh(ctx, ch.ID)
	case ch.Want == saga.WantRun:
		err = undecided(ctx, &ch)
	}
	if err != nil {
		return err
	}
	if err = s.Apply(ctx, ch); asking.Refused(err) { // a person or something new has to speak
		return asking.Permanent(err)
	}
	return err
}

func (s *Source) validate() error {
	var wrong faults.List
	wrong.Whenf(s.Name == "", "it has no Name: events and work ids begin with it")
	if s.Webhooks != nil {
		wrong = append(wrong, s.Webhooks.Validate(s.Name))
	}
	wrong.Whenf(s.Fetch == nil, "it has no Fetch: a webhook is only a hint, so there must be a way to ask")
	wrong.Whenf(s.Saga == "" || s.Decide == nil || s.Apply == nil,
		"it has no Saga, no Decide or no Apply: nothing would follow from what is received")
	wrong.Whenf(s.Workers < 0, "its Workers is negative")
	policy, bound := intake.Policy(s.Policy), intake.Bound(s.Withdrawals)
	return errors.Join(append(wrong, policy.Validate(), bound.Validate())...)
}

// source is a Source at work.
type source struct {
	*Source
	policy  intake.Policy
	bound   intake.Bound
	workers int

	mu      sync.Mutex
	working int       // objects in hand
	queue   time.Time // the end of the queue of fetches that wait for their turn
}

// admit says whether an object may be worked on, or how long from now its turn will be. A turn is
// not a promise: newer hints may come first.
func (s *source) admit(fetch bool, now time.Time) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working < s.workers && (!fetch || s.Quota().Hint(now)) {
		s.working++
		return 0, true
	}
	s.queue = intake.Latest(s.queue, now, s.Quota().ClosedUntil()).Add(s.Quota().Turn())
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
	return max(shortestTurn, s.Quota().ClosedUntil().Sub(now), s.Quota().Turn())
}

func (s *source) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working--
}

// newSources checks and completes the sources of a processor.
func newSources(given []*Source, workers int, wake func()) (map[string]*source, error) {
	var wrong faults.List
	sources := make(map[string]*source, len(given))
	for i, s := range given {
		if s == nil {
			wrong.Whenf(true, "source %d is nil", i+1)
			continue
		}
		err := s.validate()
		if sources[s.Name] != nil {
			err = errors.Join(err, errors.New("there is another source of this name"))
		}
		wrong.Whenf(err != nil, "source %q: %w", s.Name, err)
		s.wake = wake
		s.Quota()
		sources[s.Name] = &source{
			Source: s, policy: intake.Policy(s.Policy).WithDefaults(), bound: intake.Bound(s.Withdrawals).WithDefaults(),
			workers: cmp.Or(s.Workers, max(1, workers*3/4)),
		}
	}
	return sources, wrong.Err()
}
