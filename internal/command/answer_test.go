package command

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What waits for an answer is listed and shown with what it waits for; a person answers it, has it wait longer, says that it failed,
// and brings messages.
func TestAnswers(t *testing.T) {
	t.Parallel()
	d := newCounter(t)
	act := func(event, call) (made, error) { return made{"m_1"}, nil }
	read := func(_ saga.Call[shopOrder], m saga.Message) (out made, err error) {
		if err := program.Decode(m.Body, &out); err != nil || out.ID == "" {
			return out, errors.New("it names nothing")
		}
		return out, nil
	}
	film, err := saga.Define("film", 1, saga.Do("submit", act).Idempotent().NoUndo("a test"),
		saga.Await("rendered", read).Callback("submit").On("render.done", func(c saga.Call[shopOrder]) string { return c.Work }).EachRun().Within(24*time.Hour, saga.Compensate),
		saga.Do("finish", act).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	d.while(func(ctx context.Context, c *coordinator.Coordinator) error {
		wants, refuses := d.wants, d.ends
		rests := func(work string, status saga.Status) {
			t.Helper()
			if err := at(ctx, c, "film", work, status); err != nil {
				t.Fatal(err)
			}
		}
		for _, work := range []string{"w1", "w2", "w3"} {
			if _, err := c.Start(ctx, "film", work, shopOrder{}, nil); err != nil {
				return err
			}
			rests(work, saga.Waiting)
		}
		why := []string{"--reason", "the partner says so"}
		wants("for an answer to submit by message render.done", "list", "--waiting")
		wants("Waiting for a time, an answer or a decision: 3 (amends list --waiting", "status", "--still", "1h")
		wants("for callback of submit or message render.done w1", "show", "w1")
		wants("amends complete w1", "show", "w1")
		wants(`"waitsFor": [`, "show", "w1", "-o", "json")
		refuses(exitConflict, "waits for no time", append([]string{"wake", "w1"}, why...)...)
		wants("w2 (film): Stored", append([]string{"extend", "w1", "w2", "--by", "72h"}, why...)...)
		wants("Applied", append([]string{"complete", "w1", "--body", `{"ID":"film_1"}`, "--wait", "30s"}, why...)...)
		rests("w1", saga.Completed)
		refuses(exitConflict, "waits for no answer", append([]string{"complete", "w1", "--body", "{}"}, why...)...)
		refuses(exitUsage, "--body", append([]string{"complete", "w2"}, why...)...)
		refuses(exitUsage, "--by", append([]string{"extend", "w2"}, why...)...)
		wants("delivered to film w2", "deliver", "render.done", "w2", "--id", "evt_1", "--body", `{"ID":"film_2"}`)
		rests("w2", saga.Completed)
		refuses(exitConflict, "another message", "deliver", "render.done", "w2", "--id", "evt_1", "--body", `{}`)
		wants("nothing that waits has it now", "deliver", "render.done", "w9", "--id", "evt_2")
		wants(`"works": []`, "deliver", "render.done", "w9", "--id", "evt_2", "-o", "json")
		refuses(exitUsage, "--id", "deliver", "render.done", "w9")
		wants("Applied", append([]string{"pause", "w3", "--wait", "30s"}, why...)...)
		wants("amends complete w3", "show", "w3")
		wants("amends resume w3", "show", "w3")
		wants("Applied", append([]string{"resume", "w3", "--wait", "30s"}, why...)...)
		wants("", append([]string{"fail", "w3"}, why...)...)
		rests("w3", saga.Compensated)
		wants("answered-no", "history", "w3")
		return nil
	}, film)
}
