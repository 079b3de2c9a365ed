package console_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// world is a ledger, a coordinator over it, and the console: what the tests of package console have, in short.
type world struct {
	t      *testing.T
	db     store.DB
	c      *coordinator.Coordinator
	tokens *console.Tokens
	server *httptest.Server
	ended  chan error
	stop   context.CancelFunc // of the coordinator
}

// letter is what the sagas of these tests send.
type letter struct{ To, Outcome string }

// mailing is a saga with one letter, which is lost where its input says so, and one that people approve.
func mailing(t *testing.T) []saga.Program {
	t.Helper()
	send := saga.Do("send", func(_ context.Context, c saga.Call[letter]) (string, error) {
		if err := c.Sending(); err != nil {
			return "", err
		}
		return "", errors.New(c.Input.Outcome)
	}).AtMostOnce().NoUndo("a letter cannot be unsent").Timeout(time.Minute).Settle(time.Millisecond)
	mail, err := saga.Define("mail", 1, send)
	if err != nil {
		t.Fatal(err)
	}
	pay, err := saga.Define("pay", 1, saga.Approve[letter]("release").By("finance").Within(time.Hour).About(func(c saga.Call[letter]) saga.About {
		return saga.About{Title: "Pay " + c.Input.To, Amount: "EUR 1,200.00", Link: "https://books.example/bills/4711", Fields: []saga.Field{{Name: "cost centre", Value: "4711"}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return []saga.Program{mail, pay}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := console.OpenTokens("")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, tokens: tokens}
	w.run()
	pages, err := console.New(db, &console.Options{Tokens: tokens, Log: log, Coordinator: w.c})
	if err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(pages)
	t.Cleanup(func() {
		w.server.Close()
		w.halt()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// run has a coordinator work until it is halted; one that was halted is followed by another.
func (w *world) run() {
	w.t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(w.db, &coordinator.Options{Log: log, Poll: 20 * time.Millisecond, Lease: 5 * time.Second, Drain: time.Second})
	if err == nil {
		err = c.Register(w.t.Context(), mailing(w.t)...)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.c, w.ended, w.stop = c, make(chan error, 1), stop
	go func(ended chan error) { ended <- c.Run(ctx) }(w.ended)
}

func (w *world) halt() {
	w.t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		w.t.Error(err)
	}
}

// start starts an instance and waits until it has a status.
func (w *world) start(sagaName, id string, input letter, status saga.Status) {
	w.t.Helper()
	if _, err := w.c.Start(w.t.Context(), sagaName, id, input, nil); err != nil {
		w.t.Fatal(err)
	}
	w.until(sagaName, id, status)
}

func (w *world) until(sagaName, id string, status saga.Status) {
	w.t.Helper()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		s, err := w.c.Show(w.t.Context(), saga.ID{Saga: sagaName, Work: id})
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Status == status {
			return
		}
	}
}

// address is the page of an instance.
func address(sagaName, id string) string {
	return "/work?" + url.Values{"saga": {sagaName}, "id": {id}}.Encode()
}
