package valid_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Every word of a record and of a signal is one that a ledger stores: one that is missing there
// would be refused as invalid, after its effect.
func TestEveryWordIsStored(t *testing.T) {
	t.Parallel()
	words := constants(t, "../../../internal/machine", "../../../internal/program", "../../../saga")
	for kind, values := range words {
		for _, v := range values {
			r := machine.Record{Seq: 2, Kind: machine.KindDone, Version: 1, Status: saga.Running}
			s := machine.Signal{Kind: machine.SignalWake, Key: "k"}
			switch kind {
			case "Status":
				if r.Status = saga.Status(v); r.Status == saga.Review {
					r.Reason = saga.ReasonPoison
				}
			case "Kind":
				if v == string(machine.KindRemembered) { // it is made where it is read
					continue
				}
				r.Kind = machine.Kind(v)
			case "Reason":
				r.Status, r.Reason = saga.Review, saga.Reason(v)
			case "Direction":
				r.Direction = saga.Direction(v)
				r.Dispatch = &machine.Dispatch{Direction: r.Direction, Attempt: 1}
			case "Class":
				if v == "done" { // of an outcome that is no error: it is in no record
					continue
				}
				r.ErrorClass = saga.Class(v)
			case "SignalKind":
				s.Kind = machine.SignalKind(v)
			}
			if err := valid.Entry(&ledger.Entry{ID: saga.ID{Saga: "s", Work: "w"}, Record: r}); err != nil {
				t.Errorf("%s %q: %v", kind, v, err)
			}
			if err := valid.Signal(&s); err != nil {
				t.Errorf("%s %q: %v", kind, v, err)
			}
		}
	}
	for kind, least := range map[string]int{"Status": 8, "Kind": 25, "Reason": 6, "Direction": 2, "Class": 6, "SignalKind": 11} {
		if n := len(words[kind]); n < least {
			t.Errorf("found %d constants of type %s: %v", n, kind, words[kind])
		}
	}
}

// constants reads the string constants of the types whose words are stored.
func constants(t *testing.T, dirs ...string) map[string][]string {
	t.Helper()
	columns := []string{"Status", "Kind", "Reason", "Direction", "Class", "SignalKind"}
	words := make(map[string][]string)
	var files []string
	for _, dir := range dirs {
		files = append(files, must(filepath.Glob(filepath.Join(dir, "*.go")))(t)...)
	}
	for _, name := range files {
		file := must(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, ok := spec.Type.(*ast.Ident)
			lit, isLit := spec.Values[0].(*ast.BasicLit)
			if ok && isLit && slices.Contains(columns, kind.Name) {
				words[kind.Name] = append(words[kind.Name], must(strconv.Unquote(lit.Value))(t))
			}
			return true
		})
	}
	return words
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
