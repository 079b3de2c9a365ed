package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// What each page reads. A page shows what /api/v1 answers.

func flags(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// needs is what needs a person, each with what is safe to do.
func needs(a *asked) {
	a.name, a.Title, a.Here, a.Live = "needs", "What needs me", "needs", true
	var each []document
	a.together(
		func() { a.read("status", "/status", nil, nil) },
		func() {
			some := items(a.read("reviews", "/works", nil, flags("review", "true", "limit", "5")), "items")
			each = make([]document, len(some))
			for i, one := range some {
				id := map[string]string{"saga": text(one, "saga"), "work": text(one, "workId")}
				each[i] = a.read("", "/works/{saga}/{work}", id, nil)
			}
		},
		func() { a.read("approvals", "/approvals", nil, nil) },
		func() { a.read("drift", "/drift", nil, flags("limit", "10")) },
		func() { a.read("blocked", "/inbox/objects", nil, flags("blocked", "true", "limit", "10")) },
		func() { a.read("jobs", "/jobs", nil, nil) },
		func() { a.read("destinations", "/destinations", nil, nil) },
	)
	a.Docs["each"] = each
	var failing, still, beyond []document
	all, _ := a.Docs["destinations"].(document)
	for _, d := range items(all, "items") {
		if text(d, "state") != "healthy" {
			failing = append(failing, d)
		}
	}
	status, _ := a.Docs["status"].(document)
	for _, f := range items(status, "findings") {
		switch text(f, "kind") {
		case "destination", "paused": // they are shown with what can be done
		case "held":
			beyond = append(beyond, f)
		default:
			still = append(still, f)
		}
	}
	var alarms []document
	jobs, _ := a.Docs["jobs"].(document)
	for _, j := range items(jobs, "items") {
		if text(j, "alarm") != "" {
			alarms = append(alarms, j)
		}
	}
	a.Docs["alarms"], a.Docs["beyond"] = alarms, beyond
	a.Docs["failing"], a.Docs["held"], a.Docs["still"] = failing, items(all, "paused"), still
}

// filters are what the list of instances can be narrowed to, as the form has them.
var filters = []string{"saga", "status", "reason", "prefix", "waits-for", "step", "external-id", "since", "until", "newest", "after"}

func works(a *asked) {
	a.name, a.Title, a.Here, a.Live = "works", "Instances", "works", true
	f := url.Values{}
	for _, name := range filters {
		if v := clean(a.Query.Get(name)); v != "" {
			f.Set(name, v)
		}
	}
	if f.Get("prefix") == "" && !f.Has("newest") && a.Query.Get("order") != "oldest" {
		f.Set("newest", "true")
	}
	doc := a.read("works", "/works", nil, f)
	if next := text(doc, "next"); next != "" {
		q := url.Values{}
		for name, values := range a.Query {
			q[name] = values
		}
		q.Set("after", next)
		a.Docs["next"] = "/works?" + q.Encode()
	}
}

// mostRecords is how many records of an instance a page shows: one of ten thousand would be five megabytes.
const mostRecords = 300

// cut leaves of a history the newest records, or those before the one that the address names.
func (a *asked) cut(history document) document {
	records, _ := history["records"].([]any)
	if before, err := strconv.Atoi(a.Query.Get("before")); err == nil {
		n := slices.IndexFunc(records, func(r any) bool { d, _ := r.(document); return number(d, "seq") == strconv.Itoa(before) })
		records = records[:max(n, 0)]
	}
	if len(records) > mostRecords {
		records = records[len(records)-mostRecords:]
		first, _ := records[0].(document)
		a.Docs["earlier"] = number(first, "seq")
	}
	history["records"] = records
	return history
}

// work is one instance.
func work(a *asked) {
	a.name, a.Title, a.Here, a.Live = "work", "Instance", "works", true
	id := map[string]string{"saga": a.Query.Get("saga"), "work": a.Query.Get("id")}
	if id["saga"] == "" || id["work"] == "" {
		a.name, a.status, a.Title = "none", http.StatusNotFound, "Say which instance"
		return
	}
	a.Title = id["work"]
	doc := a.read("work", "/works/{saga}/{work}", id, nil)
	if len(a.Wrong) > 0 {
		a.name, a.Live = "none", false
		return
	}
	path := "/works/{saga}/{work}/history"
	if a.bodies() {
		path, a.Live = "/works/{saga}/{work}/bodies", false
		a.Docs["bodies"] = true
	}
	history := a.cut(a.read("history", path, id, nil))
	a.Docs["timeline"] = timelineOf(items(history, "records"), a.now)
	for _, c := range items(doc, "choices") {
		if text(c, "verb") == "approve" {
			a.read("approval", "/works/{saga}/{work}/approval", id, nil)
		}
	}
}

// bodies reports whether a person asks for what is hidden otherwise: a link of another site does not, nor
// does what only looks whether the page is there.
func (a *asked) bodies() bool {
	own := a.r.Header.Get("Sec-Fetch-Site")
	return a.Query.Has("bodies") && a.Person.may(Operator) && a.r.Method == http.MethodGet && own != "cross-site" && own != "same-site"
}

func destinations(a *asked) {
	a.name, a.Title, a.Here, a.Live = "destinations", "Destinations", "destinations", true
	a.read("destinations", "/destinations", nil, nil)
}

func heard(a *asked) {
	a.name, a.Title, a.Here, a.Live = "inbox", "Inbox", "inbox", true
	f := url.Values{}
	for _, name := range []string{"object", "source", "disposition", "pending", "since", "before"} {
		if v := clean(a.Query.Get(name)); v != "" {
			f.Set(name, v)
		}
	}
	a.read("counts", "/inbox/counts", nil, nil)
	if doc := a.read("inbox", "/inbox", nil, f); text(doc, "next") != "" {
		f.Set("before", text(doc, "next"))
		a.Docs["next"] = "/inbox?" + f.Encode()
	}
}

func delivery(a *asked) {
	a.name, a.Title, a.Here = "delivery", "Delivery "+a.Query.Get("number"), "inbox"
	path := "/inbox/deliveries/{number}"
	if a.bodies() {
		path = "/inbox/deliveries/{number}/bodies"
		a.Docs["bodies"] = true
	}
	a.read("delivery", path, map[string]string{"number": a.Query.Get("number")}, nil)
	if len(a.Wrong) > 0 {
		a.name = "none"
	}
}

func jobs(a *asked) {
	a.name, a.Title, a.Here, a.Live = "jobs", "Jobs", "jobs", true
	a.read("jobs", "/jobs", nil, nil)
	a.read("runs", "/jobs/runs", nil, flags("limit", "30"))
}

func planned(a *asked) {
	a.name, a.Title, a.Here = "plan", "Plan", "jobs"
	f := url.Values{}
	if after := a.Query.Get("after"); after != "" {
		f.Set("after", after)
	}
	doc := a.read("plan", "/plans/{plan}", map[string]string{"plan": a.Query.Get("id")}, f)
	if len(a.Wrong) > 0 {
		a.name = "none"
		return
	}
	if next := text(doc, "next"); next != "" {
		a.Docs["next"] = "/plan?" + flags("id", a.Query.Get("id"), "after", next).Encode()
	}
}

func findings(a *asked) {
	a.name, a.Title, a.Here = "findings", "Findings", "findings"
	f := url.Values{}
	for _, name := range []string{"job", "class", "key", "after"} {
		if v := clean(a.Query.Get(name)); v != "" {
			f.Set(name, v)
		}
	}
	if doc := a.read("drift", "/drift", nil, f); text(doc, "next") != "" {
		f.Set("after", text(doc, "next"))
		a.Docs["next"] = "/findings?" + f.Encode()
	}
}

func duplicates(a *asked) {
	a.name, a.Title, a.Here = "duplicates", "Duplicates blocked", "duplicates"
	doc := a.read("duplicates", "/duplicates", nil, flags("limit", "50"))
	a.Docs["chart"] = chartOf(items(doc, "days"), a.now)
}

func acts(a *asked) {
	a.name, a.Title, a.Here = "acts", "What people did", "acts"
	f := url.Values{}
	if before := a.Query.Get("before"); before != "" {
		f.Set("before", before)
	}
	if doc := a.read("acts", "/acts", nil, f); text(doc, "next") != "" {
		a.Docs["next"] = "/acts?" + flags("before", text(doc, "next")).Encode()
	}
}

// effect names an attempt: "invoice", or "undo of invoice".
func effect(doc document) string {
	if text(doc, "direction") == "undo" {
		return "undo of " + text(doc, "step")
	}
	return text(doc, "step")
}

// joined are the texts of a list in one line.
func joined(list any) string {
	var words []string
	all, _ := list.([]any)
	for _, v := range all {
		if s, ok := v.(string); ok {
			words = append(words, s)
		}
	}
	return strings.Join(words, ", ")
}
