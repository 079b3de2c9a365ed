package command

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// calls counts what the steps of a saga were asked to do.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

// since is what was called more than before.
func (c *calls) since(before map[string]int) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := map[string]int{}
	for what, n := range c.n {
		if n > before[what] {
			more[what] = n - before[what]
		}
	}
	return more
}

// promised is what a line of a rerun's dry run promises of a step.
var promised = map[string]*regexp.Regexp{
	"leave":  regexp.MustCompile(`^leave (\S+)`),
	"update": regexp.MustCompile(`^change (\S+)`),
	"do":     regexp.MustCompile(`^do (\S+?),? .*`),
	"ask":    regexp.MustCompile(`^ask people at (\S+) `),
	"asks":   regexp.MustCompile(`^(\S+): people are asked by it`),
	"wait":   regexp.MustCompile(`^wait at (\S+)`),
}

// What a dry run of a rerun prints is what the run does, for every kind of step, behind a run that was completed and one that was undone.
func TestARerunDoesWhatItsPlanSays(t *testing.T) {
	t.Parallel()
	for _, end := range []saga.Status{saga.Completed, saga.Compensated} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			d, did := newCounter(t), &calls{n: map[string]int{}}
			act := func(_ context.Context, c call) (made, error) {
				did.note(c.Step)
				if c.Step == "last" && end == saga.Compensated && c.Revision == "" {
					return made{}, saga.Permanent(fmt.Errorf("no"))
				}
				return made{c.Step + c.Revision}, nil
			}
			update := func(_ context.Context, c call, id string) (made, error) {
				did.note("update " + c.Step)
				return made{id}, nil
			}
			undo := func(context.Context, call, *made) error { return nil }
			find := func(context.Context, call) (saga.Finding[made], error) { return saga.NotFound[made](), nil }
			read := func(saga.Call[shopOrder], saga.Message) (made, error) { return made{"m"}, nil }
			kinds, err := saga.Define("kinds", 1,
				saga.Do("same", act).Idempotent().UndoMaybe(undo),
				saga.Do("paid", act).Keyed(time.Hour).Once().UndoMaybe(undo),
				saga.Do("stays", act).Keyed(time.Hour).Once().NoUndo("it stays"),
				saga.Do("bill", act).Find(find).Update(update).NoUndo("it stays"),
				saga.Do("note", act).Keyed(time.Hour).EachRun().NoUndo("it stays"),
				saga.Do("job", act).Keyed(time.Hour).Once().NoUndo("it stays"),
				saga.Await("ready", read).Callback("job").On("ready", func(c saga.Call[shopOrder]) string { return c.Work }).EachRun().Within(time.Hour, saga.Compensate),
				saga.Approve[shopOrder]("approved").By("finance").Within(time.Hour).Ask(saga.Do("ask", act).Keyed(time.Hour).NoUndo("a question")),
				saga.Delay[shopOrder]("cool", time.Millisecond),
				saga.Await("shipped", read).On("shipped", func(c saga.Call[shopOrder]) string { return c.Work }).EachRun().Within(time.Hour, saga.Compensate),
				saga.Do("last", act).Idempotent().UndoMaybe(undo),
				saga.Do("mail", act).AtMostOnce().NoUndo("it is read"),
			)
			if err != nil {
				t.Fatal(err)
			}
			d.while(func(ctx context.Context, c *coordinator.Coordinator) error {
				id := saga.ID{Saga: "kinds", Work: "w"}
				through := func(n int, want saga.Status) { // people decide, and the message comes
					for ctx.Err() == nil {
						if a, err := c.Approval(ctx, id, "approved"); err == nil && a.Outcome == "" && did.since(nil)["ask"] >= n { // once they are asked
							_ = c.Vote(ctx, id, "approved", true, a.Digest, coordinator.Voter{Actor: saga.Actor{Name: "ann", Reason: "r"}, Roles: []string{"finance"}})
						}
						for _, name := range []string{"shipped", "ready"} {
							if _, err := c.Deliver(ctx, saga.Message{Name: name, Key: "w", ID: fmt.Sprint(n)}); err != nil {
								t.Error(err)
							}
						}
						if s, err := c.Show(ctx, id); err != nil || s.Status == want && (n == 1 || s.Revision == "+1") {
							return
						}
						time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a poll
					}
				}
				if _, err := c.Start(ctx, "kinds", "w", shopOrder{}, nil); err != nil {
					return err
				}
				through(1, end)
				before := did.since(nil)
				said := d.ends(exitDone, "Dry run", "rerun", "w", "--reason", "r", "--dry-run", "--actor", "ann")
				d.ends(exitDone, "", "rerun", "w", "--reason", "r", "--actor", "ann")
				through(2, saga.Completed)
				more := did.since(before)
				history := d.ends(exitDone, "", "history", "w")
				_, second, _ := strings.Cut(history, "begun again for revision +1")
				plan := planned(t, said)
				for _, s := range kinds.Spec().Steps {
					does := map[string]bool{
						"leave":  more[s.Name]+more["update "+s.Name] == 0 && !strings.Contains(second, s.Name+" wait-began"),
						"update": more["update "+s.Name] == 1 && more[s.Name] == 0, "do": more[s.Name] == 1 && more["update "+s.Name] == 0,
						"ask": strings.Contains(second, s.Name+" approval-began"), "asks": more[s.Name] == 1, "wait": strings.Contains(second, s.Name+" wait-began"),
					}
					if !does[plan[s.Name]] {
						t.Errorf("the plan says %q of %s, and the run did %v:\n%s\n%s", plan[s.Name], s.Name, more, said, history)
					}
				}
				return nil
			}, kinds)
		})
	}
}

// planned is what a dry run promises of each step.
func planned(t *testing.T, said string) map[string]string {
	t.Helper()
	plan := map[string]string{}
	_, lines, _ := strings.Cut(said, "then ")
	for line := range strings.Lines(lines) {
		for what, pattern := range promised {
			if m := pattern.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				plan[strings.TrimSuffix(m[1], ",")] = what
			}
		}
	}
	return plan
}
