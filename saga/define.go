package saga

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// Definition is a named, versioned list of steps over inputs of type In. It is immutable and safe
// for concurrent use.
type Definition[In any] struct {
	spec     program.Spec
	parts    []bound[In]
	faults   faults // of what is said of the whole
	identity func(In) any
	tags     func(In) map[string]string
	subject  func(In) string
	strict   bool
	untyped  bool // an input may hold numbers as they were written
	plain    bool // a copy of an input shares nothing with it
	raw      bool // or JSON as it came
}

// Define checks and returns a definition. The error names every reason why it is wrong, one a line.
func Define[In any](name string, version int, steps ...Step[In]) (*Definition[In], error) {
	d := &Definition[In]{spec: program.Spec{Saga: name, Version: version}, untyped: holdsUntyped(reflect.TypeFor[In]()), raw: holdsRaw(reflect.TypeFor[In]()), plain: isPlain(reflect.TypeFor[In]())}
	var in In
	for _, s := range steps {
		s.part(d, in)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// Identity is put among the steps of a definition and says which part of the input makes two starts
// of a work the same. A second start with another identity is a conflict; with the same one it is a
// duplicate. The default is the whole input.
func Identity[In any](fn func(In) any) Step[In] { return identity[In](fn) }

type identity[In any] func(In) any

func (fn identity[In]) part(d *Definition[In], _ In) { d.identity = fn }

// Tags is put among the steps of a definition and says by what people find an instance beside its work id: names and values, at most eight.
//
//	saga.Tags(func(o Order) map[string]string { return map[string]string{"shop": o.Shop, "customer": o.Customer} }),
//
// amends list --tag shop=at lists them, and a batch takes the same filter. An instance keeps the tags that it was started with, also when a
// newer version of its source has other ones. What cannot be a tag (200 bytes with its name) is left out, and logged. They stand in the ledger as
// they are: no secrets.
func Tags[In any](fn func(In) map[string]string) Step[In] { return tags[In](fn) }

// Subject is put among the steps of a definition and says whose data an instance holds.
//
//	saga.Subject(func(o Order) string { return "customer:" + o.Customer }),
//
// amends erase --subject customer:8821 erases all of them. It is a tag named subject, beside those of [Tags], and stays the one that the
// instance was started with. Of one that can be no tag the tag has a hash. A start whose function panics is refused.
func Subject[In any](fn func(In) string) Step[In] { return subject[In](fn) }

// SubjectTag is the tag of instances that hold data of a subject.
func SubjectTag(subject string) string {
	tag := "subject=" + subject
	if len(tag) > longestTag || program.Clean(tag, longestTag) != tag {
		sum := sha256.Sum256([]byte(subject))
		tag = "subject=sha256:" + hex.EncodeToString(sum[:])
	}
	return tag
}

type subject[In any] func(In) string

func (fn subject[In]) part(d *Definition[In], _ In) { d.subject = fn }

type tags[In any] func(In) map[string]string

func (fn tags[In]) part(d *Definition[In], _ In) { d.tags = fn }

// Retention is how long what is kept of an instance since it ended, or since something was last recorded of it then. Zero is for ever.
type Retention struct {
	// Bodies is how long inputs, results, messages and what people were shown are kept. Who and why, errors and external ids stay, and a newer version
	// of the source still runs; what it made is neither undone nor made again then: that needs the input.
	Bodies time.Duration
	// Records is how long its history is kept. What is left then is its work id, its status, what its steps made by external id, and a hash of its input:
	// a duplicate still gets that answer, and a newer version of the source is an error for a person ([coordinator.ErrForgotten]).
	Records time.Duration
	// Key is how long its work id is known. A start behind that is a new instance, and does everything again.
	Key time.Duration
}

// Retain is put among the steps of a definition and says how long what is kept of its instances. The newest version of a saga counts. Without it the
// ledger's own retention does, and nothing goes while that is not set (amends retention set). What is live, waits, is in review or paused loses
// nothing, nor does an instance that a person holds. It is done by [retention.Work] or amends retention run.
func Retain[In any](r Retention) Step[In] { return retain[In](r) }

type retain[In any] Retention

func (r retain[In]) part(d *Definition[In], _ In) {
	said := program.Retention{Bodies: program.Duration(r.Bodies), Records: program.Duration(r.Records), Key: program.Duration(r.Key)}
	d.spec.Retain = &said
	for _, fault := range d.spec.Retain.Faults() {
		d.faults = append(d.faults, "Retain: "+fault)
	}
}

// Strict is put among the steps of a definition and refuses inputs in JSON that have a field which
// In has not.
func Strict[In any]() Step[In] { return strict[In]{} }

type strict[In any] struct{}

func (strict[In]) part(d *Definition[In], _ In) { d.strict = true }

// Spec returns the definition's structure. The caller must not change it.
func (d *Definition[In]) Spec() *program.Spec { return &d.spec }

func (d *Definition[In]) check() error {
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if msg := badName(d.spec.Saga); msg != "" {
		wrong("the saga's name %s", msg)
	}
	if d.spec.Version < 1 {
		wrong("the version is %d; versions start at 1", d.spec.Version)
	}
	for _, msg := range append(d.faults, d.takeOver()...) {
		wrong("%s", msg)
	}
	if n := len(d.spec.Steps); n == 0 {
		wrong("there are no steps")
	} else if n > program.MaxSteps {
		wrong("there are %d steps; at most %d are allowed", n, program.MaxSteps)
	}
	seen := map[string]bool{}
	pivots := 0
	for i := range d.spec.Steps {
		s := &d.spec.Steps[i]
		if seen[s.Name] {
			wrong("step %q: the name is used twice", s.Name)
		}
		seen[s.Name] = true
		if s.Pivot {
			if pivots++; pivots > 1 {
				wrong("step %q: a saga has one pivot, and there is one before this step", s.Name)
			}
		}
		for _, msg := range d.stepFaults(i) {
			wrong("step %q: %s", s.Name, msg)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("saga %q version %d is wrong:\n%w", d.spec.Saga, d.spec.Version, errors.Join(faults...))
	}
	return nil
}

func (d *Definition[In]) stepFaults(i int) []string {
	s, p := &d.spec.Steps[i], &d.parts[i]
	faults := append([]string(nil), p.faults...)
	wrong := func(msg string) { faults = append(faults, msg) }
	if msg := badName(s.Name); msg != "" {
		wrong("its name " + msg)
	}
	if s.Waits() {
		return faults
	}
	switch {
	case len(p.says) > 1:
		wrong(fmt.Sprintf("it says two things about repeating (%s, %s)", p.says[0], p.says[1]))
	case s.Repeat == "":
		wrong("it does not say how it is safe to repeat: Idempotent, Keyed, Find or AtMostOnce")
	}
	if s.FindFirst && !s.Find {
		wrong("FindFirst needs a Find")
	}
	pivot := d.spec.PivotIndex()
	switch {
	case len(p.undoes) > 1:
		wrong(fmt.Sprintf("it says two things about its undo (%s, %s)", p.undoes[0], p.undoes[1]))
	case len(p.undoes) == 0:
		wrong("it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason")
	case s.Undo && !s.UndoWhenUnknown && !s.Find:
		wrong("its Undo needs the result, and after a lost answer nothing could tell it: say Find, too, or say UndoMaybe and take a nil")
	}
	switch silent := s.Asks == nil && s.Repeat != program.RepeatIdempotent && s.Repeat != program.RepeatAtMostOnce && s.Repeat != ""; {
	case len(p.later) > 0 && s.LaterRuns != "" && (s.Asks != nil || s.Repeat == program.RepeatAtMostOnce):
		wrong(p.later[0] + " cannot be said of it: an AtMostOnce step is done once for the work, and people are asked in each run")
	case len(p.later) > 1:
		wrong(fmt.Sprintf("it says two things about later runs (%s, %s)", p.later[0], p.later[1]))
	case silent && len(p.later) == 0:
		wrong("it does not say what a later run does (a rerun, or a newer version of its source): Once leaves what was made, Update changes it, " +
			"EachRun makes another one")
	}
	if s.Repeat == program.RepeatAtMostOnce && !s.Find {
		for j := i + 1; j < len(d.spec.Steps); j++ {
			if next := &d.spec.Steps[j]; !next.Waits() && (next.Repeat != program.RepeatAtMostOnce || next.Find) {
				wrong(fmt.Sprintf("its outcome is unknown after a crash, so it must come after step %q, which can be repeated or looked up", next.Name))
				break
			}
		}
	}
	if i > pivot && s.Retry.Compensate {
		wrong("it stands after the pivot, so its Retry cannot Compensate")
	}
	return append(faults, tuningFaults(s)...)
}

func tuningFaults(s *program.StepSpec) []string {
	var faults []string
	wrong := func(bad bool, msg string) {
		if bad {
			faults = append(faults, msg)
		}
	}
	wrong(s.Timeout <= 0, "its Timeout must be at least a millisecond")
	wrong(s.Settle < 0, "its Settle must not be negative")
	wrong(s.Retry.Attempts < 0, "its Retry.Attempts must not be negative")
	wrong(s.Retry.Within < 0 || s.Retry.Initial < 0 || s.Retry.Max < 0, "its Retry has a negative time")
	wrong(s.Retry.Max > 0 && s.Retry.Initial > s.Retry.Max, "its Retry.Initial is longer than its Retry.Max")
	wrong(s.Repeat == program.RepeatKeyed && s.TTL > 0 && s.TTL <= s.Timeout+s.KeyMargin(), "the destination forgets its key before one attempt is over and settled (Keyed must be longer than Timeout and Settle together)")
	wrong(s.Destination != "" && badName(s.Destination) != "", "its destination "+badName(s.Destination))
	return faults
}

// badName reports what is wrong with a name that goes into keys, tables, metrics and command lines.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > program.MaxName:
		return fmt.Sprintf("has %d characters; at most %d are allowed", len(name), program.MaxName)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-_.", r)) {
			return fmt.Sprintf("%q may only have letters, digits, '-', '_' and '.', and starts with a letter or digit", name)
		}
	}
	return ""
}

