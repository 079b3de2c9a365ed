package house

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// common are the names that mean the same in each package that has one: its options, who hears
// what it does, what it stores, and a database opened for everything.
var common = []string{"Options", "Listener", "Store", "DB"}

// A public type name means one thing: no two packages that users import declare the same one.
func TestTypeNamesHaveOneMeaning(t *testing.T) {
	t.Parallel()
	for name, packages := range typeNames(t) {
		if len(packages) > 1 && !slices.Contains(common, name) {
			t.Errorf("%s is a type of %s: each needs a name of its own", name, strings.Join(packages, " and of "))
		}
	}
}

// typeNames are the exported types of the packages that users import, and which declare them.
func typeNames(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for name, file := range files(t) {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench/") || slices.Contains(strings.Split(dir, "/"), "internal") {
			continue
		}
		for _, d := range file.Decls {
			for _, typed := range exportedTypes(d) {
				found[typed] = append(found[typed], dir)
			}
		}
	}
	return found
}

func exportedTypes(d ast.Decl) (names []string) {
	if d, ok := d.(*ast.GenDecl); ok {
		for _, spec := range d.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
			}
		}
	}
	return names
}
