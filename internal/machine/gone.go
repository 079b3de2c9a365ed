package machine

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is left of an instance whose bodies, or whose records, have gone by retention.

// Given is what is left of an input that has gone: what tells a duplicate from a conflict.
type Given struct {
	saga.InputSummary

	// Identity is the hash of what makes two starts the same, where that is not the whole input.
	Identity string `json:"identity,omitempty"`
}

// Same is the identity of the input that has gone.
func (g *Given) Same() string {
	if g.Identity != "" {
		return g.Identity
	}
	return g.SHA256[:min(len(g.SHA256), 32)]
}

// given is what r was given, or what is left of it.
func given(r *Record) (input json.RawMessage, left *Given, err error) {
	if r.Digests.Body == (Hash{}) {
		return r.Body, nil, nil
	}
	if left = (&Given{}); len(r.Body) == 0 { // nor is that
		return nil, left, nil
	}
	if err := json.Unmarshal(r.Body, left); err != nil {
		return nil, nil, fmt.Errorf("what is left of the input of %s does not decode: %w", r.Kind, err)
	}
	return nil, left, nil
}

// leave is what is left of an input.
func leave(input json.RawMessage, identity string) Given {
	return Given{saga.InputSummary{SHA256: program.HashHex(input), Bytes: len(input)}, identity}
}

// Reduce takes out of r what its instance was given, what its steps gave back, what people were shown, and the snapshot. What is left folds,
// and has the hash that it had: Digests tells for what it stands. It reports whether there was anything.
func (r *Record) Reduce(salt Salt) (changed bool, err error) {
	rest, was, err := r.Rest(salt)
	if err != nil {
		return false, err
	}
	if len(r.Snapshot) > 0 {
		r.Digests.Snapshot, r.Snapshot, changed = was.Snapshot, nil, true
	}
	if !bytes.Equal(rest, r.Body) {
		r.Digests.Body, r.Body, changed = was.Body, rest, true
	}
	return changed, nil
}

// Rest returns what Reduce leaves of the body, and what stands for body and snapshot.
func (r *Record) Rest(salt Salt) (rest json.RawMessage, was Erased, err error) {
	switch {
	case r.Digests.Body != (Hash{}), len(r.Body) == 0:
		rest = r.Body
	case r.Kind == KindForgotten, r.Kind == KindLost, r.Kind == KindWaiting: // the machine's own, and by which name and key an answer is waited for
		rest = r.Body
	case r.Kind == KindOpened: // who was asked, and about which document: votes are bound to it
		var b Ballot
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return nil, was, fmt.Errorf("the body of record %d does not decode: %w", r.Seq, err)
		}
		rest, _ = json.Marshal(Ballot{Digest: b.Digest, AskingSteps: b.AskingSteps}) //nolint:errchkjson // texts always encode
	case r.Kind == KindStarted, r.Kind == KindHeard:
		rest, _ = json.Marshal(leave(r.Body, r.Identity)) //nolint:errchkjson // texts always encode
	case r.Kind == KindRevised:
		var p page
		if err := json.Unmarshal(r.Body, &p); err != nil {
			return nil, was, fmt.Errorf("the body of record %d does not decode: %w", r.Seq, err)
		}
		if rest = r.Body; len(p.Input) > 0 {
			left := leave(p.Input, r.Identity)
			p.InputGone, p.Input = &left, nil
			rest, _ = json.Marshal(p) //nolint:errchkjson // JSON and names always encode
		}
	}
	return rest, r.bodyDigests(salt), nil
}

// Remains is what is left of an instance whose records have gone, beside its head: the identity of its input, and a line for each step that was
// armed. It is kept for as long as its key, of every instance there was, so it is short: a JSON list of texts, "name:phase:undo external-id", where
// a step that is done has no phase, and one that was not undone no undo. What begins with a space is a tag.
type Remains struct {
	Identity string
	Heard    string // the newest revision that was spoken of, where it is not the one it is at
	Steps    []StepState
	Tags     []string // whose data it holds: by that it is found when it is to be erased
}

// notDone is how the phase is written of a step that a newer version has not come to.
const notDone = "-"

// MarshalJSON writes it.
func (m Remains) MarshalJSON() ([]byte, error) {
	raw, err := hex.DecodeString(m.Identity)
	if err != nil {
		return nil, fmt.Errorf("the identity of an input is hexadecimal: %w", err)
	}
	lines := []string{base64.RawURLEncoding.EncodeToString(raw)}
	if m.Heard != "" {
		lines[0] += " " + m.Heard
	}
	for i := range m.Steps {
		ss := &m.Steps[i]
		line, phase := ss.Name, ss.Forward.Phase
		switch phase {
		case Done:
			phase = ""
		case "":
			phase = notDone
		}
		if phase != "" || ss.Undo.Phase != "" {
			line += ":" + string(phase)
		}
		if ss.Undo.Phase != "" {
			line += ":" + string(ss.Undo.Phase)
		}
		if ss.ExternalID != "" {
			line += " " + ss.ExternalID
		}
		lines = append(lines, line)
	}
	for _, tag := range m.Tags {
		lines = append(lines, " "+tag)
	}
	return json.Marshal(lines)
}

