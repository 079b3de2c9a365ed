package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// learn turns the event into the part of the record that says what happened.
func (m *machine) learn() error {
	switch ev := &m.ev; {
	case ev.Start != nil:
		r := &Record{Kind: KindStarted, Version: m.spec.Version, Revision: ev.Start.Revision, Nonce: ev.Start.Nonce, Body: ev.Start.Input, Cause: ev.Start.Cause, Actor: ev.Start.Starter, Tags: ev.Start.Tags, Identity: ev.Start.Identity}
		if r.Cause == "" && r.Actor != "" {
			r.Cause = "started by " + r.Actor
		}
		if r.Limit = m.spec.Deadline; ev.Start.NotBefore.After(ev.Now.Earliest) {
			r.Until = ticks(ev.Start.NotBefore)
		}
		return m.fold(r)
	case m.st.Seq == 0:
		return errNotFitting
	case ev.Outcome != nil:
		return m.learnOutcome(ev.Outcome)
	case ev.Evidence != nil:
		return m.learnEvidence(ev.Evidence)
	case ev.Asked != nil:
		return m.learnAsked(ev.Asked)
	case ev.Signal != nil:
		return m.learnSignal(ev.Signal)
	case !ev.Changed.IsZero():
		return m.forget()
	}
	return nil
}

func (m *machine) learnOutcome(o *program.Outcome) error {
	ss := m.st.live()
	if ss == nil {
		return errNotFitting
	}
	dir := ss.open()
	e := ss.effort(dir)
	r := &Record{Step: ss.Name, Direction: dir, Attempt: e.Attempts, ErrorClass: o.Class, Error: o.Error}
	switch o.Class {
	case program.Succeeded:
		r.Kind, r.ErrorClass = KindDone, ""
		r.bring(o.ExternalID, o.Output, o.Dropped)
	case saga.Unsent:
		if r.Kind = KindNotSent; o.Stack != "" {
			r.ErrorClass = saga.Fault
		}
	case saga.Refused, saga.RefusedKey, saga.NotUndoable:
		r.Kind, r.ErrorClass = KindRefused, m.refusal(ss.Name, dir, o)
	case saga.Gone:
		if r.Kind = KindUnknown; dir == saga.Undo || ss.Previous == nil { // there is nothing that it can be about
			r.Kind, r.ErrorClass = KindRefused, saga.Refused
		}
	case saga.Fault:
		r.Kind = KindFault
	default:
		if r.Kind, r.ErrorClass = KindUnknown, saga.Unknown; o.Outage {
			r.ErrorClass = program.Outage
		}
	}
	if o.Shutdown && (r.Kind == KindNotSent || r.Kind == KindUnknown) {
		r.ErrorClass = program.Interrupted
	}
	if err := m.fold(r); err != nil {
		return err
	}
	if r.Kind == KindNotSent || r.Kind == KindUnknown {
		m.backOff(ss.Name, dir, o.RetryAfter)
	}
	return nil
}

func (m *machine) learnEvidence(f *program.Evidence) error {
	ss, s := m.st.Step(f.Step), m.step(f.Step)
	first := s != nil && asksFirst(s, ss)
	if ss == nil && !first || m.st.live() != nil { // there is no lookup while an attempt is open
		return errNotFitting
	}
	if ss != nil && m.owesResult(ss) {
		return m.learnResult(ss, f)
	}
	if s != nil && s.WaitsForAnswer() {
		return m.learnPoll(ss, f)
	}
	r := &Record{Kind: Kind(f.Answer), Step: f.Step, Direction: saga.Forward, Error: f.Error}
	if ss != nil {
		r.Attempt = ss.Forward.Attempts
	}
	switch r.Kind {
	case KindFound, KindUnfinished:
		r.bring(f.ExternalID, f.Output, f.Dropped)
	case KindOther:
		r.bring(f.ExternalID, f.Output, f.Dropped)
		r.Error = fmt.Sprintf("the destination has %q, which is not as it should be: %s", f.ExternalID, f.Error)
		if s == nil || s.LaterRuns != program.LaterUpdate && s.Repeat != program.RepeatIdempotent { // nothing says how it is changed
			r.ErrorClass = saga.Unknown
		}
	case KindSeveral:
		r.Error = fmt.Sprintf("the destination has %d of them: %q", len(f.IDs), f.IDs)
	case KindNotFound:
	default:
		if r.Kind = KindUnclear; f.Outage {
			r.ErrorClass = program.Outage
		}
	}
	if (r.Kind == KindNotFound || r.Kind == KindUnfinished) && !first && m.neverOnALookup(f.Step) {
		r.ErrorClass = saga.Unknown
	}
	return m.foldLookup(r, f)
}

// foldLookup records what a lookup said. One that said nothing clear is made again later.
func (m *machine) foldLookup(r *Record, f *program.Evidence) error {
	if err := m.fold(r); err != nil {
		return err
	}
	if r.Kind == KindUnclear {
		m.backOff(r.Step, r.Direction, f.RetryAfter)
	}
	return nil
}

// neverOnALookup reports whether the step must not be sent again because a lookup says that it did
// not happen, or only half. That is so, too, of a step that this version does not have: its
// definition is not there to say how it is safe to repeat.
func (m *machine) neverOnALookup(step string) bool {
	s := m.step(step)
	return s == nil || s.Repeat == program.RepeatAtMostOnce
}

// fold makes r the record and folds it into the provisional state.
func (m *machine) fold(r *Record) error {
	r.Status, r.Reason = m.st.Status, m.st.Reason
	r.At = m.ev.Now.Latest // until the ledger tells
	err := m.st.learn(r)
	if r.At = (time.Time{}); err != nil {
		return errors.Join(errNotFitting, err)
	}
	m.rec = r
	return nil
}

// backOff sets the wait before the next try of what has just failed. What was spent decides, unless it
// was an outage that failed it.
func (m *machine) backOff(step string, dir saga.Direction, after time.Duration) {
	s, e := m.step(step), m.st.Step(step).effort(dir)
	if m.rec.ErrorClass == program.Interrupted {
		return
	}
	failures := e.Failures
	if m.rec.ErrorClass == saga.Unknown || m.rec.ErrorClass == saga.Gone || m.rec.ErrorClass == "" {
		failures = min(failures, e.CountedAttempts+e.UnclearLookups)
	}
	d := s.Retry.Backoff(e.Key, max(1, failures))
	d = max(d, min(after, program.MaxRetryAfter))
	e.BackoffUntil = m.ev.Now.Earliest.Add(d)
}
