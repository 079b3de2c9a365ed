package coordinator_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
)

// Answers on the databases, by their own clocks: early, doubled, racing the end of the wait, late after an undo, forged; and
// messages before and while they are waited for. Processes are killed in between.
func TestAnswersOnDatabases(t *testing.T) {
	t.Parallel()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t)
			f := &farm{tokens: map[string]string{}, ready: map[string]string{}}
			opts := coordinator.Options{CallbackSecrets: [][]byte{farmSecret}, Poll: 20 * time.Millisecond}
			within := time.Hour
			boot := func(over ledger.Ledger) *process {
				return several(t, over, config{opts: opts}, f.saga(t, func(a *saga.Answer[film, thing]) { a.Within(within, saga.Compensate) }))
			}
			p := boot(l)
			start := func(work string) {
				t.Helper()
				if _, err := p.Start(t.Context(), "film", work, film{work}, nil); err != nil {
					t.Fatal(err)
				}
			}
			is := func(work string, wants ...saga.Status) {
				t.Helper()
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for late := time.After(time.Minute); ; {
					s, err := p.Show(t.Context(), saga.ID{Saga: "film", Work: work})
					for _, want := range wants {
						if err == nil && s.Status == want {
							return
						}
					}
					select {
					case <-tick.C:
					case <-late:
						t.Fatalf("%s is %s (%v), want %s", work, s.Status, err, wants)
					}
				}
			}
			complete := func(work string) (coordinator.Ack, error) {
				return p.Complete(t.Context(), f.token(work), ready("film-"+work))
			}

			if _, err := p.Deliver(t.Context(), saga.Message{Name: "render.done", Key: "early", ID: "1", Body: ready("film-early")}); err != nil {
				t.Fatal(err)
			}
			start("early")
			is("early", saga.Completed)

			f.set(func() {
				f.callback = func(work, token string) { // before its request is answered
					if _, err := p.Complete(t.Context(), token, ready("film-"+work)); err != nil {
						t.Error(err)
					}
				}
			})
			start("at-once")
			is("at-once", saga.Completed)
			f.set(func() { f.callback = nil })

			start("doubled")
			is("doubled", saga.Waiting)
			p.kill()
			p = boot(l)
			q := boot(l)
			var all sync.WaitGroup
			acks := make([]coordinator.Ack, 1000)
			for i := range acks {
				all.Go(func() {
					var err error
					if acks[i], err = []*process{p, q}[i%2].Complete(t.Context(), f.token("doubled"), ready("film-doubled")); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			q.kill()
			for _, ack := range acks {
				if !ack.At.Equal(acks[0].At) {
					t.Fatalf("acknowledged with %+v and %+v", ack, acks[0])
				}
			}
			is("doubled", saga.Completed)
			if n := len(f.log.of("finish doubled film-doubled")); n != 1 {
				t.Errorf("it was finished %d times", n)
			}

			for n, method := range []ledgertest.Method{ledgertest.Await, ledgertest.Messages} { // a process dies between the two looks
				p.kill()
				faulty := ledgertest.Faulty(l, ledgertest.CrashDuring(1, method))
				p = boot(faulty)
				work := fmt.Sprint("crashed-", n)
				start(work)
				<-faulty.Crashed()
				p.kill()
				p = boot(l)
				if _, err := p.Deliver(t.Context(), saga.Message{Name: "render.done", Key: work, ID: work, Body: ready("film-" + work)}); err != nil {
					t.Fatal(err)
				}
				is(work, saga.Completed)
			}

			p.kill()
			l, _ = open(t)
			within = 1500 * time.Millisecond
			p = boot(l)
			start("racing")
			is("racing", saga.Waiting, saga.Compensated)
			<-time.After(within) // as the wait ends
			if _, err := complete("racing"); err != nil {
				t.Error(err)
			}
			is("racing", saga.Completed, saga.Compensated)
			if done, undone := len(f.log.of("finish racing film-racing")), len(f.log.of("cancel racing")); done+undone != 1 {
				t.Errorf("it was finished %d times and undone %d times", done, undone)
			}

			start("silent")
			is("silent", saga.Compensated)
			if _, err := complete("silent"); err != nil { // undone by its result
				t.Error(err)
			}
			is("silent", saga.Compensated)
			if _, err := p.Complete(t.Context(), f.token("silent")+"x", ready("x")); !errors.Is(err, coordinator.ErrUnknownToken) {
				t.Errorf("%v, want %v", err, coordinator.ErrUnknownToken)
			}
		})
	}
}
