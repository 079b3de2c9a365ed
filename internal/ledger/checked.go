package ledger

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// checked is one work under examination.
type checked struct {
	head    Instance
	records []machine.Record
	signals []machine.Signal
	st      *machine.State // what the chain folds to; nil when it does not, or was not folded
	found   []Finding
	damaged bool // it could not be read, and what can be said of it was found
	alone   bool // its signals were not read
}

// Examine checks a work that was read elsewhere, without its signals, as [Check] does. Of one that
// moved while it was read the head is left alone.
func Examine(head *Instance, records []machine.Record, moving bool) []Finding {
	w := &checked{head: *head, records: records, alone: true}
	if stable := w.check(true); moving {
		return w.found[:stable]
	}
	return w.found
}

// What a person can do.
const (
	doCompare = "Compare this work with a backup; do not run it until the chain is explained."
	doAsk     = "Ask the destination which of them it belongs to. Until that is known cancel neither: an undo would take it from both."
	doCatchUp = "It moves by itself once the clock is there again. To have it move now: amends catch-up."
	doRebuild = "The chain counts: stop the coordinators and correct the head to what the chain says."
)

// check looks for everything that is wrong. The first stable findings are about the chain, which
// only grows: they are true whatever happens meanwhile. Those behind them compare the chain with
// the head, which moves.
func (w *checked) check(fold bool) (stable int) {
	if len(w.records) == 1 && w.records[0].Kind == machine.KindRemembered { // nothing is left that could be compared
		return 0
	}
	if w.damaged || !w.chain() {
		return len(w.found) // a broken chain says nothing that the head could be compared with
	}
	if fold && !w.erased() { // what was erased cannot be folded: the links and the head are what is left to check
		w.fold()
	}
	stable = len(w.found)
	w.projection()
	w.schedule()
	if !w.alone {
		w.consumption()
	}
	return stable
}

// erased reports whether something was erased of a record.
func (w *checked) erased() bool {
	return slices.ContainsFunc(w.records, func(r machine.Record) bool { return r.Digests != machine.Erased{} })
}

func (w *checked) addf(seq int64, do, format string, args ...any) {
	w.found = append(w.found, Finding{
		ID: w.head.ID, Number: w.head.Number, Seq: seq, What: fmt.Sprintf(format, args...), Do: do,
	})
}