// Accept checks a work id and an input at the edge, before anything is stored, and returns every
// fault at once. input is an In, or the JSON of one as a [json.RawMessage], which must have at
// least one of its fields, and no name twice, nor in another case. JSON is read once: what is stored, hashed, shown and given to
// steps is the In that was read, and what no field of it takes is dropped. An In with a Validate() error method is asked, too.
func (d *Definition[In]) Accept(work string, input any) (program.Accepted, error) {
	faults := []error{program.CheckWork(work)}
	in, body, err := d.input(input)
	if err == nil && len(body) > program.MaxInput {
		err = fmt.Errorf("the input has %d bytes as JSON; at most %d are allowed: store it elsewhere and start with its reference", len(body), program.MaxInput)
	}
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return program.Accepted{}, fmt.Errorf("%s %q is not accepted:\n%w", d.spec.Saga, work, err)
	}
	id, err := d.identify(in)
	if err != nil {
		return program.Accepted{}, fmt.Errorf("%s %q is not accepted: %w", d.spec.Saga, work, err)
	}
	tags, fault := d.tagsOf(in)
	whose, err := d.subjectOf(in)
	if err != nil {
		return program.Accepted{}, fmt.Errorf("%s %q is not accepted: %w", d.spec.Saga, work, err)
	}
	if whose != "" {
		tags = append(tags, whose)
		slices.Sort(tags)
	}
	return program.Accepted{Input: body, Identity: id, Tags: tags, TagFault: fault, ForStarter: d.spec.ForStarter()}, nil
}

