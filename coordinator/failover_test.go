package coordinator_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// forgetting makes the database forget, once, everything stored since the request for the step
// until, at the moment at which the request for the step at takes effect.
func forgetting(l *memory.DB, until, at string) func(arrival) fault {
	var mu sync.Mutex
	var backup *memory.Backup
	done := false
	return func(a arrival) fault {
		mu.Lock()
		defer mu.Unlock()
		if a.step == until && backup == nil {
			backup = l.Backup()
		}
		if a.step == at && !done && backup != nil {
			done = true
			l.FailOver(backup)
		}
		return fault{}
	}
}

// "Works touched in the lost window are in doubt": what was armed behind the records that are left
// is decided by each step's kind, and never sent as if new. The process that made the attempt says
// what it knows.
func TestAFailOverForgetsCommits(t *testing.T) {
	t.Parallel()
	steps := []string{"customer", "invoice", "mark", "receipt"}
	for i, until := range steps {
		for _, at := range steps[i:] {
			for _, dies := range []bool{false, true} {
				name := "since " + until + ", at " + at
				if dies {
					name += ", and the process dies"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { failOver(t, until, at, dies) })
				})
			}
		}
	}
}

func failOver(t *testing.T, until, at string, dies bool) {
	t.Helper()
	l := memory.New(nil)
	w := &world{plan: forgetting(l, until, at)}
	died := false
	p := boot(t, l, w, config{doom: func(a arrival) death {
		if dies && a.step == at && !died {
			died = true
			return diesBetween
		}
		return lives
	}})
	synctest.Wait()
	p.begin("o1")
	if dies {
		<-p.dead
		p.kill()
		p = boot(t, l, w, config{})
	}
	p.await("o1")
	pass(time.Minute) // what is known of the lost window is a signal, which may come behind the review
	s := p.await("o1")
	receipt := s.Steps["receipt"].Status
	switch {
	case s.Status == saga.Completed:
	case s.Reason == saga.ReasonInDoubt && receipt == string(machine.InDoubt): // it may have been sent in the lost window
	default:
		t.Errorf("the work is %s %s: %s", s.Status, s.Reason, s.Note)
	}
	if at == "receipt" && !dies && s.Status != saga.Completed {
		t.Errorf("the process knows that the mail was sent, and the work is %s %s", s.Status, s.Reason)
	}
	verify(t, l, w, "o1")
}

// machine/F27: a resolution that a person gave before the fail-over may have been followed by what was
// forgotten. It is not followed again: somebody has to look once more.
func TestAFailOverForgetsThatAResolutionWasFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		var backup atomic.Pointer[memory.Backup]
		w := &world{plan: func(a arrival) fault {
			switch {
			case a.step == "receipt" && a.n == 1:
				return fault{drop: true}
			case a.step == "receipt" && a.n == 2:
				l.FailOver(backup.Load())
			}
			return fault{}
		}}
		p := boot(t, l, w, config{doom: func(a arrival) death {
			if a.step == "receipt" && a.attempt == 2 {
				return diesBetween
			}
			return lives
		}})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		if err := p.Resolve(t.Context(), idOf("o1"), "receipt", coordinator.DidNotHappen(), anna); err != nil {
			t.Fatal(err)
		}
		backup.Store(l.Backup()) // the word of the person is in it, and not what followed
		<-p.dead
		p.kill()
		p = boot(t, l, w, config{})
		pass(time.Minute)
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		if n := len(w.made("receipt", "o1")); n != 1 {
			t.Errorf("%d mails were sent", n)
		}
		verify(t, l, w, "o1")
	})
}
