package desk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	ExternalID   string `query:"external-id" doc:"works that recorded this external id"`
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
	Number   int64       `json:"number,string"`
	WorkID   string      `json:"workId"`
	Saga     string      `json:"saga"`
	Version  int         `json:"version"`
	Revision string      `json:"revision"`
	Status   saga.Status `json:"status"`
	Reason   saga.Reason `json:"reason"`         // of a review
	Session  string      `json:"session"`        // the process that holds it; "": none does
	Pending  int64       `json:"pendingSignals"` // a count
	WaitsFor string      `json:"waitsFor"`       // a destination, retry:DESTINATION, or a pause (all, saga:NAME); "": nothing but its time
	Unknown  bool        `json:"unknown"`        // no live process knows the definition that it waits for
	Started  *time.Time  `json:"startedAt"`
	Updated  *time.Time  `json:"updatedAt"`
	Due      *time.Time  `json:"dueAt"`
	Finished *time.Time  `json:"finishedAt"`
	Deadline *time.Time  `json:"deadlineAt"` // when it has, or had, to be at its end; null: at no time, or that was looked at

	Step string `json:"-"` // the one at issue
	Note string `json:"-"` // what the other fields do not say
}

// Named is what names it to those that take several: its work id, its saga and its run, with tabs between them.
func (h *Head) Named() string { return h.WorkID + "\t" + h.Saga + "\t" + RunName(h.Revision) }

// head is an instance as lists show it.
func (k *knowledge) head(h *ledger.Instance) Head {
	deadline := h.Deadline
	if h.Status.Terminal() {
		deadline = time.Time{}
	}
	return Head{
		Number: h.Number, WorkID: h.ID.Work, Saga: h.ID.Saga, Version: h.Version, Revision: h.Revision,
		Status: h.Status, Reason: h.Reason, Session: session(h.Session), Pending: h.Posted - h.Consumed, WaitsFor: h.WaitsFor, Unknown: k.lacking(h) != "",
		Started: utc(h.Created), Updated: utc(h.Updated), Due: utc(h.Due), Finished: utc(h.Finished),
		Deadline: utc(deadline), Step: h.Step, Note: k.note(h),
	}
}

func session(t machine.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

// List lists instances, in the order in which they were started, or of their ids. What has ended is looked through ten thousand at a time.
func (d *Desk) List(ctx context.Context, in *ListIn) (*List[Head], error) {
	f, err := in.filter(d.now())
	if err != nil {
		return nil, err
	}
	p, k, err := d.heads(ctx, f)
	if err != nil {
		return nil, err
	}
	l := &List[Head]{Items: docs(p.Instances, k.head), Looked: p.Looked}
	if p.Next != "" {
		l.Next = &p.Next
	}
	return l, nil
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
		ExternalID: in.ExternalID, Unconfirmed: in.Unconfirmed, Newest: in.Newest, Limit: in.Limit.N, After: in.After,
	}
	wrong := in.times(now, &f)
	if in.Newest && in.Prefix != "" {
		wrong = append(wrong, "works that begin alike are listed in the order of their ids; leave out --newest")
	}
	wrong = append(wrong, oneOf("status", in.Status, Statuses)...)
	wrong = append(wrong, oneOf("reason", in.Reason, Reasons)...)
	if in.Status != "" && in.Status != string(saga.Review) && (in.Review || in.Reason != "") {
		wrong = append(wrong, fmt.Sprintf("only works in review have a reason; --status %s says otherwise", in.Status))
	}
	return f, usage("", append(wrong, in.Limit.faults()...))
}

// names are what is of a kind, as texts.
func names[T ~string](all []T) []string {
	return docs(all, func(one *T) string { return string(*one) })
}

// oneOf says what is wrong with a name that is none of those there are; "" is none.
func oneOf(what, name string, names []string) []string {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return []string{fmt.Sprintf("there is no %s %q: it is one of %s", what, name, strings.Join(names, ", "))}
}

// times puts the times into f, and says what is wrong with them. What is said becomes the time that was meant: the next page is about the
// same one, whenever it is asked for.
func (in *ListIn) times(now time.Time, f *ledger.Filter) (wrong []string) {
	for _, t := range []struct {
		flag string
		text *string
		at   *time.Time
	}{
		{"since", &in.Since, &f.CreatedSince}, {"until", &in.Until, &f.CreatedUntil},
		{"updated-since", &in.UpdatedSince, &f.UpdatedSince}, {"updated-until", &in.UpdatedUntil, &f.UpdatedUntil},
	} {
		at, err := PointInTime(*t.text, now)
		if err != nil {
			wrong = append(wrong, "--"+t.flag+" "+err.Error())
		}
		*t.at = at.Truncate(time.Microsecond)
		if *t.text != "" {
			*t.text = t.at.UTC().Format(time.RFC3339Nano)
		}
	}
	empty := func(since, until time.Time) bool { return !since.IsZero() && !until.IsZero() && !since.Before(until) }
	if empty(f.CreatedSince, f.CreatedUntil) || empty(f.UpdatedSince, f.UpdatedUntil) {
		wrong = append(wrong, "what it is to be since is not before what it is to be until, so nothing can match")
	}
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
	var notes []string
	if n := h.Posted - h.Consumed; n > 0 {
		notes = append(notes, count(int(n), "signal")+" to be read")
	}
	if h.Status == saga.Waiting {
		notes = append(notes, k.waitsAt(h))
	}
	switch lacking := k.lacking(h); {
	case lacking != "" && k.live == 0:
		notes = append(notes, "no coordinator runs")
	case lacking != "":
		notes = append(notes, "no live process knows "+lacking)
	case h.Session != 0 && len(notes) == 0:
		notes = append(notes, "held by "+h.Session.String())
	case h.Status == saga.Paused && k.paused[h.ID] != "":
		notes = append(notes, k.paused[h.ID])
	case h.WaitsFor != "":
		notes = append(notes, "waits: "+k.because(h.WaitsFor))
	}
	return strings.Join(notes, "; ")
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
		note += ", for approval by " + strings.Join(slices.Concat(a.By, a.EscalateTo), ", ")
	}
	if asks := step.Answer; asks != nil {
		note += ", for an answer"
		if asks.Callback != "" {
			note += " to " + asks.Callback
		}
		if len(asks.On) > 0 {
			note += " by message " + strings.Join(asks.On, ", ")
		}
	}
	return note
}
