package plan

import (
	"slices"
	"strings"
	"time"
)

// Plan says what a comparison found and what would be done about it. Its findings are kept beside
// it, in the order of their keys. Equal sides give an equal plan, byte for byte: it holds no time
// and no chance.
type Plan struct {
	ID                     string   `json:"id"` // over every finding and all below but the listing it rests on; an approval names it
	Job                    string   `json:"job"`
	MappingVersion         string   `json:"mappingVersion"`                   // of what makes documents of objects
	PreviousMappingVersion string   `json:"previousMappingVersion,omitempty"` // of the job's plan before this one
	Scan                   int64    `json:"scan"`                             // the listing that it rests on
	Counts                 Census   `json:"counts"`
	Differences            Spread   `json:"differences"`
	Classes                []Tally  `json:"classes"`                 // in the order of the table of classes; what is in sync, too
	OverLimit              []Excess `json:"overLimit,omitempty"`     // what the bounds keep from being done without an approval
	RefusedReason          string   `json:"refusedReason,omitempty"` // why nothing of it may be done: the diagnosis
	// HoldsNothingReason is why what is newer does not wait for what it leaves to people: there is too much of it. "": it does.
	HoldsNothingReason string `json:"holdsNothingReason,omitempty"`
}

// Census counts the sides.
type Census struct {
	Source         int64 `json:"source"`
	Destination    int64 `json:"destination"`
	Ledger         int64 `json:"ledger"`
	Keys           int64 `json:"keys"`                     // that any side has
	PreviousSource int64 `json:"previousSource,omitempty"` // objects of the source in the last complete listing
}

// Tally counts the findings of one class for which one thing is to be done.
type Tally struct {
	Class  Class `json:"class"`
	Action Verb  `json:"action"`
	Risk   Risk  `json:"risk,omitempty"` // create, update, destroy
	Count  int64 `json:"count"`
}

// Excess is a kind of action that is over its bound and is withheld.
type Excess struct {
	Risk   Risk   `json:"risk"`
	Count  int64  `json:"count"`
	Limit  int64  `json:"limit"`
	Reason string `json:"reason"`
}

// Count returns how many findings the plan has for which f is true.
func (p *Plan) Count(f func(Tally) bool) int64 {
	var n int64
	for _, t := range p.Classes {
		if f(t) {
			n += t.Count
		}
	}
	return n
}

// Acts returns how many actions of one risk the plan holds; those of Harmless, too.
func (p *Plan) Acts(r Risk) int64 {
	return p.Count(func(t Tally) bool { return t.Action.Acts() && t.Risk == r })
}

// Drifts returns how many keys are not as they should be.
func (p *Plan) Drifts() int64 { return p.Count(func(t Tally) bool { return t.Class.Drift() }) }

// Drift reports whether what is of the class is not as it should be.
func (c Class) Drift() bool {
	return c != InSync && c != Foreign && c != DivergedForeign && c != NoSource && c != Accepted
}

// holding are the classes of which something stands that a person is to decide on, so that starts and newer versions wait for that.
var holding = []Class{AdoptMismatch, PhantomDone, Stale, Diverged, Locked, Duplicate, Orphan, SourceGone}

// Left is how many keys it leaves to people of those classes.
func (p *Plan) Left() int64 {
	return p.Count(func(t Tally) bool { return t.Action == Ask && slices.Contains(holding, t.Class) })
}

// Words that findings begin with whose actions are left undone.
const (
	// ChangedThere: a newer version would be written over what a person is to decide on.
	ChangedThere = "it was changed at the destination, of which a person is to decide, and since then at the source: "
	// AsApplied: nothing of a person's would be written over.
	AsApplied = "the document says what was applied at "
	// LookFailed: it is as it was listed, and nothing is known of how it is now.
	LookFailed = "the look failed: "
)

// Hold says of a finding whether starts and newer versions wait until a person has decided on it.
type Hold int8

// What a finding says of that.
const (
	Lets    Hold = iota // they do not wait
	Holds               // they do
	Unknown             // as before: it could not be looked at
)

// Hold is what the finding says of it. What ran in vain is to be helped by a newer version.
func (f *Finding) Hold() Hold {
	switch {
	case f.Action == Nothing && strings.HasPrefix(f.Reason, LookFailed):
		return Unknown
	case f.Class == Diverged && strings.HasPrefix(f.Reason, AsApplied):
		return Lets
	case f.Action == Ask && slices.Contains(holding, f.Class) && (f.Class != Stale || strings.HasPrefix(f.Reason, ChangedThere)):
		return Holds
	default:
		return Lets
	}
}

// HoldFor is for how long a finding holds that no run has told again: its job is gone.
const HoldFor = 30 * 24 * time.Hour

// Withholds reports whether actions of a risk are over their bound.
func (p *Plan) Withholds(r Risk) bool {
	return slices.ContainsFunc(p.OverLimit, func(e Excess) bool { return e.Risk == r })
}
