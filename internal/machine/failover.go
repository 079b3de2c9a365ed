package machine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a fail-over made a chain forget (F26, F27).

// lapse is one entry in the body of a [KindForgotten] record: a step that may have been armed by
// what was forgotten.
type lapse struct {
	Step   string           `json:"step"`
	Key    string           `json:"key"`
	Budget program.Duration `json:"budget"`
	// AtMostOnce: the step is, so that no lookup of another step takes the doubt from it.
	AtMostOnce bool `json:"atMostOnce,omitempty"`
	// UnreadSignal: one was unread then, so that a person may have had a step before it skipped, or
	// called done (F27).
	UnreadSignal bool `json:"unreadSignal,omitempty"`
}

// forget puts every step in doubt that may have been armed by records which the database has
// forgotten.
func (st *State) forget(r *Record) error {
	var lapses []lapse
	if err := json.Unmarshal(r.Body, &lapses); err != nil {
		return fmt.Errorf("the body of %s does not decode: %w", r.Kind, err)
	}
	if !st.Adopting { // no resolution is followed before the adoption is at its end, so none is stale (F27)
		st.Forgotten = r.At.UTC()
	}
	for _, l := range lapses {
		ss := st.Step(l.Step)
		if ss == nil {
			ss = st.begin(l.Step)
		}
		e := &ss.Forward
		switch {
		case st.Adopting: // the time of the key's first use is unknown
			ss.Evidence = KindAdopted
		case e.Key == "":
			e.Key, e.KeyFirstUsed, e.MayHaveReached = l.Key, st.Updated, true // not before the last thing we know
		}
		if (l.AtMostOnce || l.UnreadSignal) && !st.Adopting {
			ss.Evidence = KindForgotten
		}
		if e.Phase != Started {
			e.Phase = InDoubt
		}
		e.OutcomeUnknownUntil = later(e.OutcomeUnknownUntil, r.At.UTC().Add(time.Duration(l.Budget)))
	}
	return nil
}

// acquit takes the doubt from what a fail-over may have forgotten behind ss: it was not done, so
// nothing behind it can have been armed. A ledger that was lost may have seen more than one
// revision, so there it proves nothing. Nor does it for what is AtMostOnce (F17), nor where a
// person may have had ss skipped (F27).
func (st *State) acquit(ss *StepState) {
	behind := false
	for i := range st.Steps {
		next := &st.Steps[i]
		if f := &next.Forward; behind && f.Phase == InDoubt && f.Attempts == next.EarlierAttempts && next.Evidence == "" {
			*f = Effort{Attempts: f.Attempts, Reissue: f.Reissue, QuietUntil: f.QuietUntil}
		}
		behind = behind || next == ss
	}
}

// forget records that the database went back. Every step that is not done may have been armed by
// the forgotten records, and its attempt may be on its way. No step was armed forward where the
// work had ended or was going back; nor where it was parked or asleep, unless a signal may have
// woken it.
func (m *machine) forget() error {
	st := m.st
	awake := (st.Status.Live() || st.Reason == saga.ReasonHung) && !st.Due.After(m.ev.Changed)
	if st.Status.Terminal() || st.Compensating || !awake && !m.ev.Unread {
		return nil
	}
	lapses := m.lapses()
	if len(lapses) == 0 {
		return nil
	}
	body, err := json.Marshal(lapses)
	if err != nil {
		return err
	}
	return m.fold(&Record{Kind: KindForgotten, Body: body, Note: "the database is another one since; what was stored behind the record before is not known"})
}

// lapses are the steps that are not done, as if each had been armed now.
func (m *machine) lapses() (lapses []lapse) {
	root := m.st.root()
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		ss, l := m.st.Step(s.Name), lapse{Step: s.Name, Budget: program.Duration(s.Timeout), AtMostOnce: s.Repeat == program.RepeatAtMostOnce, UnreadSignal: m.ev.Unread}
		switch {
		case s.Waits(), s.Asks != nil && s.Repeat != program.RepeatAtMostOnce && !m.askedBy(s):
			continue
		case ss == nil:
			l.Key = StepKey(root, s.Name, saga.Forward, 0)
		case ss.Forward.Phase == Done, ss.Forward.Phase == Skipped:
			continue
		case ss.Forward.Key != "":
			l.Key = ss.Forward.Key
		default: // a person may have allowed a new key
			l.Key = StepKey(root, s.Name, saga.Forward, ss.Forward.Reissue)
		}
		lapses = append(lapses, l)
	}
	return lapses
}
