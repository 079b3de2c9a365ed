package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// view is one instance, read at one moment.
type view struct {
	head       ledger.Instance
	state      *machine.State
	at         time.Time     // by the ledger's clock
	spec       *program.Spec // nil when the ledger does not know the definition
	summary    saga.Summary
	turned     string           // why it was turned back, in the words of the ledger; "" when it was not
	pending    []machine.Signal // posted and not yet consumed
	duplicates []ledger.Duplicate
	knowledge  *knowledge
	because    string // why it waits under the name
	waits      string // what keeps it that it cannot help, in words: a destination, or a process that is not there; "": nothing
	lacking    string // the definition that it waits for and no live process knows; "" when there is none
}

func (d *Desk) look(ctx context.Context, id saga.ID) (*view, error) {
	chains, err := d.db.Load(ctx, []saga.ID{id})
	if err != nil {
		return nil, err
	}
	if len(chains) == 0 {
		return nil, fmt.Errorf("%s: %w", id, ledger.ErrNotFound)
	}
	v := &view{head: chains[0].Instance, at: chains[0].At}
	if v.state, err = machine.Fold(id, chains[0].Records); err != nil {
		return nil, &Failure{
			Code: Failed, What: "the chain of this work is damaged", Why: err,
			Stands: "leave it alone", Next: "run: amends check --prefix " + quote(id.Work),
		}
	}
	v.turned = When(v.state.Compensating, turned(chains[0].Records))
	v.pending = slices.DeleteFunc(slices.Clone(chains[0].Signals), func(s machine.Signal) bool { return v.state.Saw(s.ID) })
	if v.knowledge, err = d.whoKnows(ctx, v.head.WaitsFor != ""); err != nil {
		return nil, err
	}
	v.spec = v.knowledge.specOf(id.Saga, v.state.Version)
	if v.summary = machine.Summarize(v.spec, v.state); v.head.Erased() {
		v.summary.Key = "" // it came from its id
	}
	if v.knowledge.flow != nil {
		v.because, v.waits = v.knowledge.flow.waits(v.head.WaitsFor)
	}
	if v.lacking = v.knowledge.lacking(&v.head); v.lacking != "" && v.state.Status.Live() {
		v.waits = startOne(v.lacking)
	}
	v.summary.Next = cmp.Or(v.waits, v.summary.Next)
	v.duplicates, err = d.db.Duplicates(ctx, ledger.Filter{Saga: id.Saga, Work: id.Work})
	return v, err
}

// unread reports whether an error is that a work cannot be read, and says why: of others it can be told.
func unread(err error) (why string, is bool) {
	f, _ := errors.AsType[*Failure](err)
	switch {
	case f != nil && f.Code == Failed:
		return f.What + ": " + f.Next, true
	case errors.Is(err, ledger.ErrDamaged), errors.Is(err, ledger.ErrSchema), errors.Is(err, ledger.ErrKeys):
		return err.Error(), true
	}
	return "", false
}

// turned is why an instance was turned back: the record since the latest revision that did it, in words.
func turned(records []machine.Record) string {
	words := ""
	for i := range records {
		r := &records[i]
		back := r.Kind == machine.KindCancelled || r.Status == saga.Compensating || r.Status == saga.Compensated
		switch {
		case r.Kind == machine.KindRevised:
			words = ""
		case back && words == "":
			words = learned(r) + With(": ", r.Said())
		}
	}
	return words
}

// ShowIn says which instance is shown: by its work id, or by what a destination calls something that it made.
type ShowIn struct {
	Which
	ExternalID string `flag:"external-id" doc:"the work that recorded this external id, instead of WORK"`
}

