package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// order is what all that a person says to a work has in common: who says it and why, and how long
// to wait until it is applied.
type order struct {
	which
	by   saga.Actor
	seen int64 // the latest record that the person was shown; 0: it is not said
	// request names what is asked of a rerun; "": the run does.
	request string
	wait    time.Duration
	dryRun  bool
}

const orderHelp = `It is stored as a signal, with who said it and why, and applied by the coordinator that holds or takes up the
work: within about a second when one runs, otherwise when one is started. With --wait the command waits for
that, prints where the work stands then, and ends with 7 if the time runs out; the signal stays queued.`

func (o *order) flags(cmd *cobra.Command) {
	byFlags(cmd, &o.by, "why; required, and kept in the ledger for ever")
	o.flag(cmd)
	o.waitFlags(cmd)
}

func (o *order) waitFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.DurationVar(&o.wait, "wait", 0, "wait this long until a coordinator has applied it, such as 30s")
	fl.BoolVar(&o.dryRun, "dry-run", false, "say what would happen and store nothing")
	fl.Int64Var(&o.seen, "seen", 0, "only if this is still the latest record (seq of show -o json) and no other person has said anything since")
}

// faults completes o and says what is missing.
func (o *order) faults() []string {
	wrong := byFaults(&o.by)
	if o.wait < 0 {
		wrong = append(wrong, "--wait must not be negative")
	}
	return wrong
}

// mailbox is a ledger that remembers what was posted, and in a dry run keeps it to itself. All the
// checks before the posting are the real ones.
type mailbox struct {
	store
	dryRun bool
	number int64 // that the signal has to get; 0: the next one
	posted machine.Signal
	same   func([]machine.Signal) int // as [words]
	again  bool                       // nothing was posted: it was said before
}

func (m *mailbox) Post(ctx context.Context, id saga.ID, s machine.Signal) error {
	m.posted = s
	if m.dryRun {
		return nil
	}
	s.ID = m.number
	return m.store.Post(ctx, id, s)
}

// stored reads the signal back as the ledger has it: with its number, and the time at which it was
// first posted.
func (m *mailbox) stored(ctx context.Context, id saga.ID) error {
	m.again = m.posted.Key == "" && m.same != nil
	if m.dryRun && !m.again {
		return nil
	}
	signals, err := m.Signals(ctx, id)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(signals, func(s machine.Signal) bool { return s.Key == m.posted.Key })
	if m.again {
		i = m.same(signals)
	}
	switch {
	case i < 0 && m.again:
		return &failure{exit: exitConflict, what: "it is not what you saw any more", next: "nothing was stored; look again: " + showCommand(id, "")}
	case i < 0:
		return fmt.Errorf("%s: the signal was posted, but the ledger does not have it", id)
	}
	m.posted = signals[i]
	return nil
}

// outcomeJSON is what became of an order.
type outcomeJSON struct {
	WorkID  string      `json:"workId"`
	Saga    string      `json:"saga"`
	Signal  signalJSON  `json:"signal"`  // as stored; in a dry run id is 0 and at null
	Plan    []string    `json:"plan"`    // what follows when it is applied
	Unknown bool        `json:"unknown"` // no live process knows the definition: the signal stays posted until one does
	DryRun  bool        `json:"dryRun"`
	Stored  bool        `json:"stored"`
	Applied bool        `json:"applied"`
	Answer  string      `json:"answer"` // the words of the record that consumed it
	Status  saga.Status `json:"status"` // where the work stands now
	Reason  saga.Reason `json:"reason"`
	Next    string      `json:"next"`

	read bool // it was said before, and is read
}

// words are how one verb speaks.
type words struct {
	check func(*view) error    // what only the person can say; nil: nothing
	plan  func(*view) []string // what follows when it is applied
	post  func(*coordinator.Operator, saga.ID) error
	// run posts a rerun instead, of which a run that is not the last any more is no mistake: it is answered with what followed it.
	run func(*coordinator.Operator, saga.ID, string) error
	// same finds the signal that said it before, where nothing was posted for that reason.
	same func([]machine.Signal) int
}

// speak posts an order and tells what comes of it. plan says what follows when it is applied.
func (a *app) speak(ctx context.Context, o *order, plan func(*view) []string, post func(*coordinator.Operator, saga.ID) error) error {
	return a.with(ctx, func(s store) error { return a.speakTo(ctx, s, o, &words{plan: plan, post: post}) })
}

