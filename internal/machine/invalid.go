package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What cannot be stored, and what cannot be (M1, M2). Nothing may reach a ledger that its own fold
// refuses, and one bad value, or one bad chain, must not stop a process.

// giveUp parks the work with words of the machine alone, whatever the event was. A work that has
// ended stays so. An open attempt stays open: it is lost at its deadline, by whichever process
// looks at the work next.
func giveUp(st *State, ev *Event, why error) Decision {
	r := &Record{Kind: KindParked, Status: saga.Review, Reason: saga.ReasonPoison, Note: "it cannot go on by itself: " + program.Clean(why.Error(), maxText/2)}
	if st.Status.Terminal() {
		r.Kind, r.Status, r.Reason = KindNoted, st.Status, ""
	}
	switch {
	case ev.Outcome != nil:
		r.Note += fmt.Sprintf("; the attempt under way ended as %q, with the external id %q", ev.Outcome.Class, ev.Outcome.ExternalID)
	case ev.Evidence != nil:
		r.Note += fmt.Sprintf("; the lookup said %q, with the external id %q", ev.Evidence.Answer, ev.Evidence.ExternalID)
	case ev.Signal != nil:
		r.Note += fmt.Sprintf("; signal %d, %q, was read and not followed", ev.Signal.ID, ev.Signal.Kind)
		r.Signals = []int64{ev.Signal.ID}
	}
	if ev.Invalid > 2 { // nothing is left but what this program says
		r.Note = "it cannot go on by itself: the ledger refused what was to be recorded"
	}
	r.clean()
	return Decision{Record: r, Do: Command{Do: Rest}}
}

// cannotBe stops the decision: the machine relies on something that does not hold.
func (m *machine) cannotBe(err error) Command {
	m.broken = err
	return Command{Do: Rest}
}

// bare is the event without the bodies and the words that others gave it. What is known of the
// effect stays.
func (ev Event) bare() Event {
	if ev.Start != nil {
		s := *ev.Start
		s.Cause = ""
		ev.Start = &s
	}
	if o := ev.Outcome; o != nil {
		ev.Outcome = &program.Outcome{Class: o.Class, ExternalID: o.ExternalID, Dropped: o.Dropped || o.Output != nil, Maybe: o.Maybe, RetryAfter: o.RetryAfter, HoldBack: o.HoldBack, Shutdown: o.Shutdown}
		if !o.Done() {
			ev.Outcome.Error = "the ledger refused the error's text"
		}
	}
	if f := ev.Evidence; f != nil {
		ev.Evidence = &program.Evidence{Step: f.Step, Answer: f.Answer, ExternalID: f.ExternalID, Dropped: f.Dropped || f.Output != nil, IDs: f.IDs, RetryAfter: f.RetryAfter, HoldBack: f.HoldBack}
	}
	if ev.Signal != nil {
		s := *ev.Signal
		s.Actor, s.Reason, s.Output, s.Input, s.Vote = "", "", nil, nil, nil
		ev.Signal = &s
	}
	return ev
}

// bring puts what an effect brought back into the record, as a ledger keeps it.
func (r *Record) bring(id string, body json.RawMessage, dropped bool) {
	r.Body, r.BodyDropped = sound(body, program.MaxOutput)
	r.BodyDropped = r.BodyDropped || dropped
	r.name(id)
}

// name puts an external id into the record. One that cannot be kept is left out, and the record
// says so: it is never altered, because the next step and the undo would take what is left for the
// destination's word.
func (r *Record) name(id string) {
	if program.KeepsID(id) {
		r.ExternalID = id
		return
	}
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf("its external id is not kept: it has %d bytes (at most %d), or is not valid text", len(id), program.MaxExternalID)
}

// sound makes a body one that every ledger takes: valid UTF-8, at most limit bytes. A
// body whose syntax is JSON and whose content is not UTF-8 (Latin-1, by a destination) keeps
// everything but those bytes.
func sound(body json.RawMessage, limit int) (kept json.RawMessage, dropped bool) {
	if len(body) == 0 {
		return nil, false
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	if len(body) > limit || !json.Valid(body) {
		return nil, true
	}
	return body, false
}
