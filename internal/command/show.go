package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

func (a *app) show() *cobra.Command {
	var w which
	cmd := &cobra.Command{
		Use: "show WORK [flags]", Args: atMostOneWork,
		Short: "Show one work: its input, its steps, and what is safe to do next",
		Long: `Show one work: what came in (hash and size, never the input itself), what was attempted step by step, what
succeeded with which external ids, what was said to it and is not yet read, how many duplicates were blocked,
and what is safe to do next. Where the work is named by an object that webhooks spoke of, "object" is its
accepted version, and what is owed to it.

A step's KEY is the idempotency key the destination was given: look for it in the destination's own log.`,
		Example: `  amends show shop:order:10492
  amends show shop:order:10492 --saga order-to-invoice
  amends show --external-id inv_5530             # who made inv_5530?
  amends show shop:order:10492 -o json | jq -r .steps.invoice.externalId`,
	}
	w.flag(cmd)
	cmd.Flags().StringVar(&w.externalID, "external-id", "", "the work that recorded this external id, instead of WORK")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if w.work = strings.Join(args, ""); (w.work == "") == (w.externalID == "") {
			return usage("try: amends show --help", "name the work, or say --external-id ID")
		}
		return a.with(cmd.Context(), func(s store) error {
			head, err := w.find(cmd.Context(), s)
			if err != nil {
				return err
			}
			v, err := look(cmd.Context(), s, head.ID)
			if err != nil {
				return err
			}
			if v.heard, err = a.heardOfWork(cmd.Context(), head.ID.Work); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(v.json())
			}
			a.printView(v)
			return nil
		})
	}
	return cmd
}

// viewJSON is a work as JSON: the summary, and what the ledger knows beside the chain.
type viewJSON struct {
	saga.Summary
	Number     int64           `json:"number,string"`
	WaitsFor   string          `json:"waitsFor"` // a destination, retry:DESTINATION, or a pause (all, saga:NAME); "": nothing but its time
	Session    string          `json:"session"`
	Finished   *time.Time      `json:"finishedAt"`
	Signals    []signalJSON    `json:"pendingSignals"`
	Duplicates []duplicateJSON `json:"duplicates"`
	Unknown    bool            `json:"unknown"`      // no live process knows the definition that it waits for
	Heard      *entryJSON      `json:"sourceObject"` // of the object the work is named by; null: nothing
	Seq        int64           `json:"seq"`          // of the latest record: what --shown says of a work that was looked at
	Advice     string          `json:"advice"`       // next without what the choices say
	Choices    []choice        `json:"choices"`      // what is safe to do
	Also       []choice        `json:"also"`         // what else it takes
}

// signalJSON is a signal without the output it may carry.
type signalJSON struct {
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
}

func signalToJSON(s *machine.Signal) signalJSON {
	j := signalJSON{
		ID: s.ID, At: utc(s.At), Kind: s.Kind, Key: s.Key, Actor: s.Actor, Reason: s.Reason,
		Step: s.Step, Direction: s.Direction, Attempt: s.Attempt, ExternalID: s.ExternalID, Revision: s.Revision,
	}
	if s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate {
		j.Happened = &s.Happened
	}
	return j
}

func (v *view) json() viewJSON {
	j := viewJSON{
		Summary: v.summary, Number: v.head.Number, WaitsFor: v.head.WaitsFor, Session: session(v.head.Session), Finished: utc(v.head.Finished),
		Signals: make([]signalJSON, len(v.pending)), Duplicates: make([]duplicateJSON, len(v.duplicates)),
		Unknown: v.lacking != "", Heard: entryToJSON(v.heard, false), Seq: v.state.Seq, Advice: v.advice(v.choices()), Choices: v.told(v.choices()), Also: v.told(v.also()),
	}
	for i := range v.pending {
		j.Signals[i] = signalToJSON(&v.pending[i])
	}
	for i := range v.duplicates {
		j.Duplicates[i] = duplicateToJSON(&v.duplicates[i])
	}
	return j
}

// printView writes a work for people: where it stands and what to do first, then how it came to
// that.
func (a *app) printView(v *view) {
	s := &v.summary
	a.field("work", s.WorkID)
	a.field("saga", fmt.Sprintf("%s, version %d", s.Saga, s.Version))
	a.field("status", standing(s.Status, s.Reason))
	if because := v.because(); because != "" {
		a.field("because", because)
	}
	a.field("started", a.both(s.Started))
	if s.Cause != "" {
		a.field("cause", s.Cause)
	}
	a.field("updated", a.both(s.Updated))
	if !s.Due.IsZero() {
		a.field("due", a.both(s.Due))
	}
	switch {
	case s.Deadline.IsZero():
	case s.Overdue:
		a.field("deadline", a.both(s.Deadline)+", missed")
	default:
		a.field("deadline", a.both(s.Deadline))
	}
	if v.head.Session != 0 {
		a.field("held by", "session "+v.head.Session.String())
	}
	if v.head.WaitsFor != "" {
		a.field("waits", v.knowledge.because(v.head.WaitsFor))
	}
	if v.lacking != "" {
		a.field("missing", fmt.Sprintf("a process that registers %s: %s", v.lacking, v.knowledge.runs(s.Saga)))
	}
	if s.Revision != "" {
		a.field("revision", s.Revision)
	}
	if s.PendingRevision != "" {
		a.field("newer", v.newer())
	}
	if v.heard != nil {
		a.field("object", v.news(a.db))
	}
	a.field("input", fmt.Sprintf("%d bytes, sha256 %s", s.Input.Bytes, s.Input.Hash))
	a.field("key", s.Key+" (the root of the steps' keys)")
	fmt.Fprintln(a.out)
	a.printSteps(s)
	a.printHeard(v)
	fmt.Fprintln(a.out, "\nnext")
	a.printNext(v)
}

