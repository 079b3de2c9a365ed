package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// List lists a side whole: it goes on with the listing under way, or begins one, and reads what is
// left of its parts. The listing is complete when every part came to its end and held what the
// provider counted; then older sightings are discarded. Errors are told as by [Sweep.Changed].
func (s *Sweep) List(ctx context.Context, side Side) (Report, error) {
	l := s.listing(side)
	l.report.Result = OK
	if l.page == nil {
		return l.report, fmt.Errorf("sweep %s: its %s has no way to list everything", s.Name, side)
	}
	err := l.run(ctx)
	l.report.Calls = l.calls.Load()
	l.report.Listed = l.progress()
	l.report.After = l.report.Listed.String()
	if err != nil {
		l.report.partial(err.Error())
		if halt(err) {
			return l.report, fmt.Errorf("sweep %s: %w", s.Name, err)
		}
	} else if failed := l.report.Listed.Failed; len(failed) > 0 {
		l.report.partial(fmt.Sprintf("%d of %d parts could not be listed; part %q: %s", len(failed), l.report.Listed.Parts, failed[0].Part, failed[0].Why))
	}
	return l.report, nil
}

// String is how far the listing has come, for people.
func (p Progress) String() string {
	switch {
	case p.Generation == 0:
		return "nothing listed"
	case p.Open:
		return fmt.Sprintf("listing %d, %d of %d parts", p.Generation, p.Done, p.Parts)
	default:
		return fmt.Sprintf("listing %d, complete", p.Generation)
	}
}

// listing is one run of a full sweep of one side.
type listing struct {
	caller

	side       Side
	partitions func(context.Context) ([]Partition, error)
	page       func(context.Context, Query) ([]Sighting, int, string, error)

	root   Position
	state  generation
	parts  []Partition
	at     map[string]*Position
	states map[string]*part

	mu     sync.Mutex // one writer: guards report, and the store from many at once
	report Report
}

func (s *Sweep) listing(side Side) *listing {
	l := &listing{side: side, at: map[string]*Position{}, states: map[string]*part{}}
	l.Sweep = s
	if side == SourceSide {
		l.quota, l.partitions = s.Source.Quota, s.Source.Partitions
		if s.Source.All != nil {
			l.page = s.objects
		}
		return l
	}
	l.quota, l.partitions = s.Destination.Quota(), s.Destination.Partitions
	if s.Destination.Marked != nil {
		l.page = s.documents
	}
	return l
}

// objects lists a page of the source. It answers the rows, how many objects there were, and the
// next cursor.
func (s *Sweep) objects(ctx context.Context, q Query) ([]Sighting, int, string, error) {
	p, err := s.Source.All(ctx, q)
	if err != nil {
		return nil, 0, "", err
	}
	rows := make([]Sighting, len(p.Objects))
	for i := range p.Objects {
		rows[i] = s.sighting(&p.Objects[i])
	}
	return rows, len(rows), p.Next, nil
}

// documents lists a page of the destination. A document without our mark is none of ours.
func (s *Sweep) documents(ctx context.Context, q Query) ([]Sighting, int, string, error) {
	p, err := s.Destination.Marked(ctx, q)
	if err != nil {
		return nil, 0, "", err
	}
	rows := make([]Sighting, 0, len(p.Documents))
	for i := range p.Documents {
		rows = append(rows, document(s.Mapping, &p.Documents[i]))
	}
	return rows, len(rows), p.Next, nil
}

func (l *listing) progress() Progress {
	names := make([]string, len(l.parts))
	for i, p := range l.parts {
		names[i] = p.Name
	}
	return l.state.progress(l.side, names, l.states)
}

// open reads how far the listing has come.
func (l *listing) open(ctx context.Context) (err error) {
	if l.root, err = load(ctx, l.Store, l.sideName(l.side), &l.state); err != nil {
		return err
	}
	positions, err := l.Store.Positions(ctx, l.partsName(l.side))
	if err != nil {
		return haltError{fmt.Errorf("read where the parts of the sweep %s stand: %w", l.root.Name, err)}
	}
	for _, p := range positions {
		name, state := strings.TrimPrefix(p.Name, l.partsName(l.side)), new(part)
		if err := decode(p, state); err != nil {
			return err
		}
		l.at[name], l.states[name] = &p, state
		l.parts = append(l.parts, Partition{Name: name, Count: -1})
	}
	return nil
}

