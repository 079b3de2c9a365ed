package house

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// What go doc shows of a public name that stands for one of an internal package is its comment and
// nothing else. So the comment has the fields, the methods or the values that are behind it.
func TestAliasesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	all, found := sources(t), 0
	consts := map[string]bool{} // by folder and name
	for name, file := range all {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					for _, n := range spec.(*ast.ValueSpec).Names { //nolint:forcetypeassert // constants are values
						consts[path.Dir(name)+"."+n.Name] = true
					}
				}
			}
		}
	}
	for name, file := range all {
		if strings.Contains("/"+name, "/internal/") || strings.HasPrefix(name, "cmd/") {
			continue
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok || !s.Assign.IsValid() || !s.Name.IsExported() {
					continue
				}
				of, ok := s.Type.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				behind := importOf(file, bare(of.X))
				if !strings.Contains(behind, "/internal/") {
					continue
				}
				found++
				for _, what := range partsOf(all, path.Base(behind), behind, of.Sel.Name) {
					if value := path.Dir(name) + "." + what; !says(d.Doc.Text(), what) && (strings.Contains(what, " ") || consts[value]) {
						t.Errorf("%s: the comment of %s does not say %q of %s.%s", name, s.Name, what, behind, of.Sel.Name)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d such names were found; this test looks past them", found)
	}
}

// says reports whether a line of a comment has the words, however they are aligned.
func says(comment, words string) bool {
	for line := range strings.Lines(comment) {
		if strings.Contains(" "+strings.Join(strings.Fields(line), " ")+" ", words) {
			return true
		}
	}
	return false
}

// importOf is the path of what a file imports under a name.
func importOf(file *ast.File, name string) string {
	for _, i := range file.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(p) == name {
			return p
		}
	}
	return ""
}

// partsOf are the words that tell a type: its fields with their types, its methods, its values.
func partsOf(all map[string]*ast.File, pkg, behind, name string) (parts []string) {
	for file, f := range all {
		if f.Name.Name != pkg || !strings.HasSuffix(behind, path.Dir(file)) {
			continue
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && bare(d.Recv.List[0].Type) == name && d.Name.IsExported() {
					parts = append(parts, " "+d.Name.Name+"(")
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					parts = append(parts, partsIn(spec, name)...)
				}
			}
		}
	}
	return parts
}

func partsIn(spec ast.Spec, name string) (parts []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		structure, ok := s.Type.(*ast.StructType)
		if s.Name.Name != name || !ok {
			return nil
		}
		for _, field := range structure.Fields.List {
			for _, n := range field.Names {
				if n.IsExported() {
					parts = append(parts, " "+n.Name+" ")
				}
			}
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if s.Type != nil && bare(s.Type) == name && n.IsExported() {
				parts = append(parts, n.Name)
			}
		}
	}
	return parts
}
