package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/amends-dev/amends/saga"
)

// merge is one comparison on its way.
type merge struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	how    *Comparison
	policy *Policy

	source, destination cursor[Seen]
	ledger              cursor[Head]
	pile                pile // of the key at hand

	keys, foreign, inSync, divergedForeign, compared, noSource int64
	differ                                                     map[string]Share
}

func newMerge(ctx context.Context, c *Comparison, s Sides) *merge {
	seen := func(r *Seen) string { return r.Key }
	m := &merge{
		ctx: ctx, how: c, policy: c.Policy,
		source:      cursor[Seen]{side: "source", next: s.Source, key: seen},
		destination: cursor[Seen]{side: "destination", next: s.Destination, key: seen},
		ledger:      cursor[Head]{side: "ledger", next: s.Ledger, key: func(h *Head) string { return h.Key }},
		differ:      map[string]Share{},
	}
	if m.policy == nil {
		m.policy = &Policy{}
	}
	return m
}

// begin reads the first rows, and counts what does not carry our mark.
func (m *merge) begin() error {
	if err := errors.Join(m.source.advance(), m.destination.advance(), m.ledger.advance()); err != nil {
		return err
	}
	for m.destination.more && m.destination.row.Key == "" {
		m.foreign++
		if err := m.destination.advance(); err != nil {
			return err
		}
	}
	switch {
	case m.source.more && m.source.row.Key == "":
		return fmt.Errorf("the source's object %s has no natural key; without one nothing can be found again", m.source.row.ID)
	case m.ledger.more && m.ledger.row.Key == "":
		return errors.New("the ledger has a work without an id")
	}
	return nil
}

// gather collects the pile of the next key. It reports false when there is none.
func (m *merge) gather() (bool, error) {
	key, some := m.least()
	if !some {
		return false, nil
	}
	p := &m.pile
	p.key, p.objects, p.live, p.works, p.docs, p.void = key, 0, 0, 0, p.docs[:0], false
	for m.source.more && m.source.row.Key == key {
		if p.objects++; p.objects == 1 {
			p.object = m.source.row
		}
		if err := m.source.advance(); err != nil {
			return false, err
		}
	}
	for m.destination.more && m.destination.row.Key == key {
		if m.destination.row.Void {
			p.void, p.voided = true, m.destination.row
		} else if p.live++; p.live <= named {
			p.docs = append(p.docs, m.destination.row)
		}
		if err := m.destination.advance(); err != nil {
			return false, err
		}
	}
	for m.ledger.more && m.ledger.row.Key == key {
		p.works++
		p.head = m.ledger.row.Known
		if err := m.ledger.advance(); err != nil {
			return false, err
		}
	}
	m.keys++
	return true, nil
}

// least returns the smallest key that any side has.
func (m *merge) least() (key string, some bool) {
	if m.source.more {
		key, some = m.source.row.Key, true
	}
	if m.destination.more && (!some || m.destination.row.Key < key) {
		key, some = m.destination.row.Key, true
	}
	if m.ledger.more && (!some || m.ledger.row.Key < key) {
		key, some = m.ledger.row.Key, true
	}
	return key, some
}

// find classifies the pile at hand, and yields what is found.
func (m *merge) find(yield func(*Finding) error) error {
	item, err := m.item()
	if err != nil {
		return err
	}
	f := Classify(item, m.policy)
	m.spread(item, &f)
	if f.Class == InSync {
		m.inSync++
		return nil
	}
	if f.Class == DivergedForeign {
		m.divergedForeign++
		return nil
	}
	if f.Class == NoSource {
		if m.noSource++; m.noSource > Named {
			return nil
		}
	}
	return yield(&f)
}

// Named is how many keys of [NoSource] a plan names; the others are counted. Nothing is to be done
// about them, and there may be as many as the ledger is old.
const Named = 100