// Instance is one instance: its summary, and what the ledger knows beside the chain.
type Instance struct {
	saga.Summary
	Number         int64       `json:"number,string"`
	WaitsFor       string      `json:"waitsFor"` // a destination, retry:DESTINATION, or a pause (all, saga:NAME); "": nothing but its time
	Session        string      `json:"session"`  // the process that holds it; "": none does
	Finished       *time.Time  `json:"finishedAt"`
	PendingSignals []Signal    `json:"pendingSignals"` // posted, and not read yet
	Duplicates     []Duplicate `json:"duplicates"`
	Unknown        bool        `json:"unknown"`         // no live process knows the definition that it waits for
	SourceObject   *Entry      `json:"sourceObject"`    // of the object the work is named by; null: nothing
	Seq            int64       `json:"seq"`             // of the latest record: what --seen says of a work that was looked at
	Advice         string      `json:"advice"`          // next without what the choices say
	Choices        []Choice    `json:"choices"`         // what is safe to do
	Also           []Choice    `json:"also"`            // what else it takes
	About          *saga.About `json:"about,omitempty"` // while people decide: what they decide about

	Because string `json:"-"` // why it stands where it does, where that is not plain
	Waits   string `json:"-"` // why it waits under the name
	Missing string `json:"-"` // the process that it waits for
	Newer   string `json:"-"` // what the source object has become since, and what that waits for
	Decided string `json:"-"` // what a person has said already is not read yet: what that waits for
}

// ID names it.
func (i *Instance) ID() saga.ID { return saga.ID{Saga: i.Saga, Work: i.WorkID} }

// Signal is something that was said to an instance, without the output that it may carry.
type Signal struct {
	ID         int64              `json:"id,string"`
	At         *time.Time         `json:"at"`
	Kind       machine.SignalKind `json:"kind"`
	Key        string             `json:"key"`
	Actor      string             `json:"actor"`
	Reason     string             `json:"reason"`
	Step       string             `json:"step"`
	Direction  saga.Direction     `json:"direction"`
	Attempt    int                `json:"attempt"`
	Revision   string             `json:"revision,omitempty"`
	Happened   *bool              `json:"happened"` // null: the signal says nothing about it
	ExternalID string             `json:"externalId"`

	Words string `json:"-"`
}

func signalOf(s *machine.Signal) Signal {
	resolves := s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate
	return Signal{
		ID: s.ID, At: utc(s.At), Kind: s.Kind, Key: s.Key, Actor: s.Actor, Reason: s.Reason, Step: s.Step, Direction: s.Direction, Attempt: s.Attempt,
		ExternalID: s.ExternalID, Revision: s.Revision, Happened: Either(resolves, &s.Happened, nil), Words: saying(s),
	}
}

// Said is what the signal says, and whether that is an outcome or an order.
func (s *Signal) Said() (what, words string) {
	switch {
	case s.Happened != nil:
		return "outcome", effect(s.Step, s.Direction, s.Attempt) + ": " + happened(*s.Happened, s.ExternalID)
	case s.Kind == machine.SignalCancel && s.Revision != "":
		return "order", "undo" + With(" from step ", s.Step) + ", as revision " + s.Revision
	case s.Step != "":
		return "order", string(s.Kind) + " " + effect(s.Step, s.Direction, s.Attempt)
	case s.Kind == machine.SignalRevise:
		return "order", "rerun, as revision " + s.Revision
	}
	return "order", string(s.Kind)
}

// Show reads one instance.
func (d *Desk) Show(ctx context.Context, in *ShowIn) (*Instance, error) {
	if (in.Work == "") == (in.ExternalID == "") {
		return nil, Usage("try: amends show --help", "name the work, or say --external-id ID")
	}
	find := func() (ledger.Instance, error) { return d.find(ctx, &in.Which) }
	if in.ExternalID != "" {
		find = func() (ledger.Instance, error) { return d.maker(ctx, in.ExternalID) }
	}
	head, err := find()
	if err != nil {
		return nil, err
	}
	v, err := d.look(ctx, head.ID)
	if err != nil {
		return nil, err
	}
	i := v.doc()
	if o, ok := intake.ParseObject(head.ID.Work); ok {
		heard, err := d.db.Entry(ctx, o)
		if err != nil {
			return nil, err
		}
		i.SourceObject = d.entryOf(heard, false)
	}
	return i, nil
}

