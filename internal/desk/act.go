package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// Order is what all that a person says to an instance has in common: who says it and why, to which, and how long to wait until it is applied.
type Order struct {
	By
	Which
	Wait   Duration `json:"wait,omitempty" doc:"wait this long until a coordinator has applied it, such as 30s"`
	DryRun bool     `json:"dry-run,omitempty" doc:"say what would happen and store nothing"`
	Seen   int64    `json:"seen,omitempty" doc:"only if this is still the latest record (seq of show -o json) and no other person has said anything since"`

	run string // that was listed; "": it is not said
}

// Order is what every act says.
func (o *Order) order() *Order { return o }

// Patience is how long it is waited for.
func (o *Order) Patience() *Duration { return &o.Wait }

// Is has the order be about an instance, and about the run of it that was listed; "": whichever it is at.
func (o *Order) Is(w Which, run string) { o.Which, o.run = w, run }

// Act is something that a person does to an instance.
type Act interface {
	order() *Order
	faults() Wrong          // what is wrong with what it says
	check(v *view) error    // what only the person can say
	after(v *view) []string // what follows when it is applied
	// post says it. same finds among all that was said what said the same before; nil: it is said each time.
	post(ctx context.Context, op *coordinator.Operator, v *view) (same func([]machine.Signal) int, err error)
}

func (o *Order) faults() Wrong {
	wrong := o.By.faults()
	wrong.If(o.Wait < 0, "--wait must not be negative")
	return wrong
}

func (*Order) check(*view) error { return nil }

// Faults says what is wrong with what an act says, before anything is looked at.
func Faults(a Act) Wrong { return a.faults() }

// About is what an act says whatever it is.
func About(a Act) *Order { return a.order() }

// Kind is a kind of act: its verb, what it does, what its button says, and a new one.
type Kind struct {
	Verb, Summary, Button string

	One bool // it is said to one instance, and not to several
	New func() Act
}

// Acts are all kinds. Which are safe to do about an instance is in its choices.
var Acts = []Kind{
	{machine.VerbRetry, "Try the step at issue again, under the key it has", "Try it again", false, plainly((*view).afterRetry, (*coordinator.Operator).Retry)},
	{machine.VerbResolve, "Decide on a step in review: it happened, or it did not", "", true, func() Act { return new(Resolve) }},
	{machine.VerbSkip, "Say that the step at issue did not happen and will not, and go on without it", "Go on without it", false, func() Act { return new(Skip) }},
	{machine.VerbPause, "Hold an instance where it is", "Hold it", false, plainly((*view).afterPause, (*coordinator.Operator).Pause)},
	{machine.VerbResume, "Let what was paused go on where it was", "Let it go on", false, plainly((*view).afterResume, (*coordinator.Operator).Resume)},
	{machine.VerbWake, "End the wait of an instance for a time", "Go on now", false, plainly((*view).afterWake, (*coordinator.Operator).Wake)},
	{machine.VerbComplete, "Answer by hand what an instance waits for", "Answer", false, func() Act { return new(Complete) }},
	{machine.VerbFail, "Say by hand that what an instance waits for has failed", "It has failed", false, func() Act { return new(Fail) }},
	{machine.VerbExtend, "Have an instance wait longer", "Give it longer", false, func() Act { return new(Extend) }},
	{machine.VerbCancel, "Give an instance up: undo what it has done", "Give it up and undo", true, plainly((*view).afterCancel, (*coordinator.Operator).Cancel)},
	{machine.VerbRerun, "Run an instance again", "Run it again", false, func() Act { return new(Rerun) }},
	{machine.VerbUndo, "Undo what an instance has done that is completed", "Undo it", true, func() Act { return new(Undo) }},
	{machine.VerbApprove, "Approve what was shown", "Approve", true, func() Act { return &Vote{Approve: true} }},
	{machine.VerbReject, "Reject what was shown", "Reject", true, func() Act { return new(Vote) }},
}

// KindOf is the kind that has a verb.
func KindOf(verb string) *Kind {
	return &Acts[slices.IndexFunc(Acts, func(k Kind) bool { return k.Verb == verb })]
}

// plain is an act that says nothing but who wants it and why.
type plain struct {
	Order
	then func(*view) []string
	say  func(*coordinator.Operator, context.Context, saga.ID, saga.Actor) error
}

