package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// "Feed what was learned to the machine again": what a stale answer rejected is decided again, on
// the chain as it is now, while the attempt is open. Another process took the work over, could not
// decide about it, and gave it up, which leaves the attempt open (machine/M3); the work is no longer in the
// hands of the process that sent, and is parked. Its answer is put on record all the same, at once
// and by that process, and not as a signal for the process that holds the work next.
func TestAnAnswerIsDecidedAgainWhileItsAttemptIsOpen(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]fault{"a success": {slow: 2 * time.Second}, "a refusal": {think: 2 * time.Second, refuse: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, answer)}
				w.watch(l)
				a := boot(t, l, w, config{program: mailer})
				synctest.Wait()
				a.begin("o1")
				pass(time.Second)
				givesUp(t, l, mailer(a).Spec(), "o1")
				pass(1500 * time.Millisecond)
				rs, err := l.History(t.Context(), idOf("o1"))
				if err != nil {
					t.Fatal(err)
				}
				last, ended := rs[len(rs)-1], machine.KindDone
				if answer.refuse {
					ended = machine.KindRefused
				}
				if last.Kind != ended || last.Session != a.records.opened[0] || last.Attempt != 1 {
					t.Errorf("the last record is %s of attempt %d by %s; want %s of attempt 1 by the process that sent it", last.Kind, last.Attempt, last.Session, ended)
				}
				if signals, err := l.Signals(t.Context(), idOf("o1")); err != nil || len(signals) > 0 {
					t.Errorf("signals: %+v, %v; want none", signals, err)
				}
				if s := a.want("o1", saga.Review, saga.ReasonPoison); !answer.refuse && s.Steps["receipt"].ExternalID != w.made("receipt", "o1")[0].id {
					t.Errorf("the ledger says %+v, the mailbox %+v", s.Steps["receipt"], w.made("receipt", "o1"))
				}
				verifyMails(t, l, w, 1, "o1")
			})
		})
	}
}

// givesUp appends what a process appends that cannot decide about a work (machine/M3).
func givesUp(t *testing.T, l *memory.DB, spec *program.Spec, work string) {
	t.Helper()
	lease, err := l.OpenSession(t.Context(), time.Minute, "another process", nil)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := l.Load(t.Context(), []saga.ID{idOf(work)})
	if err != nil {
		t.Fatal(err)
	}
	st := stateOf(t, l, work)
	d, err := machine.Decide(spec, st, machine.Event{Invalid: 2})
	if err != nil || d.Record.Kind != machine.KindParked {
		t.Fatalf("it decides %+v, %v", d.Record, err)
	}
	d.Record.Seal(idOf(work), chains[0].Instance.Salt, st.Seq, st.TailHash, lease.Token)
	answers, err := l.Append(t.Context(), lease.Token, []ledger.Entry{{
		ID: idOf(work), Number: chains[0].Instance.Number, Prev: st.TailHash, Record: *d.Record, Schedule: &ledger.Schedule{Class: ledger.ClassBegun},
	}})
	if err != nil || answers[0].Result != ledger.Appended {
		t.Fatalf("it is answered %+v, %v", answers, err)
	}
}

// "If that attempt is closed by then, post it as a signal", which closes the doubt. A failure is no
// evidence about anything and is not posted.
func TestAStaleAnswerToAClosedAttemptIsASignal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  fault
		ends    saga.Status
		reason  saga.Reason
		signals int
	}{
		"a success": {fault{slow: time.Second}, saga.Completed, "", 1},
		"a refusal": {fault{think: time.Second, refuse: true}, saga.Review, saga.ReasonInDoubt, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, c.answer)}
				w.watch(l)
				release := make(chan struct{})
				a := boot(t, l, w, config{program: mailer, hook: &hooked{
					renew: func(context.Context) error { return errors.New("no answer") },
					append: func(_ context.Context, es []ledger.Entry) error {
						if es[0].Record.Kind != machine.KindStarted {
							<-release // the answer is on its way to the ledger for longer than its attempt is open
						}
						return nil
					},
				}})
				synctest.Wait()
				a.begin("o1")
				b := boot(t, l, w, config{program: mailer})
				pass(30 * time.Second)
				b.want("o1", saga.Review, saga.ReasonInDoubt)
				close(release)
				synctest.Wait()
				b.want("o1", c.ends, c.reason)
				signals, err := l.Signals(t.Context(), idOf("o1"))
				if err != nil || len(signals) != c.signals {
					t.Fatalf("signals: %+v, %v; want %d", signals, err, c.signals)
				}
				if len(signals) > 0 && (signals[0].Kind != machine.SignalLate || signals[0].ExternalID != w.made("receipt", "o1")[0].id) {
					t.Errorf("the late answer was posted as %+v", signals[0])
				}
				verifyMails(t, l, w, 1, "o1")
			})
		})
	}
}
