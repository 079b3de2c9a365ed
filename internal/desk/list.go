package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Statuses and Reasons are what lists can be narrowed to.
var (
	Statuses = names(append(live[:len(live):len(live)], saga.Completed, saga.Compensated))
	Reasons  = names([]saga.Reason{
		saga.ReasonInDoubt, saga.ReasonUndoFailed, saga.ReasonCannotUndo, saga.ReasonAfterPivot, saga.ReasonExhausted, saga.ReasonPoison,
		saga.ReasonDeadline, saga.ReasonUnanswered, saga.ReasonLate, saga.ReasonHung, saga.ReasonConflict,
	})
)

// ListIn narrows the list of instances.
type ListIn struct {
	Saga         string `query:"saga" doc:"works of this saga only"`
	Status       string `query:"status" doc:"works of this status only: running, retrying, waiting, compensating, review, paused, adopting, completed, compensated"`
	Reason       string `query:"reason" doc:"works in review for this reason only: in-doubt, undo-failed, cannot-undo, after-pivot, exhausted, poison, deadline, unanswered, late-answer, hung, conflict"`
	Review       bool   `query:"review" doc:"works that wait for a person: --status review"`
	Waiting      bool   `query:"waiting" doc:"works that wait for a time, an answer or a decision: --status waiting; \"--waiting approval\" is amends approvals"`
	Prefix       string `query:"prefix" doc:"work ids that begin with this"`
	WaitsFor     string `query:"waits-for" doc:"works that wait for this destination, for another try there (retry:NAME), or for a pause: all, saga:NAME"`
	Step         string `query:"step" doc:"works where this step is at issue: retried, waiting, undone, in review or paused"`
	Error        string `query:"error" doc:"works that failed last with an error, or have a note, that has this text, in any case (…: whatever it is; =TEXT: failed last with this alone, = with nothing)"`
	ExternalID   string `query:"external-id" doc:"works that recorded this external id"`
	Tag          string `query:"tag" doc:"works that were started with this tag, name=value"`
	Unconfirmed  bool   `query:"unconfirmed" doc:"works with a step that counts as done although its outcome is unknown (after a rebuild)"`
	Since        string `query:"since" doc:"started at this time or later: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d"`
	Until        string `query:"until" doc:"started before this time"`
	UpdatedSince string `query:"updated-since" doc:"moved last at this time or later"`
	UpdatedUntil string `query:"updated-until" doc:"moved last before this time"`
	Newest       bool   `query:"newest" doc:"those first that were started last"`
	Limit
	After string `query:"after" doc:"the next page, as the page before says it"`
}

// Head is an instance in a list.
type Head struct {
	Number         int64       `json:"number,string"`
	WorkID         string      `json:"workId"`
	Saga           string      `json:"saga"`
	Version        int         `json:"version"`
	Revision       string      `json:"revision"`
	Status         saga.Status `json:"status"`
	Reason         saga.Reason `json:"reason"`         // of a review
	Session        string      `json:"session"`        // the process that holds it; "": none does
	PendingSignals int64       `json:"pendingSignals"` // a count
	WaitsFor       string      `json:"waitsFor"`       // a destination, retry:DESTINATION, or a pause (all, saga:NAME); "": nothing but its time
	Unknown        bool        `json:"unknown"`        // no live process knows the definition that it waits for
	Started        *time.Time  `json:"startedAt"`
	Updated        *time.Time  `json:"updatedAt"`
	Due            *time.Time  `json:"dueAt"`
	Finished       *time.Time  `json:"finishedAt"`
	Deadline       *time.Time  `json:"deadlineAt"` // when it has, or had, to be at its end; null: at no time, or that was looked at

	Step string `json:"-"` // the one at issue
	Note string `json:"-"` // what the other fields do not say
}

// Named is what names it to those that take several: its work id, its saga and its run, with tabs between them.
func (h *Head) Named() string { return h.WorkID + "\t" + h.Saga + "\t" + RunName(h.Revision) }

