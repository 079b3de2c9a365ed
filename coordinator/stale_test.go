package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/memory"
	"github.com/amends-dev/amends/saga"
)

// "What was learned is never dropped. On stale load the chain and feed the outcome to the machine again": a process
// whose lease is over brings an answer to a work that was parked meanwhile, by somebody who does not know its
// definition. The attempt is still open, so the answer is recorded, and the step is not sent again when somebody comes
// who knows it.
func TestAnOutcomeIsDecidedAgainAfterAStaleAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{slow: 12 * time.Second})}
		w.watch(l)
		a := boot(t, l, w, config{program: mailer, hook: &hooked{
			renew: func(context.Context) error { return errors.New("no answer") },
		}})
		synctest.Wait()
		a.begin("o1")
		o := quick()
		o.Grace = time.Second
		b := boot(t, l, w, config{opts: o, tune: tuning{version: 2}})
		pass(10 * time.Second)
		if h := headOf(t, l, "o1"); h.Reason != saga.ReasonUnknownVersion {
			t.Fatalf("the work is %s %s, want parked for its definition", h.Status, h.Reason)
		}
		pass(5 * time.Second)
		rs, err := l.History(t.Context(), idOf("o1"))
		if last := rs[len(rs)-1]; err != nil || last.Kind != saga.KindDone || last.Session != a.records.opened[0] {
			t.Errorf("the last record is %s by %s, want done by the process that sent it", last.Kind, last.Session)
		}
		b.want("o1", saga.Review, saga.ReasonUnknownVersion)
		c := boot(t, l, w, config{program: mailer})
		pass(5 * time.Second) // it has told the work that it knows it
		if s := c.want("o1", saga.Completed, ""); s.Steps["receipt"].ExternalID != w.made("receipt", "o1")[0].id {
			t.Errorf("the ledger says %+v, the mailbox %+v", s.Steps["receipt"], w.made("receipt", "o1"))
		}
		verifyMails(t, l, w, 1, "o1")
	})
}

// "If that attempt is closed by then, post it as a signal", which closes the doubt. A failure is no evidence about
// anything and is not posted.
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
						if es[0].Record.Kind != saga.KindStarted {
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
				if len(signals) > 0 && (signals[0].Kind != saga.SignalLate || signals[0].ExternalID != w.made("receipt", "o1")[0].id) {
					t.Errorf("the late answer was posted as %+v", signals[0])
				}
				verifyMails(t, l, w, 1, "o1")
			})
		})
	}
}