func plainly(then func(*view) []string, say func(*coordinator.Operator, context.Context, saga.ID, saga.Actor) error) func() Act {
	return func() Act { return &plain{then: then, say: say} }
}

func (a *plain) after(v *view) []string { return a.then(v) }

func (a *plain) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, a.say(op, ctx, v.head.ID, a.actor())
}

// Resolve decides on a step in review: it happened, or it did not.
type Resolve struct {
	Step              string   `json:"step,omitempty" doc:"the step the review is about; required but for --keep"`
	Happened          *string  `json:"happened,omitempty" doc:"it happened, and the destination calls it by this external id"`
	HappenedWithoutID bool     `json:"happened-without-id,omitempty" doc:"it happened, and has no external id"`
	DidNotHappen      bool     `json:"did-not-happen,omitempty" doc:"it did not happen; it may be done again"`
	Result            JSONText `json:"result,omitempty" doc:"of what happened: what later steps find as its result, as JSON"`
	Keep              bool     `json:"keep,omitempty" doc:"leave the work as it stands, although its source cancelled it"`
	Order
}

func (a *Resolve) faults() (wrong Wrong) {
	ways := howMany(a.Happened != nil, a.HappenedWithoutID, a.DidNotHappen)
	switch {
	case a.Keep:
		wrong = a.Order.faults()
		wrong.If(a.Step != "" || ways > 0 || a.Result != "", "--keep leaves the whole work as it stands: it goes with neither --step nor a resolution on one")
		return wrong
	case a.Step == "":
		wrong = append(wrong, "say which step: --step STEP")
	}
	switch {
	case ways != 1:
		wrong = append(wrong, "say what you know, one of: --happened ID, --happened-without-id, --did-not-happen")
	case a.DidNotHappen && a.Result != "":
		wrong = append(wrong, "--result is of what happened")
	case a.Result != "" && !json.Valid([]byte(a.Result)):
		wrong = append(wrong, "--result is not valid JSON")
	case a.Happened != nil && *a.Happened == "":
		wrong = append(wrong, "--happened needs the external id; if there is none, say --happened-without-id")
	}
	return append(wrong, a.Order.faults()...)
}

func (a *Resolve) after(v *view) []string {
	if a.Keep {
		return afterKeep
	}
	return v.afterResolution(a.Step, !a.DidNotHappen)
}

func (a *Resolve) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	r := coordinator.Happened("")
	switch {
	case a.Keep:
		return nil, op.Keep(ctx, v.head.ID, a.actor())
	case a.Happened != nil:
		r = coordinator.Happened(*a.Happened)
	case a.DidNotHappen:
		r = coordinator.DidNotHappen()
	}
	r.Output = json.RawMessage(a.Result)
	return nil, op.Resolve(ctx, v.head.ID, a.Step, r, a.actor())
}

// Skip says that the step at issue did not happen and will not.
type Skip struct {
	Step       string   `json:"step,omitempty" doc:"a step that was skipped before, to give its result; default: the step at issue"`
	Result     JSONText `json:"result,omitempty" doc:"what later steps find as its result, as JSON"`
	ExternalID string   `json:"external-id,omitempty" doc:"what later steps find as its external id"`
	NoResult   bool     `json:"no-result,omitempty" doc:"later steps find nothing of it"`
	Order
}

func (a *Skip) faults() (wrong Wrong) {
	wrong.If(a.Result != "" && !json.Valid([]byte(a.Result)), "--result is not valid JSON")
	wrong.If(a.NoResult && a.found() != nil, "--no-result goes with neither --result nor --external-id")
	return append(wrong, a.Order.faults()...)
}

// found is what later steps find; nil is nothing.
func (a *Skip) found() *program.Result {
	if a.Result == "" && a.ExternalID == "" {
		return nil
	}
	return &program.Result{ExternalID: a.ExternalID, Output: json.RawMessage(a.Result)}
}

// check asks for what later steps may need. What cannot be skipped is refused with the reason for
// that.
func (a *Skip) check(v *view) error {
	about := v.about(a.Step)
	later := machine.StepsBehind(v.spec, about)
	held := v.state.Status == saga.Review || v.state.Status == saga.Paused
	if ss, _ := v.state.Issue(v.spec); a.Step != "" && (ss == nil || ss.Name != a.Step) {
		ss = v.state.Step(a.Step)
		held = held && ss != nil && ss.Forward.Phase == machine.Skipped
	}
	if at := v.state.Step(about); at != nil && at.Rejected() { // nothing behind it is done
		return nil
	}
	if a.NoResult || a.found() != nil || len(later) == 0 || v.state.Compensating || !held {
		return nil
	}
	return Usage("try: amends skip --help", fmt.Sprintf("behind step %q come others that may ask for its result (%s): say --result JSON, --external-id ID, or --no-result",
		about, strings.Join(later, ", ")))
}

