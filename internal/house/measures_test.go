package house

import (
	"fmt"
	"go/ast"
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
	mostNames    = 1165 // exported identifiers, methods and fields
	mostVague    = 0    // lines of text with a word that names no actor
)

// stories are what a program for each of them may use: so many packages of ours, and so many names
// of theirs.
var stories = []struct {
	folder          string
	packages, names int
}{
	{"quickstart", 3, 10},
	{"webhooks", 5, 20},
	{"reconcile", 8, 30}, // webhooks as well
	{"service", 9, 50},   // health, counters, a logger and HTTP clients as well
}

// The words that tell no actor: the text names the process, the person or the part that is meant.
// Two were words of this house alone.
var vague = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|whoever|anew|hearer|distrust)\b`)

// foreign words are of the standard library, and of an account of Unix.
var foreign = regexp.MustCompile(`http\.NoBody|"nobody"`)

// spoken are the files beside Go that readers see.
var spoken = []string{".md", ".sql", ".pml", ".yml", ".sh", "Makefile"}

// said is where vague words are looked for: in what is written for users and readers, tests aside.
func said(name string) bool {
	switch {
	case strings.HasPrefix(path.Base(name), "CHANGELOG"), strings.HasPrefix(name, "internal/house/"):
		return false
	case strings.HasSuffix(name, ".go"):
		return !strings.HasSuffix(name, "_test.go")
	default:
		return slices.ContainsFunc(spoken, func(end string) bool { return strings.HasSuffix(name, end) })
	}
}

// measured is what the house comes to.
type measured struct {
	packages  map[string]bool
	names     int // exported identifiers of packages, methods, and fields of their structs
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
	for _, story := range stories {
		packages, names := uses(t, "examples/"+story.folder)
		t.Logf("%-50s %6d of %d packages, %d of %d names", "examples/"+story.folder+" uses", packages, story.packages, names, story.names)
		if packages > story.packages || names > story.names {
			t.Errorf("examples/%s uses %d packages and %d names; %d and %d at most", story.folder, packages, names, story.packages, story.names)
		}
	}
}

// kits are for tests.
var kits = []string{"internal/ledgertest", "internal/storetest"}

// measure counts what is not in examples or bench, without tests. Packages and names are those that
// a user can import. A name that stands for a type under internal/ has the methods and fields of
// that type.
func measure(t *testing.T) *measured {
	t.Helper()
	m := &measured{packages: map[string]bool{}, functions: map[string]int{}, lines: map[string]int{}}
	parts := map[string]int{} // methods and fields of each type: internal/scan.Listed
	var aliases []string
	for name, file := range files(t) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench/") || slices.Contains(kits, path.Dir(name)) {
			continue
		}
		m.lines[name] = len(lines(t, name))
		inside := slices.Contains(strings.Split(name, "/"), "internal")
		if !inside {
			m.packages[path.Dir(name)] = true
		}
		of := &exported{dir: path.Dir(name), parts: parts}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				m.functions[fmt.Sprintf("%s:%s", name, f.Name.Name)] = positions.Position(f.End()).Line - positions.Position(f.Pos()).Line + 1
			}
			of.add(d)
		}
		if !inside && file.Name.Name != "main" {
			m.names += of.count
			aliases = append(aliases, targets(t, file)...)
		}
	}
	for _, target := range aliases {
		m.names += parts[target]
	}
	return m
}

// exported counts the exported names of a file.
type exported struct {
	dir   string
	count int
	parts map[string]int
}

func (n *exported) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			n.name(d.Name)
		} else if of := receiver(d); d.Name.IsExported() && ast.IsExported(of) {
			n.part(of)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					n.name(name)
				}
			case *ast.TypeSpec:
				n.name(spec.Name)
				n.fields(spec)
			}
		}
	}
}

func (n *exported) fields(spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok || !spec.Name.IsExported() {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() {
				n.part(spec.Name.Name)
			}
		}
	}
}

func (n *exported) name(name *ast.Ident) {
	if name.IsExported() {
		n.count++
	}
}

func (n *exported) part(of string) {
	n.count++
	n.parts[n.dir+"."+of]++
}

// receiver is the name of the type that a method is of.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// targets are the types of this module that a file has other names for.
func targets(t *testing.T, file *ast.File) (all []string) {
	t.Helper()
	from := map[string]string{}
	for _, i := range imports(t, file) {
		if rest, ours := strings.CutPrefix(i, module+"/"); ours {
			from[path.Base(i)] = rest
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Assign.IsValid() && spec.Name.IsExported() {
			if s, ok := spec.Type.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && from[x.Name] != "" {
					all = append(all, from[x.Name]+"."+s.Sel.Name)
				}
			}
		}
		return true
	})
	return all
}

// vagueLines counts the lines with a vague word.
func vagueLines(t *testing.T) (n int) {
	t.Helper()
	for _, name := range tree(t, append([]string{".go"}, spoken...)...) {
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

// uses counts the packages of ours that a program imports, and the names of theirs that it has in
// its text. What plays its surroundings, in a folder below it, does not count.
func uses(t *testing.T, folder string) (packages, names int) {
	t.Helper()
	imported, used := map[string]bool{}, map[string]bool{}
	for name, file := range files(t) {
		if path.Dir(name) != folder || strings.HasSuffix(name, "_test.go") {
			continue
		}
		ours := map[string]bool{}
		for _, i := range imports(t, file) {
			if strings.HasPrefix(i, module+"/") && !strings.HasPrefix(i, module+"/examples/") {
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
