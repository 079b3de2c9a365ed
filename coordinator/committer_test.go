package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// scripted is a ledger whose Append does what a test says. It notes every batch.
type scripted struct {
	ledger.Ledger
	batches chan batch
	answer  func(batch) ([]ledger.Answer, error)
}

type batch struct {
	token   machine.Token
	entries []ledger.Entry
	n       int
}

func (s *scripted) Append(_ context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	b := batch{t, slices.Clone(es), len(s.batches) + 1} // the committer uses its list again
	s.batches <- b
	return s.answer(b)
}

func (*scripted) Limits() ledger.Limits { return ledger.Limits{} }

func (b batch) String() string {
	text := fmt.Sprintf("%d:", b.token)
	for _, e := range b.entries {
		text += " " + e.ID.Work
	}
	return text
}

// all answers every entry alike, with its index in the batch as the head's number.
func all(b batch, r ledger.Result) ([]ledger.Answer, error) {
	as := make([]ledger.Answer, len(b.entries))
	for i := range as {
		as[i] = ledger.Answer{Result: r, At: time.Now(), Number: int64(i + 1)}
	}
	return as, nil
}

func lane(t *testing.T, l ledger.Ledger, maxBatch, writers int) (*committer, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := logrus.New()
	log.SetOutput(io.Discard)
	return &committer{ledger: l, tell: &teller{log: log, to: &Listener{}}, outage: newOutage(log), ctx: ctx, maxBatch: maxBatch, maxBytes: batchBytes, writers: writers}, cancel
}

func queued(c *committer, token machine.Token, works ...string) (ops []*commit) {
	for _, w := range works {
		op := &commit{token: token, entry: ledger.Entry{ID: saga.ID{Work: w}}, done: make(chan struct{}, 1)}
		ops = append(ops, op)
		c.submit(op)
	}
	return ops
}

// plug makes the first batch wait, so that whatever a test submits meanwhile is queued behind it.
func plug(c *committer, s *scripted) (pull func()) {
	ready := make(chan struct{})
	answer := s.answer
	s.answer = func(b batch) ([]ledger.Answer, error) {
		if b.entries[0].ID.Work == "plug" {
			<-ready
			return all(b, ledger.Appended)
		}
		return answer(b)
	}
	queued(c, 9, "plug")
	return func() { close(ready) }
}

// A writer that is free takes what is queued, in order: as much as one call may carry, of one
// session at a time. Every caller gets the answer to its own record.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{batches: make(chan batch, 20), answer: func(b batch) ([]ledger.Answer, error) { return all(b, ledger.Appended) }}
		c, cancel := lane(t, s, 3, 1)
		defer cancel()
		pull := plug(c, s)
		synctest.Wait()
		ops := queued(c, 1, "a", "b", "c", "d")
		ops = append(ops, queued(c, 2, "e")...)
		ops = append(ops, queued(c, 1, "f", "g")...)
		pull()
		for i, op := range ops {
			<-op.done
			if want := []int64{1, 2, 3, 1, 1, 1, 2}[i]; op.answer.Number != want || op.err != nil {
				t.Errorf("%s got answer %d of its batch, want %d (%v)", op.entry.ID.Work, op.answer.Number, want, op.err)
			}
		}
		for _, want := range []string{"9: plug", "1: a b c", "1: d", "2: e", "1: f g"} {
			if got := (<-s.batches).String(); got != want {
				t.Errorf("batch %q, want %q", got, want)
			}
		}
	})
}

// A batch is bounded in bytes, too, and the queue keeps nothing of what was taken
// from it.
func TestBatchesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{batches: make(chan batch, 20), answer: func(b batch) ([]ledger.Answer, error) { return all(b, ledger.Appended) }}
		c, cancel := lane(t, s, 512, 1)
		defer cancel()
		pull := plug(c, s)
		synctest.Wait()
		var ops []*commit
		for range 20 {
			op := &commit{token: 1, entry: ledger.Entry{Record: machine.Record{Snapshot: make([]byte, 2<<20)}}, done: make(chan struct{}, 1)}
			op.entry.ID.Work = "large"
			ops = append(ops, op)
			c.submit(op)
		}
		pull()
		for _, op := range ops {
			<-op.done
		}
		synctest.Wait()
		<-s.batches // the plug
		for len(s.batches) > 0 {
			if n := len((<-s.batches).entries) * 2 << 20; n > batchBytes+2<<20 {
				t.Errorf("a batch of %d bytes", n)
			}
		}
		if cap(c.queue) != 0 {
			t.Errorf("the queue keeps room for %d records", cap(c.queue))
		}
	})
}