// chain recomputes every link. It reports whether the chain holds.
func (w *checked) chain() bool {
	if len(w.records) == 0 {
		w.addf(0, doCompare, "It has a head but no record.")
	}
	var prev machine.Hash
	for i := range w.records {
		r := &w.records[i]
		if err := Refuse(&Entry{ID: w.head.ID, Record: *r}); err != nil {
			w.addf(r.Seq, doCompare, "No ledger stores such a record: %s.", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		switch want := int64(i) + 1; {
		case r.Seq > want:
			w.addf(r.Seq, doCompare, "There is a gap: after record %d comes record %d.", want-1, r.Seq)
			return false
		case r.Seq < want:
			w.addf(r.Seq, doCompare, "The chain forks: there are two records with number %d.", r.Seq)
			return false
		}
		// The stored hash of the predecessor counts, not the computed one: so an edited record is
		// named itself, and those behind it are not.
		if sum := r.Sum(w.head.ID, w.head.Salt, prev); sum != r.Hash {
			w.addf(r.Seq, doCompare, "Its hash is %s, but its content and predecessor give %s: it was edited, or it belongs to another chain.", r.Hash, sum)
		}
		prev = r.Hash
	}
	return len(w.found) == 0
}

// fold asks the machine whether each record was allowed where it stands, and whether each snapshot
// is the state before its record.
func (w *checked) fold() {
	st := &machine.State{ID: w.head.ID}
	for i := range w.records {
		r := &w.records[i]
		if len(r.Snapshot) > 0 {
			w.snapshot(r, st)
		}
		if err := st.Apply(r); err != nil {
			w.addf(r.Seq, doCompare, "The machine cannot have written it there: %v.", err)
			return
		}
	}
	w.st = st
}

// snapshot compares a record's snapshot with the fold of the records before it. Both pass through
// JSON, so that only what they say counts.
func (w *checked) snapshot(r *machine.Record, st *machine.State) {
	want, err := json.Marshal(st)
	if err != nil {
		w.addf(r.Seq, doCompare, "The state before it cannot be encoded: %v.", err)
		return
	}
	var stored, computed machine.State
	if err := json.Unmarshal(r.Snapshot, &stored); err != nil {
		w.addf(r.Seq, doCompare, "Its snapshot does not decode: %v.", err)
		return
	}
	if err := json.Unmarshal(want, &computed); err != nil {
		w.addf(r.Seq, doCompare, "The state before it does not decode: %v.", err)
		return
	}
	if !reflect.DeepEqual(stored, computed) {
		w.addf(r.Seq, doCompare, "Its snapshot is not the fold of the records before it: loading from it goes on from another state.")
	}
}

// projection compares the head with what the records say.
func (w *checked) projection() {
	first, last := &w.records[0], &w.records[len(w.records)-1]
	h := &w.head
	base, consumed, ended, step, unconfirmed := int64(1), int64(0), false, "", false
	began := first // of the revision it is at
	for i := range w.records {
		r := &w.records[i]
		if len(r.Snapshot) > 0 || r.Seq == h.Base && r.Digests.Snapshot != (machine.Hash{}) { // sealed, and there is no key
			base = r.Seq
		}
		if r.Kind == machine.KindRevised {
			began = r
		}
		consumed += int64(len(r.Signals))
		step = AtIssue(r, step)
		unconfirmed = unconfirmed || Unconfirmed(r)
		ended = ended || r.Status.Terminal() && r.At.Equal(h.Finished)
	}
	w.differs(last.Seq, "status", h.Status, last.Status)
	w.differs(last.Seq, "reason", h.Reason, last.Reason)
	w.differs(began.Seq, "definition version", h.Version, began.Version)
	w.differs(began.Seq, "revision", h.Revision, began.Revision)
	w.differs(base, "base", h.Base, base)
	w.differs(last.Seq, "count of consumed signals", h.Consumed, consumed)
	if h.Status == last.Status {
		w.differs(last.Seq, "step at issue", h.Step, step)
	}
	w.differs(last.Seq, "unconfirmed", h.Unconfirmed, unconfirmed)
	switch {
	case h.Status.Terminal() && !ended:
		w.addf(last.Seq, doRebuild, "The head says it finished at %s; no final record was stored then.", stamp(h.Finished))
	case !h.Status.Terminal() && !h.Finished.IsZero():
		w.addf(last.Seq, doRebuild, "The head is %s and yet says it finished at %s.", h.Status, stamp(h.Finished))
	}
}

// differs compares one value of the head with what the chain says at record seq.
func (w *checked) differs(seq int64, what string, head, chain any) {
	if head != chain {
		w.addf(seq, doRebuild, "The head shows %s %q, the chain says %q.", what, fmt.Sprint(head), fmt.Sprint(chain))
	}
}

// schedule checks that a coordinator will look at the work again. A live work is held or due. A
// parked work, and one that has ended, is held by no session and due only for a signal.
func (w *checked) schedule() {
	h := &w.head
	held, due, pending, on := h.Session != 0, !h.Due.IsZero(), h.Posted > h.Consumed, GoesOn(h.Status, h.Reason)
	const lost = "Stop the coordinators and give the head a due time; any signal posted to the work wakes it too."
	switch {
	case held && due:
		w.addf(0, doRebuild, "It is held by session %s and also due at %s.", h.Session, stamp(h.Due))
	case on && !held && !due:
		w.addf(0, lost, "It is %s, but no session holds it and it is never due: it would wait for ever.", h.Status)
	case !on && !held && !due && pending:
		w.addf(0, lost, "It is in %s with %d unread signals, but it is never due: no coordinator would read them.", h.Status, h.Posted-h.Consumed)
	case !on && due && !pending:
		w.addf(0, doRebuild, "It is in %s without an unread signal, but due at %s.", h.Status, stamp(h.Due))
	case h.Status.Terminal() && held && !pending:
		w.addf(0, doRebuild, "It is %s, but still held.", h.Status)
	}
	switch {
	case h.WaitsFor == "":
	case held || !due:
		w.addf(0, doRebuild, "It waits for destination %q, but it is not released and due.", h.WaitsFor)
	case pending:
		w.addf(0, lost, "It waits for destination %q with %d unread signals: without room they are not read.", h.WaitsFor, h.Posted-h.Consumed)
	}
	if (h.Status == saga.Review) != (h.Reason != "") {
		w.addf(0, doRebuild, "It is in %s with reason %q: a review has a reason, and nothing else has.", h.Status, h.Reason)
	}
	if h.Class < ClassCompensating || h.Class > ClassUnbegun {
		w.addf(0, doRebuild, "It is in class %d of the order of claims, and there is none such: no process would claim it.", h.Class)
	}
	if h.Consumed > h.Posted {
		w.addf(0, doRebuild, "It counts %d consumed signals, and %d were posted.", h.Consumed, h.Posted)
	}
}

// consumption compares the signals that records name with those that were posted.
func (w *checked) consumption() {
	posted := make(map[int64]bool, len(w.signals)) // signal → consumed
	for i, s := range w.signals {
		if want := int64(i) + 1; s.ID != want {
			w.addf(0, doCompare, "Its signals are numbered from 1 without a gap, and number %d is where number %d should be.", s.ID, want)
			return
		}
		posted[s.ID] = false
	}
	for i := range w.records {
		for _, id := range w.records[i].Signals {
			used, known := posted[id]
			switch {
			case !known:
				w.addf(w.records[i].Seq, doCompare, "It consumes signal %d, which was never posted to this work.", id)
			case used:
				w.addf(w.records[i].Seq, doCompare, "It consumes signal %d, which an earlier record consumed.", id)
			default:
				posted[id] = true
				if s := &w.signals[id-1]; !w.records[i].Names(s) {
					w.addf(w.records[i].Seq, doCompare, "It consumed signal %d as what %s said (%s); the signal names %s (%s): it was edited.",
						id, w.records[i].Actor, w.records[i].Why, s.Actor, s.Reason)
				}
			}
		}
	}
	if n := int64(len(w.signals)); w.head.Posted != n {
		w.addf(0, doRebuild, "The head counts %d signals, %d are stored.", w.head.Posted, n)
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format(time.RFC3339Nano)
}
