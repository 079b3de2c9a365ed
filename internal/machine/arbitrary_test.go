package machine

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Whatever anybody feeds to the machine, sensible or not: it does not panic; what does not fit is
// an error and no record (R2); what is decided is a function and leaves the state alone (R3); every
// decided record folds, in any process and from any snapshot (R4); the record is one that a ledger
// can take.
func TestArbitraryEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, err := define(order.Saga, 1, drawDefinition(t))
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{t: t, spec: spec, st: &State{ID: order}, now: noon}
		if rapid.IntRange(0, 2).Draw(t, "adopted") == 2 {
			adoptSomething(t, d)
		} else {
			d.start()
		}
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			d.now = d.now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "time")))
			d.lag = time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "clock"))
			d.busy, d.over = rapid.Bool().Draw(t, "busy"), rapid.IntRange(0, 4).Draw(t, "alone") == 4
			n := len(d.chain)
			ev := drawEvent(t, d)
			if rapid.IntRange(0, 9).Draw(t, "not storable") == 9 {
				ev.Invalid = rapid.IntRange(1, 3).Draw(t, "how often")
			}
			err := d.try(ev)
			if err != nil && !errors.Is(err, errNotFitting) {
				t.Fatalf("an error of another kind: %v", err)
			}
			if len(d.chain) > n {
				storable(t, d.tail())
			}
			if d.last.Do.Do == "" {
				t.Fatalf("a decision without a command: %+v", d.last)
			}
		}
		for i := range d.chain {
			if i > 0 && d.chain[i].Snapshot == nil {
				continue
			}
			st, err := Fold(order, d.chain[i:])
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(dump(t, st)), string(dump(t, d.st)); got != want {
				t.Fatalf("R4: from record %d:\n%s\nlive:\n%s", i+1, got, want)
			}
		}
	})
}

// adoptSomething begins the work with an adoption that may be wrong, and may be cut off.
func adoptSomething(t *rapid.T, d *desk) {
	id := rapid.SampledFrom([]string{"", "1", "bad \xff\x00"})
	a := &Adoption{
		Revision: rapid.SampledFrom([]string{"", "17", "17+1", "x"}).Draw(t, "revision"), Input: output("1"), Effects: map[string]Effect{},
		Cancelled: rapid.Bool().Draw(t, "cancelled"), Quarantine: id.Draw(t, "quarantine"), Actor: id.Draw(t, "actor"),
	}
	for _, step := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s0", "s1", "s2", "s3"}), rapid.ID).Draw(t, "told") {
		a.Effects[step] = Effect{
			ExternalID: id.Draw(t, "id"), Output: rapid.SampledFrom([]json.RawMessage{nil, output("1"), []byte(" {"), []byte(` { "a" : "<" } `)}).Draw(t, "output"),
			Revision: rapid.SampledFrom([]string{"", "", "16", "17+2", "18", "x"}).Draw(t, "shows"), Unknown: rapid.IntRange(0, 4).Draw(t, "unknown") == 4,
			NotDone: rapid.IntRange(0, 4).Draw(t, "not done") == 4, Foreign: rapid.IntRange(0, 4).Draw(t, "foreign") == 4,
		}
	}
	d.last.Do.Do = Rest
	err := d.adopt(a, rapid.IntRange(0, 3).Draw(t, "cut off after"))
	for i := range d.chain {
		storable(t, &d.chain[i])
	}
	if err != nil {
		if len(d.chain) > 0 {
			t.Fatalf("an adoption that is wrong is on record: %v", err)
		}
		d.start()
	}
}

