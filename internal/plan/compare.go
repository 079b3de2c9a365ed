package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Seen is one row of a listing of the source or the destination.
type Seen struct {
	Key         string // natural key; empty at the destination: it does not carry our mark
	ID          string // the object's or the document's
	Revision    string // source: of the object; destination: which the document shows, if it says so
	Fingerprint Fingerprint
	Fields      Fields    // may be left out; see [Comparison.Fields]
	Created     time.Time // destination: of the document

	Wanted     bool // source: the object is to have a document
	Unreadable bool // source: the object could not be read
	Void       bool // destination: it does not count any more
	Locked     bool // destination: posted, paid or in a closed period
	Foreign    bool // destination: fields that are not ours differ
}

// Fingerprint digests fields, with the version of the mapping that made them. Equal ones say the
// same. Zero says nothing, and equals nothing.
type Fingerprint [16]byte

// Sides are what is compared. The listings may hold several rows of one key, the ledger has one.
type Sides struct {
	Source      Stream[Seen]
	Destination Stream[Seen]
	Ledger      Stream[Head]
}

// Comparison is how sides are compared.
type Comparison struct {
	Policy *Policy
	// Complete: the listing of the source is whole, without an error, and counted. Only then is a
	// document whose object it does not have a finding, an orphan that is not proven yet.
	Complete bool
	// Fields returns the fields of the object and of the one live document of a key whose
	// fingerprints differ and whose rows came without. Keys are asked in their order. Nil: the rows
	// bring their fields.
	Fields func(ctx context.Context, key string) (object, document Fields, err error)
}

// Counts is what a comparison counted.
type Counts struct {
	Census  Census
	Tallies []Tally // what nothing was found for: it is in sync, not ours, or differs in fields only that are not ours
	Spread  Spread
}

// Spread says how wide differences are spread over the keys that are wanted and have one live
// document, be it known to the ledger as done or not at all.
type Spread struct {
	Compared int64   `json:"compared"`
	Fields   []Share `json:"fields,omitempty"` // the widest first; what the policy ignores is not counted
}

// Share is in how many documents one field differs.
type Share struct {
	Field string `json:"field"`
	// Count is of those whose source is at the version that was applied. There a difference comes
	// from an edit at the destination, or from the mapping.
	Count int64 `json:"count"` // where the source is at the version that was applied
	// NewerAtSource is of the others. There a difference is the source's news. It is the mapping's if that
	// has changed, and the source counts our own mark on the object as a new version.
	NewerAtSource int64 `json:"newerAtSource,omitempty"` // where it is newer
}

// Leave takes a difference out that is left as it is.
func (s *Spread) Leave(f *Finding) {
	if len(f.Changes) > 0 {
		s.Compared--
	}
	for _, ch := range f.Changes {
		for i := range s.Fields {
			switch of := &s.Fields[i]; {
			case of.Field != ch.Field:
			case saga.CompareRevisions(f.SourceRevision, f.LedgerRevision) > 0:
				of.NewerAtSource--
			default:
				of.Count--
			}
		}
	}
}

// Compare merges the three sides, in the order of keys and in one pass, and yields what is not
// plainly in sync. What it yields rests on listings alone: Looked is 0, and nothing is proven. It
// holds one key at a time.
func (c *Comparison) Compare(ctx context.Context, s Sides, yield func(*Finding) error) (*Counts, error) {
	m := newMerge(ctx, c, s)
	if err := m.begin(); err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("compare: %w", context.Cause(ctx))
		}
		more, err := m.gather()
		if err != nil {
			return nil, err
		}
		if !more {
			return m.counts(), nil
		}
		if m.plain() {
			continue
		}
		if err := m.find(yield); err != nil {
			return nil, err
		}
	}
}

// named is how many live documents of one key are gathered. More are counted: no person reads a
// thousand ids.
const named = 100

// pile is what the three sides have of one key.
type pile struct {
	key     string
	objects int    // rows of the source
	object  Seen   // the first
	live    int    // documents that count
	docs    []Seen // the first of them
	void    bool   // there is one that does not count any more
	voided  Seen   // the last of those
	works   int
	head    Known
}

// plain reports whether nothing is to be said about the pile at hand, and counts it. It says
// nothing that [Classify] would not say; it only says it without allocating.
func (m *merge) plain() bool {
	p := &m.pile
	if p.works > 1 || p.objects > 1 || p.live > 1 || p.object.Unreadable && p.objects > 0 {
		return false
	}
	if k := &p.head; p.works > 0 {
		switch {
		case k.Works > 1 || k.InDoubt || k.Overdue || k.Status.Parked():
			return false
		case k.Status.Live():
			m.inSync++
			return true
		}
	}
	switch {
	case p.live == 0 && p.objects > 0:
		if p.object.Wanted {
			return false
		}
	case p.live == 0:
		if p.works > 0 && (!p.void || !m.how.Complete) {
			return m.apart()
		}
	case p.objects == 0:
		if m.how.Complete {
			return false
		}
		return m.apart()
	case !p.same():
		return false
	default:
		m.compared++
		if p.docs[0].Foreign {
			m.divergedForeign++
			return true
		}
	}
	m.inSync++
	return true
}

// apart counts a key of which the source says nothing, once enough of them are named.
func (m *merge) apart() bool {
	if m.noSource < Named {
		return false
	}
	m.noSource++
	return true
}

// same reports whether the ledger says done, and the one document what it should.
func (p *pile) same() bool {
	f := p.object.Fingerprint
	return p.object.Wanted && p.works == 1 && p.head.Status == saga.Completed && f == p.docs[0].Fingerprint && f != Fingerprint{}
}
