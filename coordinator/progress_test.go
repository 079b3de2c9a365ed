package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// progressSaga asks for a job whose partner posts progress to the callback before the answer; what is no answer is declined.
func progressSaga(t testing.TB, token *atomic.Value, lose *atomic.Bool, undone *atomic.Int64) saga.Program {
	t.Helper()
	d, err := saga.Define("job", 1,
		saga.Do("submit", func(_ context.Context, c saga.Call[order]) (thing, error) {
			token.Store(c.CallbackToken())
			if err := c.Sending(); err != nil {
				return thing{}, err
			}
			if lose.Load() {
				return thing{}, errors.New("connection cut")
			}
			return thing{ID: "job-" + c.Work}, nil
		}).Keyed(90*day).Once().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { undone.Add(1); return nil }),
		saga.Await("done", func(c saga.Call[order], m saga.Message) (thing, error) {
			if string(m.Body) != "done" {
				return thing{}, errors.New("it is progress")
			}
			return thing{ID: "film"}, nil
		}).Callback("submit").Within(6*time.Hour, saga.Compensate),
		saga.Do("finish", func(_ context.Context, c saga.Call[order]) (thing, error) { return thing{ID: "f"}, nil }).Idempotent().NoUndo("x").Pivot())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is acknowledged is on record, however many answers came before it that are none, and wherever they came in.
func TestTheAnswerBehindProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operator bool // the callbacks come in at a process without definitions
		lose     bool // the request is not answered yet
		n        int
		quick    bool // all come before the coordinator polls
	}{
		"a coordinator":                        {n: 100},
		"a coordinator, at once":               {n: 100, quick: true},
		"an operator":                          {operator: true, n: 100},
		"an operator, at once":                 {operator: true, n: 40, quick: true},
		"a coordinator, the request is unsure": {lose: true, n: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var token atomic.Value
				var lose atomic.Bool
				var undone atomic.Int64
				l := memory.New(nil)
				p := several(t, l, config{opts: coordinator.Options{CallbackSecrets: [][]byte{farmSecret}}}, progressSaga(t, &token, &lose, &undone))
				pass(time.Second)
				lose.Store(c.lose)
				p.starts("job", 1)
				pass(time.Second)
				complete := p.Complete
				if c.operator {
					complete = coordinator.NewOperator(l).Complete
				}
				for i := range c.n {
					_, err := complete(t.Context(), token.Load().(string), fmt.Appendf(nil, "%d %%", i))
					if err != nil && !errors.Is(err, coordinator.ErrDeclined) {
						t.Fatal(err)
					}
					if !c.quick {
						pass(2 * time.Second)
					}
				}
				if _, err := complete(t.Context(), token.Load().(string), []byte("done")); err != nil {
					t.Fatal(err)
				}
				lose.Store(false)
				for h := 0; h < 24 && in(t, l, "job")[saga.Completed] == 0; h++ {
					pass(30 * time.Minute)
				}
				if got := in(t, l, "job"); got[saga.Completed] != 1 || undone.Load() != 0 {
					t.Errorf("the answer was acknowledged, and there are %v, undone %d times", got, undone.Load())
				}
			})
		})
	}
}

// Beyond what is kept unread of one wait nothing is acknowledged that is not stored.
func TestAnswersThatAreNotKeptAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var token atomic.Value
		var lose atomic.Bool
		var undone atomic.Int64
		l := memory.New(nil)
		p := several(t, l, config{opts: coordinator.Options{CallbackSecrets: [][]byte{farmSecret}}}, progressSaga(t, &token, &lose, &undone))
		pass(time.Second)
		lose.Store(true)
		p.starts("job", 1)
		pass(time.Second)
		stored := 0
		var err error
		for ; err == nil && stored < 100; stored++ {
			_, err = p.Complete(t.Context(), token.Load().(string), bytes.Repeat([]byte{byte('a' + stored%26), byte('a' + stored/26)}, 30<<10))
			pass(time.Second)
		}
		if !errors.Is(err, coordinator.ErrBehind) || stored < 10 || stored > 30 {
			t.Errorf("after %d of 60 KiB: %v", stored, err)
		}
		if _, err := p.Complete(t.Context(), token.Load().(string), []byte("done")); !errors.Is(err, coordinator.ErrBehind) {
			t.Errorf("the answer behind them: %v", err)
		}
		lose.Store(false)
		pass(time.Hour) // the request is answered, and they are read
		if _, err := p.Complete(t.Context(), token.Load().(string), []byte("done")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if got := in(t, l, "job"); got[saga.Completed] != 1 || undone.Load() != 0 {
			t.Errorf("in the end %v, undone %d times", got, undone.Load())
		}
	})
}

// What was declined long ago blocks no message.
func TestDeclinedLongAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		d, err := saga.Define("job", 1, saga.Await("done", func(_ saga.Call[order], m saga.Message) (thing, error) {
			if string(m.Body) != "done" {
				return thing{}, errors.New("it is progress")
			}
			return thing{ID: "film"}, nil
		}).On("job", func(c saga.Call[order]) string { return c.Work }).EachRun().Within(6*time.Hour, saga.Compensate))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, d)
		pass(time.Second)
		p.starts("job", 1)
		pass(time.Second)
		bring := func(id, body string) error {
			_, err := coordinator.NewOperator(l).Deliver(t.Context(), saga.Message{Name: "job", Key: "w00000", ID: id, Body: []byte(body)})
			pass(2 * time.Second)
			return err
		}
		for i := range 70 {
			if err := bring(fmt.Sprint(i), "progress"); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if err := bring("answer", "done"); err != nil || in(t, l, "job")[saga.Completed] != 1 {
			t.Errorf("the answer: %v; %v", err, in(t, l, "job"))
		}
	})
}
