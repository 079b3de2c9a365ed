package command

import (
	"bytes"
	"context"
	"errors"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// held is a ledger with works of these ids, each held by a person, and the environment that names it.
func held(t *testing.T, works ...string) (env func(string) string, posted func() map[string]int64) {
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
	err = running(t.Context(), l, 1, func(ctx context.Context, c *coordinator.Coordinator) error {
		for _, work := range works {
			if _, err := c.Start(ctx, "order-to-invoice", work, shopOrder{Number: 5}, nil); err != nil {
				return err
			}
			id := saga.ID{Saga: "order-to-invoice", Work: work}
			err := errors.Join(settled(ctx, c.Operator, work, quiet), c.Operator.Pause(ctx, id, saga.Actor{Name: "anna", Reason: "a test"}),
				settled(ctx, c.Operator, work, func(s saga.Status) bool { return s == saga.Paused }))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	posted = func() map[string]int64 {
		heads, err := ledger.First(t.Context(), l, ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		signals := map[string]int64{}
		for i := range heads {
			signals[heads[i].ID.Work] = heads[i].Posted
		}
		return signals
	}
	return func(name string) string { return map[string]string{"AMENDS_DB": path}[name] }, posted
}

// What a variable leaves that was never set is no work, job or filter: every verb refuses it, and the
// only work there is stays as it is.
func TestEmptyNamesAreRefused(t *testing.T) {
	t.Parallel()
	env, posted := held(t, "o1")
	why := []string{"--reason", "x", "--actor", "anna"}
	const work, variable = "the work id is empty; if it came from a variable, the variable is empty", "if it came from a variable"
	tried := map[string]bool{}
	for _, c := range []struct {
		line  []string
		stdin string
		want  string
	}{
		{[]string{"show", ""}, "", work},
		{[]string{"show", "", "--external-id", "inv_1"}, "", work},
		{[]string{"show", "--external-id", ""}, "", "--external-id is empty; " + variable},
		{[]string{"history", ""}, "", work},
		{[]string{"duplicates", ""}, "", work},
		{[]string{"check", ""}, "", work},
		{[]string{"list", ""}, "", work},
		{[]string{"export", ""}, "", work},
		{[]string{"export", "--saga", ""}, "", "--saga is empty; " + variable},
		{[]string{"verify", ""}, "", "the name of the file is empty; " + variable},
		{[]string{"status", ""}, "", work},
		{append([]string{"retry", ""}, why...), "", work},
		{append([]string{"retry", "o1", ""}, why...), "", work},
		{append([]string{"resolve", "", "--step", "invoice", "--did-not-happen"}, why...), "", work},
		{append([]string{"resolve", "", "--keep"}, why...), "", work},
		{append([]string{"skip", "", "--no-result"}, why...), "", work},
		{append([]string{"pause", ""}, why...), "", work},
		{append([]string{"pause", "", "--all"}, why...), "", work},
		{append([]string{"resume", ""}, why...), "", work},
		{append([]string{"wake", ""}, why...), "", work},
		{append([]string{"complete", "", "--body", "{}"}, why...), "", work},
		{append([]string{"fail", ""}, why...), "", work},
		{append([]string{"extend", "", "--by", "1h"}, why...), "", work},
		{[]string{"deliver", "", "7", "--id", "evt_1"}, "", "the name of the message is empty; " + variable},
		{[]string{"deliver", "paid", "", "--id", "evt_1"}, "", "the key of the message is empty; " + variable},
		{[]string{"approve", ""}, "", work},
		{append([]string{"reject", "", "--shown", "d"}, why...), "", work},
		{append([]string{"resume"}, append(why, "--", "")...), "", work},
		{append([]string{"cancel", ""}, why...), "", work},
		{append([]string{"undo", ""}, why...), "", work},
		{append([]string{"rerun", ""}, why...), "", work},
		{append([]string{"hold", ""}, why...), "", work},
		{append([]string{"erase", ""}, why...), "", work},
		{[]string{"batch", ""}, "", "the batch is empty; " + variable},
		{[]string{"start", "", "o2", "--input", "-"}, "{}", "the saga or the work id is empty; " + variable},
		{[]string{"start", "order-to-invoice", "", "--input", "-"}, "{}", "the saga or the work id is empty; " + variable},
		{append([]string{"resume", "\torder-to-invoice"}, why...), "", `the work id of "\torder-to-invoice" is empty`},
		{append([]string{"resume", "o1\t"}, why...), "", `the saga of "o1\t" is empty`},
		{append([]string{"resume", "-"}, why...), "o1\n\torder-to-invoice\n", `the work id of "\torder-to-invoice" is empty`},
		{append([]string{"resume", "o1", "--saga", ""}, why...), "", "--saga is empty; " + variable},
		{append([]string{"retry", "-o", "json", "--", ""}, why...), "", work},
		{append([]string{"pause", "--saga", ""}, why...), "", "--saga is empty; " + variable},
		{append([]string{"resume", "--destination", ""}, why...), "", "--destination is empty; " + variable},
		{append([]string{"pause", "--destination", "", "--all"}, why...), "", "--destination is empty; " + variable},
		{append([]string{"skip", "o1", "--step", "", "--no-result"}, why...), "", "--step is empty; " + variable},
		{[]string{"list", "--prefix", "", "-o", "ids"}, "", "--prefix is empty; " + variable},
		{[]string{"list", "--reason", "", "-o", "ids"}, "", "--reason is empty; " + variable},
		{append([]string{"destination", "probe", ""}, why...), "", "the name of the destination is empty; " + variable},
		{append([]string{"inbox", "replay", "--source", ""}, why...), "", "--source is empty; " + variable},
		{append([]string{"inbox", "release", ""}, why...), "", "the name of the source is empty; " + variable},
		{append([]string{"inbox", "drop", ""}, why...), "", "the name of the source is empty; " + variable},
		{[]string{"inbox", "objects", ""}, "", "the object is empty; " + variable},
		{[]string{"drift", "list", "--job", ""}, "", "--job is empty; " + variable},
		{[]string{"drift", "decided", ""}, "", "the name of the job is empty; " + variable},
		{append([]string{"drift", "accept", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "ignore", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "again", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "ours", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "keep", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "undo", "orders", ""}, why...), "", "the key is empty; " + variable},
		{append([]string{"drift", "reopen", "orders", ""}, why...), "", "the key is empty; " + variable},
		{[]string{"reconcile", "plan", ""}, "", "the name of the job is empty; " + variable},
		{[]string{"reconcile", "show", ""}, "", "the id of the plan is empty; " + variable},
		{append([]string{"reconcile", "apply", "orders", ""}, why...), "", "the name of the job or the id of the plan is empty; " + variable},
		{append([]string{"reconcile", "approve", ""}, why...), "", "the name of the job is empty; " + variable},
		{append([]string{"reconcile", "rebuild", ""}, why...), "", "the name of the job is empty; " + variable},
		{[]string{"reconcile", "runs", ""}, "", "the name of the job is empty; " + variable},
		{[]string{"schedule", "run", ""}, "", "the name of the job is empty; " + variable},
		{append([]string{"schedule", "backfill", "", "--from", "7d"}, why...), "", "the name of the job is empty; " + variable},
		{append([]string{"schedule", "pause", ""}, why...), "", "the name of the job is empty; " + variable},
		{[]string{"schedule", "unpause", ""}, "", "the name of the job is empty; " + variable},
		{[]string{"inbox", "show", ""}, "", `"" is no number`},
		{append([]string{"inbox", "replay", ""}, why...), "", `"" is no number`},
		{[]string{"schedule", "check", ""}, "", "it is empty"},
	} {
		if cmd, _, err := newApp(&Line{Env: env}).root().Find(c.line); err == nil {
			tried[cmd.CommandPath()] = true
		}
		before := posted()
		status, said := says(t, env, c.stdin, c.line...)
		if status != exitUsage || !strings.Contains(said, c.want) {
			t.Errorf("%q ends with %d and says %s\nwant %d and %s", c.line, status, said, exitUsage, c.want)
		}
		if now := posted(); now["o1"] != before["o1"] {
			t.Errorf("%q was stored for the only work", c.line)
		}
	}
	for _, cmd := range leaves(newApp(&Line{Env: env}).root()) {
		if takesOne := regexp.MustCompile(`^\S+ [\[(]?[A-Z]`).MatchString(cmd.Use); takesOne && !tried[cmd.CommandPath()] {
			t.Errorf("%s was not tried", cmd.CommandPath())
		}
	}
	// Blanks are a name like another, and no work has it.
	for _, verb := range []string{"show", "history", "retry", "pause", "resume", "cancel", "undo", "rerun", "skip --no-result", "resolve --step invoice --did-not-happen"} {
		line := append(strings.Fields(verb), "   ")
		if verb != "show" && verb != "history" {
			line = append(line, why...)
		}
		if status, said := says(t, env, "", line...); status != exitNotFound || posted()["o1"] != 1 {
			t.Errorf("%s of three blanks: %d, %s; %v", verb, status, said, posted())
		}
	}
}

// leaves are the verbs that have none of their own.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// says runs the program, and returns what it said on both its outputs.
func says(t *testing.T, env func(string) string, stdin string, args ...string) (exit, string) {
	t.Helper()
	var out bytes.Buffer
	status := exec(t.Context(), env, args, strings.NewReader(stdin), &out, &out)
	return status, out.String()
}

// A work may be named like a flag. Every command that show and the others print is about that work,
// and about nothing else, when a shell runs it.
func TestCommandsNameTheirWork(t *testing.T) {
	t.Parallel()
	names := []string{"--time=iso", "-h", "--", "-", "--reason=x", "--all", "-o json", "--it's"}
	env, posted := held(t, append([]string{"o1"}, names...)...)
	for _, name := range names {
		status, shown := says(t, env, "", "show", "--", name)
		if status != exitDone {
			t.Fatalf("%q: %d, %s", name, status, shown)
		}
		commands := commandsIn(shown)
		if len(commands) < 4 {
			t.Errorf("%q: show prints these commands: %q", name, commands)
		}
		for _, line := range commands {
			words := asShell(t, line)
			if i := slices.Index(words, "--"); words[0] != "amends" || i != len(words)-2 || words[i+1] != name {
				t.Errorf("%q: show prints %s, which is %q", name, line, words)
			}
		}
		if _, said := says(t, env, "", "show", "-o", "json", "--", name); !strings.Contains(said, "amends show --saga order-to-invoice -- '") {
			t.Errorf("%q: next is %s", name, said)
		}
		before := posted()
		words := asShell(t, commands[0])
		status, said := says(t, env, "o1\n", words[1:]...)
		if words[1] != "resume" || status != exitDone || !strings.Contains(said, "amends show --saga order-to-invoice -- '") {
			t.Errorf("%q: %s ends with %d and says %s", name, commands[0], status, said)
		}
		before[name]++
		if now := posted(); !equal(now, before) {
			t.Errorf("%q: after %s the signals are %v, want %v", name, commands[0], now, before)
		}
	}
}

func equal(a, b map[string]int64) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// commandsIn are the lines that are commands.
func commandsIn(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "amends ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// asShell are the words of a line as a shell reads it.
func asShell(t *testing.T, line string) []string {
	t.Helper()
	out, err := osexec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
