package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Adoption is what stands of a work whose ledger was lost, as far as its source and its
// destinations tell. [Adopt] puts it on record.
type Adoption struct {
	Revision string          // the version of the source object, as the source has it now
	Input    json.RawMessage // the input of that version
	Identity string          // as in [Start]
	Tags     []string        // as in [Start]

	// Effects says what is known of steps. A step that is not named is taken as its class allows
	// (D4).
	Effects map[string]Effect
	// Cancelled: the source cancelled the object.
	Cancelled bool
	// Quarantine tells a person why an effect that stands cannot be taken over. Nothing is started
	// for the work before a person has decided.
	Quarantine string

	Actor  string // who adopts
	Reason string // why, in that actor's words
}

// Effect is what an [Adoption] says of one step. Zero means that its effect stands, and has no
// external id.
type Effect struct {
	ExternalID string
	Output     json.RawMessage // as the action would have returned it; nil when it is not known
	Revision   string          // of the source object, that it shows; empty: the adoption's
	Unknown    bool            // the outcome is unknown; the step counts as done and is never done again
	NotDone    bool            // there is evidence that it did not happen, or is gone
	Foreign    bool            // it stands under our mark and does not match: Quarantine says why
}

// Adopt returns the next record by which the work takes a over, not yet sealed; nil when there is
// none: the adoption is on record, or st is a work of another kind, which adopting does not change.
// Append it, fold it, ask again. The error says everything that is wrong with a.
func Adopt(spec *program.Spec, st *State, a *Adoption) (*Record, error) {
	if st.Seq > 0 && !st.Adopting {
		return nil, nil //nolint:nilnil // there is nothing to record, and that is no fault
	}
	m := adopter{machine: machine{spec: spec, st: st.clone()}, a: a}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s cannot be adopted:\n%w", st.ID, err)
	}
	r := m.next()
	if m.broken != nil {
		return nil, fmt.Errorf("%s cannot be adopted: %w", st.ID, m.broken)
	}
	if r.Status == "" {
		r.Status = saga.Adopting
	}
	r.clean()
	return r, nil
}

// adopter is one record of an adoption in the making. It needs no event: an adoption has no clock.
type adopter struct {
	machine
	a *Adoption
}

// check says everything that is wrong with the adoption.
func (m *adopter) check() error {
	faults := []error{saga.CheckRevision(m.a.Revision)}
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if m.st.Seq > 0 && m.st.Version != m.spec.Version {
		wrong("it was begun with version %d of the definition, not with %d: go on with that one", m.st.Version, m.spec.Version)
	}
	if _, dropped := keep(m.a.Input, program.MaxInput); dropped || len(m.a.Input) == 0 {
		wrong("it has no input that can be kept (JSON, at most %d bytes)", program.MaxInput)
	}
	foreign := 0
	for name, e := range m.a.Effects {
		if i := m.spec.Index(name); i >= 0 && m.spec.Steps[i].Waits() {
			wrong("step %q only waits: nothing stands of it", name)
		} else if i < 0 {
			wrong("step %q is not one of %s version %d", name, m.spec.Saga, m.spec.Version)
		}
		if n := flag(e.Unknown) + flag(e.NotDone) + flag(e.Foreign); n > 1 {
			wrong("step %q: only one can hold of: unknown, not done, foreign", name)
		}
		if err := saga.CheckRevision(e.Revision); err != nil {
			wrong("step %q: %w", name, err)
		} else if saga.CompareRevisions(saga.BaseRevision(m.shows(e)), saga.BaseRevision(m.revision())) > 0 {
			wrong("step %q shows revision %s, which is newer than %s: ask the source again", name, m.shows(e), m.revision())
		}
		foreign += int(flag(e.Foreign))
	}
	if foreign > 0 && m.a.Quarantine == "" {
		wrong("something stands that does not match, and Quarantine does not say why")
	}
	slices.SortFunc(faults, func(a, b error) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // maps have no order
	return errors.Join(faults...)
}

// revision is the version at which the work is, or will be by the next record: the source's, or the
// newest sub-revision of it that an effect shows, so that its keys are not used a second time.
func (m *adopter) revision() string {
	newest := m.a.Revision
	for _, e := range m.a.Effects {
		if r := m.shows(e); saga.CompareRevisions(r, newest) > 0 && saga.CompareRevisions(saga.BaseRevision(r), saga.BaseRevision(m.a.Revision)) == 0 {
			newest = r
		}
	}
	if saga.CompareRevisions(m.st.Revision, newest) > 0 {
		return m.st.Revision
	}
	return newest
}

// shows is the version of the source object that an effect shows.
func (m *adopter) shows(e Effect) string { return cmp.Or(e.Revision, m.a.Revision) }

// next is the record that comes next. What was recorded before the adoption was cut off is not
// recorded again.
func (m *adopter) next() *Record {
	input, _ := keep(m.a.Input, program.MaxInput)
	switch {
	case m.st.Seq == 0:
		return &Record{Kind: KindStarted, Version: m.spec.Version, Revision: m.revision(), Body: input, Identity: m.a.Identity, Tags: m.a.Tags, Note: "adopted", Actor: m.a.Actor, Why: m.a.Reason}
	case saga.CompareRevisions(m.revision(), m.st.Revision) > 0: // the source went on before the adoption did
		return m.revised(Newer{Revision: m.revision(), Version: m.spec.Version}, input)
	}
	missing := m.missing()
	if len(missing) > 1 || len(missing) == 1 && missing[0].Kind != KindAdopted {
		return missing[0]
	}
	r := &Record{Kind: KindAdopted, Revision: m.st.Revision}
	if len(missing) == 1 {
		r = missing[0]
	}
	m.release(r)
	return r
}

// missing are the records that are still to be written, in their order: what has to be asked for,
// what stands, and what is in quarantine.
func (m *adopter) missing() (rs []*Record) {
	if r := m.asked(); r != nil {
		rs = append(rs, r)
	}
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		if m.a.Quarantine != "" && s.Name == m.suspect() {
			continue
		}
		if r := m.taken(s); r != nil {
			rs = m.add(rs, r)
		}
	}
	if m.a.Quarantine != "" {
		rs = m.add(rs, m.quarantined(m.suspect()))
	}
	return rs
}

