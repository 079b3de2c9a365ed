package command

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// counter is a ledger of its own, and a person who works on it by the command.
type counter struct {
	t   *testing.T
	l   store
	env func(string) string
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &counter{t, l, func(name string) string { return map[string]string{"AMENDS_DB": path, "USER": "anna"}[name] }}
}

// ends runs a command, and checks how it ends and what it says.
func (d *counter) ends(end exit, want string, args ...string) (said string) {
	d.t.Helper()
	status, said := says(d.t, d.env, "", args...)
	if status != end || !strings.Contains(said, want) {
		d.t.Errorf("%s ends with %d and says\n%s\nwant %d and %q", strings.Join(args, " "), status, said, end, want)
	}
	return said
}

// wants runs a command that ends well.
func (d *counter) wants(want string, args ...string) {
	d.t.Helper()
	d.ends(exitDone, want, args...)
}

// while lets a coordinator run the sagas meanwhile.
func (d *counter) while(fn func(context.Context, *coordinator.Coordinator) error, sagas ...saga.Program) {
	d.t.Helper()
	err := running(d.t.Context(), d.l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := c.Register(ctx, sagas...); err != nil {
			return err
		}
		return fn(ctx, c)
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// at waits until a work has a status.
func at(ctx context.Context, c *coordinator.Coordinator, sagaName, work string, status saga.Status) error {
	for ctx.Err() == nil {
		if s, err := c.Show(ctx, saga.ID{Saga: sagaName, Work: work}); err != nil || s.Status == status {
			return err
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a poll
	}
	return ctx.Err()
}
