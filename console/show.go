package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
)

// What each page reads. A page shows what /api/v1 answers.

// needsMe is what needs a person, each with what is safe to do.
type needsMe struct {
	Status       *desk.Status
	Groups       []reviews
	More         bool // reviews than are shown
	Approvals    *desk.All[desk.Approval]
	Drift        *desk.Drifts
	Blocked      *desk.List[*desk.Entry]
	Jobs         *desk.Board
	Destinations *desk.Destinations

	Failing []desk.Destination
	Alarms  []desk.Job
	Beyond  []finding.Finding // withdrawals that are held
	Still   []finding.Finding
}

// Clear reports whether nothing needs a person.
func (n *needsMe) Clear() bool {
	return len(n.Groups)+len(n.Approvals.Items)+len(n.Drift.Items)+len(n.Blocked.Items)+len(n.Destinations.Paused)+
		len(n.Failing)+len(n.Alarms)+len(n.Beyond)+len(n.Still) == 0
}

// reviews are instances of a saga that are in review at the same step for the same reason, and failed with the same.
type reviews struct {
	desk.Group
	Each []*desk.Instance // the first few
}

// mostReviews is how many reviews the first page looks at, mostShown how many it shows whole, and fewReviews how many of a group.
const mostReviews, mostShown, fewReviews = 200, 12, 3

func needs(a *asked) {
	a.is("needs", "What needs me", "needs", true)
	n := &needsMe{}
	a.Data = n
	a.together(
		func() { n.Status = read[desk.Status](a, "/status") },
		func() { n.Groups, n.More = a.reviews() },
		func() { n.Approvals = read[desk.All[desk.Approval]](a, "/approvals") },
		func() { n.Drift = read[desk.Drifts](a, "/drift", "limit", "10") },
		func() {
			n.Blocked = read[desk.List[*desk.Entry]](a, "/inbox/objects", "blocked", "true", "limit", "10")
		},
		func() { n.Jobs = read[desk.Board](a, "/jobs") },
		func() { n.Destinations = read[desk.Destinations](a, "/destinations") },
	)
	n.Failing = slices.DeleteFunc(slices.Clone(n.Destinations.Items), func(d desk.Destination) bool { return d.State == "healthy" })
	n.Alarms = slices.DeleteFunc(slices.Clone(n.Jobs.Items), func(j desk.Job) bool { return j.Alarm == "" })
	for _, f := range n.Status.Findings {
		switch f.Kind {
		case "destination", "paused": // they are shown with what can be done
		case "held":
			n.Beyond = append(n.Beyond, f)
		default:
			n.Still = append(n.Still, f)
		}
	}
}

// reviews are the groups of what is in review.
func (a *asked) reviews() (groups []reviews, more bool) {
	all := read[desk.Groups](a, "/groups", "most", strconv.Itoa(mostReviews))
	room := mostShown
	for i := range all.Items {
		g := reviews{Group: all.Items[i]}
		few := min(fewReviews, g.Count, room)
		room -= few
		for _, h := range g.Heads[:few] {
			g.Each = append(g.Each, a.instance(h.Saga, h.WorkID))
		}
		groups = append(groups, g)
	}
	return groups, all.More
}

func (a *asked) instance(sagaName, id string) *desk.Instance {
	return read[desk.Instance](a, "/works/{saga}/{work}", "saga", sagaName, "work", id)
}

// grouped are the instances of a group, to be decided together.
type grouped struct {
	Of   string // the saga
	Each []*desk.Instance
	Acts []desk.Choice // that all of them take, and that need nothing but a reason
	More bool
}

// mostTogether is how many are decided at once: each is shown before.
const mostTogether = 50

func group(a *asked) {
	q := a.Query
	a.is("group", q.Get("saga")+", step "+q.Get("step")+": "+q.Get("reason"), "needs", false)
	l := read[desk.List[desk.Head]](a, "/works", append(a.filters("saga", "step", "reason", "error"), "review", "true", "limit", strconv.Itoa(mostTogether))...)
	g := &grouped{Of: q.Get("saga"), More: l.Next != nil}
	a.Data = g
	for i := range l.Items {
		one := a.instance(l.Items[i].Saga, l.Items[i].WorkID)
		takes := slices.DeleteFunc(one.Choices, func(c desk.Choice) bool { return !c.Together() })
		if i > 0 {
			takes = shared(g.Acts, takes)
		}
		g.Acts, g.Each = takes, append(g.Each, one)
	}
}