// quarantined is the record that puts a step in quarantine.
func (m *adopter) quarantined(step string) *Record {
	r := &Record{Step: step, ErrorClass: saga.Refused, Error: program.Clean(m.a.Quarantine, maxText)}
	r.name(m.a.Effects[step].ExternalID)
	return r
}

// add adds a record of a step, unless the work says that already.
func (m *adopter) add(rs []*Record, r *Record) []*Record {
	r.Kind, r.Direction = KindAdopted, saga.Forward
	r.Revision = cmp.Or(r.Revision, m.st.Revision)
	if ss := m.st.Step(r.Step); ss != nil && same(ss, adopted(r, m.st.Revision)) {
		return rs
	}
	return append(rs, r)
}

// same compares by what a snapshot would keep.
func same(a, b *StepState) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// suspect is the step that a quarantine is about: the one that is foreign; else the first that is
// not said to stand.
func (m *adopter) suspect() string {
	for i := range m.spec.Steps {
		if name := m.spec.Steps[i].Name; m.a.Effects[name].Foreign {
			return name
		}
	}
	for i := range m.spec.Steps {
		name := m.spec.Steps[i].Name
		if e, ok := m.a.Effects[name]; (!ok || e.NotDone) && !m.spec.Steps[i].Waits() {
			return name
		}
	}
	return m.spec.Steps[0].Name
}

// taken is the record of one step, or nil when nothing is to be said of it.
func (m *adopter) taken(s *program.StepSpec) *Record {
	e, told := m.a.Effects[s.Name]
	r := &Record{Step: s.Name}
	switch known := m.st.Step(s.Name) != nil; {
	case e.Unknown, !told && !known && unguarded(s):
		r.ErrorClass, r.Note = saga.Unknown, "the outcome is unknown; the step counts as done and is not done again"
	case !told, e.NotDone && !known:
		return nil
	case e.Foreign:
		return m.quarantined(s.Name)
	case e.NotDone:
		r.ErrorClass = saga.Unsent
	default:
		if r.Body, r.BodyDropped = keep(e.Output, program.MaxOutput); len(e.Output) == 0 {
			r.Body = s.ResultOf(e.ExternalID)
		}
		id := e.ExternalID
		if id == "" && s.ResultIsExternalID { // a text is its own id
			_ = json.Unmarshal(r.Body, &id)
		}
		r.name(id)
		if !s.OncePerInstance() && saga.CompareRevisions(m.shows(e), saga.BaseRevision(m.st.Revision)) < 0 {
			r.Revision = m.shows(e)
		}
	}
	return r
}

// unguarded reports whether the step may be neither repeated nor settled by a lookup. The time of a
// Keyed step's first use of its key is lost with the ledger, so its window is unknown; to ask people
// again does no harm. An AtMostOnce step is not sent again on the strength of a lookup.
func unguarded(s *program.StepSpec) bool {
	return s.Repeat == program.RepeatAtMostOnce || s.Repeat == program.RepeatKeyed && !s.Find && s.Asks == nil
}

// asked returns the record that puts in doubt every step that the adoption does not name and that a
// lookup can settle: its effect may stand all the same. It returns nil when there is no such step.
func (m *adopter) asked() *Record {
	if m.a.Cancelled { // it says that nothing stands but what it names
		return nil
	}
	var ls []lapse
	for _, l := range m.lapses() {
		s := m.step(l.Step)
		_, told := m.a.Effects[l.Step]
		suspected := m.a.Quarantine != "" && l.Step == m.suspect()
		if s.Find && !unguarded(s) && !told && !suspected && m.st.Step(l.Step) == nil {
			ls = append(ls, l)
		}
	}
	if len(ls) == 0 {
		return nil
	}
	body, err := json.Marshal(ls)
	if err != nil { // names, keys and durations always marshal
		m.broken = err
	}
	return &Record{Kind: KindForgotten, Body: body, Note: "the ledger was lost and the outcome is unknown: the step is looked up"}
}

