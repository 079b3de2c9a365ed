// Package axe looks for what keeps people out of a page: what has no name, too little contrast, or no place in the order of
// headings. It is for tests that have a browser, and is axe-core, which comes from npm:
// by day, and where there is no npm, nothing is looked for.
package axe

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
)

// look names each rule that the page breaks, with the element that breaks it.
const look = `
axe.run({ resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + " " + n.target + ": " + n.failureSummary)).join("\n"))`

// Expression evaluates in a page to a promise of what is wrong with it; "" is nothing.
func Expression(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("npm"); err != nil || !pace.AtNight() {
		return `Promise.resolve("")`
	}
	dir := tb.TempDir()
	npm := exec.CommandContext(tb.Context(), "npm", "install", "--no-save", "--prefix", dir, "axe-core@4.14.1")
	if out, err := npm.CombinedOutput(); err != nil {
		tb.Fatalf("axe-core does not come from npm: %v\n%s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(script) + look
}