// A batch that takes longer than a call may take goes on in halves, so that what holds one
// record up does not hold up the others for ever.
func TestABatchThatTakesTooLongIsHalved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{batches: make(chan batch, 200)}
		s.answer = func(b batch) ([]ledger.Answer, error) {
			if len(b.entries) > 2 {
				return nil, context.DeadlineExceeded
			}
			return all(b, ledger.Appended)
		}
		c, cancel := lane(t, s, 512, 1)
		defer cancel()
		pull := plug(c, s)
		synctest.Wait()
		ops := queued(c, 1, "a", "b", "c", "d", "e", "f", "g")
		pull()
		for _, op := range ops {
			<-op.done
			if op.err != nil || op.answer.Result != ledger.Appended {
				t.Errorf("%s got %s, %v", op.entry.ID.Work, op.answer.Result, op.err)
			}
		}
	})
}

// A work alone waits for nobody: there is no timer in front of a batch, and at most Writers are
// under way.
func TestWritersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &scripted{batches: make(chan batch, 20), answer: func(b batch) ([]ledger.Answer, error) { <-release; return all(b, ledger.Appended) }}
		c, cancel := lane(t, s, 1, 2)
		defer cancel()
		ops := queued(c, 1, "a", "b", "c", "d")
		synctest.Wait()
		if n := len(s.batches); n != 2 {
			t.Errorf("%d batches are under way at once, want 2", n)
		}
		close(release)
		for _, op := range ops {
			<-op.done
		}
	})
}

// "Append the same record until the answer is known and decide nothing else meanwhile": after an
// error the very same entries come again, in the same order, with nothing added.
func TestAnErrorRepeatsTheSameEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{batches: make(chan batch, 20)}
		s.answer = func(b batch) ([]ledger.Answer, error) {
			if b.n < 4 { // the plug is the first
				return nil, errors.New("connection cut")
			}
			return all(b, ledger.Mine)
		}
		c, cancel := lane(t, s, 10, 1)
		defer cancel()
		pull := plug(c, s)
		synctest.Wait()
		ops := queued(c, 1, "a", "b")
		pull()
		synctest.Wait()
		later := queued(c, 1, "c")
		for _, op := range append(ops, later...) {
			<-op.done
			if op.answer.Result != ledger.Mine {
				t.Errorf("%s got %s, want mine", op.entry.ID.Work, op.answer.Result)
			}
		}
		for _, want := range []string{"9: plug", "1: a b", "1: a b", "1: a b", "1: c"} {
			if got := (<-s.batches).String(); got != want {
				t.Errorf("batch %q, want %q", got, want)
			}
		}
	})
}

// A committer that has to end without an answer says that it does not know, and a changed database
// is told to every caller.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cut := errors.New("connection cut")
		s := &scripted{batches: make(chan batch, 2000), answer: func(batch) ([]ledger.Answer, error) { return nil, cut }}
		c, cancel := lane(t, s, 10, 1)
		ops := queued(c, 1, "a", "b")
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		cancel()
		for _, op := range ops {
			<-op.done
			if !errors.Is(op.err, errUnknown) || !errors.Is(op.err, cut) {
				t.Errorf("%s got %v", op.entry.ID.Work, op.err)
			}
		}
		if n := len(s.batches); n < 50 || n > 100 {
			t.Errorf("%d tries in a minute, want about one a second", n)
		}
		c, cancel = lane(t, &scripted{batches: s.batches, answer: func(batch) ([]ledger.Answer, error) {
			return nil, fmt.Errorf("append: %w", ledger.ErrDatabaseChanged)
		}}, 10, 1)
		defer cancel()
		for _, op := range queued(c, 1, "a", "b") {
			<-op.done
			if op.answer.Result != ledger.Missing || op.err != nil {
				t.Errorf("%s got %+v, %v; want missing", op.entry.ID.Work, op.answer, op.err)
			}
		}
	})
}