// release makes r the last record of the adoption: it says where the work stands.
func (m *adopter) release(r *Record) {
	r.Status, r.Reason = saga.Adopting, ""
	if err := m.st.learn(r); err != nil { // what is adopted was checked
		m.broken = err
	}
	switch {
	case m.a.Quarantine != "":
		r.Status, r.Reason, r.Error = saga.Review, saga.ReasonInDoubt, m.a.Quarantine
	case m.a.Cancelled && !m.stands():
		r.Status = saga.Compensated
	case m.a.Cancelled:
		r.Status = saga.Compensating
	case m.all(Done):
		r.Status = saga.Completed
	default:
		r.Status = saga.Running
	}
}

// all reports whether every step of the definition is in phase p.
func (m *machine) all(p Phase) bool {
	return !slices.ContainsFunc(m.spec.Steps, func(s program.StepSpec) bool {
		ss := m.st.Step(s.Name)
		if s.WaitsForAnswer() { // whether it came only what was done behind it tells
			return p == Done && !m.adoptedBehind(m.spec.Index(s.Name))
		}
		return !s.Waits() && (ss == nil || ss.Forward.Phase != p)
	})
}

// stands reports whether any step is owed an undo, or a person's word, now that the source has
// cancelled. A step whose outcome is unknown counts only where the adoption names it and it has an
// undo: the undo makes sure that no effect stands.
func (m *adopter) stands() bool {
	return slices.ContainsFunc(m.st.Steps, func(ss StepState) bool {
		_, told := m.a.Effects[ss.Name]
		return ss.mayHaveHappened() && !m.spec.NeedsNoUndo(ss.Name) && (!ss.Unconfirmed || told)
	})
}

// admits reports whether r may be part of an adoption that is not at its end: nothing else may come
// between, and nothing is armed.
func (st *State) admits(r *Record) bool {
	switch r.Kind {
	case KindAdopted:
		return r.Dispatch == nil
	case KindRevised, KindForgotten:
		return r.Dispatch == nil && r.Status == saga.Adopting
	default:
		return false
	}
}

// adopt folds what an adoption says of one step, and at its end of the whole work.
func (st *State) adopt(r *Record) error {
	if !st.Adopting {
		return fmt.Errorf("%s stands in a work that was not begun by an adoption", r.Kind)
	}
	if r.Step != "" {
		if r.Attempt != 0 || r.Direction != saga.Forward {
			return fmt.Errorf("%s speaks of attempt %d (%s) of step %q", r.Kind, r.Attempt, r.Direction, r.Step)
		}
		st.Unmatched = st.Unmatched || r.ErrorClass == saga.Refused
		if ss := st.Step(r.Step); ss != nil {
			*ss = *adopted(r, st.Revision)
		} else {
			st.Steps = append(st.Steps, *adopted(r, st.Revision))
		}
	}
	if r.Status == saga.Adopting {
		return nil
	}
	st.Adopting = false
	for i := range st.Steps { // compensated: what stands then is what could not be told
		if ss := &st.Steps[i]; r.Status == saga.Compensated && ss.Unconfirmed {
			ss.Undo.Phase = Skipped
		}
	}
	return nil
}

// adopted is the state of a step after a record that adopts it, in a work at the given revision.
func adopted(r *Record, revision string) *StepState {
	ss := &StepState{Name: r.Step}
	switch {
	case r.ErrorClass == saga.Refused: // it waits for a person
		ss.ExternalID = r.ExternalID
		ss.Forward = Effort{Phase: InDoubt, ErrorClass: r.ErrorClass, Error: r.Error, NeedsReview: saga.ReasonInDoubt}
	case r.ErrorClass == saga.Unsent:
		ss.Forward.Phase = Ready
	case r.Revision != revision: // an older revision left it, and it is to be brought up to date
		ss.Previous = &program.Result{ExternalID: r.ExternalID, Output: r.Body}
	default:
		ss.Forward.Phase, ss.Evidence, ss.Unconfirmed, ss.StoodBeforeLoss = Done, KindAdopted, r.ErrorClass == saga.Unknown, true
		ss.ExternalID, ss.Output, ss.OutputDropped = r.ExternalID, r.Body, r.dropped()
	}
	return ss
}

// Unconfirmed returns the names of the steps that were adopted as done although their outcome is
// unknown.
func (st *State) Unconfirmed() (steps []string) {
	for i := range st.Steps {
		if st.Steps[i].Unconfirmed {
			steps = append(steps, st.Steps[i].Name)
		}
	}
	return steps
}
