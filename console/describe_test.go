package console

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/command"
)

type object = map[string]any

// describe makes an OpenAPI 3.1 document of the table of routes, of the flags of the verbs, and of
// what they print.
func describe() object {
	d := &description{schemas: object{}, names: map[reflect.Type]string{}}
	problemRef := d.schema(reflect.TypeFor[problem]())
	d.schemas["document"] = object{
		"type": "object", "required": []any{"api"},
		"properties": object{"api": object{"const": command.API, "description": "the version of the JSON: as long as it is the same, fields are added, and none is renamed, removed or given another meaning"}},
	}
	paths := object{}
	for i := range routes {
		rt := &routes[i]
		path, _ := paths["/api/v1"+rt.path].(object)
		if path == nil {
			path = object{}
			paths["/api/v1"+rt.path] = path
		}
		path[strings.ToLower(rt.method)] = d.operation(rt, problemRef)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "amends", "version": "1",
			"description": "What the console shows and what the command amends does, as JSON. Every document of a verb says its version as \"api\": as long as that is the same, fields are added, and none is renamed, removed or given another meaning. Times are RFC 3339 in UTC; what names or numbers a thing is a text. A POST says the flags of the verb by their names. Errors are application/problem+json (RFC 9457), with code: the word of the command's exit status. Callbacks of steps are answered at POST /api/v1/callbacks/{token}, without a role.",
		},
		"security":   []any{object{"token": []any{}}},
		"paths":      paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "amends token makes one"}}},
	}
}

// description gathers the schemas of types by their names.
type description struct {
	schemas object
	names   map[reflect.Type]string
}

func (d *description) operation(rt *route, problemRef any) object {
	op := object{"operationId": operationID(rt), "description": "Takes the role " + rt.role + "."}
	var params []any
	for name := range partsOf(rt.path) {
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	status, shape := "200", command.Shape(rt.shape)
	if rt.line == "" {
		status, shape = "201", reflect.TypeFor[begun]()
		op["summary"] = "Start an instance, once for its work id"
		params = append(params, object{"name": "Idempotency-Key", "in": "header", "required": false, "schema": object{"type": "string"}, "description": "the work id, where the body does not say it"})
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(reflect.TypeFor[starting]())}}}
	} else {
		verb := verbOf(rt)
		op["summary"] = verb.Short
		flags := flagsOf(rt, verb)
		if rt.changes() {
			params = append(params, object{"name": "Idempotency-Key", "in": "header", "required": false, "schema": object{"type": "string", "maxLength": maxKey},
				"description": "kept for a day: the same request again, from the same person, is answered as the first was and not done again"})
			properties := object{}
			for _, f := range flags {
				properties[f.Name] = flagSchema(f)
			}
			op["requestBody"] = object{"required": len(flags) > 0, "content": object{"application/json": object{"schema": object{"type": "object", "properties": properties, "additionalProperties": false}}}}
		} else {
			for _, f := range flags {
				params = append(params, object{"name": f.Name, "in": "query", "required": false, "schema": flagSchema(f)})
			}
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	op["responses"] = object{
		status:    object{"description": "what the verb prints", "content": object{"application/json": object{"schema": object{"allOf": []any{object{"$ref": "#/components/schemas/document"}, d.schema(shape)}}}}},
		"default": object{"description": "refused, or failed", "content": object{"application/problem+json": object{"schema": problemRef}}},
	}
	return op
}

func operationID(rt *route) string {
	words := strings.FieldsFunc(rt.path, func(r rune) bool { return r == '/' })
	return strings.ToLower(rt.method) + "-" + strings.NewReplacer("{", "", "}", "").Replace(strings.Join(words, "-"))
}

// verbOf is the verb of a route.
func verbOf(rt *route) *cobra.Command {
	verb, _, err := command.Verbs().Find(strings.Fields(rt.line))
	if err != nil {
		panic(err) // a mistake in the table
	}
	return verb
}

func flagsOf(rt *route, verb *cobra.Command) (all []*pflag.Flag) {
	for _, name := range strings.Fields(rt.flags) {
		if f := verb.Flag(name); f != nil {
			all = append(all, f)
		}
	}
	return all
}

func flagSchema(f *pflag.Flag) object {
	s := object{"type": "string", "description": f.Usage}
	switch f.Value.Type() {
	case "bool":
		s["type"] = "boolean"
	case "int", "int64":
		s["type"] = "integer"
	}
	return s
}

// schema is the schema of a type, by reference where it has a name.
func (d *description) schema(t reflect.Type) any {
	switch {
	case t == nil:
		return object{}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.Kind() == reflect.Pointer:
		return object{"anyOf": []any{d.schema(t.Elem()), object{"type": "null"}}}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.named(t)
	}
	return object{}
}

// named is a reference to the schema of a struct.
func (d *description) named(t reflect.Type) any {
	name := d.names[t]
	if name == "" {
		name = strings.TrimSuffix(t.Name(), "JSON")
		if generic, of, ok := strings.Cut(name, "["); ok {
			name = generic + "-" + strings.TrimSuffix(of[strings.LastIndex(of, ".")+1:], "JSON]")
		}
		for d.schemas[name] != nil {
			name += "_"
		}
		d.names[t] = name
		d.schemas[name] = object{} // a type may contain itself
		properties, required := object{}, []string{}
		d.fields(t, properties, &required)
		slices.Sort(required)
		d.schemas[name] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct as they are in its JSON.
func (d *description) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			mine := &[]string{}
			if d.fields(inner, properties, mine); f.Type.Kind() != reflect.Pointer {
				*required = append(*required, *mine...)
			}
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			properties[name] = d.schema(f.Type)
			if strings.Contains(options, "string") {
				properties[name] = object{"type": "string"}
			}
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}
