package console

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/desk"
)

// operation is one thing that can be asked for by HTTP: at which address, who may, what it takes, and what the desk does.
type operation struct {
	method  string
	path    string // behind /api/v1
	role    string
	summary string

	takes   reflect.Type // a struct whose fields have tags: path, and query or json
	answers reflect.Type
	do      func(context.Context, *desk.Desk, any) (any, error)
}

// of is an operation of a function of the desk. with says what the address says, such as everything; nil: nothing.
func of[In, Out any](method, path, role, summary string, do func(*desk.Desk, context.Context, *In) (*Out, error), with func(*In)) operation {
	return operation{method, path, role, summary, reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, d *desk.Desk, v any) (any, error) {
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

// says is an act on an instance. Those that the command says to several are answered as a list of one.
func says[In any, P interface {
	*In
	desk.Act
}](verb, summary string, one bool, with func(*In)) operation {
	role := Operator
	if verb == "approve" || verb == "reject" {
		role = Approver
	}
	path := "/works/{saga}/{work}/" + verb
	if one {
		return of(http.MethodPost, path, role, summary, func(d *desk.Desk, ctx context.Context, in *In) (*desk.Outcome, error) { return d.Do(ctx, P(in)) }, with)
	}
	return of(http.MethodPost, path, role, summary, func(d *desk.Desk, ctx context.Context, in *In) (*desk.All[desk.Of], error) {
		out, err := d.Do(ctx, P(in))
		if out == nil {
			return nil, err
		}
		one := desk.Of{WorkID: out.WorkID, Outcome: out}
		if err != nil {
			one.Error = desk.FailureOf(ctx, err).Told()
		}
		return &desk.All[desk.Of]{Items: []desk.Of{one}}, err
	}, with)
}

var everything = func(in *desk.ScopeIn) { in.All = true }

// operations is the one table of what can be asked for. The pages use it, too.
var operations = []operation{
	get("/status", "Is anything running, and does everything move?", (*desk.Desk).Status),
	get("/version", "Which amends this is", (*desk.Desk).Version),
	get("/check", "Verify every chain and every head of the ledger", (*desk.Desk).Check),

	get("/works", "List instances", (*desk.Desk).List),
	get("/works/{saga}/{work}", "Show one instance: its steps, and what is safe to do next", (*desk.Desk).Show),
	get("/works/{saga}/{work}/history", "Everything that happened to an instance, record by record", (*desk.Desk).History),
	of("GET", "/works/{saga}/{work}/bodies", Operator, "The same with inputs and results", (*desk.Desk).History, func(in *desk.HistoryIn) { in.Bodies = true }),
	get("/works/{saga}/{work}/approval", "What people decide at an instance", (*desk.Desk).Approval),
	says[desk.Retry]("retry", "Try the step at issue again, under the key it has", false, nil),
	says[desk.Resolve]("resolve", "Decide on a step in review: it happened, or it did not", true, nil),
	says[desk.Skip]("skip", "Say that the step at issue did not happen and will not, and go on without it", false, nil),
	says[desk.Pause]("pause", "Hold an instance where it is", false, nil),
	says[desk.Resume]("resume", "Let what was paused go on where it was", false, nil),
	says[desk.Wake]("wake", "End the wait of an instance for a time", false, nil),
	says[desk.Complete]("complete", "Answer by hand what an instance waits for", false, nil),
	says[desk.Fail]("fail", "Say by hand that what an instance waits for has failed", false, nil),
	says[desk.Extend]("extend", "Have an instance wait longer", false, nil),
	says[desk.Cancel]("cancel", "Give an instance up: undo what it has done", true, nil),
	says[desk.Rerun]("rerun", "Run an instance again", false, nil),
	says("approve", "Approve what was shown", true, func(in *desk.Vote) { in.Approve = true }),
	says[desk.Vote]("reject", "Reject what was shown", true, nil),
	get("/approvals", "What waits for people to decide, oldest first", (*desk.Desk).Approvals),
	get("/duplicates", "Duplicates that were blocked, most recent first", (*desk.Desk).Duplicates),
	get("/acts", "What people did, latest first", (*desk.Desk).Acts),
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
	get("/inbox/counts", "Deliveries by source and disposition", (*desk.Desk).Counts),
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
	post("/jobs/{job}/plan", Operator, "Ask a job what differs, and what it would do", (*desk.Desk).MakePlan),
	post("/jobs/{job}/plans/{plan}/apply", Operator, "Let a job carry out a plan, within its bounds", (*desk.Desk).Apply),
	post("/jobs/{job}/approve", Operator, "Let a new job change things", (*desk.Desk).ApproveJob),
	post("/jobs/{job}/pause", Operator, "Keep a job from acting until it is unpaused", (*desk.Desk).PauseJob),
	post("/jobs/{job}/unpause", Operator, "Let a job run again", (*desk.Desk).UnpauseJob),
	of("POST", "/jobs/pause", Admin, "Keep all jobs from acting", (*desk.Desk).PauseJob, func(in *desk.PauseJobIn) { in.All = true }),
	of("POST", "/jobs/unpause", Admin, "Let all jobs run again", (*desk.Desk).UnpauseJob, func(in *desk.JobIn) { in.All = true }),
	get("/plans/{plan}", "A plan, and what became of its findings", (*desk.Desk).Plan),
	get("/drift", "Differences that last, those that last longest first", (*desk.Desk).Drifts),
	get("/schedule/{text}", "What a schedule means, and when it runs next", (*desk.Desk).Expression),
}

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

// acts finds the operation of a form, by its path.
func acts(path string) *operation {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.changes() && o.path == path })
	if i < 0 {
		return nil
	}
	return &operations[i]
}

// field is a field of what an operation takes: its name, and where a request says it.
type field struct {
	reflect.StructField

	name string
	in   string // path, query or body
}

// fields are those of a type that a request may say.
func (o *operation) fields() (all []field) {
	for _, f := range reflect.VisibleFields(o.takes) {
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
	all := o.fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}
