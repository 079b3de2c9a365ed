package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Claim "buries sessions that expired, Skew after their end, and releases what dead ones held, then
// gives session t up to c.Limit works that are due and known to it", and returns them "together
// with the works t already holds that have an unread signal".
func (db *DB) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	return in(ctx, db, func(now time.Time) (ledger.Claimed, error) {
		if err := db.same(t); err != nil {
			return ledger.Claimed{}, err
		}
		for _, s := range db.sessions {
			s.dead = s.dead || !s.expires.Add(db.limits.Skew).After(now)
		}
		if !db.live(t, now) {
			return ledger.Claimed{}, ledger.ErrSessionDead
		}
		var free, held []*ledger.Instance
		for _, w := range db.works {
			h := &w.head
			if db.lost(h.Session) {
				w.release(db.since(h, now), now, "")
			}
			switch {
			case h.Session == t && h.Posted > h.Consumed:
				held = append(held, h)
			case due(h, now) && knows(c.Known, h):
				free = append(free, h)
			}
		}
		chosen := choose(free, c)
		for _, h := range chosen {
			h.Session, h.Due, h.WaitsFor = t, time.Time{}, ""
		}
		return ledger.Claimed{Instances: copyHeads(append(chosen, held...)), Controls: db.version}, nil
	}, "claim for session %s", t)
}

// choose picks works in the order of a claim: "what is to be undone goes before all else, whichever
// line it stands in; then the lines take turns".
func choose(free []*ledger.Instance, c ledger.Claim) []*ledger.Instance {
	lines := make(map[string][]*ledger.Instance) // by what they wait for
	for _, h := range free {
		lines[h.WaitsFor] = append(lines[h.WaitsFor], h)
	}
	turns := make(map[*ledger.Instance]int, len(free))
	free = free[:0]
	for name, line := range lines {
		slices.SortStableFunc(line, inLine)
		if name != "" { // "those that wait for one that is not named, or has no room, are left alone"
			line = line[:min(len(line), max(c.Rooms[name], 0))]
		}
		for turn, h := range line {
			turns[h] = turn
		}
		free = append(free, line...)
	}
	slices.SortFunc(free, func(a, b *ledger.Instance) int {
		return cmp.Or(order(class(a) != ledger.ClassCompensating, class(b) != ledger.ClassCompensating),
			cmp.Compare(turns[a], turns[b]), a.Due.Compare(b.Due), cmp.Compare(a.Number, b.Number))
	})
	var first, others []*ledger.Instance // "up to this many go first to works that have not begun and wait for no destination"
	for _, h := range free {
		if len(first) < c.Fresh && class(h) == ledger.ClassUnbegun && h.WaitsFor == "" {
			first = append(first, h)
		} else {
			others = append(others, h)
		}
	}
	return slices.Concat(first, others)[:min(len(free), max(c.Limit, 0))]
}

// inLine is the order of works that wait for the same: of a destination in that "of their
// starting", else "the longest due first".
func inLine(a, b *ledger.Instance) int {
	if a.WaitsFor != "" {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.Number, b.Number))
	}
	return cmp.Or(cmp.Compare(class(a), class(b)), a.Due.Compare(b.Due))
}

// class is where a work stands in the order of claims: "works that have ended and have an unread
// signal count as begun".
func class(h *ledger.Instance) ledger.Class {
	if h.Status.Terminal() {
		return ledger.ClassBegun
	}
	return h.Class
}

// due reports whether no session holds the work and it wants attention.
func due(h *ledger.Instance, now time.Time) bool {
	return h.Session == 0 && !h.Due.IsZero() && !h.Due.After(now)
}

// knows reports whether a process that knows vs can take the work.
func knows(vs []ledger.Version, h *ledger.Instance) bool {
	return slices.ContainsFunc(vs, func(v ledger.Version) bool {
		return v.Saga == h.ID.Saga && (v.Version == h.Version || h.Status.Terminal() && v.Version > h.Version)
	})
}

// since is when a work whose holder is lost began to wait for another: at the end of its lease.
func (db *DB) since(h *ledger.Instance, now time.Time) time.Time {
	since := h.Updated // of a session that the ledger does not know
	if s := db.sessions[h.Session]; s != nil {
		since = s.expires
	}
	if since.After(now) {
		return now
	}
	return since
}

// release takes a work from its holder: "a live work becomes due at the time the return says, and
// waits for the destination it names; with an unread signal it is due at once and waits for
// nothing. One that is parked or has ended is due only for an unread signal".
func (w *work) release(due, now time.Time, waitsFor string) {
	h := &w.head
	h.Session, h.Due, h.WaitsFor = 0, time.Time{}, ""
	switch unread := h.Posted > h.Consumed; {
	case unread && due.After(now):
		h.Due = now
	case unread:
		h.Due = due
	case ledger.GoesOn(h.Status, h.Reason):
		if h.Due = due; h.Status.Live() { // what hung waits for no destination
			h.WaitsFor = waitsFor
		}
	}
}

