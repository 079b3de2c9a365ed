package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amends-dev/amends/internal/desk"
)

const about = `What the console shows and what the command amends does, as JSON. Every document says its version as "api": as long as that is the same, ` +
	`fields are added, and none is renamed, removed or given another meaning. Times are RFC 3339 in UTC; what names or numbers a thing is a text. ` +
	`A POST says in its body what the verb of the command takes as flags, by their names. Errors are application/problem+json (RFC 9457), with code: ` +
	`the word of the command's exit status. Callbacks of steps are answered at POST /api/v1/callbacks/{token}, without a role.`

// schemaName names the schema of a type. Names of other packages say theirs.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	for of, prefix := range map[string]string{"/internal/plan": "Plan", "/internal/finding": "Status"} {
		if strings.HasSuffix(t.PkgPath(), of) {
			return prefix + "Of" + name
		}
	}
	return name
}

// api has every operation answered at its address below /api/v1, and returns their description.
func (h *handler) api(mux *http.ServeMux) *huma.OpenAPI {
	config := huma.Config{OpenAPI: &huma.OpenAPI{
		OpenAPI: "3.1.0", Info: &huma.Info{Title: "amends", Version: "1", Description: about},
		Security: []map[string][]string{{"token": {}}},
		Components: &huma.Components{
			Schemas:         huma.NewMapRegistry("#/components/schemas/", schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "amends token makes one"}},
		},
	}}
	config.AllowAdditionalPropertiesByDefault = true // fields are added
	api := humago.New(mux, config)
	d := describing{api.OpenAPI(), api.OpenAPI().Components.Schemas}
	d.schemas.Map()["Document"] = &huma.Schema{Type: "object", Required: []string{"api"}, Properties: map[string]*huma.Schema{
		"api": {Type: "string", Enum: []any{desk.API}, Description: "the version of the JSON"},
	}}
	for i := range operations {
		op := &operations[i]
		api.Adapter().Handle(d.add(op), func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			h.answer(op, w, r)
		})
	}
	api.Adapter().Handle(d.addStart(), func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		h.start(w, r)
	})
	d.mend()
	return d.doc
}

// describing is the description of the operations.
type describing struct {
	doc     *huma.OpenAPI
	schemas huma.Registry
}

// operation is one as huma has it.
func (d describing) operation(method, path, role, summary string, status int, answers reflect.Type) *huma.Operation {
	words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}", r) })
	is := &huma.Operation{
		OperationID: strings.ToLower(method) + "-" + strings.Join(words, "-"), Method: method, Path: "/api/v1" + path, Summary: summary, Description: "Takes the role " + role + ".",
		Tags: words[:1],
		Responses: map[string]*huma.Response{
			fmt.Sprint(status): {Description: "the document", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
				AllOf: []*huma.Schema{{Ref: "#/components/schemas/Document"}, d.schemas.Schema(answers, true, "Answer")},
			}}}},
			"default": {Description: "refused, or failed", Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: d.schemas.Schema(reflect.TypeFor[problem](), true, "Problem")},
			}},
		},
	}
	if method != http.MethodGet {
		most := maxKey
		is.Parameters = append(is.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: "string", MaxLength: &most},
			Description: "kept for a day: the same request again, from the same person, is answered as the first was and not done again"})
	}
	return is
}

// add describes an operation by the types that it takes and answers.
func (d describing) add(op *operation) *huma.Operation {
	is := d.operation(op.method, op.path, op.role, op.summary, http.StatusOK, op.answers)
	says := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{}, AdditionalProperties: false}
	for _, f := range op.fields() {
		schema := huma.SchemaFromField(d.schemas, f.StructField, f.Name)
		schema.Nullable = false
		if f.in == "body" {
			says.Properties[f.name] = schema
			continue
		}
		is.Parameters = append(is.Parameters, &huma.Param{Name: f.name, In: f.in, Required: f.in == "path", Schema: schema, Description: schema.Description})
	}
	if op.changes() {
		is.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Schema: says}}}
	}
	d.doc.AddOperation(is)
	return is
}

func (d describing) addStart() *huma.Operation {
	is := d.operation(http.MethodPost, "/works", Starter, "Start an instance, once for its work id", http.StatusCreated, reflect.TypeFor[begun]())
	is.Parameters[0].Description = "the work id, where the body does not say it"
	is.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: d.schemas.Schema(reflect.TypeFor[starting](), true, "Start")}}}
	d.doc.AddOperation(is)
	return is
}

// mend says of schemas what huma does not: numbers that are written as texts, and structs that may be null.
func (d describing) mend() {
	for name, s := range d.schemas.Map() {
		t := d.schemas.TypeFromRef("#/components/schemas/" + name)
		if t == nil {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[tag]
			switch {
			case p == nil:
			case slices.Contains(strings.Split(options, ","), "string"):
				p.Type, p.Format = "string", ""
			case p.Ref != "" && f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit"): // what is left out is never null
				s.Properties[tag] = &huma.Schema{AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
			}
		}
	}
}

// described is the document in OpenAPI 3.1, and in 3.0 for generators that know no newer one.
func described(doc *huma.OpenAPI) (latest, older []byte, err error) {
	if latest, err = json.Marshal(doc); err != nil {
		return nil, nil, err
	}
	if older, err = doc.Downgrade(); err != nil {
		return nil, nil, err
	}
	var tree any
	if err := json.Unmarshal(older, &tree); err != nil {
		return nil, nil, err
	}
	nullable(tree)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(tree)
	return latest, b.Bytes(), err
}

// nullable writes "anyOf … or null" as OpenAPI 3.0 has it.
func nullable(tree any) {
	switch v := tree.(type) {
	case []any:
		for _, one := range v {
			nullable(one)
		}
	case map[string]any:
		if all, ok := v["anyOf"].([]any); ok && len(all) == 2 {
			if or, ok := all[1].(map[string]any); ok && or["type"] == "null" {
				delete(v, "anyOf")
				v["allOf"], v["nullable"] = all[:1], true
			}
		}
		for one := range maps.Values(v) {
			nullable(one)
		}
	}
}