func (v *view) doc() *Instance {
	i := &Instance{
		Summary: v.summary, Number: v.head.Number, WaitsFor: v.head.WaitsFor, Session: session(v.head.Session), Finished: utc(v.head.Finished),
		PendingSignals: docs(v.pending, signalOf), Duplicates: docs(v.duplicates, duplicateOf), Unknown: v.lacking != "", Seq: v.state.Seq,
		Advice: cmp.Or(v.waits, machine.Next(v.spec, v.state)), Choices: v.offers(machine.Choices(v.spec, v.state, v.at)),
		Also: v.offers(machine.Besides(v.spec, v.state, v.at)), Because: cmp.Or(v.summary.Note, v.turned), Waits: v.because,
		Missing: When(v.lacking != "", fmt.Sprintf("a process that registers %s: %s", v.lacking, v.knowledge.runs(v.head.ID.Saga))),
	}
	for n := range v.state.Steps {
		ss := &v.state.Steps[n]
		if b := ss.Ballot(); b != nil && ss.Forward.Phase == machine.Waiting && !v.state.Compensating && !v.state.Status.Terminal() {
			i.About = program.AboutOf(b.Shown)
		}
	}
	switch n := v.state.PendingRevision; {
	case n == nil:
	case n.Withdrawn:
		i.Newer = fmt.Sprintf("revision %s: the source cancelled it", n.Revision) +
			When(v.state.Reason != saga.ReasonConflict, "; that is followed as soon as no step is open or in doubt")
	default:
		i.Newer = fmt.Sprintf("revision %s is heard of; it begins as soon as no step is open or in doubt", n.Revision)
	}
	switch decided := v.decided(); {
	case decided && v.lacking != "":
		i.Decided = fmt.Sprintf("What was posted above stays posted until a process that registers %s reads it, and none runs now. Start one, and look again.", v.lacking)
	case decided:
		i.Decided = "What was posted above is applied as soon as a coordinator reads it. See that one runs, and look again."
	}
	return i
}

// orders are what decides about an instance that has not ended.
var orders = []machine.SignalKind{
	machine.SignalCancel, machine.SignalKeep, machine.SignalPause, machine.SignalResume, machine.SignalRetry, machine.SignalSkip,
}

// decided reports whether a person has spoken already and only has not been heard.
func (v *view) decided() bool {
	return slices.ContainsFunc(v.pending, func(s machine.Signal) bool {
		return s.Kind == machine.SignalResolve || isRerun(s) || slices.Contains(orders, s.Kind) && !v.state.Status.Terminal()
	})
}

// Which says which instance is meant, as a person says it: by its work id, which several sagas may share.
type Which struct {
	Work string `path:"work"`
	Saga string `path:"saga" flag:"saga" doc:"the saga, where several know the work id"`
}

// NoRevision is how the run of an instance is written whose source has no versions.
const NoRevision = "-"

// RunName is a run as lists print it and acts read it: its revision.
func RunName(revision string) string { return cmp.Or(revision, NoRevision) }

func revisionOf(run string) string { return When(run != NoRevision, run) }

// find returns the one instance that is meant.
func (d *Desk) find(ctx context.Context, w *Which) (ledger.Instance, error) {
	if w.Work == "" { // a filter that says nothing finds every one
		return ledger.Instance{}, Empty("the work id")
	}
	h, err := d.one(ctx, ledger.Filter{Work: w.Work, Saga: w.Saga}, w.unknown(), func(h *ledger.Instance) string { return h.ID.Saga },
		fmt.Sprintf("sagas know the work %q", w.Work), func(h *ledger.Instance) string { return "say which: --saga " + quote(h.ID.Saga) })
	if err == nil || FailureOf(ctx, err).Code != NotFound {
		return h, err
	}
	if erased, failed := ledger.First(ctx, d.db, ledger.Filter{Work: d.db.Hide(w.Work), Saga: w.Saga}); failed != nil || len(erased) == 1 {
		return append(erased, h)[0], failed
	}
	switch whole, failed := d.meant(ctx, w); {
	case failed != nil:
		return h, failed
	case whole != "":
		return h, notFound(fmt.Sprintf("there is no work %q", w.Work), fmt.Sprintf("there is %q", whole), "try: amends show "+quote(whole)+With(" --saga ", w.Saga)+d.flag)
	}
	return h, err
}

