package house

import (
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// counts are the numbers of 64 bits that are numbers in JSON, because they count: no reader loses a
// digit of one before 2^53. Ids, references, nonces, tokens and lengths of time are texts there.
var counts = map[string]string{
	"beats":       "renewals of a session",
	"seq":         "records of a chain",
	"snapshotSeq": "the same",
	"records":     "of a ledger", "works": "the same", "moving": "works", "sessions": "of a ledger", "holds": "works", "waiting": "works",
	"acts": "of people", "act": "from 1, raised by one",
	"pendingSignals": "of a work",
	"version":        "of a schema, raised by one", "latest": "the same", "after": "the same", "postgres": "the same", "sqlite": "the same",
	"before": "the same",
	"count":  "of what is listed beside it", "limit": "of the same", "accepted": "states", "delivered": "states", "scheduledTimes": "of a run",
	"seen": "objects", "planned": "actions", "applied": "actions", "overLimit": "actions", "errors": "actions", "calls": "to other systems",
	"superseded": "actions", "failed": "actions", "needsReview": "actions", "notAttempted": "actions",
	"scan": "listings of a side, raised by one", "rows": "of a listing", "previousRows": "the same", "expectedCount": "the same",
	"countAtEnd": "the same", "unmarked": "the same",
	"source": "objects", "destination": "documents", "ledger": "works", "keys": "of all sides", "previousSource": "objects",
	"withdrawals":   "of a source",
	"postedSignals": "of a work", "consumedSignals": "the same", "signals": "numbered from 1 in each work", "base": "records of a chain", "line": "of a file",
	"started": "works in a month", "completed": "the same", "undone": "the same", "live": "the same", "reviewsOpened": "in a month", "reviewsSettled": "the same",
	"reviewsOpen": "works", "duplicates": "in a month",
	"compared": "documents", "newerAtSource": "documents",
	"sig": "signals of a work", "w": "milliseconds", "u": "milliseconds", "lim": "milliseconds", "b": "milliseconds",
	"TTL": "what program.Spec.Structure hashes; no document",
}

// declared are the types of 64 bits, and those that say themselves how they are written.
type declared struct{ wide, texts map[string]bool }

// "Tokens, references and all 64-bit numbers are strings in JSON (jq and JavaScript lose
// digits above 2^53)". The author of a new one says here what it counts, or makes it a text.
func TestOnlyCountsAreNumbersInJSON(t *testing.T) {
	t.Parallel()
	files := sources(t)
	d := declarations(files)
	if !d.wide["machine.Token"] || !d.wide["ledger.Counter"] || !d.texts["program.Duration"] {
		t.Fatalf("the types of 64 bits are not found: %v", slices.Sorted(maps.Keys(d.wide)))
	}
	used := map[string]bool{}
	for path, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && d.texts[f.Name.Name+"."+s.Name.Name] {
				return false // it says itself how it is written
			}
			s, ok := n.(*ast.StructType)
			if !ok || !slices.ContainsFunc(s.Fields.List, tagged) {
				return true
			}
			for _, field := range s.Fields.List {
				name, text := written(field)
				if name == "" || text || !d.isWide(f.Name.Name, field.Type) {
					continue
				}
				if used[name] = true; counts[name] == "" {
					t.Errorf("%s: %q is a number of 64 bits in JSON; give it \",string\", or say in counts what it counts", path, name)
				}
			}
			return true
		})
	}
	for name := range counts {
		if !used[name] {
			t.Errorf("counts names %q, which no document has", name)
		}
	}
}

// sources are the parsed files of this module that are in its programs.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	own := map[string]*ast.File{}
	for name, file := range files(t) {
		elsewhere := func(dir string) bool { return slices.Contains([]string{"bench", "examples", "outside"}, dir) }
		if !strings.HasSuffix(name, "_test.go") && !slices.ContainsFunc(strings.Split(name, "/"), elsewhere) {
			own[name] = file
		}
	}
	return own
}

// declarations finds the types of this module that have 64 bits, and those that say how they are
// written.
func declarations(files map[string]*ast.File) declared {
	d := declared{wide: map[string]bool{"time.Duration": true}, texts: map[string]bool{}}
	for more := true; more; { // a type may be of another one
		more = false
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					if name := f.Name.Name + "." + n.Name.Name; !d.wide[name] && d.isWide(f.Name.Name, n.Type) {
						d.wide[name], more = true, true
					}
				case *ast.FuncDecl:
					if n.Recv != nil && (n.Name.Name == "MarshalText" || n.Name.Name == "MarshalJSON") {
						d.texts[f.Name.Name+"."+bare(n.Recv.List[0].Type)] = true
					}
				}
				return true
			})
		}
	}
	return d
}

// isWide reports whether a value of the type is, or holds, a number of 64 bits that is a number in
// JSON.
func (d declared) isWide(pkg string, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "int64" || e.Name == "uint64" || d.wide[pkg+"."+e.Name] && !d.texts[pkg+"."+e.Name]
	case *ast.SelectorExpr:
		name := bare(e.X) + "." + e.Sel.Name
		return d.wide[name] && !d.texts[name]
	case *ast.StarExpr:
		return d.isWide(pkg, e.X)
	case *ast.ArrayType:
		return d.isWide(pkg, e.Elt)
	case *ast.MapType:
		return d.isWide(pkg, e.Value)
	default:
		return false
	}
}

func bare(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return bare(e.X)
	default:
		return ""
	}
}

func tagged(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") }

// written is the name of a field in JSON, and whether its tag makes it a text. A field without a
// tag has its own name, and one that is left out none.
func written(f *ast.Field) (name string, text bool) {
	if len(f.Names) == 0 || !f.Names[0].IsExported() {
		return "", false
	}
	if f.Tag == nil {
		return f.Names[0].Name, false
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", false
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	switch name {
	case "-":
		return "", false
	case "":
		name = f.Names[0].Name
	}
	return name, slices.Contains(strings.Split(options, ","), "string")
}
