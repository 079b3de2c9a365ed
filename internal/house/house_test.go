package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/amends-dev/amends"
	top    = "../.." // of the repository, from this folder
)

// A package imports only what stands below it.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	o, err := parse(policy)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range files(t) {
		pkg := path.Dir(name)
		room, known := o.room(pkg)
		if !known {
			t.Errorf("%s: package %s has no place in the house: give it one in internal/house/policy_test.go", name, pkg)
			continue
		}
		if strings.HasSuffix(name, "_test.go") {
			continue // a test may look at what stands above
		}
		for _, imported := range imports(t, file) {
			inner, ours := strings.CutPrefix(imported, module+"/")
			if err := o.judge(room, inner, ours); err != nil {
				t.Errorf("%s imports %s: %v", name, imported, err)
			}
		}
	}
}

// No file imports what we do without, tests included.
func TestUnwantedModules(t *testing.T) {
	t.Parallel()
	for name, file := range files(t) {
		for _, imported := range imports(t, file) {
			for banned, instead := range unwanted {
				if matches(banned+"/...", imported) {
					t.Errorf("%s imports %s: %s", name, imported, instead)
				}
			}
		}
	}
}

// The machine is pure, and so are definitions: times arrive in events, so these packages call
// nothing that reads a clock or waits for one.
func TestMachineReadsNoClock(t *testing.T) {
	t.Parallel()
	pure := map[string]int{"internal/machine": 0, "internal/program": 0, "saga": 0}
	for name, file := range files(t) {
		n, ok := pure[path.Dir(name)]
		if !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		pure[path.Dir(name)] = n + 1
		for _, call := range clockCalls(file) {
			t.Errorf("%s uses %s", name, call)
		}
	}
	for pkg, n := range pure {
		if n == 0 {
			t.Errorf("no file of package %s was found: is it elsewhere now?", pkg)
		}
	}
}

// clockCalls lists the uses of clocks in a file. Nobody shadows these names: the
// import lines say which packages they are.
func clockCalls(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && slices.Contains(clocks[pkg.Name], selector.Sel.Name) {
			found = append(found, pkg.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return found
}

// The search for clocks finds calls and references, and leaves types alone.
func TestClockCalls(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "machine.go", `package saga
		func f(d time.Duration) { _ = time.Now(); g(time.Sleep); context.WithTimeout(nil, d); _ = time.Unix(0, 0) }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"time.Now", "time.Sleep", "context.WithTimeout"}
	if got := clockCalls(file); !slices.Equal(got, want) {
		t.Errorf("found %v; want %v", got, want)
	}
}

// files are the parsed Go files of the repository, bench included, by their path from the top.
// Build tags do not hide a file.
func files(t *testing.T) map[string]*ast.File {
	t.Helper()
	parsed, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// positions are those of files.
var positions = token.NewFileSet()

// parsed parses them once for all tests, which only read them.
var parsed = sync.OnceValues(func() (map[string]*ast.File, error) {
	parsed := make(map[string]*ast.File)
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && hidden(entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		relative, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		parsed[filepath.ToSlash(relative)], err = parser.ParseFile(positions, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		return err
	})
	return parsed, err
})

// hidden reports whether the go command passes a folder by.
func hidden(folder string) bool {
	return folder == "testdata" || folder != ".." && (folder[0] == '.' || folder[0] == '_')
}

func imports(t *testing.T, file *ast.File) []string {
	t.Helper()
	var all []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, imported)
	}
	return all
}
