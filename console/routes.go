package console

import (
	"net/http"
	"strings"
)

// route is one thing that can be asked for: a verb of the command, who may, and what a request may
// say to it.
type route struct {
	method string
	path   string // behind /api/v1
	role   string
	// line is the command line. {name} is a part of the path; what begins with -- is a flag, the
	// rest are arguments.
	line  string
	flags string // that a request may say besides, by their names
	by    bool   // the verb keeps who says it
	shape string // of the answer, see [command.Shape]
}

// Flags that many verbs have.
const (
	ofOrders   = "reason wait dry-run seen"
	ofRequests = "reason wait no-wait"
	ofSeveral  = "reason dry-run"
	times      = "since until updated-since updated-until"
)

// routes is the one table of what the door knows. The pages use it, too.
var routes = []route{
	{"POST", "/works", Starter, "", "", true, "start"}, // no verb: see start.go
	{"GET", "/status", Reader, "status", "still", false, "status"},
	{"GET", "/version", Reader, "version", "", false, "version"},
	{"GET", "/check", Reader, "check", "saga prefix", false, "check"},

	{"GET", "/works", Reader, "list", "saga status reason review waiting prefix waits-for step external-id unconfirmed " + times + " newest limit after", false, "list"},
	{"GET", "/works/{saga}/{work}", Reader, "show {work} --saga={saga}", "", false, "show"},
	{"GET", "/works/{saga}/{work}/history", Reader, "history {work} --saga={saga}", "", false, "history"},
	{"GET", "/works/{saga}/{work}/bodies", Operator, "history {work} --saga={saga} --bodies", "", false, "history"},
	{"GET", "/works/{saga}/{work}/approval", Reader, "approve {work} --saga={saga}", "step", false, "approval"},
	{"POST", "/works/{saga}/{work}/retry", Operator, "retry {work} --saga={saga}", ofOrders, true, "orders"},
	{"POST", "/works/{saga}/{work}/resolve", Operator, "resolve {work} --saga={saga}", ofOrders + " step happened happened-without-id did-not-happen keep", true, "order"},
	{"POST", "/works/{saga}/{work}/skip", Operator, "skip {work} --saga={saga}", ofOrders + " step result external-id no-result", true, "orders"},
	{"POST", "/works/{saga}/{work}/pause", Operator, "pause {work} --saga={saga}", ofOrders, true, "orders"},
	{"POST", "/works/{saga}/{work}/resume", Operator, "resume {work} --saga={saga}", ofOrders, true, "orders"},
	{"POST", "/works/{saga}/{work}/wake", Operator, "wake {work} --saga={saga}", ofOrders, true, "orders"},
	{"POST", "/works/{saga}/{work}/complete", Operator, "complete {work} --saga={saga}", ofOrders + " body", true, "orders"},
	{"POST", "/works/{saga}/{work}/fail", Operator, "fail {work} --saga={saga}", ofOrders, true, "orders"},
	{"POST", "/works/{saga}/{work}/extend", Operator, "extend {work} --saga={saga}", ofOrders + " by", true, "orders"},
	{"POST", "/works/{saga}/{work}/cancel", Operator, "cancel {work} --saga={saga}", ofOrders, true, "order"},
	{"POST", "/works/{saga}/{work}/rerun", Operator, "rerun {work} --saga={saga}", ofOrders + " run request", true, "orders"},
	{"POST", "/works/{saga}/{work}/approve", Approver, "approve {work} --saga={saga}", ofOrders + " step shown", true, "order"},
	{"POST", "/works/{saga}/{work}/reject", Approver, "reject {work} --saga={saga}", ofOrders + " step shown", true, "order"},
	{"GET", "/approvals", Reader, "approvals", "", false, "approvals"},
	{"GET", "/duplicates", Reader, "duplicates", "saga prefix limit", false, "duplicates"},
	{"GET", "/acts", Reader, "acts", "limit before", false, "acts"},
	{"POST", "/messages/{name}/{key}", Operator, "deliver {name} {key}", "id body", false, "deliver"},

	{"GET", "/destinations", Reader, "destination list", "", false, "destination list"},
	{"GET", "/destinations/{name}/acts", Reader, "history --destination={name}", "", false, "history of a scope"},
	{"POST", "/destinations/{name}/probe", Operator, "destination probe {name}", "reason", true, "destination probe"},
	{"POST", "/destinations/{name}/pause", Operator, "pause --destination={name}", ofSeveral, true, "scope"},
	{"POST", "/destinations/{name}/resume", Operator, "resume --destination={name}", ofSeveral, true, "scope"},
	{"GET", "/sagas/{saga}/acts", Reader, "history --saga={saga}", "", false, "history of a scope"},
	{"POST", "/sagas/{saga}/pause", Operator, "pause --saga={saga}", ofSeveral, true, "scope"},
	{"POST", "/sagas/{saga}/resume", Operator, "resume --saga={saga}", ofSeveral, true, "scope"},
	{"GET", "/everything/acts", Reader, "history --all", "", false, "history of a scope"},
	{"POST", "/everything/pause", Admin, "pause --all", ofSeveral, true, "scope"},
	{"POST", "/everything/resume", Admin, "resume --all", ofSeveral, true, "scope"},
	{"POST", "/catch-up", Admin, "catch-up", "", false, "catch-up"},

	{"GET", "/inbox", Reader, "inbox list", "pending object source tenant type disposition since until limit before", false, "inbox list"},
	{"GET", "/inbox/objects", Reader, "inbox objects", "blocked held owing source tenant type limit after", false, "inbox objects"},
	{"GET", "/inbox/counts", Reader, "inbox counts", "", false, "inbox counts"},
	{"GET", "/inbox/deliveries/{number}", Reader, "inbox show {number}", "", false, "inbox show"},
	{"GET", "/inbox/deliveries/{number}/bodies", Operator, "inbox show {number} --bodies", "", false, "inbox show"},
	{"POST", "/inbox/deliveries/{number}/replay", Operator, "inbox replay {number}", ofSeveral, true, "inbox replay"},
	{"POST", "/inbox/replay", Operator, "inbox replay", ofSeveral + " object source tenant type disposition since until", true, "inbox replay"},
	{"POST", "/inbox/sources/{source}/release", Operator, "inbox release {source}", ofSeveral, true, "inbox release"},
	{"POST", "/inbox/sources/{source}/drop", Operator, "inbox drop {source}", ofSeveral, true, "inbox release"},

	{"GET", "/jobs", Reader, "schedule list", "", false, "schedule list"},
	{"GET", "/jobs/runs", Reader, "reconcile runs", "result open limit before", false, "reconcile runs"},
	{"GET", "/jobs/{job}/runs", Reader, "reconcile runs {job}", "result open limit before", false, "reconcile runs"},
	{"POST", "/jobs/{job}/run", Operator, "schedule run {job}", ofRequests, true, "schedule run"},
	{"POST", "/jobs/{job}/plan", Operator, "reconcile plan {job}", ofRequests, true, "schedule run"},
	{"POST", "/jobs/{job}/plans/{plan}/apply", Operator, "reconcile apply {job} {plan}", ofRequests + " approve", true, "reconcile apply"},
	{"POST", "/jobs/{job}/approve", Operator, "reconcile approve {job}", "reason", true, "reconcile approve"},
	{"POST", "/jobs/{job}/pause", Operator, "schedule pause {job}", "reason", true, "schedule pause"},
	{"POST", "/jobs/{job}/unpause", Operator, "schedule unpause {job}", "", false, "schedule pause"},
	{"POST", "/jobs/pause", Admin, "schedule pause --all", "reason", true, "schedule pause"},
	{"POST", "/jobs/unpause", Admin, "schedule unpause --all", "", false, "schedule pause"},
	{"GET", "/plans/{plan}", Reader, "reconcile show {plan}", "class outcome acting limit after", false, "reconcile show"},
	{"GET", "/drift", Reader, "drift list", "job key class times limit after", false, "drift list"},
	{"GET", "/schedule/{text}", Reader, "schedule check {text}", "zone", false, "schedule check"},
}