func (l *listing) run(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	l.report.Before = l.progress().String()
	parts, err := l.divide(ctx)
	if err != nil {
		return err
	}
	if l.state.next(l.Now(), l.Mapping) {
		if err := l.save(ctx); err != nil {
			return err
		}
	}
	l.enter(parts)
	if err := l.listAll(ctx, parts); err != nil {
		return err
	}
	if err := l.check(ctx); err != nil || l.progress().Done < len(parts) {
		return err
	}
	return l.end(ctx)
}

// divide asks for the parts.
func (l *listing) divide(ctx context.Context) ([]Partition, error) {
	if l.partitions == nil {
		return []Partition{{Name: "all", Count: -1}}, nil
	}
	var parts []Partition
	err := l.ask(ctx, func(ctx context.Context) (err error) {
		parts, err = l.partitions(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the parts of the %s: %w", l.side, err)
	}
	parts = slices.Clone(parts) // they are the caller's
	seen := map[string]bool{}
	for i, p := range parts {
		switch {
		case len(p.Name) > maxName:
			return nil, fmt.Errorf("the %s has a part with a name of %d bytes; at most %d", l.side, len(p.Name), maxName)
		case seen[p.Name]:
			return nil, fmt.Errorf("the %s has two parts named %q", l.side, p.Name)
		}
		seen[p.Name] = true
		parts[i].Count = max(p.Count, -1)
	}
	return parts, nil
}

// enter makes parts those of the generation. One that is not named any more has its objects in
// others.
func (l *listing) enter(parts []Partition) {
	l.parts = parts
	for _, p := range parts {
		if l.states[p.Name] == nil {
			l.states[p.Name] = new(part)
			l.at[p.Name] = &Position{Name: l.partsName(l.side) + p.Name}
		}
		l.states[p.Name].enter(l.state.Scan, p.Count)
	}
}

// check compares what was listed with what the provider counts now, where the first count was not
// reached.
func (l *listing) check(ctx context.Context) error {
	counts := map[string]int64{}
	short := false
	for _, p := range l.parts {
		s := l.states[p.Name]
		counts[p.Name] = p.Count
		short = short || s.Listed && !s.Complete && s.Seen < s.ExpectedCount
	}
	if short {
		parts, err := l.divide(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			counts[p.Name] = p.Count
		}
	}
	for _, p := range l.parts {
		s := l.states[p.Name]
		if !s.Listed || s.Complete {
			continue
		}
		if s.count(s.Seen, counts[p.Name]); !s.Complete {
			l.report.Violations++
		}
		if err := l.store(ctx, p.Name, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// end completes the listing when what is stored is what was counted: an object that was listed in
// two parts, or twice in one, is one row. Then it discards what was not seen again.
func (l *listing) end(ctx context.Context) error {
	q := SightingQuery{Name: l.Name, Side: l.side, Generation: l.state.Scan}
	held, err := l.Store.Tally(ctx, q)
	if err != nil {
		return haltError{fmt.Errorf("count what was listed of the %s: %w", l.side, err)}
	}
	rows, whole := int64(0), true
	for _, p := range l.parts {
		s := l.states[p.Name]
		rows += held[p.Name]
		if distinct := held[p.Name] + s.Unmarked; s.ExpectedCount >= 0 && distinct < min(s.ExpectedCount, s.CountAtEnd) {
			s.count(distinct, s.CountAtEnd)
		}
		if s.Complete {
			continue
		}
		l.report.Violations++
		whole = false
		if err := l.store(ctx, p.Name, nil, 0); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	l.state.complete(l.Now(), rows, len(l.parts))
	if err := l.save(ctx); err != nil {
		return err
	}
	return l.discard(ctx, q)
}

// discardAtOnce is how many rows one transaction erases.
const discardAtOnce = 5000

func (l *listing) discard(ctx context.Context, q SightingQuery) error {
	for {
		n, err := l.Store.Discard(ctx, q, discardAtOnce)
		if err != nil {
			return haltError{fmt.Errorf("discard what older listings of the %s saw: %w", l.side, err)}
		}
		if n < discardAtOnce {
			return nil
		}
	}
}

func (l *listing) save(ctx context.Context) error {
	l.state.Writer = l.by
	return l.advance(ctx, &l.root, &l.state, Catch{})
}