func (a *Skip) after(v *view) []string { return v.afterSkip(a.Step) }

func (a *Skip) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, op.Skip(ctx, v.head.ID, a.Step, a.found(), a.actor())
}

// Undo has an instance undone that is completed.
type Undo struct {
	Order
	From        string `json:"from,omitempty" doc:"undo this step and what came after it; what was done before stays"`
	BehindPivot bool   `json:"behind-pivot,omitempty" doc:"undo it although its pivot has happened"`
}

// check asks who would undo what was meant to stand.
func (a *Undo) check(v *view) error {
	if a.BehindPivot || v.state.Status != saga.Completed || !v.state.PastPivot(v.spec) {
		return nil
	}
	return Usage("what would be undone: amends undo "+quote(v.head.ID.Work)+With(" --from ", a.From)+" --behind-pivot --dry-run --reason WHY",
		fmt.Sprintf("its pivot, step %q, has happened: what is done was to stay. To undo it all the same: --behind-pivot", v.spec.Steps[v.spec.PivotIndex()].Name))
}

func (a *Undo) after(v *view) []string { return v.afterUndo(a.From) }

func (a *Undo) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, op.Undo(ctx, v.head.ID, a.From, a.actor())
}

// waiting is what is said about a step that waits for an answer, or for people.
type waiting struct {
	Order
	Step string `json:"step,omitempty" doc:"the step that waits; without it the one that the work is at"`
}

func (*waiting) after(v *view) []string { return v.afterAnswer() }

// Complete answers by hand what an instance waits for.
type Complete struct {
	waiting
	Body *JSONText `json:"body,omitempty" doc:"the answer, as the other side would send it"`
}

func (a *Complete) faults() Wrong {
	wrong := a.Order.faults()
	wrong.If(a.Body == nil, "say what the answer is: --body TEXT")
	return wrong
}

func (a *Complete) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, op.CompleteStep(ctx, v.head.ID, a.Step, []byte(*a.Body), a.actor())
}

// Fail says by hand that what an instance waits for has failed.
type Fail struct{ waiting }

func (a *Fail) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, op.FailStep(ctx, v.head.ID, a.Step, a.actor())
}

// Extend has an instance wait longer, for an answer or for a decision.
type Extend struct {
	waiting
	Longer Duration `json:"by,omitempty" doc:"how long from now: 24h"`

	until time.Time
}

func (a *Extend) faults() Wrong {
	wrong := a.Order.faults()
	wrong.If(a.Longer <= 0, "say how long from now it may take: --by 24h")
	a.until = Either(a.until.IsZero(), time.Now().Add(time.Duration(a.Longer)), a.until)
	return wrong
}

func (a *Extend) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	return nil, op.Extend(ctx, v.head.ID, a.Step, a.until, a.actor())
}

// Rerun runs an instance again at the version of the source that it has.
type Rerun struct {
	Order
	Run string `json:"run,omitempty" doc:"the run that is to be done again: its revision, as list -o ids prints it"`
	// Request names what is asked for; "": the run does.
	Request string `json:"request,omitempty" doc:"a name for what is asked, such as a ticket: the same one again changes nothing"`
}

func (a *Rerun) faults() Wrong {
	wrong := a.Order.faults()
	wrong.If(strings.HasPrefix(a.Request, coordinator.OfRun("")), "--request does not begin with "+coordinator.OfRun("")+": to name a run say --run")
	a.run = cmp.Or(a.Run, a.run)
	return wrong
}

// Once reports whether it says of which run it is, or under which name: what comes twice would be done twice otherwise.
func (a *Rerun) Once() bool { return a.Run != "" || a.Request != "" }

func (*Rerun) after(v *view) []string { return v.afterRerun() }

func (a *Rerun) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	request := cmp.Or(a.Request, coordinator.OfRun(revisionOf(cmp.Or(a.run, RunName(v.state.Revision)))))
	_, err := op.Rerun(ctx, v.head.ID, request, a.actor())
	return func(all []machine.Signal) int { return rerunAlready(all, request) }, err // of a run that is not the last any more it is no mistake
}

