package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// A batch says the same to many works. It is an instance of a saga of ours, which every coordinator runs: it is durable before anything is
// said, goes on behind a kill, and is paused, resumed and given up like any other.

// BatchSaga is the saga whose instances are batches. No other may have its name.
const BatchSaga = "amends-batch"

// Batch is the input of such an instance: what is said, and to which works, each as it stood when it was chosen.
type Batch struct {
	Verb      string      `json:"act"` // one of [BatchVerbs]
	Step      string      `json:"step,omitempty"`
	Happened  bool        `json:"happened,omitempty"` // of resolve
	By        saga.Actor  `json:"by"`
	PerSecond float64     `json:"perSecond"`
	StopAfter int         `json:"stopAfter"` // so many that fail of one cause end it
	Items     []BatchItem `json:"items"`
}

// BatchItem is one work of a batch.
type BatchItem struct {
	Saga string `json:"s"`
	Work string `json:"w"`
	Seq  int64  `json:"n,string"`    // its latest record when it was chosen
	Run  string `json:"r,omitempty"` // of rerun: the revision that it was at
	Back bool   `json:"b,omitempty"` // that it is undone is no failure
}

// ID is the work's.
func (i *BatchItem) ID() saga.ID { return saga.ID{Saga: i.Saga, Work: i.Work} }

// BatchVerbs are what can be said to many works at once.
var BatchVerbs = []string{machine.VerbRetry, machine.VerbResolve, machine.VerbSkip, machine.VerbResume, machine.VerbWake, machine.VerbCancel, machine.VerbUndo, machine.VerbRerun}

// BatchResult is what the step of a batch returns.
type BatchResult struct {
	Said    int            `json:"said"`
	Moved   int            `json:"movedOn"` // left alone: they do not stand any more as they did when they were chosen
	Refused int            `json:"refused"` // they do not take it
	Left    int            `json:"left"`    // nothing was said to them
	Each    string         `json:"each"`    // a letter for each work: s said, m moved on, r refused, n nothing was said
	Stopped string         `json:"stopped,omitempty"`
	Failed  map[string]int `json:"failed,omitempty"` // of those that it was said to, by how they fail while it goes on
}

// What became of saying it to one work: its letter in [BatchResult].
const (
	itemSaid    = "s"
	itemMoved   = "m"
	itemRefused = "r"
	itemLeft    = "n"
)

const (
	batchSlice   = 10 * time.Second // for which one attempt goes on: then what was said to the batch itself is read
	batchTimeout = 30 * time.Second
	batchLook    = time.Second // how often it is looked what became of those that it was said to
	batchLooks   = 100         // of so many at most, but of all where another process was saying it
)

// batches is the program of [BatchSaga].
func (c *Coordinator) batches() (saga.Program, error) {
	return saga.Define(BatchSaga, 1, saga.Do("say", c.sayAll).To("amends").Idempotent().NoID().NoUndo("what was said stays said").
		Timeout(batchTimeout).Retry(saga.Retry{Attempts: 1000, Within: 30 * 24 * time.Hour, Initial: 100 * time.Millisecond, Max: time.Second}))
}

// StartBatch makes a batch durable under a work id. Whichever coordinator runs on the ledger says it.
func (c *Coordinator) StartBatch(ctx context.Context, work string, b *Batch) (Started, error) {
	if err := b.validate(); err != nil {
		return Started{}, fmt.Errorf("start %s: %w", work, err)
	}
	if err := c.describe(ctx, c.newestProgram(BatchSaga).Spec()); err != nil {
		return Started{}, fmt.Errorf("start %s: %w", work, err)
	}
	in, err := c.accepted(BatchSaga, work, *b, &saga.StartOptions{Starter: b.By.Name, Cause: b.By.Reason})
	if err != nil {
		return Started{}, fmt.Errorf("start %s: %w", work, err)
	}
	return c.start(ctx, in)
}

// validate says what is wrong with it.
func (b *Batch) validate() error {
	if !slices.Contains(BatchVerbs, b.Verb) || b.PerSecond < 0.1 || b.StopAfter < 1 || len(b.Items) == 0 {
		return fmt.Errorf("%w: a batch says one of %q, to some works, at a rate of 0.1 a second or more, and stops after at least 1", ErrInvalid, BatchVerbs)
	}
	return b.By.Validate()
}

// saying is one attempt to say a batch.
type saying struct {
	*Coordinator

	batch   *Batch
	id      saga.ID // of the batch
	by      saga.Actor
	limit   *rate.Limiter
	said    BatchResult
	next    int                    // of the items
	before  bool                   // the latest of them was said by an attempt in another process
	watched map[saga.ID]*BatchItem // those that it was said to and that have not come to rest since
	looked  time.Time
}

