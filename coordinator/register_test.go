package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/store/memory"
)

// mute is a ledger that says nothing to Describe.
type mute struct {
	*memory.DB

	asked int
}

func (m *mute) Describe(ctx context.Context, _ *program.Spec) error {
	m.asked++
	<-ctx.Done()
	return ctx.Err()
}

// logged is a logger and what it has said.
func logged() (*logrus.Logger, *bytes.Buffer) {
	said := &bytes.Buffer{}
	log := logrus.New()
	log.SetOutput(said)
	return log, said
}

// A ledger that says nothing is asked once more, by another connection, and no process waits for it
// for ever: it says that it asks again, and gives up (issue 45, item 17).
func TestRegisterWithASilentLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mute{DB: memory.New(nil)}
		log, said := logged()
		p, err := coordinator.New(m, &coordinator.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = p.Register(t.Context(), oneStep(t, "billing", "books", nil))
		if !errors.Is(err, context.DeadlineExceeded) || m.asked != 2 || time.Since(began) > time.Minute {
			t.Errorf("error %v after %d calls in %v, want one after two", err, m.asked, time.Since(began))
		}
		if n := strings.Count(said.String(), "call=register"); n != 1 {
			t.Errorf("it has said %q, want that it asks again", said)
		}
	})
}

// A process does not end because one answer to Describe was lost. It ends soon, and says why,
// when the ledger is away or refuses the definition.
func TestRegisterAsksAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []ledgertest.Fault
		other  bool // another definition is known under its name and version
		calls  int
		want   error
	}{
		"an answer is lost":     {faults: []ledgertest.Fault{ledgertest.LoseAnswer(1, ledgertest.Describe)}, calls: 2},
		"a request is lost":     {faults: []ledgertest.Fault{ledgertest.FailBetween(1, 3, ledgertest.Describe)}, calls: 4},
		"the ledger is away":    {faults: []ledgertest.Fault{ledgertest.FailAlways(ledgertest.Describe)}, calls: 5, want: ledgertest.ErrInjected},
		"it is another":         {other: true, calls: 1, want: ledger.ErrDefinitionChanged},
		"nothing is in its way": {calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := memory.New(nil)
				if c.other {
					if err := m.Describe(t.Context(), &program.Spec{Saga: "billing", Version: 1}); err != nil {
						t.Fatal(err)
					}
				}
				l := ledgertest.Faulty(m, c.faults...)
				log, said := logged()
				p, err := coordinator.New(l, &coordinator.Options{Log: log})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = p.Register(t.Context(), oneStep(t, "billing", "books", nil))
				if n := l.Calls(ledgertest.Describe); !errors.Is(err, c.want) || n != c.calls || time.Since(began) > time.Second {
					t.Errorf("error %v after %d calls in %v, want %v after %d", err, n, time.Since(began), c.want, c.calls)
				}
				if c.other && !strings.Contains(err.Error(), `step "make" is new`) {
					t.Errorf("it does not say which step: %v", err)
				}
				if repeats := strings.Contains(said.String(), "call=register"); repeats != (c.calls > 1) {
					t.Errorf("after %d calls it has said %q", c.calls, said)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // no call waits for a caller that has left
		l := ledgertest.Faulty(memory.New(nil), ledgertest.FailAlways(ledgertest.Describe))
		p, err := coordinator.New(l, &coordinator.Options{Log: silent()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Register(ctx, oneStep(t, "billing", "books", nil)); err == nil || l.Calls(ledgertest.Describe) != 1 {
			t.Errorf("%v after %d calls, want an error after one", err, l.Calls(ledgertest.Describe))
		}
	})
}

// A process that is told to stop before its session is open says nothing of the ledger: it was not
// waited for.
func TestAStopBeforeTheSessionIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, said := logged()
		ctx, stop := context.WithCancel(t.Context())
		h := &hooked{Ledger: memory.New(nil), open: func() error { stop(); return ctx.Err() }}
		p, err := coordinator.New(h, &coordinator.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if strings.Contains(said.String(), "does not answer") {
			t.Errorf("it has said %s", said)
		}
	})
}