// Vote approves or rejects what people decide.
type Vote struct {
	Order
	Approve bool     `json:"-"`
	Step    string   `json:"step,omitempty" doc:"the approval; without it the one that the work waits at"`
	Shown   string   `json:"shown,omitempty" doc:"the digest of what you were shown"`
	Roles   []string `json:"-" flag:"role" doc:"the roles you vote with"`
}

// Defaults are the roles of who has the database.
func (a *Vote) Defaults() { a.Roles = []string{saga.Admin} }

// Verb is what it says.
func (a *Vote) Verb() string { return Either(a.Approve, machine.VerbApprove, machine.VerbReject) }

func (a *Vote) after(*view) []string {
	return []string{fmt.Sprintf("%s votes to %s, with the role %s", a.Actor, a.Verb(), strings.Join(a.Roles, ", "))}
}

func (a *Vote) post(ctx context.Context, op *coordinator.Operator, v *view) (func([]machine.Signal) int, error) {
	id := v.head.ID
	err := op.Vote(ctx, id, a.Step, a.Approve, a.Shown, coordinator.Voter{Actor: a.actor(), Roles: a.Roles})
	switch {
	case errors.Is(err, coordinator.ErrVoted): // it is answered as the first was
		err = nil
	case err == nil || codeOf(err) != Conflict:
	case errors.Is(err, coordinator.ErrNotOpen):
		err = conflict(id, "", err, "it does not count")
	default:
		err = &Failure{Code: Conflict, Why: err, Stands: "the vote is on record, and does not count", Next: "look again: amends " + a.Verb() + " " + quote(id.Work)}
	}
	return a.before, err
}

// before finds the signal of the same vote.
func (a *Vote) before(all []machine.Signal) int {
	return slices.IndexFunc(all, func(s machine.Signal) bool {
		v := s.Vote
		return v != nil && v.Approve == a.Approve && v.Shown == a.Shown && machine.Person(s.Actor) == machine.Person(a.Actor)
	})
}

// JSONText is a JSON value, or a text that holds one.
type JSONText string

// UnmarshalJSON takes a value as it is written, and of a text what it says.
func (t *JSONText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	*t = JSONText(text)
	return nil
}

// Outcome is what became of an act.
type Outcome struct {
	WorkID  string      `json:"workId"`
	Saga    string      `json:"saga"`
	Signal  Signal      `json:"signal"`  // as stored; in a dry run id is 0 and at null
	Plan    []string    `json:"plan"`    // what follows when it is applied
	Unknown bool        `json:"unknown"` // no live process knows the definition: the signal stays posted until one does
	DryRun  bool        `json:"dryRun"`
	Stored  bool        `json:"stored"`
	Applied bool        `json:"applied"` // it can be true only with --wait
	Answer  string      `json:"answer"`  // the words of the record that consumed it
	Status  saga.Status `json:"status"`  // where the work stands now
	Reason  saga.Reason `json:"reason"`
	Next    string      `json:"next"`

	Stood string   `json:"-"` // where it stood before
	First []string `json:"-"` // what was said before and is not read yet, so that it comes first
	Stays string   `json:"-"` // why it stays posted: no process knows the definition; "": one does
	Show  string   `json:"-"` // the command that shows what came of it

	read    bool // it was said before, and is read
	lacking string
}

// ID names the instance.
func (o *Outcome) ID() saga.ID { return saga.ID{Saga: o.Saga, Work: o.WorkID} }

// Words say what became of it.
func (o *Outcome) Words() string {
	switch {
	case o.DryRun:
		return "Dry run: nothing was stored."
	case o.Applied:
		return "Applied. The work is now " + standing(o.Status, o.Reason) + "."
	case o.Stays != "":
		return "Stored: " + o.Stays + "."
	}
	return "Stored. A coordinator applies it when it reads it."
}

// Of is what became of an act on one of several instances.
type Of struct {
	WorkID string `json:"workId"`
	*Outcome
	Error *Told `json:"error"` // null: it was stored, and with --wait applied; in a dry run it would be stored. Else workId and error alone are there
}

// Told is a failure in a document.
type Told struct {
	Code    Code   `json:"code"`
	Exit    int    `json:"exit"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"` // where there is something to choose from
}

