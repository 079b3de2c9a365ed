package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// signalled is at most how many held works with fresh signals one Claim tells of.
const signalled = 1000

// Claim "buries expired sessions, then gives session t up to Limit works that are due or whose holder is
// dead, and returns them together with works t already holds that somebody has posted a signal to".
func (l *Ledger) Claim(ctx context.Context, t saga.Token, c ledger.Claim) ([]ledger.Head, error) {
	now, unlock, err := l.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim for session %s: %w", t, err)
	}
	defer unlock()
	if err := l.same(t); err != nil {
		return nil, fmt.Errorf("claim for session %s: %w", t, err)
	}
	for _, s := range l.sessions {
		s.dead = s.dead || !s.expires.After(now)
	}
	if !l.live(t, now) {
		return nil, fmt.Errorf("claim for session %s: %w", t, ledger.ErrSessionDead)
	}
	var free, held []*work
	for _, w := range l.works {
		switch since, ok := l.claimable(&w.head, now); {
		case ok && (slices.Contains(c.Known, ledger.Version{Saga: w.head.ID.Saga, Version: w.head.Version}) ||
			!since.Add(c.Grace).After(now) && w.head.Reason != saga.ReasonUnknownVersion):
			// Unknown here: some process which knows it may take it first, and only that one if it is parked for it.
			free = append(free, w)
		case w.head.Session == t && (c.All || w.head.Posted > w.head.Consumed):
			held = append(held, w)
		}
	}
	slices.SortStableFunc(free, func(a, b *work) int { // the longest overdue first
		return l.since(&a.head).Compare(l.since(&b.head))
	})
	free = free[:min(len(free), max(c.Limit, 0))]
	if !c.All {
		held = held[:min(len(held), signalled)]
	}
	heads := make([]ledger.Head, 0, len(free)+len(held))
	for _, w := range free {
		w.head.Session, w.head.Due = t, time.Time{}
	}
	for _, w := range append(free, held...) {
		heads = append(heads, w.head)
	}
	return heads, nil
}

// claimable reports whether nobody holds the work and it wants attention, and since when.
func (l *Ledger) claimable(h *ledger.Head, now time.Time) (since time.Time, ok bool) {
	since = l.since(h)
	switch {
	case l.lost(h.Session):
		return since, true
	default:
		return since, h.Session == 0 && !h.Due.IsZero() && !h.Due.After(now)
	}
}

// since is when the work began to wait for a holder: its due time, or the end of its holder's lease.
func (l *Ledger) since(h *ledger.Head) time.Time {
	if s := l.sessions[h.Session]; s != nil {
		return s.expires
	}
	return h.Due
}

// Load returns chains "from the latest snapshot on". "Works that do not exist are left out".
func (l *Ledger) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	now, unlock, err := l.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("load %d works: %w", len(ids), err)
	}
	defer unlock()
	var chains []ledger.Chain
	for _, id := range ids {
		w := l.byID[id]
		if w == nil {
			continue
		}
		c := ledger.Chain{Head: w.head, Records: copyRecords(w.records[w.head.Base-1:]), At: now}
		if w.head.Posted > w.head.Consumed {
			c.Signals = copySignals(w.signals)
		}
		c.Changed = l.changed(w.at(w.length()))
		chains = append(chains, c)
	}
	return chains, nil
}

// byLast orders duplicates: "the most recent first".
func byLast(a, b ledger.Duplicate) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID.Saga, b.ID.Saga),
		cmp.Compare(a.ID.Work, b.ID.Work), cmp.Compare(a.Source, b.Source))
}