// routed finds the route of a path below /api/v1 as the table writes it.
func routed(method, path string) *route {
	for i := range routes {
		if routes[i].method == method && routes[i].path == path {
			return &routes[i]
		}
	}
	panic("console: there is no route " + method + " " + path) // a mistake of a page, which every test of it finds
}

// say is what a request says: parts of the path, and flags.
type say struct {
	parts map[string]string
	flags map[string][]string
}

// saga is the one saga that a request names; "": none.
func (s *say) saga() string {
	if name, named := s.parts["saga"]; named {
		return name
	}
	if named := s.flags["saga"]; len(named) == 1 {
		return named[0]
	}
	return ""
}

// command is the command line of r for a person. What follows "--" is no flag and not standard input, whatever
// it looks like; a flag and what it says are one word.
func (r *route) command(p *Person, s *say) []string {
	var verb, flags, args []string
	for _, word := range strings.Fields(r.line) {
		flag, part, has := strings.Cut(word, "{")
		value := s.parts[strings.TrimSuffix(part, "}")]
		switch {
		case has && flag == "":
			args = append(args, value)
		case has:
			flags = append(flags, flag+value)
		case strings.HasPrefix(word, "--"):
			flags = append(flags, word)
		default:
			verb = append(verb, word)
		}
	}
	for _, name := range strings.Fields(r.flags) {
		for _, value := range s.flags[name] {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	if r.by {
		flags = append(flags, "--actor="+p.Name)
	}
	if r.role == Approver {
		for _, role := range p.Roles {
			flags = append(flags, "--role="+role)
		}
	}
	line := append(append(verb, "--output=json"), flags...)
	return append(append(line, "--"), args...)
}

// changes reports whether r may change something.
func (r *route) changes() bool { return r.method != http.MethodGet }

// looks reports whether r shows what is hidden otherwise, which is put on record.
func (r *route) looks() bool { return strings.HasSuffix(r.path, "/bodies") }