// How many tags an instance has, and how many bytes each, with its value.
const mostTags, longestTag = 8, 200

// tagsOf says what an instance is found by. What cannot be a tag is left out, and the error says why, without its value: no order is lost
// for what people would have looked for.
func (d *Definition[In]) tagsOf(in In) (tags []string, fault error) {
	if d.tags == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			tags, fault = nil, errors.New("the function panicked")
		}
	}()
	all := d.tags(in)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tag := name + "=" + all[name]
		switch {
		case all[name] == "": // there is none
		case name == "" || strings.Contains(name, "=") || len(tag) > longestTag || program.Clean(tag, longestTag) != tag:
			fault = errors.Join(fault, fmt.Errorf("tag %q: its name is empty or has a \"=\", or with its value it is no valid text of %d bytes at most", name, longestTag))
		case len(tags) == mostTags:
			fault = errors.Join(fault, fmt.Errorf("tag %q: there are %d, and at most %d are kept", name, len(all), mostTags))
		default:
			tags = append(tags, tag)
		}
	}
	return tags, fault
}

// subjectOf is the tag that says whose data an instance holds; "": of no one.
func (d *Definition[In]) subjectOf(in In) (tag string, err error) {
	if d.subject == nil {
		return "", nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its Subject panicked: %v", p)
		}
	}()
	if whose := d.subject(in); whose != "" {
		tag = SubjectTag(whose)
	}
	return tag, nil
}