// mailbox is a ledger that remembers what was posted, and in a dry run keeps it to itself. All the
// checks before the posting are the real ones.
type mailbox struct {
	store.DB
	dryRun bool
	number int64 // that the signal has to get; 0: the next one
	posted machine.Signal
}

func (m *mailbox) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	m.posted = s
	if m.dryRun {
		return ledger.Posted{}, nil
	}
	s.ID = m.number
	return m.DB.Post(ctx, id, s)
}

// stored reads the signal back as the ledger has it: with its number, and the time at which it was
// first posted. Where nothing was posted, same finds what said it before.
func (m *mailbox) stored(ctx context.Context, id saga.ID, same func([]machine.Signal) int) (again bool, err error) {
	again = m.posted.Key == "" && same != nil
	if m.dryRun && !again {
		return false, nil
	}
	signals, err := m.Signals(ctx, id)
	if err != nil {
		return again, err
	}
	i := slices.IndexFunc(signals, func(s machine.Signal) bool { return s.Key == m.posted.Key })
	if again {
		i = same(signals)
	}
	switch {
	case i < 0 && again:
		return again, unseen(id, nil)
	case i < 0:
		return again, fmt.Errorf("%s: the signal was posted, but the ledger does not have it", id)
	}
	m.posted = signals[i]
	return again, nil
}

// conflict is the refusal of what is said to an instance.
func conflict(id saga.ID, what string, why error, stands string) *Failure {
	return &Failure{Code: Conflict, What: what, Why: why, Stands: stands, Next: "look again: " + (&Desk{}).show(id)}
}

// unseen is that of what is said to one that is not any more what the person was shown.
func unseen(id saga.ID, why error) *Failure {
	return conflict(id, "it is not what you saw any more", why, "nothing was stored")
}

// Say posts an act, and says what follows from it.
func (d *Desk) Say(ctx context.Context, a Act) (*Outcome, error) {
	o := a.order()
	head, err := d.find(ctx, &o.Which)
	if err != nil {
		return nil, err
	}
	v, err := d.look(ctx, head.ID)
	if err != nil {
		return nil, err
	}
	said, err := d.db.Signals(ctx, head.ID)
	if err != nil {
		return nil, err
	}
	rerun, _ := a.(*Rerun)
	asked := rerun != nil && (rerun.Request == "" || slices.ContainsFunc(said, func(s machine.Signal) bool { return s.Key == "rerun:"+rerun.Request }))
	if err := o.asSeen(v, asked); err != nil {
		return nil, err
	}
	if err := a.check(v); err != nil {
		return nil, err
	}
	m := &mailbox{DB: d.db, dryRun: o.DryRun}
	if o.Seen != 0 { // what another person says in this very moment is not among what was looked at
		m.number = v.head.Posted + 1
	}
	same, err := a.post(ctx, coordinator.NewOperator(m), v)
	if err != nil {
		return nil, refused(err, head.ID)
	}
	again, err := m.stored(ctx, head.ID, same)
	if err != nil {
		return nil, err
	}
	return d.outcome(a, v, m, again), nil
}

func (d *Desk) outcome(a Act, v *view, m *mailbox, again bool) *Outcome {
	out := &Outcome{
		WorkID: v.head.ID.Work, Saga: v.head.ID.Saga, Signal: signalOf(&m.posted), Plan: a.after(v),
		DryRun: m.dryRun, Stored: !m.dryRun, Unknown: v.lacking != "", lacking: v.lacking,
		Status: v.state.Status, Reason: v.state.Reason, Next: v.summary.Next, Stood: standing(v.state.Status, v.state.Reason), Show: d.show(v.head.ID),
		First: docs(v.pending, saying), Stays: When(v.lacking != "", stays(v.lacking)),
	}
	if again {
		out.Plan = []string{"nothing more: it was said before, and that is answered"}
	}
	waits := slices.ContainsFunc(v.pending, func(s machine.Signal) bool { return s.ID == m.posted.ID })
	out.read = out.Stored && m.posted.ID <= v.head.Posted && !waits
	if out.Unknown && !out.read {
		out.Plan = append(out.Plan, out.Stays)
	}
	return out
}

