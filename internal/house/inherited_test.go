package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A program on SQLite links no driver of Postgres.
func TestSQLiteLinksNoPostgres(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/saga", module+"/coordinator", module+"/store/sqlite")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, module+"/store/sqlite") {
		t.Fatalf("these are not the packages of a program on SQLite: %s", linked)
	}
	for _, pkg := range linked {
		if matches("github.com/lib/pq/...", pkg) {
			t.Errorf("%s is linked: ask go list -deps by which package", pkg)
		}
	}
}

// The modules of go.mod are on the list of each program that imports amends: what tests alone need is in modules of their own. And
// go install …/cmd/amends@version refuses a go.mod that replaces or excludes one.
func TestGoModHasWhatUsersNeed(t *testing.T) {
	t.Parallel()
	text := strings.Join(lines(t, "go.mod"), "\n")
	if !strings.Contains(text, "modernc.org/sqlite v") {
		t.Fatal("go.mod does not name SQLite: what is read here is not it")
	}
	for _, apart := range []string{"github.com/chromedp/", "github.com/emersion/", "go.opentelemetry.io/otel/sdk", "k8s.io/", "replace ", "exclude "} {
		if strings.Contains(text, apart) {
			t.Errorf("go.mod has %q, which only tests need or go install refuses", apart)
		}
	}
}

// Each module is in go.work, so that make builds and tests it; but for the one that reads deploy/kubernetes, whose modules are many.
func TestEveryModuleIsTested(t *testing.T) {
	t.Parallel()
	used := regexp.MustCompile(`(?m)^\t\./?(.*)$`).FindAllStringSubmatch(strings.Join(lines(t, "go.work"), "\n"), -1)
	var have []string
	for _, m := range used {
		have = append(have, filepath.Join(m[1], "go.mod"))
	}
	want := []string{"bench/go.mod"} // tree leaves it out
	for _, name := range tree(t, "go.mod") {
		if name != "internal/kubecheck/go.mod" {
			want = append(want, name)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("go.work uses %s; the modules are %s", have, want)
	}
}