// sayAll says a batch to its works, in their order. What was said before an attempt was cut off is found, and not said again.
func (c *Coordinator) sayAll(ctx context.Context, call saga.Call[Batch]) (BatchResult, error) {
	if err := call.Input.validate(); err != nil {
		return BatchResult{}, saga.Permanent(err)
	}
	s := &saying{
		Coordinator: c, batch: &call.Input, id: saga.ID{Saga: BatchSaga, Work: call.Work}, watched: map[saga.ID]*BatchItem{}, looked: time.Now(),
		by: saga.Actor{Name: call.Input.By.Name, Reason: call.Input.By.Reason + inBatch(call.Work)}, said: BatchResult{Failed: map[string]int{}},
		limit: rate.NewLimiter(rate.Limit(call.Input.PerSecond), 1),
	}
	if known, here := c.sayings.LoadAndDelete(call.Work); here { // an attempt before this one was in this process: what it has looked at is not looked at again
		s = known.(*saying) //nolint:forcetypeassert // nothing else is in it
	}
	err := s.goOn(ctx)
	if err != nil {
		c.sayings.Store(call.Work, s)
	}
	return s.said, err
}

// goOn says it to those that are left, until the slice is over.
func (s *saying) goOn(ctx context.Context) error {
	ends := time.Now().Add(batchSlice)
	for ; s.next < len(s.batch.Items); s.next++ {
		if err := s.look(ctx, ends, false); err != nil {
			return err
		}
		it := &s.batch.Items[s.next]
		before, err := s.stored(ctx, it)
		if err == nil && !before && s.before { // it may have been about to stop
			err = s.look(ctx, ends, true)
			s.before = err != nil
		}
		what := itemSaid
		switch {
		case before:
			s.before = true
		case errors.Is(err, ledger.ErrNotFound): // it has gone by retention
			what = itemMoved
		case unreadable(err):
			what = itemRefused
		case err != nil:
			return err
		case s.said.Stopped != "":
			what = itemLeft
		default:
			if what, err = s.say(ctx, it); err != nil {
				return err
			}
		}
		s.count(it, what)
		if what == itemSaid && !before {
			if err := s.limit.Wait(ctx); err != nil {
				s.next++
				return err
			}
		}
	}
	return nil
}

// inBatch is what the reason of a signal says of its batch.
func inBatch(work string) string { return " (" + work + ")" }

func (s *saying) count(it *BatchItem, what string) {
	s.said.Each += what
	n := func(what string) int { return strings.Count(s.said.Each, what) }
	s.said.Said, s.said.Moved, s.said.Refused, s.said.Left = n(itemSaid), n(itemMoved), n(itemRefused), n(itemLeft)
	if what == itemSaid {
		s.watched[it.ID()] = it
	}
}

// errSlice ends an attempt, which another one goes on behind.
var errSlice = saga.RetryAfter(time.Millisecond, saga.NotSent(errors.New("it goes on in another attempt")))

// look sees about once a second what became of those that it was said to, of all at once or of some of them, and whether a person has said
// something to the batch itself: then, and when the slice is over, it goes on in another attempt.
func (s *saying) look(ctx context.Context, ends time.Time, all bool) error {
	if !all && time.Since(s.looked) < batchLook {
		return ctx.Err()
	}
	s.looked = time.Now()
	rest, err := s.ledger.AtRest(ctx, slices.Collect(maps.Keys(s.watched)))
	if err != nil {
		return err
	}
	if held, _ := s.flow.Holds(BatchSaga); held != "" || s.isStopping() {
		return errSlice
	}
	if !all {
		rest = rest[:min(len(rest), batchLooks)]
	}
	for _, id := range rest {
		if err := s.see(ctx, id); err != nil {
			return err
		}
	}
	own, err := s.stand(ctx, s.id)
	if err == nil && (len(own.unread) > 0 || !s.looked.Before(ends)) {
		err = errSlice
	}
	return err
}

// see watches a work no longer that has come to rest, and counts it if it failed. Too many that fail of one cause end the batch.
func (s *saying) see(ctx context.Context, id saga.ID) error {
	it := s.watched[id]
	at, err := s.stand(ctx, id)
	switch {
	case unreadable(err), errors.Is(err, ledger.ErrNotFound): // amends check says so
		delete(s.watched, id)
		return nil
	case err != nil || at.st.Seq == it.Seq || len(at.unread) > 0: // it is not read yet
		return err
	}
	delete(s.watched, id)
	if kind := at.fails(it.Back); kind != "" {
		if s.said.Failed[kind]++; s.said.Failed[kind] == s.batch.StopAfter {
			s.said.Stopped = cmp.Or(s.said.Stopped, fmt.Sprintf("%d failed: %s", s.batch.StopAfter, kind))
		}
	}
	return nil
}

