package house

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// pace is the first of the three targets that runs a test (internal/pace).
type pace int

const (
	check pace = iota
	day
	night
)

func (p pace) String() string { return [...]string{"check", "test", "nightly"}[p] }

// byDay are packages whose tests want PostgreSQL, by helpers of their own.
var byDay = []string{"store/postgres", "internal/pgtest"}

// paces tells of each line of a file when it is tested: as the test that the line is in, and outside
// of tests as the last of the file's, so that no rule is said to be held earlier than it is. What is
// no Go file is read by tests of make check.
func paces(t *testing.T, name string) func(line int) pace {
	t.Helper()
	file, ok := files(t)[name]
	if !ok {
		return func(int) pace { return check }
	}
	usual := check
	if slices.Contains(byDay, path.Dir(name)) {
		usual = day
	}
	type span struct {
		from, to int
		at       pace
	}
	var tests []span
	last := usual
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			continue
		}
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		at := max(usual, paceOf(f.Body))
		tests = append(tests, span{positions.Position(from).Line, positions.Position(f.End()).Line, at})
		last = max(last, at)
	}
	return func(line int) pace {
		for _, s := range tests {
			if s.from <= line && line <= s.to {
				return s.at
			}
		}
		return last
	}
}

// paceOf is when a test runs by the calls in its own body: those of a part of it are that part's.
func paceOf(body *ast.BlockStmt) pace {
	at := check
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			switch x, _ := n.X.(*ast.Ident); {
			case x == nil:
			case x.Name == "pace" && n.Sel.Name == "Night":
				at = max(at, night)
			case x.Name == "pace" && n.Sel.Name == "Day", x.Name == "pgtest":
				at = max(at, day)
			}
		}
		return true
	})
	return at
}
