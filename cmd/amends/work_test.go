package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// inDoubt is a ledger with one work of each name, all of them in review.
func inDoubt(t *testing.T, works ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ledger.db")
	db, err := stores.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, err := saga.Define("order-to-invoice", 1, saga.Do("mail", func(context.Context, saga.Call[string]) (string, error) {
		return "", errors.New("no answer")
	}).AtMostOnce().NoUndo("a mail"))
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(db, &coordinator.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for _, work := range works {
		if _, err := c.Start(t.Context(), "order-to-invoice", work, "x", nil); err != nil {
			t.Fatal(err)
		}
		if err := settled(t.Context(), coordinator.NewOperator(db), work, func(s saga.Status) bool { return s == saga.Review }); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return file
}

// aboutOneWork are the verbs that take a work, with what else they want.
var aboutOneWork = [][]string{
	{"show"}, {"history"}, {"resume", "--reason", "r"}, {"pause", "--reason", "r"}, {"cancel", "--reason", "r"}, {"retry", "--reason", "r"},
	{"rerun", "--reason", "r"}, {"skip", "--reason", "r"}, {"resolve", "--step", "mail", "--did-not-happen", "--reason", "r"},
}

// A verb whose work is empty, as where a variable is not set, is refused: it would be about the only
// work that there is.
func TestAnEmptyWorkIsNone(t *testing.T) {
	t.Parallel()
	file := inDoubt(t, "order:1")
	before := says(t, exitDone, "history", "order:1", "--db", file)
	for _, verb := range aboutOneWork {
		for _, work := range [][]string{{""}, {"--saga", "order-to-invoice", ""}, {"-o", "json", "--", ""}} {
			if said := says(t, exitUsage, slices.Concat(verb, []string{"--db", file}, work)...); !strings.Contains(said, "the work id is empty") && !strings.Contains(said, "name the work, or say --external-id") {
				t.Errorf("%q of %q says %s", verb, work, said)
			}
		}
		if said := says(t, exitNotFound, slices.Concat(verb, []string{"--db", file, "   "})...); !strings.Contains(said, "there is no work") {
			t.Errorf("%q of blanks says %s", verb, said)
		}
	}
	for _, scope := range []string{"--saga", "--destination"} {
		says(t, exitUsage, "pause", scope, "", "--reason", "r", "--db", file)
		says(t, exitUsage, "resume", scope, "", "--reason", "r", "--db", file)
	}
	if after := says(t, exitDone, "history", "order:1", "--db", file); after != before {
		t.Errorf("the work was changed:\n%s", after)
	}
}

// A work whose name looks like a flag is a name in every command that is there to be copied, and the
// command is about it and nothing else.
func TestANameThatLooksLikeAFlag(t *testing.T) {
	t.Parallel()
	names := []string{"--time=iso", "-h", "--", "--reason=x", "--all", "-o"}
	file := inDoubt(t, append(names, "order:1")...)
	other := says(t, exitDone, "history", "order:1", "--db", file)
	for _, name := range names {
		shown := says(t, exitDone, "show", "--db", file, "--", name)
		copied := 0
		for line := range strings.Lines(shown) {
			words := typed(strings.TrimSpace(line))
			if len(words) < 2 || words[0] != "amends" {
				continue
			}
			copied++
			if !slices.Equal(words[len(words)-2:], []string{"--", name}) {
				t.Errorf("%s is suggested as %q", name, words)
			}
			if slices.Contains(words, "--happened-without-id") {
				if said := says(t, exitDone, words[1:]...); !strings.Contains(said, name) {
					t.Errorf("%q says %s", words, said)
				}
			}
		}
		if copied < 2 {
			t.Errorf("%s is shown with %d commands:\n%s", name, copied, shown)
		}
	}
	if after := says(t, exitDone, "history", "order:1", "--db", file); after != other {
		t.Errorf("another work was changed:\n%s", after)
	}
}

// says runs the command, and returns what it has said.
func says(t *testing.T, want exit, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := exec(t.Context(), os.Getenv, args, strings.NewReader(""), &out, &errs); got != want {
		t.Errorf("%q ends with %d, want %d: %s%s", args, got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}
