package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// versions is a saga whose second version has two steps more: a booking that is undone, and a mail.
func versions(version int, sent *diary) func(*process) saga.Program {
	note := func(what string) action {
		return func(_ context.Context, c saga.Call[order]) (thing, error) {
			if err := c.Sending(); err != nil {
				return thing{}, err
			}
			sent.note(what)
			return thing{ID: what}, nil
		}
	}
	return func(p *process) saga.Program {
		undo := func(_ context.Context, c saga.Call[order], _ *thing) error {
			if err := c.Sending(); err != nil {
				return err
			}
			sent.note("undo " + c.Step)
			return nil
		}
		steps := []saga.Step[order]{saga.Do("invoice", note("invoice")).Idempotent().UndoMaybe(undo)}
		if version > 1 {
			steps = append(steps, saga.Do("book", note("book")).Idempotent().UndoMaybe(undo),
				saga.Do("mail", note("mail")).AtMostOnce().NoUndo("a mail cannot be taken back"))
		}
		d, err := saga.Define(orderSaga, version, steps...)
		if err != nil {
			p.t.Fatal(err)
		}
		return d
	}
}

// What is said to a work that has ended waits for a process that knows the
// version it ran with, or a newer one. After a deploy was rolled back, a process that knows only
// older versions neither undoes it by halves nor begins it again without knowing what must not be
// done twice.
func TestNewsOfAWorkOfANewerVersionWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say  func(context.Context, *process) error
		ends saga.Status
		want map[string]int
	}{
		"withdrawn": {
			func(ctx context.Context, p *process) error { return p.Withdraw(ctx, orderSaga, "o1", "2", anna) },
			saga.Compensated, map[string]int{"mail": 1, "undo book": 1, "undo invoice": 1},
		},
		"revised": {
			func(ctx context.Context, p *process) error {
				_, err := p.Start(ctx, orderSaga, "o1", order{Memo: "2"}, &saga.StartOptions{Revision: "2"})
				return err
			},
			saga.Completed, map[string]int{"mail": 1, "book": 2, "invoice": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, sent := memory.New(nil), &diary{}
				second := boot(t, l, &world{}, config{program: versions(2, sent)})
				synctest.Wait()
				if _, err := second.Start(t.Context(), orderSaga, "o1", order{Memo: "1"}, &saga.StartOptions{Revision: "1"}); err != nil {
					t.Fatal(err)
				}
				second.want("o1", saga.Completed, "")
				if err := second.halt(); err != nil {
					t.Error(err)
				}
				first := boot(t, l, &world{}, config{program: versions(1, sent)})
				synctest.Wait()
				if err := c.say(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Minute)
				if st := stateOf(t, l, "o1"); st.Status != saga.Completed || st.Revision != "1" || headOf(t, l, "o1").Session != 0 {
					t.Errorf("a process that does not know version 2 made it %s %s at revision %s, held by %s", st.Status, st.Reason, st.Revision, headOf(t, l, "o1").Session)
				}
				o, err := l.Overview(t.Context())
				if err != nil || len(o.Unknown) != 1 || o.Unknown[0].Version != 2 {
					t.Errorf("people are told %+v (%v), want one work of version 2", o.Unknown, err)
				}
				third := boot(t, l, &world{}, config{program: versions(2, sent)})
				third.want("o1", c.ends, "")
				for what, n := range c.want {
					if got := len(sent.of(what)); got != n {
						t.Errorf("%s: %d times, want %d", what, got, n)
					}
				}
			})
		})
	}
}
