package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// What waits for an answer is listed and shown with what it waits for; a person answers it, has it wait longer, says that it failed,
// and brings messages.
func TestAnswers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	env := func(name string) string { return map[string]string{"AMENDS_DB": path, "USER": "anna"}[name] }
	act := func(event, call) (made, error) { return made{"m_1"}, nil }
	read := func(_ saga.Call[shopOrder], m saga.Message) (out made, err error) {
		if err := program.Decode(m.Body, &out); err != nil || out.ID == "" {
			return out, errors.New("it names nothing")
		}
		return out, nil
	}
	d, err := saga.Define("film", 1, saga.Do("submit", act).Idempotent().NoUndo("a test"),
		saga.Await("rendered", read).Callback("submit").On("render.done", func(c saga.Call[shopOrder]) string { return c.Work }).Within(24*time.Hour, saga.Compensate),
		saga.Do("finish", act).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	wants := func(want string, args ...string) {
		t.Helper()
		if status, said := says(t, env, "", args...); status != exitDone || !strings.Contains(said, want) {
			t.Errorf("%s ends with %d and says\n%s\nwant %q", strings.Join(args, " "), status, said, want)
		}
	}
	refuses := func(want string, exit exit, args ...string) {
		t.Helper()
		if status, said := says(t, env, "", args...); status != exit || !strings.Contains(said, want) {
			t.Errorf("%s ends with %d and says\n%s\nwant %d and %q", strings.Join(args, " "), status, said, exit, want)
		}
	}
	err = running(t.Context(), l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := c.Register(ctx, d); err != nil {
			return err
		}
		at := func(work string, status saga.Status) {
			for ctx.Err() == nil {
				if s, err := c.Show(ctx, saga.ID{Saga: "film", Work: work}); err != nil || s.Status == status {
					return
				}
				time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a poll
			}
		}
		for _, work := range []string{"w1", "w2", "w3"} {
			if _, err := c.Start(ctx, "film", work, shopOrder{}, nil); err != nil {
				return err
			}
			at(work, saga.Waiting)
		}
		why := []string{"--reason", "the partner says so"}
		wants("for an answer to submit by message render.done", "list", "--waiting")
		wants("3 waiting for a time or an answer", "status", "--still", "1h")
		wants("for callback of submit or message render.done w1", "show", "w1")
		wants("amends complete w1", "show", "w1")
		wants(`"waitsFor": [`, "show", "w1", "-o", "json")
		refuses("waits for no time", exitConflict, append([]string{"wake", "w1"}, why...)...)
		wants("w2 (film): stored", append([]string{"extend", "w1", "w2", "--by", "72h"}, why...)...)
		wants("Applied", append([]string{"complete", "w1", "--body", `{"ID":"film_1"}`, "--wait", "30s"}, why...)...)
		at("w1", saga.Completed)
		refuses("waits for no answer", exitConflict, append([]string{"complete", "w1", "--body", "{}"}, why...)...)
		refuses("--body", exitUsage, append([]string{"complete", "w2"}, why...)...)
		refuses("--by", exitUsage, append([]string{"extend", "w2"}, why...)...)
		wants("delivered to film w2", "deliver", "render.done", "w2", "--id", "evt_1", "--body", `{"ID":"film_2"}`)
		at("w2", saga.Completed)
		refuses("another message", exitConflict, "deliver", "render.done", "w2", "--id", "evt_1", "--body", `{}`)
		wants("nothing that waits has it now", "deliver", "render.done", "w9", "--id", "evt_2")
		wants(`"works": []`, "deliver", "render.done", "w9", "--id", "evt_2", "-o", "json")
		refuses("--id", exitUsage, "deliver", "render.done", "w9")
		wants("Applied", append([]string{"pause", "w3", "--wait", "30s"}, why...)...)
		wants("amends complete w3", "show", "w3")
		wants("amends resume w3", "show", "w3")
		wants("Applied", append([]string{"resume", "w3", "--wait", "30s"}, why...)...)
		wants("", append([]string{"fail", "w3"}, why...)...)
		at("w3", saga.Compensated)
		wants("answered-no", "history", "w3")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