// A record that cannot be stored yet is submitted again, beside the others and less often where it cannot be sealed; when the committer has to
// end, its caller is told that it is not known, and not that the ledger refused it.
func TestBlockedUntilTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why         error
		least, most int // tries in a minute, with the one at its very end and the one behind it
	}{{errors.New("locked"), 590, 602}, {fmt.Errorf("record 2: %w", ledger.ErrKeys), 12, 14}} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{batches: make(chan batch, 2000), answer: func(batch) ([]ledger.Answer, error) {
				return []ledger.Answer{{Result: ledger.Blocked, Err: c.why}}, nil
			}}
			lane, cancel := lane(t, s, 10, 1)
			op := &commit{entry: ledger.Entry{ID: saga.ID{Work: "w"}, Record: machine.Record{Seq: 2}}, done: make(chan struct{}, 1)}
			lane.submit(op)
			time.Sleep(time.Minute) //nolint:forbidigo // virtual
			cancel()
			if <-op.done; !errors.Is(op.err, errUnknown) || !errors.Is(op.err, c.why) {
				t.Errorf("at the end it is told %v", op.err)
			}
			if n := len(s.batches); n < c.least || n > c.most {
				t.Errorf("%v: %d tries in a minute, want %d to %d", c.why, n, c.least, c.most)
			}
		})
	}
}

// "Equal starts in one batch are answered from the first": one is stored, one is told that the work
// exists.
func TestEqualStartsInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, cancel := lane(t, memory.New(nil), 10, 1)
		defer cancel()
		var ops []*commit
		for nonce := range int64(3) {
			e := ledger.Entry{ID: saga.ID{Saga: "s", Work: "w"}, Schedule: &ledger.Schedule{}}
			e.Record = machine.Record{Kind: machine.KindStarted, Version: 1, Nonce: nonce, Status: saga.Running}
			e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, 1)
			ops = append(ops, &commit{token: 1, entry: e, done: make(chan struct{}, 1)})
		}
		c.mu.Lock() // all of them are in the queue before a writer looks
		c.queue, c.active = ops[:2:2], 1
		c.mu.Unlock()
		c.submit(ops[2])
		c.drain()
		for i, want := range []ledger.Result{ledger.Appended, ledger.Exists, ledger.Exists} {
			<-ops[i].done
			if ops[i].answer.Result != want {
				t.Errorf("start %d got %s, want %s", i+1, ops[i].answer.Result, want)
			}
		}
	})
}