// asSeen refuses an act on an instance that is not any more what the person was shown, or to which
// another one has said something. A vote is bound to what was shown by itself.
func (o *Order) asSeen(v *view, asked bool) error {
	is := standing(v.state.Status, v.state.Reason)
	switch {
	case o.run != "" && !asked && revisionOf(o.run) != v.state.Revision:
		return unseen(v.head.ID, fmt.Errorf("run %s was listed, and it is at run %s by now: %s", o.run, RunName(v.state.Revision), is))
	case o.Seen == 0:
		return nil
	case o.Seen != v.state.Seq:
		return unseen(v.head.ID, fmt.Errorf("it is %s by now", is))
	}
	if i := slices.IndexFunc(v.pending, func(s machine.Signal) bool { return s.ByHand && s.Kind != machine.SignalVote }); i >= 0 {
		return unseen(v.head.ID, fmt.Errorf("it waits to be read what another person said: %s", saying(&v.pending[i])))
	}
	return nil
}

// refused explains why an act was not even stored.
func refused(err error, id saga.ID) error {
	if f, told := errors.AsType[*Failure](err); codeOf(err) != Conflict || told && f.Next != "" {
		return err
	}
	return conflict(id, "", err, "nothing was stored")
}

// Awaited reports whether it is asked for, or known, what the act came to.
func (o *Outcome) Awaited(a Act) bool { return !o.DryRun && (a.order().Wait > 0 || o.read) }

// Learn waits until a moment for the act to be applied, where that is wanted, and completes what became of it.
func (d *Desk) Learn(ctx context.Context, out *Outcome, wait Duration, until time.Time) error {
	id := out.ID()
	var r *machine.Record
	var end error
	if out.read { // what became of it is there, however long it takes to read
		records, err := d.db.History(ctx, id)
		if err != nil {
			return err
		}
		r = consumer(records, out.Signal.ID)
	}
	if r == nil && out.Stored && wait > 0 {
		r, end = d.await(ctx, out, time.Duration(wait), until)
	}
	if r != nil {
		if out.Applied, out.Answer = r.Kind != machine.KindNoted, r.Said(); !out.Applied {
			end = conflict(id, "the coordinator read it and changed nothing", errors.New(out.Answer), "")
		}
	}
	if ctx.Err() == nil {
		now, err := d.look(ctx, id)
		if err != nil {
			return errors.Join(err, end)
		}
		out.Status, out.Reason, out.Next = now.state.Status, now.state.Reason, now.summary.Next
	}
	return end
}

// Do posts an act and waits for its end where that is wanted. What was stored is told also where it failed.
func (d *Desk) Do(ctx context.Context, a Act) (*Outcome, error) {
	if err := Usage("", a.faults()...); err != nil {
		return nil, err
	}
	until := d.now().Add(time.Duration(a.order().Wait))
	out, err := d.Say(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := d.Learn(ctx, out, a.order().Wait, until); err != nil {
		f := *FailureOf(ctx, err)
		f.Done = f.Done || out.Stored
		return out, &f
	}
	return out, nil
}

// poll is how often one who waits looks.
const poll = 100 * time.Millisecond

// await waits until a record has consumed the signal, and returns that record. It looks once at
// least.
func (d *Desk) await(ctx context.Context, out *Outcome, wait time.Duration, until time.Time) (*machine.Record, error) {
	timed, cancel := context.WithTimeout(ctx, max(time.Until(until), min(wait, poll)))
	defer cancel()
	for {
		records, err := d.db.History(timed, out.ID())
		r := consumer(records, out.Signal.ID)
		switch {
		case r != nil:
			return r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case timed.Err() != nil:
			f := &Failure{
				Code: TimedOut, What: fmt.Sprintf("no coordinator has read it within %s", wait), Done: true,
				Why:    errors.New("it is stored and queued, and is applied when a coordinator of this saga runs"),
				Stands: "see that one runs; do not post it again", Next: "look with: " + (&Desk{}).show(out.ID()),
			}
			if out.lacking != "" {
				f.Why = errors.New(out.Stays)
				f.Stands = "start a program that registers " + out.lacking + "; do not post it again"
			}
			return nil, f
		case err != nil:
			return nil, err
		}
		_ = nap.For(timed, poll)
	}
}

// consumer is the record that consumed a signal, or nil.
func consumer(records []machine.Record, signal int64) *machine.Record {
	for i := len(records) - 1; i >= 0; i-- {
		if slices.Contains(records[i].Signals, signal) {
			return &records[i]
		}
	}
	return nil
}