// item writes the pile as Classify takes it.
func (m *merge) item() (*Item, error) {
	p := &m.pile
	i := &Item{Key: p.key, Unnamed: p.live - len(p.docs)}
	for n := range p.docs {
		i.Documents = append(i.Documents, p.docs[n].document())
	}
	if p.live == 0 && p.void {
		i.Documents = append(i.Documents, p.voided.document())
	}
	if p.works > 0 {
		known := p.head
		known.Works = max(known.Works, p.works)
		i.Known = &known
	}
	switch o := &p.object; {
	case p.objects > 1:
		i.Truth = &Truth{Key: p.key, Unreadable: fmt.Sprintf("the source has %d objects with this natural key, %s among them", p.objects, o.ID)}
	case p.objects == 1:
		i.Truth = o.truth()
	case m.how.Complete:
		i.Truth = &Truth{Key: p.key} // gone, as far as one listing can tell
	}
	if t := i.Truth; t != nil && t.Wanted && p.live == 1 {
		return i, m.fields(i)
	}
	return i, nil
}

// fields fetches what the rows left out.
func (m *merge) fields(i *Item) error {
	d := &i.Documents[0]
	if i.Truth.Fields != nil && d.Fields != nil {
		return nil
	}
	if m.how.Fields == nil {
		return fmt.Errorf("compare %s: the listings have no fields, and there is no function to read them", i.Key)
	}
	var err error
	if i.Truth.Fields, d.Fields, err = m.how.Fields(m.ctx, i.Key); err != nil {
		return fmt.Errorf("compare %s: read its fields: %w", i.Key, err)
	}
	return nil
}

func (s *Seen) truth() *Truth {
	t := &Truth{Key: s.Key, Revision: s.Revision, Wanted: s.Wanted, Fields: s.Fields}
	t.Proven = !s.Wanted && s.Revision == "" // the source shows that it is cancelled
	if s.Unreadable {
		t.Unreadable = "the source's object " + s.ID + " cannot be read"
	}
	return t
}

func (s *Seen) document() Document {
	return Document{
		ID: s.ID, Key: s.Key, Revision: s.Revision, Fields: s.Fields,
		Void: s.Void, Locked: s.Locked, Foreign: s.Foreign, Created: s.Created,
	}
}

// spread counts in which fields a document differs.
func (m *merge) spread(i *Item, f *Finding) {
	if i.Truth == nil || !i.Truth.Wanted || i.Truth.Unreadable != "" || m.pile.live != 1 {
		return
	}
	if i.Known != nil && i.Known.Status != saga.Completed {
		return
	}
	m.compared++
	newer := i.Known != nil && saga.CompareRevisions(i.Truth.Revision, i.Known.Revision) > 0
	for _, ch := range f.Changes {
		if m.policy.Fields[ch.Field] == Ignore {
			continue
		}
		s := m.differ[ch.Field]
		if newer {
			s.NewerAtSource++
		} else {
			s.Count++
		}
		m.differ[ch.Field] = s
	}
}

// widest lists shares, those of most documents first.
func widest(shares map[string]Share) []Share {
	var list []Share
	for _, field := range slices.Sorted(maps.Keys(shares)) {
		s := shares[field]
		list = append(list, Share{field, s.Count, s.NewerAtSource})
	}
	slices.SortStableFunc(list, func(a, b Share) int { return cmp.Compare(b.Count+b.NewerAtSource, a.Count+a.NewerAtSource) })
	return list
}

func (m *merge) counts() *Counts {
	c := &Counts{
		Census: Census{Source: m.source.read, Destination: m.destination.read, Ledger: m.ledger.read, Keys: m.keys},
		Spread: Spread{Compared: m.compared},
	}
	for _, t := range []Tally{
		{Class: InSync, Action: Nothing, Count: m.inSync},
		{Class: DivergedForeign, Action: Nothing, Count: m.divergedForeign},
		{Class: NoSource, Action: Nothing, Count: max(0, m.noSource-Named)},
		{Class: Foreign, Action: Nothing, Count: m.foreign},
	} {
		if t.Count > 0 {
			c.Tallies = append(c.Tallies, t)
		}
	}
	c.Spread.Fields = widest(m.differ)
	return c
}