// "One bad value must not fail a batch, least of all after an effect": the result is recorded
// without its body, and the others in the batch never notice.
func TestABadValueCostsOnlyItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		c, err := New(l, &Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := saga.Define("s", 1, saga.Do("call", func(_ context.Context, call saga.Call[string]) (string, error) {
			if call.Work == "bad" {
				return "", saga.Permanent(errors.New("said \x00 \xff"))
			}
			return "fine", nil
		}).Idempotent().NoUndo("none").ID(func(string) string { return "id-1" }))
		if err != nil {
			t.Fatal(err)
		}
		bad := &badOutput{Program: d}
		if err := c.Register(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		for work, want := range map[string]saga.Status{"good": saga.Completed, "worse": saga.Completed, "bad": saga.Compensated} {
			if _, err := c.Start(ctx, "s", work, "in", nil); err != nil {
				t.Fatal(err)
			}
			sum, err := c.Wait(ctx, "s", work)
			if err != nil || sum.Status != want {
				t.Errorf("%s is %s (%v), want %s", work, sum.Status, err, want)
			}
			if r := sum.Steps["call"]; work == "worse" && (r.ExternalID != "id-1" || r.Output != nil) {
				t.Errorf("the result of a bad body is %+v, want its external id alone", r)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// badOutput answers the work "worse" with an output that no text column takes.
type badOutput struct{ saga.Program }

func (b *badOutput) Act(ctx context.Context, inv *program.Invocation) program.Outcome {
	o := b.Program.Act(ctx, inv)
	if inv.Work == "worse" {
		o.Output = []byte("\"\x00\xff\"")
	}
	return o
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// A record that its own fold refuses is not sent, whatever decided on it. It counts as one
// that the ledger calls invalid.
func TestWhatDoesNotFoldIsNotSent(t *testing.T) {
	t.Parallel()
	s := &scripted{batches: make(chan batch, 1), answer: func(b batch) ([]ledger.Answer, error) { return all(b, ledger.Appended) }}
	c, err := New(s, &Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	w := c.newWork(&session{}, saga.ID{Saga: "s", Work: "w"}, nil)
	w.st = &machine.State{ID: w.id, Seq: 3, Status: saga.Completed}
	d := machine.Decision{Record: &machine.Record{Kind: machine.KindDispatched, Status: saga.Running, Dispatch: &machine.Dispatch{Step: "a", Direction: saga.Forward, Attempt: 1}}}
	_, a, err := w.append(&d)
	if err != nil || a.Result != ledger.Invalid || a.Err == nil || len(s.batches) != 0 {
		t.Errorf("it was answered %+v, %v, and %d batches were sent", a, err, len(s.batches))
	}
}

// A start that was withdrawn was because its caller's context had ended: it says so, whichever is
// heard of first.
func TestAWithdrawnStartSaysWhy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&started{err: errWithdrawn}).failure(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is told: %v", err)
	}
}

// keeper gives no answer to its first call, and goes on to read what it was given.
type keeper struct {
	ledger.Ledger
	given []ledger.Entry
}

func (k *keeper) Append(_ context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if k.given == nil {
		k.given = es
		return nil, errors.New("no answer")
	}
	return all(batch{t, es, 1}, ledger.Appended)
}

// A call that was given up may still read its list: the committer does not use that one again.
func TestAListThatWasGivenUpIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		c, cancel := lane(t, k, 10, 1)
		defer cancel()
		for _, work := range []string{"a", "b", "c"} {
			<-queued(c, 1, work)[0].done
		}
		queued(c, 1, "d", "e")
		synctest.Wait()
		if k.given[0].ID.Work != "a" {
			t.Errorf("the call that was given up now reads %q", k.given[0].ID.Work)
		}
	})
}

// What carries a record is used again, also behind one that was withdrawn or blocked: each caller gets the answer to its own record, and no token of an
// earlier one.
func TestCommitsAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocked := true
		s := &scripted{batches: make(chan batch, 100), answer: func(b batch) ([]ledger.Answer, error) {
			as, _ := all(b, ledger.Appended)
			for i, e := range b.entries {
				if as[i].Number = e.Number; e.Record.Seq == 7 && blocked {
					blocked, as[i] = false, ledger.Answer{Result: ledger.Blocked}
				}
			}
			return as, nil
		}}
		c, cancel := lane(t, s, 3, 1)
		defer cancel()
		pull := plug(c, s)
		synctest.Wait()
		gone := make(chan struct{})
		close(gone)
		if _, err := c.append(gone, 1, &ledger.Entry{ID: saga.ID{Work: "w"}}); !errors.Is(err, errWithdrawn) {
			t.Errorf("a caller that had gone got %v", err)
		}
		pull()
		for n := range int64(10) {
			e := &ledger.Entry{ID: saga.ID{Work: "w"}, Number: n + 1, Record: machine.Record{Seq: n + 1}}
			if a, err := c.append(nil, 1, e); a.Number != n+1 || a.Result != ledger.Appended || err != nil {
				t.Errorf("record %d got %+v (%v)", n+1, a, err)
			}
		}
		if op, _ := c.unused.Get().(*commit); op != nil && (len(op.done) != 0 || op.entry.Number != 0) {
			t.Errorf("it is put aside with %d tokens, for instance %d", len(op.done), op.entry.Number)
		}
	})
}