// meant is the work id that ends with a number a person has, as the ids of the latest works do; "" where there is none.
func (d *Desk) meant(ctx context.Context, w *Which) (string, error) {
	latest, err := ledger.First(ctx, d.db, ledger.Filter{Saga: w.Saga, Newest: true})
	tried := map[string]bool{"": true}
	for i := range latest {
		before := latest[i].ID.Work[:strings.LastIndexAny(latest[i].ID.Work, ":/")+1]
		if tried[before] {
			continue
		}
		tried[before] = true
		if found, err := ledger.First(ctx, d.db, ledger.Filter{Saga: w.Saga, Work: before + w.Work}); err != nil || len(found) > 0 {
			return before + w.Work, err
		}
	}
	return "", err
}

func (w *Which) unknown() error {
	what := fmt.Sprintf("there is no work %q", w.Work) + When(w.Saga != "", fmt.Sprintf(" of saga %q", w.Saga))
	_, isObject := intake.ParseObject(w.Work)
	next := "try" + When(w.Saga != "", " it without --saga, or") + ": amends list --prefix " + quote(stem(w.Work)) +
		When(isObject, "; for what webhooks said of it: amends inbox list --object "+quote(w.Work))
	return notFound(what, "nothing was ever started under that id in this ledger", next)
}

// maker finds the one instance that recorded an external id.
func (d *Desk) maker(ctx context.Context, externalID string) (ledger.Instance, error) {
	none := notFound(fmt.Sprintf("no work of this ledger recorded the external id %q", externalID), "either something else made it, or its answer was never recorded",
		"look at the destination for the key or reference under which it was made, and at: amends list --review")
	return d.one(ctx, ledger.Filter{ExternalID: externalID}, none, func(h *ledger.Instance) string { return h.ID.String() },
		fmt.Sprintf("works recorded the external id %q", externalID),
		func(*ledger.Instance) string {
			return "show one of them by its work id; all of them: amends list --external-id " + quote(externalID)
		})
}

// one is the one instance that a filter finds. none is the error where there is none; where there are several it names them, and asks for more.
func (d *Desk) one(ctx context.Context, f ledger.Filter, none error, called func(*ledger.Instance) string, several string, next func(*ledger.Instance) string) (ledger.Instance, error) {
	heads, err := ledger.First(ctx, d.db, f)
	switch {
	case err != nil:
		return ledger.Instance{}, err
	case len(heads) == 1:
		return heads[0], nil
	case len(heads) == 0:
		return ledger.Instance{}, none
	}
	const few = 5
	names := docs(heads[:min(few, len(heads))], func(h *ledger.Instance) string { return fmt.Sprintf("%s (%s)", called(h), h.Status) })
	if len(heads) > few {
		names = append(names, "…")
	}
	return ledger.Instance{}, &Failure{
		Code: Misuse, What: fmt.Sprintf("%d %s: %s", len(heads), several, strings.Join(names, ", ")), Next: next(&heads[0]),
		Details: map[string]any{"works": docs(heads, (*knowledge)(nil).head)},
	}
}

// stem is a work id without its last part, where a mistake is most likely.
func stem(work string) string {
	if i := strings.LastIndexAny(work, ":/"); i > 0 && i < len(work)-1 {
		return work[:i+1]
	}
	r := []rune(work)
	return string(r[:(len(r)+1)/2])
}

// specOf returns the structure of a definition as the ledger knows it, or nil.
func (k *knowledge) specOf(name string, version int) *program.Spec {
	return k.specs[ledger.Version{Saga: name, Version: version}]
}

// ID names an instance.
type ID struct {
	Saga   string `json:"saga"`
	WorkID string `json:"workId"`
}