// shared are the choices that are in both, with what follows from them in both.
func shared(all, others []desk.Choice) (both []desk.Choice) {
	for _, c := range all {
		i := slices.IndexFunc(others, func(d desk.Choice) bool {
			return d.When == c.When && d.Button == c.Button && slices.Equal(d.Flags, c.Flags)
		})
		if i >= 0 {
			c.Then = slices.DeleteFunc(slices.Clone(c.Then), func(line string) bool { return !slices.Contains(others[i].Then, line) })
			both = append(both, c)
		}
	}
	return both
}

// doAll does an act on each of those that were chosen, by its work id and the record that was seen.
func (h *handler) doAll(ctx context.Context, p *Person, op *operation, s *said, key string, chosen []string) notice {
	done, n := 0, notice{Good: true}
	for _, one := range chosen {
		seen, id, _ := strings.Cut(one, ":")
		of := &said{map[string]string{"saga": s.parts["saga"], "work": id}, map[string]string{"seen": seen}}
		maps.Copy(of.says, s.says)
		switch was, _ := h.keyed(ctx, p, op, of, key+"-"+id); {
		case was.Notice != nil && was.Notice.Good:
			done++
		case was.Problem != nil:
			n.Good = false
			n.Text += " " + id + ": " + cmp.Or(was.Problem.Plain, was.Problem.Detail) + "."
		}
	}
	n.Text = fmt.Sprintf("%d of %d are done.", done, len(chosen)) + n.Text
	return n
}

// listed is a list with the query by which it was narrowed.
type listed struct {
	*desk.List[desk.Head]

	Statuses, Reasons []string
}

func works(a *asked) {
	a.is("works", "Instances", "works", true)
	newest := strconv.FormatBool(clean(a.Query.Get("prefix")) == "" && a.Query.Get("order") != "oldest")
	filters := a.filters("saga", "status", "reason", "prefix", "waits-for", "step", "error", "external-id", "since", "until", "after")
	l := read[desk.List[desk.Head]](a, "/works", append(filters, "newest", newest)...)
	a.Data = listed{l, desk.Statuses, desk.Reasons}
	a.next("/works", l.Next, "after")
}

// one reports whether the one thing that a page is about was read, and could be.
func (a *asked) one(data any) bool {
	if a.Data = data; len(a.Wrong) > 0 {
		a.name, a.Live = "none", false
	}
	return len(a.Wrong) == 0
}

// next is the address of the next page, with the query of this one.
func (a *asked) next(path string, cursor *string, name string) {
	if cursor == nil {
		return
	}
	q := url.Values{}
	for name, values := range a.Query {
		q[name] = values
	}
	q.Set(name, *cursor)
	a.Next = path + "?" + q.Encode()
}

// mostRecords is how many records of an instance a page shows: one of ten thousand would be five megabytes.
const mostRecords = 300

// instance is one instance, its history and, where people decide, what they decide about.
type instance struct {
	*desk.Instance

	Records  []desk.Record
	Earlier  string // the first of those that are shown, where there are earlier ones
	Timeline timeline
	Approval *desk.Approval
	Bodies   bool
}

// HasBodies reports whether there is an input or a result to be shown, here or among the earlier records.
func (i *instance) HasBodies() bool {
	return i.Earlier != "" || slices.ContainsFunc(i.Records, func(r desk.Record) bool { return r.Body != nil && r.Kind != machine.KindRemembered })
}