// identify hashes the part of the input that makes two starts the same. A user's Identity that
// panics, on the input of a newer version of the source perhaps, has no identity: it must not take
// down every process that reads it.
func (d *Definition[In]) identify(in In) (id string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its Identity panicked: %v", p)
		}
	}()
	same := any(in)
	if d.identity != nil {
		same = d.identity(in)
	}
	b, err := json.Marshal(same)
	if err != nil {
		return "", fmt.Errorf("its identity is not serialisable: %w", err)
	}
	if d.untyped {
		b = oneNumber(b)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:16]), nil
}

// Act runs the armed attempt that inv describes and reports what came of it. It does not panic.
func (d *Definition[In]) Act(ctx context.Context, inv *program.Invocation) (o program.Outcome) {
	if inv.Gate == nil {
		inv.Gate = program.NewGate(nil)
	}
	defer func() {
		if p := recover(); p != nil {
			o = recovered(inv.Gate, p)
		}
	}()
	part, call, err := d.call(inv)
	if err != nil {
		return program.Outcome{Class: Fault, Error: err.Error()}
	}
	ctx = program.WithGate(ctx, inv.Gate)
	if inv.Direction == Undo {
		return part.undo(ctx, call, inv.Undoing)
	}
	return part.run(ctx, call)
}

// Look asks the destination whether the step's effect is there. It does not panic.
func (d *Definition[In]) Look(ctx context.Context, inv *program.Invocation) (f program.Evidence) {
	defer func() {
		if p := recover(); p != nil {
			f = program.Evidence{Answer: program.AnswerUnclear}
			f.Error, f.Stack = panicked(p)
		}
	}()
	part, call, err := d.call(inv)
	if err != nil {
		return program.Evidence{Answer: program.AnswerUnclear, Error: err.Error()}
	}
	return part.find(ctx, call)
}

func (d *Definition[In]) call(inv *program.Invocation) (*bound[In], Call[In], error) {
	c := Call[In]{
		Saga: d.spec.Saga, Work: inv.Work, Revision: inv.Revision, Step: inv.Step, Key: inv.Key, MadeKey: inv.MadeKey, Attempt: inv.Attempt,
		inv: inv, gate: inv.Gate,
	}
	i := d.spec.Index(inv.Step)
	if i < 0 {
		return nil, c, faultf("saga %s version %d has no step %q", d.spec.Saga, d.spec.Version, inv.Step)
	}
	if in, ok := inv.Decoded.Of(inv.Input).(In); ok {
		c.Input = in
		return &d.parts[i], c, nil
	}
	read := json.Unmarshal
	if d.untyped { // its numbers keep their digits, at the price of a decoder
		read = program.Decode
	}
	if err := read(inv.Input, &c.Input); err != nil {
		return nil, c, faultf("the stored input is not the JSON of a %T: %v", c.Input, err)
	}
	if d.plain {
		inv.Decoded.Keep(inv.Input, c.Input)
	}
	return &d.parts[i], c, nil
}
