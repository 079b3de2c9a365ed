// Package answers checks what a program answers by HTTP against the OpenAPI 3.1 document that
// describes it. It is for tests.
package answers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Book is a document.
type Book struct {
	t    testing.TB
	doc  map[string]any
	all  *jsonschema.Compiler
	Seen map[string]bool // the operations that were checked, as "GET /path"
}

// Open reads a document.
func Open(t testing.TB, raw []byte) *Book {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	doc, ok := v.(map[string]any)
	if !ok || doc["openapi"] != "3.1.0" {
		t.Fatalf("it is no OpenAPI 3.1 document: %v", doc["openapi"])
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", v); err != nil {
		t.Fatal(err)
	}
	return &Book{t: t, doc: doc, all: c, Seen: map[string]bool{}}
}

// Check checks an answer of an operation, whose path is as in the document.
func (b *Book) Check(method, path string, status int, body string) {
	b.t.Helper()
	operation := dig(b.doc, "paths", path, strings.ToLower(method))
	if operation == nil {
		b.t.Errorf("%s %s is not in the document", method, path)
		return
	}
	code := fmt.Sprint(status)
	if dig(operation, "responses", code) == nil {
		code = "default"
	} else {
		b.Seen[method+" "+path] = true
	}
	content := dig(operation, "responses", code, "content")
	for kind := range content {
		place := "doc.json#/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/responses/" + code + "/content/" + escaped(kind) + "/schema"
		schema, err := b.all.Compile(place)
		if err != nil {
			b.t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			b.t.Errorf("%s %s answers %d with %.400s, which is not as the document says: %v", method, path, status, body, err)
		}
	}
}

func dig(v map[string]any, path ...string) map[string]any {
	for _, name := range path {
		v, _ = v[name].(map[string]any)
	}
	return v
}

func escaped(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
}