// because says why the work stands where it does, where that is not plain.
func (v *view) because() string {
	if v.summary.Note == "" {
		return v.turned
	}
	return v.summary.Note
}

// news says what was heard of the object the work is named by.
func (v *view) news(db string) string {
	e := v.heard
	words := state(e)
	if r := e.Version.Revision(); r != "" {
		words += ", version " + r
	}
	if o := owed(e); o != "" {
		words += "; owed: " + o
	}
	switch {
	case e.Blocked != "":
		words += "; " + e.Blocked
	case e.LastError != "":
		words += fmt.Sprintf("; failed %s: %s", count(e.Attempts, "time"), e.LastError)
	}
	return fmt.Sprintf("%s (amends inbox list --object %s%s)", words, quote(e.Object.String()), dbFlag(db))
}

// newer says what the source object has become since, and what that waits for.
func (v *view) newer() string {
	n := v.state.Newer
	switch {
	case n.Gone && v.state.Reason == saga.ReasonConflict:
		return fmt.Sprintf("revision %s: the source cancelled it", n.Revision)
	case n.Gone:
		return fmt.Sprintf("revision %s: the source cancelled it; that is followed as soon as no step is open or in doubt", n.Revision)
	default:
		return fmt.Sprintf("revision %s is heard of; it begins as soon as no step is open or in doubt", n.Revision)
	}
}

// field writes a name and its value.
func (a *app) field(name, value string) { a.block(fmt.Sprintf("%-9s ", name), "          ", value) }

func (a *app) printSteps(s *saga.Summary) {
	g := grid{header: []string{"step", "status", "attempts", "external id", "repeat", "key"}}
	var errors []string
	for _, name := range s.Order {
		step := s.Steps[name]
		status := step.Status
		if status == string(machine.Ready) && s.Status.Terminal() { // it would sound as if it were still to come
			status = "not done"
		}
		if step.Done && step.Evidence != "" && step.Evidence != string(machine.KindDone) {
			status += " (" + string(step.Evidence) + ")"
		}
		switch back := s.Status == saga.Compensating || s.Status.Terminal(); {
		case step.Status == string(machine.Waiting) && back:
			status = "not done"
		case step.Status == string(machine.Waiting):
			status += " until " + a.both(step.Until)
			for i, what := range step.WaitsFor {
				status += []string{", for ", " or "}[min(i, 1)] + what
			}
		}
		if step.Unconfirmed {
			status += ", unconfirmed"
		}
		g.add(name, status, strconv.Itoa(step.Attempts), step.ExternalID, string(step.Repeat), step.Key)
		if step.Error != "" {
			errors = append(errors, name+": "+step.Error)
		}
		if u := step.Undo; u != nil {
			g.add("undo of "+name, u.Status, strconv.Itoa(u.Attempts), "", "", u.Key)
			if u.Error != "" {
				errors = append(errors, "undo of "+name+": "+u.Error)
			}
		}
	}
	a.print(&g)
	if len(errors) > 0 {
		fmt.Fprintln(a.out, "\nlatest errors")
		for _, e := range errors {
			a.paragraph("  ", e)
		}
	}
}

// printHeard prints the signals that were posted to the work and that the coordinator has not read
// yet, and the duplicates that were blocked.
func (a *app) printHeard(v *view) {
	if len(v.pending) > 0 {
		fmt.Fprintln(a.out, "\nposted, not yet read by a coordinator")
		for i := range v.pending {
			a.paragraph("  ", a.both(v.pending[i].At)+": "+saying(&v.pending[i]))
		}
	}
	if len(v.duplicates) > 0 {
		fmt.Fprintln(a.out, "\nblocked duplicates")
		for i := range v.duplicates {
			d := &v.duplicates[i]
			a.paragraph("  ", fmt.Sprintf("%d from %s, first %s, last %s", d.Count, source(d.Source), iso(d.First), a.both(d.Last)))
		}
	}
}

// saying is a signal in words.
func saying(s *machine.Signal) string {
	words := string(s.Kind)
	switch {
	case isRerun(*s):
		words = "rerun"
	case s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate:
		words += fmt.Sprintf(" %s: %s", effect(s.Step, s.Direction, s.Attempt), happened(s.Happened, s.ExternalID))
	case s.Step != "":
		words += " " + effect(s.Step, s.Direction, s.Attempt)
	}
	if s.Revision != "" {
		words += " at revision " + s.Revision
	}
	if s.Actor != "" {
		words += ", says " + s.Actor
	}
	if s.Reason != "" {
		words += ": " + s.Reason
	}
	return words
}

func happened(yes bool, externalID string) string {
	switch {
	case !yes:
		return "it did not happen"
	case externalID == "":
		return "it happened"
	default:
		return "it happened, as " + externalID
	}
}

// effect names an attempt of a step's action or of its undo.
func effect(step string, d saga.Direction, attempt int) string {
	name := step
	if d == saga.Undo {
		name = "undo of " + step
	}
	if attempt > 0 {
		name += fmt.Sprintf(" #%d", attempt)
	}
	return name
}