// speakTo is speak on an open ledger.
func (a *app) speakTo(ctx context.Context, s store, o *order, w *words) error {
	before, out, err := say(ctx, s, o, w)
	if err != nil {
		return err
	}
	if !a.json {
		a.printOrder(before, out)
	}
	return a.follow(ctx, s, o, out, before.lacking)
}

// say posts an order, and says what follows from it.
func say(ctx context.Context, s store, o *order, w *words) (*view, *outcomeJSON, error) {
	head, err := o.find(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	before, err := look(ctx, s, head.ID)
	if err != nil {
		return nil, nil, err
	}
	said, err := s.Signals(ctx, head.ID)
	if err != nil {
		return nil, nil, err
	}
	asked := w.run != nil && (o.request == "" || slices.ContainsFunc(said, func(s machine.Signal) bool { return s.Key == "rerun:"+o.request }))
	if err := o.isAsSeen(before, asked); err != nil {
		return nil, nil, err
	}
	if w.check != nil {
		if err := w.check(before); err != nil {
			return nil, nil, err
		}
	}
	m := &mailbox{store: s, dryRun: o.dryRun, same: w.same}
	if o.seen != 0 { // what another person says in this very moment is not among what was looked at
		m.number = before.head.Posted + 1
	}
	if w.run != nil {
		request := cmp.Or(o.request, coordinator.OfRun(revisionOf(cmp.Or(o.run, runName(before.state.Revision)))))
		err = w.run(coordinator.NewOperator(m), head.ID, request)
		m.same = func(all []machine.Signal) int { return rerunAlready(all, request) }
	} else {
		err = w.post(coordinator.NewOperator(m), head.ID)
	}
	if err != nil {
		return nil, nil, refused(err, head.ID)
	}
	if err := m.stored(ctx, head.ID); err != nil {
		return nil, nil, err
	}
	out := outcomeJSON{
		WorkID: head.ID.Work, Saga: head.ID.Saga, Signal: signalToJSON(&m.posted), Plan: w.plan(before),
		DryRun: o.dryRun, Stored: !o.dryRun, Unknown: before.lacking != "",
		Status: before.state.Status, Reason: before.state.Reason, Next: before.summary.Next,
	}
	if m.again {
		out.Plan = []string{"nothing more: it was said before, and that is answered"}
	}
	waits := slices.ContainsFunc(before.pending, func(s machine.Signal) bool { return s.ID == m.posted.ID })
	out.read = out.Stored && m.posted.ID <= before.head.Posted && !waits
	if out.Unknown && !out.read {
		out.Plan = append(out.Plan, stays(before.lacking))
	}
	return before, &out, nil
}

// isAsSeen refuses an order on a work that is not any more what the person was shown, or to which
// another one has said something. A vote is bound to what was shown by itself.
func (o *order) isAsSeen(v *view, asked bool) error {
	f := &failure{exit: exitConflict, what: "it is not what you saw any more", next: "nothing was stored; look again: " + showCommand(v.head.ID, "")}
	switch {
	case o.run != "" && !asked && revisionOf(o.run) != v.state.Revision:
		f.err = fmt.Errorf("run %s was listed, and it is at run %s by now: %s", o.run, runName(v.state.Revision), standing(v.state.Status, v.state.Reason))
	case o.seen == 0:
		return nil
	case o.seen != v.state.Seq:
		f.err = fmt.Errorf("it is %s by now", standing(v.state.Status, v.state.Reason))
	default:
		i := slices.IndexFunc(v.pending, func(s machine.Signal) bool { return s.ByHand && s.Kind != machine.SignalVote })
		if i < 0 {
			return nil
		}
		f.err = fmt.Errorf("it waits to be read what another person said: %s", saying(&v.pending[i]))
	}
	return f
}

// refused explains why an order was not even stored.
func refused(err error, id saga.ID) error {
	if f, told := errors.AsType[*failure](err); exitOf(err) != exitConflict || told && f.next != "" {
		return err
	}
	return &failure{exit: exitConflict, err: err, next: "nothing was stored; look again: " + showCommand(id, "")}
}

func (a *app) printOrder(before *view, out *outcomeJSON) {
	s := &out.Signal
	a.field("work", out.WorkID)
	a.field("saga", out.Saga)
	a.field("stands at", standing(before.state.Status, before.state.Reason))
	switch {
	case s.Happened != nil:
		a.field("outcome", effect(s.Step, s.Direction, s.Attempt)+": "+happened(*s.Happened, s.ExternalID))
	case s.Step != "":
		a.field("order", string(s.Kind)+" "+effect(s.Step, s.Direction, s.Attempt))
	case s.Kind == machine.SignalRevise:
		a.field("order", "rerun, as revision "+s.Revision)
	default:
		a.field("order", string(s.Kind))
	}
	a.field("said by", s.Actor+": "+s.Reason)
	for i, p := range out.Plan {
		name := ""
		if i == 0 {
			name = "then"
		}
		a.field(name, p)
	}
	for i := range before.pending {
		a.field("beware", "posted before and not yet read, so it comes first: "+saying(&before.pending[i]))
	}
}

// follow waits for the order to be applied, if that is wanted, and reports.
func (a *app) follow(ctx context.Context, s store, o *order, out *outcomeJSON, lacking string) error {
	end := learn(ctx, s, o.limit(), out, lacking)
	switch {
	case a.json:
		return errors.Join(a.printJSON(out), end)
	case end == nil:
		a.printOutcome(out, lacking)
	}
	return end
}

// learn waits for the order to be applied, if that is wanted, and completes what became of it.
func learn(ctx context.Context, s store, p timeLimit, out *outcomeJSON, lacking string) error {
	id := saga.ID{Saga: out.Saga, Work: out.WorkID}
	var r *machine.Record
	var end error
	if out.read { // what became of it is there, however long it takes to read
		records, err := s.History(ctx, id)
		if err != nil {
			return err
		}
		r = consumer(records, out.Signal.ID)
	}
	if r == nil && out.Stored && p.wait > 0 {
		r, end = await(ctx, s, id, out.Signal.ID, p, lacking)
	}
	if r != nil {
		out.Applied = r.Kind != machine.KindNoted
		out.Answer = r.Said()
		if !out.Applied {
			end = &failure{
				exit: exitConflict, what: "the coordinator read it and changed nothing", err: errors.New(r.Said()),
				next: "look again: " + showCommand(id, ""),
			}
		}
	}
	if ctx.Err() == nil {
		now, err := look(ctx, s, id)
		if err != nil {
			return errors.Join(err, end)
		}
		out.Status, out.Reason, out.Next = now.state.Status, now.state.Reason, now.summary.Next
	}
	return end
}

func (a *app) printOutcome(out *outcomeJSON, lacking string) {
	fmt.Fprintln(a.out)
	switch {
	case out.DryRun:
		a.paragraph("", "Dry run: nothing was stored.")
	case out.Applied:
		a.paragraph("", fmt.Sprintf("Applied. The work is now %s.", standing(out.Status, out.Reason)))
		a.paragraph("", out.Next)
	case lacking != "":
		a.paragraph("", "Stored: "+stays(lacking)+". To see what came of it:")
		a.paragraph("  ", showCommand(saga.ID{Saga: out.Saga, Work: out.WorkID}, a.db))
	default:
		a.paragraph("", "Stored. A coordinator applies it when it reads it. To see what came of it:")
		a.paragraph("  ", showCommand(saga.ID{Saga: out.Saga, Work: out.WorkID}, a.db))
	}
}

// poll is how often a waiting command looks.
const poll = 100 * time.Millisecond

// timeLimit is how long a command waits, and until when.
type timeLimit struct {
	wait  time.Duration
	until time.Time
}

func (o *order) limit() timeLimit { return timeLimit{o.wait, time.Now().Add(o.wait)} }

// await waits until a record has consumed the signal, and returns that record. It looks once at
// least.
func await(ctx context.Context, s store, id saga.ID, signal int64, p timeLimit, lacking string) (*machine.Record, error) {
	wait := p.wait
	timed, cancel := context.WithTimeout(ctx, max(time.Until(p.until), min(wait, poll)))
	defer cancel()
	look := showCommand(id, "")
	for {
		records, err := s.History(timed, id)
		r := consumer(records, signal)
		switch {
		case r != nil:
			return r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case timed.Err() != nil:
			if lacking != "" {
				return nil, &failure{
					exit: exitTimedOut, what: fmt.Sprintf("no coordinator has read it within %s", wait), err: errors.New(stays(lacking)),
					next: "start a program that registers " + lacking + "; do not post it again; look with: " + look,
				}
			}
			return nil, &failure{
				exit: exitTimedOut, what: fmt.Sprintf("no coordinator has read it within %s", wait),
				err:  errors.New("it is stored and queued, and is applied when a coordinator of this saga runs"),
				next: "see that one runs; do not post it again; look with: " + look,
			}
		case err != nil:
			return nil, err
		}
		select {
		case <-timed.Done():
		case <-time.After(poll):
		}
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