// fails says how a work failed, "" if it did not.
func (at *standing) fails(back bool) string {
	switch ss, _ := at.st.Issue(at.spec); {
	case at.st.Compensating && !back:
		return "undone"
	case at.st.Status != saga.Review:
		return ""
	case ss != nil:
		return string(at.st.Reason) + " at " + ss.Name
	default:
		return string(at.st.Reason)
	}
}

// errMoved is about a work that does not stand as it did when it was chosen.
var errMoved = errors.New("it has moved on")

// say says it to one work.
func (s *saying) say(ctx context.Context, it *BatchItem) (what string, err error) {
	moved := func(at *standing) bool {
		return at.st.Seq != it.Seq || slices.ContainsFunc(at.unread, func(u machine.Signal) bool { return u.ByHand })
	}
	if s.batch.Verb == machine.VerbRerun {
		var at *standing
		if at, err = s.stand(ctx, it.ID()); err == nil && moved(at) {
			err = errMoved
		} else if err == nil {
			_, err = s.Operator.Rerun(ctx, it.ID(), OfRun(it.Run), s.by)
		}
	} else {
		err = s.Operator.order(ctx, it.ID(), s.batch.Verb, s.by, func(at *standing) (machine.Choice, machine.Signal, error) {
			if moved(at) {
				return machine.Choice{}, machine.Signal{}, errMoved
			}
			return s.batch.says()(at)
		})
	}
	switch {
	case err == nil: // who said the same of the same record a moment before was stored, and we were not
		if ours, err := s.stored(ctx, it); !ours {
			return itemMoved, err
		}
		return itemSaid, nil
	case errors.Is(err, errMoved), errors.Is(err, ledger.ErrNotFound):
		return itemMoved, nil
	case refusesAct(err), unreadable(err):
		return itemRefused, nil
	default:
		return "", err
	}
}

// stored reports whether what the batch says to a work is on record.
func (s *saying) stored(ctx context.Context, it *BatchItem) (bool, error) {
	said, err := s.Operator.signals(ctx, it.ID(), func(sig *machine.Signal) bool { return OfBatch(sig, s.id.Work) })
	return len(said) > 0, err
}

// OfBatch reports whether a batch said it.
func OfBatch(sig *machine.Signal, batch string) bool {
	return sig.ByHand && strings.HasSuffix(sig.Reason, inBatch(batch))
}

// says is what the batch says to a work, as it stands.
func (b *Batch) says() func(*standing) (machine.Choice, machine.Signal, error) {
	switch b.Verb {
	case machine.VerbRetry:
		return retrying
	case machine.VerbResume:
		return resuming
	case machine.VerbWake:
		return waking
	case machine.VerbCancel:
		return cancelling
	case machine.VerbUndo:
		return undoing("")
	case machine.VerbSkip:
		return skipping("", nil)
	default:
		return resolving(b.Step, saga.Resolution{Happened: b.Happened})
	}
}

// unreadable reports whether an error is that one work cannot be read, here.
func unreadable(err error) bool {
	return errors.Is(err, errUnfolded) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrSchema) || errors.Is(err, ledger.ErrKeys)
}

// refusesAct reports whether an error is that of a work which does not take an act.
func refusesAct(err error) bool {
	return slices.ContainsFunc([]error{ErrNotInReview, ErrOtherStep, ErrFinished, ErrAtRest, ErrNotPaused, ErrNotWaiting, ErrNotAsking, ErrUnderWay, ErrChangesNothing, ErrInDoubt, ErrInputGone, ErrForgotten, ErrNotEnded, ErrWithdrawn, ErrInvalid},
		func(one error) bool { return errors.Is(err, one) })
}

// own makes a program of ours runnable. It is stored in the ledger where it is used: most ledgers never need it.
func (c *Coordinator) own(p saga.Program) {
	spec := p.Spec()
	c.programs[ledger.Version{Saga: spec.Saga, Version: spec.Version}], c.newest[spec.Saga] = p, p
	for i := range spec.Steps {
		c.flow.Sends(spec.Destination(spec.Steps[i].Name), fmt.Sprintf("%s/%d", spec.Saga, spec.Version), spec.Steps[i].Timeout, 0)
	}
}