func work(a *asked) {
	sagaName, id := a.Query.Get("saga"), a.Query.Get("id")
	a.is("work", id, "works", true)
	if sagaName == "" || id == "" {
		a.name, a.status, a.Title = "none", http.StatusNotFound, "Say which instance"
		return
	}
	i := &instance{Instance: a.instance(sagaName, id), Bodies: a.bodies()}
	if !a.one(i) {
		return
	}
	const path = "/works/{saga}/{work}/"
	history := "history"
	if i.Bodies {
		history, a.Live = "bodies", false
	}
	if i.Records = read[desk.History](a, path+history, "saga", sagaName, "work", id).Records; i.Bodies && !a.one(i) {
		return
	}
	if before, err := strconv.ParseInt(a.Query.Get("before"), 10, 64); err == nil {
		i.Records = i.Records[:max(slices.IndexFunc(i.Records, func(r desk.Record) bool { return r.Seq == before }), 0)]
	}
	if n := len(i.Records); n > mostRecords {
		i.Records = i.Records[n-mostRecords:]
		i.Earlier = strconv.FormatInt(i.Records[0].Seq, 10)
	}
	i.Timeline = timelineOf(i.Records, a.now)
	if slices.ContainsFunc(i.Choices, func(c desk.Choice) bool { return c.Verb == "approve" }) {
		if asked := read[desk.Approval](a, path+"approval", "saga", sagaName, "work", id); len(a.Wrong) == 0 {
			i.Approval = asked
		}
	}
}

// bodies reports whether a person asks for what is hidden otherwise: a link of another site does not, nor
// does what only looks whether the page is there.
func (a *asked) bodies() bool {
	own := a.r.Header.Get("Sec-Fetch-Site")
	return a.Query.Has("bodies") && a.Person.may(Operator) && a.r.Method == http.MethodGet && own != "cross-site" && own != "same-site"
}

// document is a page of one document, read with those of the filters that the query has. One that has more pages says where the next one begins, in
// the last filter.
func document[Out any](name, title, here string, live bool, path string, filters ...string) func(*asked) {
	return func(a *asked) {
		a.is(name, title, here, live)
		doc := read[Out](a, path, a.filters(filters...)...)
		a.Data = doc
		if l, is := any(doc).(interface{ More() *string }); is {
			a.next("/"+name, l.More(), filters[len(filters)-1])
		}
	}
}

// inbox is what was heard.
type inbox struct {
	Counts     *desk.All[desk.Count]
	Deliveries *desk.List[desk.Delivery]
}

func heard(a *asked) {
	a.is("inbox", "Inbox", "inbox", true)
	filters := a.filters("object", "source", "disposition", "since", "pending", "before")
	d := inbox{read[desk.All[desk.Count]](a, "/inbox/counts"), read[desk.List[desk.Delivery]](a, "/inbox", filters...)}
	a.Data = d
	a.next("/inbox", d.Deliveries.Next, "before")
}

// oneDelivery is one delivery.
type oneDelivery struct {
	*desk.Hearing

	Looked bool // it is on record that the person did
}

func delivery(a *asked) {
	a.is("delivery", "Delivery "+a.Query.Get("number"), "inbox", false)
	d := oneDelivery{Looked: a.bodies()}
	d.Hearing = read[desk.Hearing](a, "/inbox/deliveries/{number}"+desk.When(d.Looked, "/bodies"), "number", a.Query.Get("number"))
	a.one(d)
}

// jobsRuns are jobs and their latest runs.
type jobsRuns struct {
	Board *desk.Board
	Runs  *desk.List[desk.Run]
}

func jobs(a *asked) {
	a.is("jobs", "Jobs", "jobs", true)
	a.Data = jobsRuns{read[desk.Board](a, "/jobs"), read[desk.List[desk.Run]](a, "/jobs/runs", "limit", "30")}
}

func planned(a *asked) {
	a.is("plan", "Plan", "jobs", false)
	p := read[desk.Plan](a, "/plans/{plan}", append(a.filters("after"), "plan", a.Query.Get("id"))...)
	a.one(p)
	a.next("/plan", p.Next, "after")
}

// blocked are duplicates, and a picture of them.
type blocked struct {
	*desk.Duplicates

	Chart chart
}

func duplicates(a *asked) {
	a.is("duplicates", "Duplicates blocked", "duplicates", false)
	l := read[desk.Duplicates](a, "/duplicates")
	a.Data = blocked{l, chartOf(l.Days, a.now)}
}
