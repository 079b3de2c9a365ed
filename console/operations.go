package console

import (
	"bytes"
	"context"
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

// operation is one thing that can be asked for by HTTP: at which address, who may, what it takes, and what the desk does.
type operation struct {
	method  string
	path    string // behind /api/v1
	role    string
	summary string

	takes   func() any // a new one: a struct whose fields have tags: path, and query or json
	answers reflect.Type
	do      func(context.Context, *desk.Desk, any) (any, error)
}

// of is an operation of a function of the desk. with says what the address says, such as everything; nil: nothing.
func of[In, Out any](method, path, role, summary string, do func(*desk.Desk, context.Context, *In) (*Out, error), with func(*In)) operation {
	return operation{method, path, role, summary, func() any { return new(In) }, reflect.TypeFor[Out](), func(ctx context.Context, d *desk.Desk, v any) (any, error) {
		in := v.(*In) //nolint:forcetypeassert // taken makes it
		if with != nil {
			with(in)
		}
		out, err := do(d, ctx, in)
		if out == nil { // an interface that holds a nil pointer is not nil
			return nil, err
		}
		return out, err
	}}
}

func get[In, Out any](path, summary string, do func(*desk.Desk, context.Context, *In) (*Out, error)) operation {
	return of(http.MethodGet, path, Reader, summary, do, nil)
}

func post[In, Out any](path, role, summary string, do func(*desk.Desk, context.Context, *In) (*Out, error)) operation {
	return of(http.MethodPost, path, role, summary, do, nil)
}

// acts are the operations of what people do to an instance. What the command says to several is answered as a list of one.
func acts() (all []operation) {
	for _, k := range desk.Acts {
		role := desk.Either(k.Verb == "approve" || k.Verb == "reject", Approver, Operator)
		answers := desk.Either(k.One, reflect.TypeFor[desk.Outcome](), reflect.TypeFor[desk.All[desk.Of]]())
		all = append(all, operation{http.MethodPost, "/works/{saga}/{work}/" + k.Verb, role, k.Summary, func() any { return k.New() }, answers, func(ctx context.Context, d *desk.Desk, v any) (any, error) {
			out, err := d.Do(ctx, v.(desk.Act)) //nolint:forcetypeassert // taken makes it
			switch {
			case out == nil: // an interface that holds a nil pointer is not nil
				return nil, err
			case k.One:
				return out, err
			}
			one := desk.Of{WorkID: out.WorkID, Outcome: out}
			if err != nil {
				one.Error = desk.FailureOf(ctx, err).Told()
			}
			return &desk.All[desk.Of]{Items: []desk.Of{one}}, err
		}})
	}
	return all
}

var everything = func(in *desk.ScopeIn) { in.All = true }

// operations is the one table of what can be asked for. The pages use it, too.
var operations = append(acts(), []operation{
	get("/status", "Is anything running, and does everything move?", (*desk.Desk).Status),
	get("/stats", "Count all instances, by saga, status and reason", (*desk.Desk).Stats),
	get("/version", "Which amends this is", (*desk.Desk).Version),
	get("/check", "Verify every chain and every head of the ledger", (*desk.Desk).Check),
	get("/report", "Report a month: what was started, how it ended, and what people had to decide", (*desk.Desk).Month),

	get("/works", "List instances", (*desk.Desk).List),
	get("/groups", "Instances by saga, status, reason, step and error, the most first: what is in review, unless something else is said", (*desk.Desk).Groups),
	get("/works/{saga}/{work}", "Show one instance: its steps, and what is safe to do next", (*desk.Desk).Show),
	get("/works/{saga}/{work}/history", "Everything that happened to an instance, record by record", (*desk.Desk).History),
	of("GET", "/works/{saga}/{work}/bodies", Operator, "The same with inputs and results", (*desk.Desk).History, func(in *desk.HistoryIn) { in.Bodies = true }),
	get("/works/{saga}/{work}/approval", "What people decide at an instance", (*desk.Desk).Approval),
	get("/approvals", "What waits for people to decide, oldest first", (*desk.Desk).Approvals),
	post("/batches", Operator, "Say the same to all instances that a filter selects", (*desk.Desk).Batch),
	get("/batches/{batch}", "What became of a batch, instance by instance", (*desk.Desk).ShowBatch),
	get("/duplicates", "Duplicates that were blocked, most recent first", (*desk.Desk).Duplicates),
	get("/acts", "What people did, latest first", (*desk.Desk).Acts),
	get("/alerts", "What needs people, and whether they were told", (*desk.Desk).Alerts),
	post("/alerts/test", Operator, "Send an alert that says it is a test", (*desk.Desk).TestAlert),
	post("/messages/{name}/{key}", Operator, "Bring a message to the instances that wait for it", (*desk.Desk).Deliver),

	get("/destinations", "Destinations: which work, which fail, and what waits", (*desk.Desk).Destinations),
	get("/destinations/{name}/acts", "Who paused, resumed and probed a destination", (*desk.Desk).ScopeActs),
	post("/destinations/{name}/probe", Operator, "Try a destination now", (*desk.Desk).Probe),
	post("/destinations/{name}/pause", Operator, "Hold all that wants a destination", (*desk.Desk).Hold),
	post("/destinations/{name}/resume", Operator, "Let a destination go on", (*desk.Desk).Release),
	get("/sagas", "Sagas: their steps, and where their instances stand", (*desk.Desk).Sagas),
	get("/sagas/{saga}/acts", "Who paused and resumed a saga", (*desk.Desk).ScopeActs),
	post("/sagas/{saga}/pause", Operator, "Hold all instances of a saga", (*desk.Desk).Hold),
	post("/sagas/{saga}/resume", Operator, "Let a saga go on", (*desk.Desk).Release),
	of("GET", "/everything/acts", Reader, "Who paused and resumed everything", (*desk.Desk).ScopeActs, func(in *desk.Scope) { in.All = true }),
	of("POST", "/everything/pause", Admin, "Hold everything", (*desk.Desk).Hold, everything),
	of("POST", "/everything/resume", Admin, "Let everything go on", (*desk.Desk).Release, everything),
	post("/catch-up", Admin, "Make due what waits for a clock that went back", (*desk.Desk).CatchUp),

	get("/inbox", "Deliveries, newest first", (*desk.Desk).Inbox),
	get("/inbox/objects", "Objects that were heard of, and what is owed to them", (*desk.Desk).Objects),
	get("/inbox/counts", "Deliveries by source and disposition, and those that were refused", (*desk.Desk).Counts),
	get("/inbox/deliveries/{number}", "One delivery: what became of it, and what is safe to do next", (*desk.Desk).Delivery),
	of("GET", "/inbox/deliveries/{number}/bodies", Operator, "The same with what it said", (*desk.Desk).Delivery, func(in *desk.DeliveryIn) { in.Bodies = true }),
	post("/inbox/deliveries/{number}/replay", Operator, "Let a delivery go through the gate again", func(d *desk.Desk, ctx context.Context, in *replayOne) (*desk.Replayed, error) {
		return d.Replay(ctx, &desk.ReplayIn{Numbers: []int64{in.Number}, By: in.By, DryRun: in.DryRun})
	}),
	post("/inbox/replay", Operator, "Let deliveries go through the gate again", (*desk.Desk).Replay),
	post("/inbox/sources/{source}/release", Operator, "Let the withdrawals of a source through that are held", (*desk.Desk).LetThrough),
	post("/inbox/sources/{source}/drop", Operator, "Drop the withdrawals of a source that are held", (*desk.Desk).Drop),

	get("/jobs", "Jobs: when they run, and whether anything is wrong", (*desk.Desk).Jobs),
	get("/jobs/runs", "Runs of all jobs, newest first", (*desk.Desk).Runs),
	get("/jobs/{job}/runs", "Runs of a job, newest first", (*desk.Desk).Runs),
	post("/jobs/{job}/run", Operator, "Run a job now", (*desk.Desk).RunNow),
	post("/jobs/{job}/backfill", Operator, "Ask a job for the runs that are missing between two times", (*desk.Desk).Backfill),
	post("/jobs/{job}/plan", Operator, "Ask a job what differs, and what it would do", (*desk.Desk).MakePlan),
	post("/jobs/{job}/plans/{plan}/apply", Operator, "Let a job carry out a plan, within its bounds", (*desk.Desk).Apply),
	post("/jobs/{job}/approve", Operator, "Let a new job change things", (*desk.Desk).ApproveJob),
	post("/jobs/{job}/pause", Operator, "Keep a job from acting until it is unpaused", (*desk.Desk).PauseJob),
	post("/jobs/{job}/unpause", Operator, "Let a job run again", (*desk.Desk).UnpauseJob),
	of("POST", "/jobs/pause", Admin, "Keep all jobs from acting", (*desk.Desk).PauseJob, func(in *desk.PauseJobIn) { in.All = true }),
	of("POST", "/jobs/unpause", Admin, "Let all jobs run again", (*desk.Desk).UnpauseJob, func(in *desk.JobIn) { in.All = true }),
	get("/plans/{plan}", "A plan, and what became of its findings", (*desk.Desk).Plan),
	get("/drift", "Differences that last, those that last longest first", (*desk.Desk).Drifts),
	get("/jobs/{job}/decisions", "What was decided on findings of a job", (*desk.Desk).Decisions),
	post("/jobs/{job}/findings/{verdict}", Operator, "Decide on findings of a job", (*desk.Desk).Decide),
	get("/schedule/{text}", "What a schedule means, and when it runs next", (*desk.Desk).Expression),
}...)

// replayOne is the replay of one delivery.
type replayOne struct {
	Number int64 `json:"-" path:"number"`
	desk.By
	DryRun bool `json:"dry-run,omitempty" doc:"say what would be replayed and change nothing"`
}

// changes reports whether an operation may change something.
func (o *operation) changes() bool { return o.method != http.MethodGet }

// looks reports whether it shows what is hidden otherwise, which is put on record.
func (o *operation) looks() bool { return strings.HasSuffix(o.path, "/bodies") }

// operationAt finds an operation by its path; nil: there is none.
func operationAt(method, path string) *operation {
	return desk.First(operations, func(o *operation) bool { return o.method == method && o.path == path })
}

// field is a field of what an operation takes: its name, and where a request says it.
type field struct {
	reflect.StructField

	name string
	in   string // path, query or body
}

// fields are those of a type that a request may say.
func (o *operation) fields() (all []field) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(o.takes()).Elem()) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		if name := f.Tag.Get("path"); name != "" {
			if strings.Contains(o.path, "{"+name+"}") {
				all = append(all, field{f, name, "path"})
			}
			continue
		}
		in, tag := "query", "query"
		if o.changes() {
			in, tag = "body", "json"
		}
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
			all = append(all, field{f, name, in})
		}
	}
	return all
}

// field finds one by its name; nil: there is none.
func (o *operation) field(name string) *field {
	return desk.First(o.fields(), func(f *field) bool { return f.name == name })
}

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
	is := d.operation(http.MethodPost, "/works", Starter, "Start an instance, once for its work id", http.StatusCreated, reflect.TypeFor[desk.Begun]())
	is.Parameters[0].Description = "the work id, where the body does not say it"
	is.Responses[fmt.Sprint(http.StatusAccepted)] = &huma.Response{Description: "it is started, and had not ended when the wait was over", Content: is.Responses[fmt.Sprint(http.StatusCreated)].Content}
	is.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: d.schemas.Schema(reflect.TypeFor[desk.StartIn](), true, "Start")}}}
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