// head is an instance as lists show it.
func (k *knowledge) head(h *ledger.Instance) Head {
	return Head{
		Number: h.Number, WorkID: h.ID.Work, Saga: h.ID.Saga, Version: h.Version, Revision: h.Revision,
		Status: h.Status, Reason: h.Reason, Session: session(h.Session), PendingSignals: h.Posted - h.Consumed, WaitsFor: h.WaitsFor, Unknown: k.lacking(h) != "",
		Started: utc(h.Created), Updated: utc(h.Updated), Due: utc(h.Due), Finished: utc(h.Finished),
		Deadline: utc(Either(h.Status.Terminal(), time.Time{}, h.Deadline)), Step: h.Step, Note: k.note(h),
	}
}

func session(t machine.Token) string { return When(t != 0, t.String()) }

// List lists instances, in the order in which they were started, or of their ids. What has ended is looked through ten thousand at a time.
func (d *Desk) List(ctx context.Context, in *ListIn) (*List[Head], error) {
	f, err := in.filter(d.now())
	if err != nil {
		return nil, err
	}
	p, k, err := d.heads(ctx, f)
	for looked := f.Limit; in.Error != "" && err == nil; looked += f.Limit {
		var failed map[saga.ID]*failed
		if failed, err = d.errorsOf(ctx, k, p.Instances); err != nil {
			break
		}
		if n := len(p.Instances); n > 0 && p.Next != "" {
			p.Looked = p.Instances[n-1].Created
		}
		p.Instances = slices.DeleteFunc(p.Instances, func(h ledger.Instance) bool { return !failed[h.ID].have(in.Error) })
		if len(p.Instances) > 0 || p.Next == "" || looked >= mostLooked {
			break
		}
		f.After = p.Next
		p, k, err = d.heads(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	return &List[Head]{docs(p.Instances, k.head), Either(p.Next != "", &p.Next, nil), p.Looked}, nil
}

// filter refuses what would silently match nothing.
func (in *ListIn) filter(now time.Time) (ledger.Filter, error) {
	switch {
	case in.Review && in.Status == "":
		in.Status = string(saga.Review)
	case in.Waiting && in.Status == "":
		in.Status = string(saga.Waiting)
	}
	f := ledger.Filter{
		Saga: in.Saga, Status: saga.Status(in.Status), Reason: saga.Reason(in.Reason), Prefix: in.Prefix, WaitsFor: in.WaitsFor, Step: in.Step,
		ExternalID: in.ExternalID, Tag: in.Tag, Unconfirmed: in.Unconfirmed, Newest: in.Newest, Limit: in.Limit.N, After: in.After,
	}
	wrong := in.times(now, &f)
	wrong.If(in.Tag != "" && !strings.Contains(in.Tag, "="), "--tag takes NAME=VALUE")
	wrong.If(in.Newest && in.Prefix != "", "works that begin alike are listed in the order of their ids; leave out --newest")
	wrong = append(wrong, oneOf("status", in.Status, Statuses)...)
	wrong = append(wrong, oneOf("reason", in.Reason, Reasons)...)
	wrong.If(in.Status != "" && in.Status != string(saga.Review) && (in.Review || in.Reason != ""), fmt.Sprintf("only works in review have a reason; --status %s says otherwise", in.Status))
	return f, Usage("", append(wrong, in.Limit.faults()...)...)
}

// names are what is of a kind, as texts.
func names[T ~string](all []T) []string {
	return docs(all, func(one *T) string { return string(*one) })
}

// oneOf says what is wrong with a name that is none of those there are; "" is none.
func oneOf(what, name string, names []string) Wrong {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return []string{fmt.Sprintf("there is no %s %q: it is one of %s", what, name, strings.Join(names, ", "))}
}

// times puts the times into f, and says what is wrong with them. What is said becomes the time that was meant: the next page is about the
// same one, whenever it is asked for.
func (in *ListIn) times(now time.Time, f *ledger.Filter) (wrong Wrong) {
	for _, t := range []struct {
		flag string
		text *string
		at   *time.Time
	}{
		{"since", &in.Since, &f.CreatedSince}, {"until", &in.Until, &f.CreatedUntil},
		{"updated-since", &in.UpdatedSince, &f.UpdatedSince}, {"updated-until", &in.UpdatedUntil, &f.UpdatedUntil},
	} {
		at, err := PointInTime(*t.text, now)
		wrong.Err("--"+t.flag+" ", err)
		*t.at = at.Truncate(time.Microsecond)
		if *t.text != "" {
			*t.text = t.at.UTC().Format(time.RFC3339Nano)
		}
	}
	empty := func(since, until time.Time) bool { return !since.IsZero() && !until.IsZero() && !since.Before(until) }
	wrong.If(empty(f.CreatedSince, f.CreatedUntil) || empty(f.UpdatedSince, f.UpdatedUntil), "what it is to be since is not before what it is to be until, so nothing can match")
	return wrong
}

// heads reads a page, and what is known of the processes that run.
func (d *Desk) heads(ctx context.Context, f ledger.Filter) (p ledger.Page, k *knowledge, err error) {
	if p, err = d.db.List(ctx, f); err != nil {
		return p, nil, err
	}
	wait := f.WaitsFor != "" || slices.ContainsFunc(p.Instances, func(h ledger.Instance) bool { return h.WaitsFor != "" })
	if k, err = d.whoKnows(ctx, wait); err != nil {
		return p, nil, err
	}
	if f.WaitsFor != "" {
		if err := k.flow.knows(f.WaitsFor); err != nil {
			return p, nil, err
		}
	}
	k.paused, err = d.whoPaused(ctx, p.Instances)
	return p, k, err
}

// whoPaused reads who holds the instances that a person does, and why.
func (d *Desk) whoPaused(ctx context.Context, heads []ledger.Instance) (map[saga.ID]string, error) {
	var ids []saga.ID
	for i := range heads {
		if heads[i].Status == saga.Paused {
			ids = append(ids, heads[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	chains, err := d.db.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	words := map[saga.ID]string{}
	for i := range chains {
		id := chains[i].Instance.ID
		if st, err := machine.Fold(id, chains[i].Records); err == nil && st.Status == saga.Paused { // else show says what is wrong
			words[id] = st.Note
		}
	}
	return words, nil
}

// note says what the other fields of a list do not.
func (k *knowledge) note(h *ledger.Instance) string {
	if k == nil {
		return ""
	}
	signals := h.Posted - h.Consumed
	note := joined(When(signals > 0, count(int(signals), "signal")+" to be read"), When(h.Status == saga.Waiting, k.waitsAt(h)))
	switch lacking := k.lacking(h); {
	case lacking != "" && k.live == 0:
		return joined(note, "no coordinator runs")
	case lacking != "":
		return joined(note, "no live process knows "+lacking)
	case h.Session != 0 && note == "":
		return "held by " + h.Session.String()
	case h.Status == saga.Paused && k.paused[h.ID] != "":
		return joined(note, k.paused[h.ID])
	case h.WaitsFor != "":
		return joined(note, "waits: "+k.because(h.WaitsFor))
	}
	return note
}

// waitsAt says for what an instance waits that sends nothing meanwhile.
func (k *knowledge) waitsAt(h *ledger.Instance) string {
	if h.Step == "" {
		return "it was started for later"
	}
	note, spec := "at step "+h.Step, k.specOf(h.ID.Saga, h.Version)
	if spec == nil || spec.Index(h.Step) < 0 {
		return note
	}
	step := &spec.Steps[spec.Index(h.Step)]
	if a := step.Approval; a != nil {
		note += ", for approval by " + strings.Join(slices.Concat(a.Roles, a.EscalateTo), ", ")
	}
	if asks := step.Answer; asks != nil {
		note += ", for an answer" + With(" to ", asks.Callback) + With(" by message ", strings.Join(asks.On, ", "))
	}
	return note
}

// DuplicatesIn narrows what was blocked.
type DuplicatesIn struct {
	Work   string `path:"work"`
	Saga   string `query:"saga" doc:"works of this saga only"`
	Prefix string `query:"prefix" doc:"work ids that begin with this"`
	Since  string `query:"since" doc:"and what each layer blocked since then, by day: 2006-01-02, or how long ago, such as 30d"`
	Limit
}

// Duplicate is a counter.
type Duplicate struct {
	Saga   string     `json:"saga"` // "": it was stopped before it was a work
	WorkID string     `json:"workId"`
	Source string     `json:"source"`
	By     string     `json:"by"` // what stopped it: start, receiver, version
	Count  int64      `json:"count"`
	First  *time.Time `json:"firstAt"`
	Last   *time.Time `json:"lastAt"`
}

// Of is the source, or a phrase for one that the caller of Start did not name.
func (d *Duplicate) Of() string { return cmp.Or(d.Source, "starts without a source") }

// Duplicates are counters, and what was blocked by day.
type Duplicates struct {
	Items []Duplicate `json:"items"`
	More  bool        `json:"more"` // whether --limit left some out
	Days  []Day       `json:"days"` // all that was blocked since, or in the last 90 days, whatever else narrows the items
}

// blockedFor is how far back days are told.
const blockedFor = 90 * 24 * time.Hour

// Day is how many duplicates of a source one layer blocked on a day.
type Day struct {
	Day    string `json:"day"`    // UTC
	By     string `json:"by"`     // the layer: start, receiver, version, answer, vote, request or lookup
	Source string `json:"source"` // of the start or the webhook; of an answer or a vote the saga, of a lookup the destination; "": not known
	Count  int64  `json:"count"`
}

func duplicateOf(d *ledger.Duplicate) Duplicate {
	return Duplicate{Saga: d.ID.Saga, WorkID: d.ID.Work, Source: d.Source, By: "start", Count: d.Count, First: utc(d.First), Last: utc(d.Last)}
}

// Duplicates counts the duplicates that were blocked, most recent first.
func (d *Desk) Duplicates(ctx context.Context, in *DuplicatesIn) (*Duplicates, error) {
	since, err := PointInTime(in.Since, d.now())
	wrong := in.Limit.faults()
	wrong.Err("--since ", err)
	if err := Usage("", wrong...); err != nil {
		return nil, err
	}
	if in.Since == "" {
		since = d.now().Add(-blockedFor)
	}
	all, err := d.blocked(ctx, ledger.Filter{Work: in.Work, Saga: in.Saga, Prefix: in.Prefix, Limit: in.Limit.N + 1})
	if err != nil {
		return nil, err
	}
	days, _, err := d.blockedDays(ctx, since)
	n := min(len(all), in.Limit.N)
	return answer(Duplicates{append([]Duplicate{}, all[:n]...), n < len(all), docs(days, func(d *ledger.BlockedDay) Day {
		return Day{d.Day.Format(time.DateOnly), d.By, d.Source, d.Count}
	})}, err)
}

// blockedDays are the days of duplicates that were blocked, and those of deliveries that were refused.
func (d *Desk) blockedDays(ctx context.Context, since time.Time) (duplicates, refused []ledger.BlockedDay, err error) {
	days, err := d.db.BlockedDays(ctx, since)
	for _, day := range days {
		if intake.Refusal(day.By) != "" {
			refused = append(refused, day)
		} else {
			duplicates = append(duplicates, day)
		}
	}
	return duplicates, refused, err
}

// blocked reads the counters of starts, and those of the inbox, the most recent first.
func (d *Desk) blocked(ctx context.Context, f ledger.Filter) ([]Duplicate, error) {
	ds, err := d.db.Duplicates(ctx, f)
	all := docs(ds, duplicateOf)
	of := intake.StoppedFilter{Prefix: f.Prefix, Limit: f.Limit}
	named := f.Work == ""
	if o, ok := intake.ParseObject(f.Work); ok {
		of.Object, named = o, true
	}
	if err != nil || f.Saga != "" || !named { // an instance that no object names has no deliveries
		return all, err
	}
	stopped, err := d.db.Stopped(ctx, of)
	for i := range stopped {
		if s := &stopped[i]; f.Work == "" || s.Object == of.Object {
			for i, n := range []int64{s.Copies, s.Known} {
				if n > 0 {
					by := []string{"receiver", "version"}[i]
					all = append(all, Duplicate{WorkID: s.Object.String(), Source: s.Object.Source, By: by, Count: n, First: utc(s.First), Last: utc(s.Last)})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Duplicate) int { return At(b.Last).Compare(At(a.Last)) })
	return all, err
}
