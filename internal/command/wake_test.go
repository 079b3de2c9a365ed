package command

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/saga"
)

// What waits for a time is listed and shown with it, wake ends the wait, and what is in review for its deadline
// is resumed without one.
func TestWake(t *testing.T) {
	t.Parallel()
	d := newCounter(t)
	act := func(event, call) (made, error) { return made{"m_1"}, nil }
	step := func(name string) saga.Step[shopOrder] { return saga.Do(name, act).Idempotent().NoUndo("a test") }
	slow, err := saga.Define("slow", 1, step("authorize"), saga.Delay[shopOrder]("cooling-off", 24*time.Hour), step("capture"))
	if err != nil {
		t.Fatal(err)
	}
	late, err := saga.Define("late", 1, saga.Deadline[shopOrder](time.Millisecond, saga.AskPerson),
		saga.Delay[shopOrder]("rest", 50*time.Millisecond), step("capture"))
	if err != nil {
		t.Fatal(err)
	}
	wants := d.wants
	d.while(func(ctx context.Context, c *coordinator.Coordinator) error {
		for _, name := range []string{"slow", "late"} {
			if _, err := c.Start(ctx, name, name+":1", shopOrder{}, nil); err != nil {
				return err
			}
		}
		if err := at(ctx, c, "slow", "slow:1", saga.Waiting); err != nil {
			return err
		}
		wants("slow  slow:1  waiting", "list", "--status", "waiting")
		wants("amends wake slow:1", "show", "slow:1")
		wants("Waiting for a time, an answer or a decision: ", "status")
		if _, said := says(t, d.env, "", "status"); strings.Contains(said, "For a person to decide: 1 waiting") {
			t.Errorf("what waits for a time is said to wait for a person:\n%s", said)
		}
		wants(`step "cooling-off" waits no longer`, "wake", "slow:1", "--reason", "she called", "--dry-run")
		if status, said := says(t, d.env, "", "wake", "slow:1"); status != exitUsage {
			t.Errorf("without a reason it ends with %d: %s", status, said)
		}
		wants("The work is now ", "wake", "slow:1", "--reason", "she called", "--actor", "anna", "--wait", "30s")
		wants("wait-over: it waits no longer, says anna: she called", "history", "slow:1")
		if err := at(ctx, c, "late", "late:1", saga.Review); err != nil {
			return err
		}
		wants("was not at its end by", "show", "late:1")
		wants("late:1", "list", "--reason", "deadline")
		wants("", "resume", "late:1", "--reason", "it may take longer", "--wait", "30s")
		return at(ctx, c, "late", "late:1", saga.Completed)
	}, slow, late)
	_, said := says(t, d.env, "", "history", "slow:1", "-o", "json")
	var h desk.History
	if err := json.Unmarshal([]byte(said), &h); err != nil || h.Records[2].Until == nil && h.Records[3].Until == nil {
		t.Errorf("until when it waits is not in the history (%v):\n%s", err, said)
	}
}
