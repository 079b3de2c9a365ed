package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" { // a test started this binary as a worker, and kills it
		if err := start(context.Background(), nil, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Faults, lost and doubled callbacks and kills of real processes on both databases: every customer has what was paid for, once, or
// nothing and paid nothing, as the partners have it.
func TestStory(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	for name, db := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "amends.db") },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			var out bytes.Buffer
			// More patience than in the example: on a busy machine a mail that fails and is sent again would come too late.
			if err := play(t.Context(), db(t), 26, seed, 15*time.Second, &out); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, &out)
			}
			for _, want := range []string{" 0 in review", "customers are served", "6 workers were killed", "the audit is clean"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("seed %d: it does not say %q:\n%s", seed, want, &out)
				}
			}
		})
	}
}

// docs/answers.md shows this saga.
func TestDocsShowTheSaga(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("saga.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(program), "func chargeAndProvision(")
	saga, _, _ := strings.Cut(rest, "\n}\n")
	docs, err := os.ReadFile("../../docs/answers.md")
	if err != nil || !strings.Contains(string(docs), "```go\nfunc chargeAndProvision("+saga+"\n}\n```") {
		t.Errorf("docs/answers.md does not show chargeAndProvision as it is (%v)", err)
	}
}

// docs/approvals.md shows the approval, and how its pages are mounted.
func TestDocsShowTheApproval(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, from, to string }{
		{"saga.go", "\t\tsaga.Approve[Order]", "\"cfo\"),\n"}, {"saga.go", "func about(", "\n}\n"}, {"worker.go", "\tmux.Handle(\"/approvals/\"", "\n"},
	} {
		program, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(program), c.from)
		shown, _, found := strings.Cut(rest, c.to)
		if !found || !strings.Contains(string(docs), "```go\n"+c.from+shown+c.to+"```") {
			t.Errorf("docs/approvals.md does not show this of %s:\n%s", c.file, c.from+shown+c.to)
		}
	}
}
