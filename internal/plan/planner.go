package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/program"
)

// Planner makes a plan of findings. It holds none of them.
type Planner struct {
	plan    Plan
	tallies map[Tally]int64  // Count is 0 in the keys
	spread  map[string]int64 // by field: in how many documents it was changed at the destination
	sum     hash.Hash        // over the findings
	last    string
	halted  string // the first key for which the job must stop
}

// NewPlanner begins a plan. head says whose plan it is: Job, MappingVersion, PreviousMappingVersion and Scan; and
// what the comparison counted: Counts and Differences. counted are its tallies.
func NewPlanner(head *Plan, counted []Tally) *Planner {
	p := &Planner{plan: *head, tallies: map[Tally]int64{}, spread: map[string]int64{}, sum: sha256.New()}
	for _, t := range counted {
		p.Count(t)
	}
	return p
}

// Add takes the next finding, in the order of keys. Of one that turned out to be in sync it keeps
// the count alone.
func (p *Planner) Add(f *Finding) error {
	if f.Key <= p.last {
		return fmt.Errorf("plan of %s: %q was found after %q; findings come in the order of their keys, each once", p.plan.Job, f.Key, p.last)
	}
	p.last = f.Key
	p.tallies[Tally{Class: f.Class, Action: f.Action, Risk: f.Risk()}]++
	if f.Class == InSync {
		return nil
	}
	if (f.Class == Diverged || f.Class == AdoptMismatch) && f.Action != Nothing { // nothing: all that differs is to be left
		for _, ch := range f.Changes {
			p.spread[ch.Field]++
		}
	}
	if f.Action == Halt && p.halted == "" {
		p.halted = f.Key
	}
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("plan of %s: write %s: %w", p.plan.Job, f.Key, err)
	}
	p.sum.Write(append(line, '\n'))
	return nil
}

// Count takes findings that are counted and not named.
func (p *Planner) Count(t Tally) {
	n := t.Count
	t.Count = 0
	p.tallies[t] += n
}

// Plan ends the plan: what is over its bound is withheld, and it gets its id.
func (p *Planner) Plan(b *Bounds) (*Plan, error) {
	plan := p.plan
	plan.Classes = nil
	for _, t := range slices.SortedFunc(maps.Keys(p.tallies), byTable) {
		t.Count = p.tallies[t]
		plan.Classes = append(plan.Classes, t)
	}
	plan.Differences.Fields = p.widest()
	b.Check(&plan)
	if p.halted != "" {
		plan.RefusedReason = fmt.Sprintf("the ledger has several works for one natural key, which cannot be, of %s first. Stop, and find out who writes to it; %s", p.halted, program.Command("show", p.halted, ""))
	}
	plan.HoldsNothingReason = b.holdsNothing(&plan)
	said := plan // which listing it rests on, and what was before, makes no other plan of it
	said.ID, said.Scan, said.PreviousMappingVersion, said.Counts.PreviousSource = "", 0, "", 0
	head, err := json.Marshal(&said)
	if err != nil {
		return nil, fmt.Errorf("plan of %s: %w", plan.Job, err)
	}
	sum := sha256.New()
	sum.Write(p.sum.Sum(nil))
	sum.Write(head)
	plan.ID = hex.EncodeToString(sum.Sum(nil)[:16])
	return &plan, nil
}

// widest is the spread as the listings had it, or wider where a closer look found more: what looked
// like news of the source is none when the ledger knows that the input was the same.
func (p *Planner) widest() []Share {
	shares := map[string]Share{}
	for _, s := range p.plan.Differences.Fields {
		shares[s.Field] = s
	}
	for field, n := range p.spread {
		s := shares[field]
		if more := n - s.Count; more > 0 {
			s.Count, s.NewerAtSource = n, max(0, s.NewerAtSource-more)
		}
		shares[field] = s
	}
	return widest(shares)
}

// Classes are all classes, in the order in which people read them.
var Classes = []Class{
	InSync, Missing, LedgerLost, AdoptMismatch, InDoubt, PhantomDone, Stale, Diverged, DivergedForeign, Locked,
	Duplicate, Orphan, SourceGone, Stuck, Unreadable, DupLedger, Accepted, NoSource, Foreign,
}

// byTable orders tallies by their classes, then by what is to be done.
func byTable(a, b Tally) int {
	if c := slices.Index(Classes, a.Class) - slices.Index(Classes, b.Class); c != 0 {
		return c
	}
	if c := strings.Compare(string(a.Action), string(b.Action)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Risk), string(b.Risk))
}
