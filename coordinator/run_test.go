package coordinator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// One record for one decision: a saga of four steps that goes well is five records, and each step is sent once.
func TestFourStepsAreFiveRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait() // the session is open
		if s := p.begin("o1"); s.Duplicate || s.Status != saga.Running {
			t.Errorf("a new work was answered with %+v", s)
		}
		s := p.want("o1", saga.Completed, "")
		for _, step := range []string{"customer", "invoice", "mark", "receipt"} {
			if r, ok := s.Result(step); !ok || r.ExternalID == "" || w.count("o1", step, saga.Forward) != 1 {
				t.Errorf("%s: result %+v, %d requests", step, r, w.count("o1", step, saga.Forward))
			}
		}
		if rs := p.records.of("o1"); len(rs) != 5 {
			t.Errorf("%d records, want 5: %+v", len(rs), rs)
		}
		verify(t, l, w, "o1")
	})
}

// A refusal up to and including the pivot turns the saga: what may have happened is undone, newest first.
func TestARefusedPivotIsCompensated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("mark", saga.Forward, 1, fault{refuse: true})}
		w.watch(l)
		p := boot(t, l, w, config{})
		p.begin("o1")
		p.want("o1", saga.Compensated, "")
		if n := w.count("o1", "invoice", saga.Undo); n != 1 {
			t.Errorf("the invoice was voided %d times", n)
		}
		if n := w.count("o1", "receipt", saga.Forward); n != 0 {
			t.Errorf("%d receipts went out", n)
		}
		verify(t, l, w, "o1")
	})
}

// "New work runs at once in the process that started it", without waiting for a poll; before the process runs
// a start is stored and is claimed once it does.
func TestANewWorkRunsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait()
		before := time.Now()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		if took := time.Since(before); took > 0 {
			t.Errorf("it took %s of virtual time, in which nothing had to be waited for", took)
		}
		verify(t, l, w, "o1")
	})
}