func drawEvent(t *rapid.T, d *desk) Event {
	step := rapid.SampledFrom([]string{"s0", "s1", "s2", "s3"}).Draw(t, "step")
	id := rapid.SampledFrom([]string{"", "1", "2", "bad \xff\x00"}).Draw(t, "id")
	body := rapid.SampledFrom([]json.RawMessage{nil, output("1"), []byte(` { "a" : "<" } `), latin1}).Draw(t, "body")
	after := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "retry after"))
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0:
		class := rapid.SampledFrom([]saga.Class{program.Succeeded, program.Succeeded, saga.Unknown, saga.Unsent, saga.Refused, saga.Fault, program.Interrupted, ""}).Draw(t, "class")
		o := program.Outcome{Class: class, Error: id, RetryAfter: after, Maybe: rapid.Bool().Draw(t, "maybe"), Shutdown: rapid.Bool().Draw(t, "shutdown")}
		if class == program.Succeeded {
			o.ExternalID, o.Output, o.Error = id, body, ""
		}
		return Event{Outcome: &o}
	case 1:
		kind := rapid.SampledFrom([]Kind{KindFound, KindUnfinished, KindNotFound, KindUnclear, KindSeveral, "", KindDone}).Draw(t, "kind")
		f := program.Evidence{Step: step, Answer: program.Answer(kind), ExternalID: id, Output: body, RetryAfter: after, IDs: []string{id, "2"}}
		if d.last.Do.Do == Look {
			f.Step = d.last.Do.Step
		}
		return Event{Evidence: &f}
	case 2:
		kind := rapid.SampledFrom([]SignalKind{SignalCancel, SignalResolve, SignalResolve, SignalConflict, SignalLate, SignalWake, SignalRevise, SignalRevise, SignalKeep, "x"}).Draw(t, "signal")
		s := Signal{ID: rapid.Int64Range(1, 400).Draw(t, "id"), Kind: kind, Actor: id, Resolution: saga.Resolution{
			Step: step, Direction: rapid.SampledFrom([]saga.Direction{saga.Forward, saga.Undo, ""}).Draw(t, "direction"),
			Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"), Happened: rapid.Bool().Draw(t, "happened"), ExternalID: id, Output: body,
			StepKey: rapid.SampledFrom([]string{"", "", "am-other"}).Draw(t, "step key"),
		}}
		if kind == SignalRevise || kind == SignalCancel {
			s.News = News{Revision: drawRevision(t, "revision"), Version: rapid.IntRange(0, 1).Draw(t, "version"), Input: body}
		}
		if ss, dir := d.st.Issue(d.spec); ss != nil && rapid.Bool().Draw(t, "about the issue") {
			s.Step, s.Direction, s.Attempt = ss.Name, dir, ss.effort(dir).Attempts
		}
		return Event{Signal: &s, Same: rapid.IntRange(0, 3).Draw(t, "same") == 3}
	case 3:
		return Event{Changed: d.now.Add(-time.Second), Unread: rapid.Bool().Draw(t, "unread")}
	default:
		return Event{}
	}
}

// storable holds a record against what every ledger asks of one.
func storable(t *rapid.T, r *Record) {
	switch s := r.Status; {
	case !s.Valid():
		t.Fatalf("status %q", s)
	case (s == saga.Review) != (r.Reason != ""):
		t.Fatalf("%s with the reason %q", s, r.Reason)
	case r.Wait < 0 || r.Wait%time.Millisecond != 0 || r.Wait > 0 && !s.Live():
		t.Fatalf("%s and a wait of %s", s, r.Wait)
	case r.Dispatch != nil && (r.Wait != 0 || s != saga.Running && s != saga.Compensating || r.Dispatch.Budget%time.Millisecond != 0):
		t.Fatalf("arms %+v, %s, wait %s", r.Dispatch, s, r.Wait)
	case !utf8.Valid(r.Body), !utf8.Valid(r.Snapshot):
		t.Fatalf("bodies that are not UTF-8: %q, %q", r.Body, r.Snapshot)
	case program.Clean(r.Said(), maxText) != r.Said() || program.Clean(r.ExternalID, program.MaxExternalID) != r.ExternalID:
		t.Fatalf("texts %q, %q", r.Said(), r.ExternalID)
	case r.Body != nil && !json.Valid(r.Body), r.Snapshot != nil && !json.Valid(r.Snapshot):
		t.Fatalf("bodies %q, %q", r.Body, r.Snapshot)
	case r.Status == saga.Review && r.Said() == "":
		t.Fatalf("parks without words: %+v", r)
	}
}