// GiveBack releases works that t holds. "A live work that is released already becomes due at that
// time when it would be due later, and waits for what it waited for before. Others are left alone".
func (db *DB) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	return db.do(ctx, func(now time.Time) error {
		if err := db.same(t); err != nil {
			return err
		}
		if err := valid.Returns(works); err != nil {
			return err
		}
		for _, r := range works {
			if r.Due.IsZero() {
				r.Due = now
			}
			r.Due = r.Due.UTC().Truncate(time.Microsecond)
			switch w := db.number(r.Number); {
			case w == nil:
			case w.head.Session != 0 && w.head.Session == t:
				w.release(r.Due, now, r.WaitsFor)
				if w.leaves = r.Leaves; w.leaves.IsZero() || !w.head.Deadline.IsZero() && w.head.Deadline.Before(w.leaves) {
					w.leaves = w.head.Deadline
				}
			case w.head.Session == 0 && w.head.Status.Live() && w.head.Due.After(r.Due):
				w.release(r.Due, now, w.head.WaitsFor)
			}
		}
		return nil
	}, "give back %d works", len(works))
}

// CatchUp "mends what a clock that ran ahead left behind".
func (db *DB) CatchUp(ctx context.Context) (works, sessions int64, err error) {
	err = db.do(ctx, func(now time.Time) error {
		for _, w := range db.works {
			if ahead(&w.head, now) {
				w.head.Due = now
				works++
			}
		}
		for _, s := range db.sessions {
			if !s.dead && s.renewed.After(now) {
				s.renewed, s.expires = now, now.Add(s.expires.Sub(s.renewed))
				sessions++
			}
		}
		return nil
	}, "catch up with the clock")
	return works, sessions, err
}

// ahead reports whether a work is due at a time that only a clock which ran ahead explains.
func ahead(h *ledger.Instance, now time.Time) bool {
	return h.Session == 0 && h.Due.After(now) && h.Updated.After(now)
}

// stray are the works that t holds and does not have in hand.
func (db *DB) stray(t machine.Token, inHand []int64) []ledger.Instance {
	has := make(map[int64]bool, len(inHand))
	for _, n := range inHand {
		has[n] = true
	}
	var heads []ledger.Instance
	for _, w := range db.works {
		if w.head.Session == t && !has[w.head.Number] && len(heads) < ledger.MaxStray {
			heads = append(heads, w.head)
		}
	}
	return heads
}

// Load returns chains "from the latest snapshot on". "Works that do not exist are left out".
func (db *DB) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return in(ctx, db, func(now time.Time) ([]ledger.Chain, error) {
		var chains []ledger.Chain
		for _, id := range ids {
			w := db.byID[id]
			if w == nil {
				continue
			}
			c := ledger.Chain{Instance: w.head, Records: copyRecords(w.records[w.head.Base-1:]), At: now}
			c.Signals = copySignals(slices.DeleteFunc(slices.Clone(w.signals), func(s machine.Signal) bool { return w.read[s.ID] }))
			c.Changed = db.changed(w.at(w.length()))
			c.Over = c.Arms() && c.Changed.IsZero() && !slices.Contains(db.unburied(), c.Records[len(c.Records)-1].Session)
			chains = append(chains, c)
		}
		return chains, nil
	}, "load %d works", len(ids))
}

// AtRest returns those of the works "that have ended, are in review or paused".
func (db *DB) AtRest(ctx context.Context, ids []saga.ID) ([]saga.ID, error) {
	return in(ctx, db, func(time.Time) (rest []saga.ID, err error) {
		for _, id := range ids {
			if w := db.byID[id]; w != nil && (w.head.Status.Terminal() || w.head.Status.Parked()) && !slices.Contains(rest, id) {
				rest = append(rest, id)
			}
		}
		return rest, nil
	}, "ask which of %d works are at rest", len(ids))
}

// byLast orders duplicates: "the most recent first".
func byLast(a, b ledger.Duplicate) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID.Saga, b.ID.Saga),
		cmp.Compare(a.ID.Work, b.ID.Work), cmp.Compare(a.Source, b.Source))
}

// leaveLines takes works out of the lines in which they wait for a destination whose deadline has passed, or the end of their wait.
func (db *DB) leaveLines(now time.Time) {
	for _, w := range db.works {
		if h := &w.head; h.WaitsFor != "" && h.Session == 0 && !w.leaves.IsZero() && !w.leaves.After(now) {
			h.WaitsFor, h.Due, w.leaves = "", w.leaves, time.Time{}
		}
	}
}
