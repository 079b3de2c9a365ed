package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const said = `webhook: order.created, version 1
invoice for 42 says 20.00 (version 1 of the order)
webhook: order.updated, version 3 (version 2 is late)
invoice for 42 says 25.00 (version 3 of the order)
webhook: order.updated, version 2 (here it is: nothing follows)
webhook: order.updated, version 3 (again: nothing follows)
webhook: order.deleted, version 4
invoice for 42 is void
webhook: order.updated, version 3 (an old one, months later: nothing follows)
`

// Effects follow from versions, not from arrivals.
func TestWhatFollowsFromWebhooks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != said {
		t.Errorf("it printed\n%swant\n%s", out.String(), said)
	}
}

// docs/webhooks.md shows what decides which sagas run, and what the program prints: word for word.
func TestDocsShowTheSource(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(program), "\t// What decides")
	source, _, _ := strings.Cut(rest, "\n\n")
	shown := strings.ReplaceAll("// What decides"+source, "\n\t", "\n")
	for what, text := range map[string]string{"the source of examples/webhooks": "```go\n" + shown + "\n```\n", "what it prints": "```\n" + said + "```\n"} {
		if !strings.Contains(string(readme), text) {
			t.Errorf("docs/webhooks.md does not show %s:\n%s", what, text)
		}
	}
}
