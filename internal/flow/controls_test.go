package flow

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// lease is a session of a test.
type lease struct {
	token machine.Token
	idle  context.Context
	end   context.CancelFunc
	told  bool
}

func newLease(t *testing.T, token machine.Token) *lease {
	t.Helper()
	s := &lease{token: token}
	s.idle, s.end = context.WithCancel(t.Context())
	return s
}

func (s *lease) Token() machine.Token  { return s.token }
func (s *lease) Alone() bool           { return false }
func (s *lease) Why() error            { return s.idle.Err() }
func (s *lease) Idle() context.Context { return s.idle }
func (s *lease) Obeys()                { s.told = true }

// slowReader answers its first read of the controls when told to, whatever has become of who asked.
type slowReader struct {
	Ledger
	first chan struct{}
	asked int
}

func (r *slowReader) Controls(ctx context.Context) ([]ledger.Control, int64, error) {
	if r.asked++; r.asked > 1 {
		return r.Ledger.Controls(ctx)
	}
	<-r.first
	return []ledger.Control{{Kind: ledger.ControlPause, Name: Everything, Version: 1000, Body: []byte("{}")}}, 1000, nil
}

func untold() told {
	return told{func(string, Health) {}, func(string, share) {}, func(string, *saga.Actor) {}, func() {}}
}

// A process reads the controls under every session that it opens, also while a read of the
// last one is on its way; and what that one says of another database counts no more.
func TestTheControlsAreReadUnderEverySession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &slowReader{Ledger: memory.New(nil), first: make(chan struct{})}
		k := newControls(r, func(error) {}, untold())
		old, s := newLease(t, 1), newLease(t, 2)
		k.opened(old)
		synctest.Wait()
		old.end()
		k.opened(s)
		synctest.Wait()
		if !s.told {
			t.Error("the controls were not read under the second session")
		}
		close(r.first)
		synctest.Wait()
		if _, by := k.holds("any"); by != nil {
			t.Error("what was read under the first session counts under the second")
		}
	})
}

// pauses has a person hold a destination.
func pauses(t *testing.T, l Ledger, destination string, by saga.Actor) {
	t.Helper()
	c := ledger.Control{Kind: ledger.ControlDestination, Name: destination, Actor: by.Name, Reason: by.Reason, Nonce: 1}
	err := SetPause(&c, by, true)
	if err == nil {
		_, err = l.SetControl(t.Context(), 0, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a database has forgotten is over when the process reads it under its next session: a pause
// of a destination that no process could resume any more, because for all others there is none.
func TestWhatTheDatabaseForgotIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		obeyed, tells := map[string]Health{}, untold()
		tells.health = func(name string, h Health) { obeyed[name] = h }
		l := memory.New(nil)
		k := newControls(l, func(error) {}, tells)
		first := newLease(t, 1)
		k.opened(first)
		synctest.Wait()
		for _, name := range []string{"books", "shop"} {
			pauses(t, l, name, saga.Actor{Name: "anna", Reason: "an audit"})
		}
		_, newest, err := l.Controls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k.heard(first, newest)
		synctest.Wait()
		if obeyed["books"].PausedBy != "anna" {
			t.Fatalf("%+v", obeyed)
		}
		other := memory.New(nil)
		k.ledger = other
		pauses(t, other, "shop", saga.Actor{Name: "ben", Reason: "a move"})
		k.opened(newLease(t, 2))
		synctest.Wait()
		if obeyed["books"].PausedBy != "" || obeyed["shop"].PausedBy != "ben" {
			t.Errorf("%+v", obeyed)
		}
	})
}
