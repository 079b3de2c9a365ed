package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

const twoWeeks = 14 * 24 * time.Hour

// process runs the saga until it is told to stop.
func process(t *testing.T, l ledger.Ledger) (c *coordinator.Coordinator, stop func()) {
	t.Helper()
	d, err := captureLater(Payments{}, twoWeeks)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = coordinator.New(l, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A payment that is authorized now is captured after two weeks, by a process that has nothing to do with the one
// that authorized it; one that is cancelled meanwhile is released.
func TestCaptureAfterTwoWeeks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		status := func(c *coordinator.Coordinator, work string, want saga.Status) {
			t.Helper()
			s, err := c.Show(t.Context(), saga.ID{Saga: "capture-later", Work: work})
			if err != nil || s.Status != want {
				t.Errorf("%s is %s (%v), want %s", work, s.Status, err, want)
			}
		}
		c, stop := process(t, l)
		for _, work := range []string{"booking:1", "booking:2"} {
			if _, err := c.Start(t.Context(), "capture-later", work, Booking{"Ada", 12900}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		status(c, "booking:1", saga.Waiting)
		if err := c.Cancel(t.Context(), saga.ID{Saga: "capture-later", Work: "booking:2"}, saga.Actor{Name: "ada", Reason: "I changed my mind"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		status(c, "booking:2", saga.Compensated)
		stop()
		time.Sleep(twoWeeks - time.Hour) //nolint:forbidigo // virtual
		c, stop = process(t, l)
		defer stop()
		time.Sleep(57 * time.Minute) //nolint:forbidigo // virtual
		status(c, "booking:1", saga.Waiting)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // virtual
		status(c, "booking:1", saga.Completed)
	})
}

// docs/delays.md shows this saga.
func TestDocsShowTheSaga(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(program), "func captureLater")
	shown, _, _ = strings.Cut(shown, "\n}\n")
	docs, err := os.ReadFile("../../docs/delays.md")
	if err != nil || !strings.Contains(string(docs), "```go\nfunc captureLater"+shown+"\n}\n```\n") {
		t.Errorf("docs/delays.md does not show captureLater as it is (%v)", err)
	}
}
