package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Approval is what people decide at a step of an instance.
type Approval struct {
	WorkID      string          `json:"workId"`
	Saga        string          `json:"saga"`
	Step        string          `json:"step"`
	Digest      string          `json:"digest"` // a vote says it
	About       *saga.About     `json:"about"`  // what its definition says about it; null: nothing
	Shown       json.RawMessage `json:"shown"`  // what is decided about
	Roles       []string        `json:"roles"`  // who may vote now
	VotesNeeded int             `json:"votesNeeded"`
	Votes       []saga.Vote     `json:"votes"`   // in their order
	Since       *time.Time      `json:"since"`   // the votes count from here
	Until       *time.Time      `json:"until"`   // without a decision by then it is rejected
	Outcome     string          `json:"outcome"` // "": it is to be decided

	Run string `json:"-"` // the revision that the instance is at
}

func approvalOf(p *coordinator.Approval) Approval {
	return Approval{
		WorkID: p.ID.Work, Saga: p.ID.Saga, Step: p.Step, Digest: p.Digest, About: p.About, Shown: p.Shown, Roles: p.Roles, VotesNeeded: p.Needed,
		Votes: append([]saga.Vote{}, p.Votes...), Since: utc(p.Since), Until: utc(p.Until), Outcome: p.Outcome, Run: p.Run,
	}
}

// Named is what names its instance to those that take several.
func (a *Approval) Named() string {
	return (&Head{WorkID: a.WorkID, Saga: a.Saga, Revision: a.Run}).Named()
}

// Title is what it is called.
func (a *Approval) Title() string {
	if a.About != nil && a.About.Title != "" {
		return a.About.Title
	}
	return "step " + a.Step
}

// Approved is how many have approved.
func (a *Approval) Approved() int {
	return number(a.Votes, func(v *saga.Vote) bool { return v.Approve })
}

// Stands is how many have approved of how many it takes.
func (a *Approval) Stands() string { return fmt.Sprintf("%d of %d", a.Approved(), a.VotesNeeded) }

// ApprovalIn says which approval is looked at.
type ApprovalIn struct {
	Which
	Step string `query:"step" doc:"the approval; without it the one that the work waits at"`
}

// Approval reads what people decide at a step of an instance.
func (d *Desk) Approval(ctx context.Context, in *ApprovalIn) (*Approval, error) {
	head, err := d.find(ctx, &in.Which)
	if err != nil {
		return nil, err
	}
	p, err := d.op.Approval(ctx, head.ID, in.Step)
	return answer(approvalOf(&p), refused(err, head.ID))
}

// Approvals lists what waits for people to decide, oldest first.
func (d *Desk) Approvals(ctx context.Context, _ *Nothing) (*All[Approval], error) {
	all := &All[Approval]{Items: []Approval{}}
	for p, err := range d.op.Approvals(ctx) {
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, approvalOf(&p))
	}
	return all, nil
}

// ActsIn narrows the list of what people did.
type ActsIn struct {
	Limit
	Before string `query:"before" doc:"only what was done before this time, or so long ago: the next page"`
}

// Deed is something that a person did.
type Deed struct {
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Act    string     `json:"act"` // a kind of signal; pause, resume or probe; release or drop; run, look, retention, erase, or recover
	Saga   string     `json:"saga"`
	WorkID string     `json:"workId"` // "": it was about no work alone
	What   string     `json:"what"`   // then: all, saga:NAME, destination:NAME, source:NAME, job:NAME, or what was looked at; of a work: what was said of which step
	Reason string     `json:"reason"`
}

// About is what it was done to.
func (d *Deed) About() string { return joinedBy(" ", d.Saga, d.WorkID, d.What) }

// Acts lists what people did, latest first.
func (d *Desk) Acts(ctx context.Context, in *ActsIn) (*List[Deed], error) {
	until, err := PointInTime(in.Before, d.now())
	wrong := in.Limit.faults()
	wrong.Err("--before ", err)
	return page(wrong, &in.Limit, func() ([]ledger.Deed, error) { return d.db.Deeds(ctx, until, in.Limit.N+1) },
		deedOf, func(d *ledger.Deed) string { return d.At.UTC().Format(time.RFC3339Nano) })
}

func deedOf(d *ledger.Deed) Deed {
	j := Deed{At: utc(d.At), Actor: d.Actor, Act: d.Kind, Saga: d.ID.Saga, WorkID: d.ID.Work, What: d.Name, Reason: d.Reason}
	if d.ID.Work != "" {
		j.Act = Either(d.Kind == "revise", "rerun", d.Kind)
		if r := d.Resolution; r.Step != "" {
			j.What = effect(r.Step, r.Direction, r.Attempt) + When(d.Kind == string(machine.SignalResolve), ": "+happened(r.Happened, r.ExternalID))
		}
		return j
	}
	switch d.Kind {
	case string(ledger.ControlPause):
		j.Act = Either(d.Body == "", "resume", d.Kind)
	case string(ledger.ControlDestination):
		var h struct {
			PausedBy string    `json:"pausedBy"`
			ProbedAt time.Time `json:"probedAt"`
		}
		_ = json.Unmarshal([]byte(d.Body), &h) // what cannot be read is neither
		j.What, j.Act = "destination:"+d.Name, Either(h.PausedBy != "", "pause", Either(h.ProbedAt.IsZero(), "resume", "probe"))
	case ledger.DeedRun:
		j.What = "job:" + strings.TrimSpace(d.Name+" "+d.Body)
	case ledger.DeedDecide:
		var said struct{ Job, Verdict string }
		_ = json.Unmarshal([]byte(d.Body), &said) // what cannot be read says nothing
		j.What = fmt.Sprintf("finding:%s: %s, of %s", d.Name, said.Verdict, said.Job)
	case intake.ActRelease, intake.ActDrop:
		j.What = "source:" + d.Name
	}
	return j
}

// Looked puts on record that a person sees what is hidden otherwise.
func (d *Desk) Looked(ctx context.Context, what string, by saga.Actor) error {
	return d.db.Did(ctx, ledger.DeedLooked, what, by)
}

// Called is what a work is called on record: one that was erased by what is left of its id.
func (d *Desk) Called(ctx context.Context, id saga.ID) (string, error) {
	hidden := d.db.Hide(id.Work)
	erased, err := ledger.First(ctx, d.db, ledger.Filter{Saga: id.Saga, Work: hidden})
	return id.Saga + " " + Either(len(erased) > 0, hidden, id.Work), err
}

// DeliverIn is a message.
type DeliverIn struct {
	Name string    `path:"name"`
	Key  string    `path:"key"`
	ID   string    `json:"id,omitempty" doc:"the sender's id of the message"`
	Body *JSONText `json:"body,omitempty" doc:"what it says"`
}

// Delivered is what became of a message.
type Delivered struct {
	At    *time.Time `json:"at"`    // when it came first
	Works []ID       `json:"works"` // that it was brought to now; none: it is kept, or it was delivered before
}

// Deliver brings a message to the instances that wait for it.
func (d *Desk) Deliver(ctx context.Context, in *DeliverIn) (*Delivered, error) {
	if in.ID == "" {
		return nil, Usage("try: amends deliver --help", "say which message it is, so that one that comes again is known: --id ID")
	}
	m := saga.Message{ID: in.ID, Name: in.Name, Key: in.Key}
	if in.Body != nil {
		m.Body = []byte(*in.Body)
	}
	ack, err := d.op.Deliver(ctx, m)
	return answer(Delivered{utc(ack.At), docs(ack.IDs, func(id *saga.ID) ID { return ID{id.Saga, id.Work} })}, err)
}