// UnmarshalJSON reads it.
func (m *Remains) UnmarshalJSON(b []byte) error {
	var lines []string
	if err := json.Unmarshal(b, &lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		return errors.New("it says nothing")
	}
	identity, heard, _ := strings.Cut(lines[0], " ")
	raw, err := base64.RawURLEncoding.DecodeString(identity)
	if err != nil {
		return err
	}
	m.Identity, m.Heard = hex.EncodeToString(raw), heard
	for _, line := range lines[1:] {
		name, id, _ := strings.Cut(line, " ")
		if name == "" {
			m.Tags = append(m.Tags, id)
			continue
		}
		name, phases, _ := strings.Cut(name, ":")
		phase, undo, _ := strings.Cut(phases, ":")
		ss := StepState{Name: name, ExternalID: id, OutputDropped: true, Forward: Effort{Phase: Phase(phase)}, Undo: Effort{Phase: Phase(undo)}}
		switch phase {
		case "":
			ss.Forward.Phase = Done
		case notDone:
			ss.Forward.Phase = ""
		}
		m.Steps = append(m.Steps, ss)
	}
	return nil
}

// Remains is what is left of an instance that has ended, when its records go.
func (st *State) Remains() Remains {
	given := st.given()
	left := Remains{Identity: given.Same()}
	if st.NewestRevision != st.Revision {
		left.Heard = st.NewestRevision
	}
	for _, ss := range st.Steps {
		if ss.ExternalID == "" && ss.Previous != nil {
			ss.ExternalID = ss.Previous.ExternalID
		}
		left.Steps = append(left.Steps, ss)
	}
	for _, tag := range st.Tags {
		if strings.HasPrefix(tag, saga.SubjectTag("")) {
			left.Tags = append(left.Tags, tag)
		}
	}
	return left
}

// given is what is left of the input, or would be.
func (st *State) given() Given {
	if st.InputGone != nil {
		return *st.InputGone
	}
	return leave(st.Input, st.Identity)
}

// remember folds what is left of an instance.
func (st *State) remember(r *Record) error {
	var left Remains
	if err := json.Unmarshal(r.Body, &left); err != nil {
		return fmt.Errorf("what is left of it does not decode: %w", err)
	}
	st.Version, st.Revision, st.Run, st.NewestRevision, st.SnapshotSeq = r.Version, r.Revision, r.Revision, left.Heard, 1
	if st.NewestRevision == "" {
		st.NewestRevision = r.Revision
	}
	st.InputGone, st.RecordsGone, st.Started, st.Steps, st.Tags = &Given{Identity: left.Identity}, true, r.Until.UTC(), left.Steps, left.Tags
	return nil
}

// Alike reports whether st and other have the same status, steps and external ids: bodies have no part in it.
func (st *State) Alike(other *State) bool {
	return st.Status == other.Status && st.Revision == other.Revision && st.NewestRevision == other.NewestRevision &&
		slices.EqualFunc(st.Steps, other.Steps, func(a, b StepState) bool {
			return a.Name == b.Name && a.Forward.Phase == b.Forward.Phase && a.Undo.Phase == b.Undo.Phase && a.ExternalID == b.ExternalID &&
				a.Forward.Attempts == b.Forward.Attempts && a.Unconfirmed == b.Unconfirmed
		})
}

// StandsWhole reports whether all stands that it did: a newer version that says the same would change nothing.
func (st *State) StandsWhole() bool {
	return st.Status == saga.Completed && !slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Undo.Phase != "" })
}

// Reduced reports whether the record's chain can lose what [Record.Reduce] takes: its instance has ended, and has heard of nothing newer.
func (st *State) Reduced() bool { return st.Status.Terminal() && st.PendingRevision == nil }

// needsInput are the verbs that run a step again, which needs the input.
func needsInput(c Choice) bool { return c.Verb == VerbUndo || c.Verb == VerbRerun }

// possible are those of the choices for which all is there that they need.
func (st *State) possible(all []Choice) []Choice {
	if st.InputGone == nil {
		return all
	}
	return slices.DeleteFunc(all, needsInput)
}

// dropped reports whether the body of r was not kept, or has gone.
func (r *Record) dropped() bool { return r.BodyDropped || r.Digests.Body != (Hash{}) }
