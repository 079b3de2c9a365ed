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
