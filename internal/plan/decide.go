package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/saga"
)

// Verdict is what a person decides on a finding.
type Verdict string

// The verdicts.
const (
	Accept Verdict = "accept" // what stands is right, until it or its object changes
	Hide   Verdict = "ignore" // it is left alone until a time; nothing is said of what is right
	Remake Verdict = "again"  // the document is made again
	Ours   Verdict = "ours"   // what the source says is written over it
	Keep   Verdict = "keep"   // one of several documents stays, and the others are voided
	Void   Verdict = "undo"   // what stands is undone
	Reopen Verdict = "reopen" // what was decided before does not hold any more
)

// Verdicts are all of them, the harmless first.
var Verdicts = []Verdict{Accept, Hide, Remake, Ours, Keep, Void, Reopen}

// verdicts are what can be decided on what is for a person, by its class. What is in doubt or stuck is decided on its instance.
var verdicts = map[Class][]Verdict{
	AdoptMismatch: {Accept, Hide, Ours},
	PhantomDone:   {Accept, Hide, Remake},
	Missing:       {Accept, Hide, Remake},
	Diverged:      {Accept, Hide, Ours},
	Stale:         {Accept, Hide, Ours},
	Locked:        {Accept, Hide},
	Duplicate:     {Hide, Keep},
	Orphan:        {Accept, Hide, Void},
	SourceGone:    {Accept, Hide, Void},
	Unreadable:    {Hide},
}

// Decidable reports whether a person decides on findings of the class.
func Decidable(c Class) bool { return verdicts[c] != nil }

// Verdicts are what a person can decide on it; none where nothing is for a person, or its instance is to be spoken to.
func (f *Finding) Verdicts() []Verdict {
	if f.Action != Ask {
		return nil
	}
	return f.takes()
}

// takes are the verdicts of its class, whatever is to be done about it. What has no instance cannot run again.
func (f *Finding) takes() []Verdict {
	all := verdicts[f.Class]
	if f.Class == Missing && f.LedgerRevision == "" {
		all = slices.DeleteFunc(slices.Clone(all), func(v Verdict) bool { return v == Remake })
	}
	return all
}

// same reports whether it is the finding that a decision is on, or what became of that by being adopted.
func (d *Decision) same(f *Finding) bool {
	class := f.Class == d.Finding.Class || d.Finding.Class == AdoptMismatch && f.Class == Diverged
	return class && f.Mark() == d.Finding.Mark()
}

// Mark is a digest of what a finding rests on: the object's version, the documents, and what differs. A decision is on that: it holds
// for the same mark, whatever the ledger has learned since.
func (f *Finding) Mark() string {
	on, err := json.Marshal(Finding{Changes: f.Changes, SourceRevision: f.SourceRevision, Documents: f.Documents})
	if err != nil { // texts always marshal
		panic(err)
	}
	sum := sha256.Sum256(on)
	return hex.EncodeToString(sum[:6])
}

// Decision is what a person decided on a finding.
type Decision struct {
	Finding Finding // as it was shown
	Verdict Verdict
	Keep    string    // the document that stays, of [Keep]
	Until   time.Time // of [Accept] and [Hide]; zero: until what it is on changes
	By      saga.Actor
	At      time.Time // by the database's clock

	Outcome Outcome // of one that is carried out; Pending: nothing yet
	Error   string
	Ended   time.Time // when that was noted
}

// Acts reports whether something is carried out for it. To accept what the ledger does not know is to adopt it as it is: it would be
// started, and made twice, otherwise.
func (d *Decision) Acts() bool {
	switch d.Verdict {
	case Remake, Ours, Keep, Void:
		return true
	case Accept:
		return d.Finding.Class == AdoptMismatch
	default:
		return false
	}
}

// Holds reports whether a finding is left as it is because of the decision.
func (d *Decision) Holds(f *Finding, now time.Time) bool {
	return (d.Verdict == Accept || d.Verdict == Hide) && Decidable(f.Class) && (d.Verdict == Hide || f.Class != AdoptMismatch) && d.same(f) && (d.Until.IsZero() || now.Before(d.Until))
}

// Over reports whether the decision was over by then: carried out, or what it holds had ended.
func (d *Decision) Over(by time.Time) bool {
	at := d.At
	switch {
	case d.Verdict == Accept || d.Verdict == Hide:
		at = d.Until
	case d.Acts():
		at = d.Ended
	}
	return !at.IsZero() && at.Before(by)
}

// Held is a finding that is left as it is because of the decision.
func (d *Decision) Held(f *Finding) Finding {
	held := *f
	said := "accepted it"
	if d.Verdict == Hide {
		said = "ignores it until " + d.Until.UTC().Format(time.RFC3339)
	}
	held.Class, held.Action, held.Suggestion = Accepted, Nothing, ""
	held.Reason = fmt.Sprintf("%s %s: %s (%s: %s)", d.By.Name, said, d.By.Reason, f.Class, f.Reason)
	return held
}

// On reports whether a finding is what was decided on, so that it can be carried out; also where a run would do something about it by
// itself, and has done so in vain. Of several documents some may be void by now: by a run that was cut off.
func (d *Decision) On(f *Finding) bool {
	if !slices.Contains(f.takes(), d.Verdict) {
		return false
	}
	if d.Verdict == Keep {
		return slices.Contains(f.Documents, d.Keep) && !slices.ContainsFunc(f.Documents, func(id string) bool { return !slices.Contains(d.Finding.Documents, id) })
	}
	return d.same(f)
}

// Done reports whether a finding says that what was decided is so already.
func (d *Decision) Done(f *Finding) bool {
	return !f.Class.Drift() && f.Class != NoSource && (d.Verdict != Keep || slices.Equal(f.Documents, []string{d.Keep}))
}

// Act is what the act of it says, as JSON.
func (d *Decision) Act(job string) (json.RawMessage, error) {
	said := struct {
		Job     string    `json:"job"`
		Class   Class     `json:"class"`
		Finding string    `json:"finding"`
		Verdict Verdict   `json:"verdict"`
		Keep    string    `json:"keep,omitempty"`
		Until   time.Time `json:"until,omitzero"`
	}{job, d.Finding.Class, d.Finding.Mark(), d.Verdict, d.Keep, d.Until}
	return json.Marshal(said)
}

// Validate says everything that is wrong with it, in one error.
func (d *Decision) Validate() error {
	wrong := faults.List{d.By.Validate()}
	wrong.Whenf(d.Verdict != Reopen && !slices.Contains(d.Finding.Verdicts(), d.Verdict), "%s is no answer to what is %s", d.Verdict, d.Finding.Class)
	wrong.Whenf((d.Verdict == Keep) != slices.Contains(d.Finding.Documents, d.Keep),
		"the document to keep is one of %q, not %q", d.Finding.Documents, d.Keep)
	wrong.Whenf(d.Until.IsZero() == (d.Verdict == Hide) && d.Verdict != Accept,
		"%s: until when is said to ignore something, and may be to accept it", d.Verdict)
	if err := wrong.Err(); err != nil {
		return fmt.Errorf("decide on %s: %w", d.Finding.Key, err)
	}
	return nil
}

// DecisionQuery selects decisions of a job.
type DecisionQuery struct {
	Job   string
	Keys  []string // of these only; empty: of all
	Open  bool     // only those that [Decision.Acts], and of which nothing came yet
	After string   // keys behind this one
	Limit int      // 0: 100
}
