package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// slowReader answers its first read of the controls when told to, whatever has become of who asked.
type slowReader struct {
	ledger.Ledger
	first chan struct{}
	asked int
}

func (r *slowReader) Controls(ctx context.Context) ([]ledger.Control, int64, error) {
	if r.asked++; r.asked > 1 {
		return r.Ledger.Controls(ctx)
	}
	<-r.first
	return []ledger.Control{{Kind: ledger.ControlPause, Name: "all", Version: 1000, Body: []byte("{}")}}, 1000, nil
}

// K17: a process reads the controls under every session that it opens, also while a read of the
// last one is on its way; and what that one says of another database counts no more.
func TestTheControlsAreReadUnderEverySession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &slowReader{Ledger: memory.New(nil), first: make(chan struct{})}
		k := newControls(r, newOutage(logrus.New()), told{func(string, health) {}, func(string, share) {}, func(string, *saga.Actor) {}, func() {}})
		open := func() *session { return newSession(ledger.Lease{TTL: time.Minute}, time.Now(), time.Second) }
		old, s := open(), open()
		k.opened(old)
		synctest.Wait()
		old.end(errExpired)
		k.opened(s)
		synctest.Wait()
		if s.trusted() != nil {
			t.Error("the controls were not read under the second session")
		}
		close(r.first)
		synctest.Wait()
		if _, by := k.holds("any"); by != nil {
			t.Error("what was read under the first session counts under the second")
		}
	})
}

// What a database has forgotten is over when the process reads it under its next session: a pause
// of a destination that no process could resume any more, because for everybody else there is none.
func TestWhatTheDatabaseForgotIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, obeyed := memory.New(nil), map[string]health{}
		k := newControls(l, newOutage(logrus.New()), told{func(name string, h health) { obeyed[name] = h }, func(string, share) {}, func(string, *saga.Actor) {}, func() {}})
		open := func() *session { return newSession(ledger.Lease{TTL: time.Minute}, time.Now(), time.Second) }
		first := open()
		k.opened(first)
		synctest.Wait()
		for _, name := range []string{"books", "shop"} {
			if err := NewOperator(l).PauseScope(t.Context(), OfDestination(name), saga.Actor{Name: "anna", Reason: "an audit"}); err != nil {
				t.Fatal(err)
			}
		}
		k.heard(first, 2)
		synctest.Wait()
		k.ledger = memory.New(nil)
		if err := NewOperator(k.ledger).PauseScope(t.Context(), OfDestination("shop"), saga.Actor{Name: "ben", Reason: "a move"}); err != nil {
			t.Fatal(err)
		}
		k.opened(open())
		synctest.Wait()
		if obeyed["books"].PausedBy != "" || obeyed["shop"].PausedBy != "ben" {
			t.Errorf("%+v", obeyed)
		}
	})
}
