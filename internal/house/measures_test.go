package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the house may come to at most. They only go down.
const (
	mostPackages = 22   // outside examples, bench and internal
	mostFunction = 60   // lines
	mostFile     = 500  // lines
	mostNames    = 1568 // exported identifiers and fields; the goal is 1,000
	mostVague    = 0    // lines of text with a word that names no actor
)

// The words that tell no actor: the text names the process, the person or the part that is meant. Two were words of this
// house alone.
var vague = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|whoever|anew|hearer|distrust)\b`)

// foreign words are of the standard library, and of an account of Unix.
var foreign = regexp.MustCompile(`http\.NoBody|"nobody"`)

// said is where vague words are looked for: in what is written for users and readers, tests aside.
func said(name string) bool {
	switch {
	case strings.HasPrefix(path.Base(name), "CHANGELOG"), strings.HasPrefix(name, "internal/house/"):
		return false
	case strings.HasSuffix(name, ".go"):
		return !strings.HasSuffix(name, "_test.go")
	default:
		return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".sql")
	}
}

// measured is what the house comes to.
type measured struct {
	packages  map[string]bool
	names     int // exported identifiers of packages, and fields of their structs
	functions map[string]int
	lines     map[string]int
}

// The measures are within their bounds. make house prints them.
func TestMeasures(t *testing.T) {
	t.Parallel()
	m := measure(t)
	function, file := longest(m.functions), longest(m.lines)
	for _, c := range []struct {
		what     string
		is, most int
		where    string
	}{
		{"packages outside examples, bench and internal", len(m.packages), mostPackages, ""},
		{"lines of the longest function", m.functions[function], mostFunction, function},
		{"lines of the longest file", m.lines[file], mostFile, file},
		{"public names and fields", m.names, mostNames, ""},
		{"lines that say nobody, whoever, anew and the like", vagueLines(t), mostVague, ""},
	} {
		t.Logf("%-50s %6d of %d at most  %s", c.what, c.is, c.most, c.where)
		if c.is > c.most {
			t.Errorf("%s: %d, and %d at most  %s", c.what, c.is, c.most, c.where)
		}
	}
	untested := 0
	for _, rule := range lines(t, "docs/rules.txt") {
		if len(strings.Fields(rule)) < 3 {
			untested++
		}
	}
	t.Logf("%-50s %6d", "rules without a test", untested)
	for _, story := range []string{"quickstart", "webhooks", "reconcile", "service"} {
		packages, names := uses(t, "examples/"+story)
		t.Logf("%-50s %6d packages, %d names", "examples/"+story+" uses", packages, names)
	}
}

// kits are for tests.
var kits = []string{"ledger/ledgertest", "store/storetest"}

// measure counts what is not in examples or bench, without tests. Packages and names are those that a user can import; what is
// in a test kit counts as a package only.
func measure(t *testing.T) *measured {
	t.Helper()
	m := &measured{packages: map[string]bool{}, functions: map[string]int{}, lines: map[string]int{}}
	set := token.NewFileSet()
	for _, name := range tree(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "examples/") {
			continue
		}
		inside := slices.Contains(strings.Split(name, "/"), "internal")
		if !inside {
			m.packages[path.Dir(name)] = true
		}
		if slices.Contains(kits, path.Dir(name)) {
			continue
		}
		file, err := parser.ParseFile(set, top+"/"+name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		m.lines[name] = len(lines(t, name))
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				m.functions[fmt.Sprintf("%s:%s", name, f.Name.Name)] = set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
			}
			if !inside && file.Name.Name != "main" {
				m.names += public(d)
			}
		}
	}
	return m
}

// public counts the exported names that a declaration adds: its own, and those of its fields.
func public(d ast.Decl) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			count(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				count(spec.Names...)
			case *ast.TypeSpec:
				count(spec.Name)
				if fields, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
					for _, f := range fields.Fields.List {
						count(f.Names...)
					}
				}
			}
		}
	}
	return n
}

// vagueLines counts the lines with a vague word.
func vagueLines(t *testing.T) (n int) {
	t.Helper()
	for _, name := range tree(t, ".go", ".md", ".sql") {
		if !said(name) {
			continue
		}
		for _, line := range lines(t, name) {
			if vague.MatchString(foreign.ReplaceAllString(line, "")) {
				n++
			}
		}
	}
	return n
}

// longest is the name with the highest count.
func longest(counts map[string]int) (name string) {
	for other, n := range counts {
		if n > counts[name] || n == counts[name] && other < name {
			name = other
		}
	}
	return name
}

// uses counts the packages of ours that a program imports, and the names of theirs that it has in its text.
func uses(t *testing.T, folder string) (packages, names int) {
	t.Helper()
	imported, used := map[string]bool{}, map[string]bool{}
	for name, file := range files(t, 0) {
		if path.Dir(name) != folder || strings.HasSuffix(name, "_test.go") {
			continue
		}
		ours := map[string]bool{}
		for _, i := range imports(t, file) {
			if strings.HasPrefix(i, module+"/") {
				imported[i], ours[path.Base(i)] = true, true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && ours[x.Name] {
					used[x.Name+"."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return len(imported), len(used)
}
