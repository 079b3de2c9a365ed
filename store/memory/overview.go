package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// Sessions returns "the live sessions, then the dead ones that still hold works; each kind by its
// opening".
func (db *DB) Sessions(ctx context.Context) ([]ledger.Session, error) {
	return in(ctx, db, func(now time.Time) ([]ledger.Session, error) {
		return db.listSessions(now), nil
	}, "list sessions")
}

func (db *DB) listSessions(now time.Time) []ledger.Session {
	holds := make(map[machine.Token]int64)
	for _, w := range db.works {
		if t := w.head.Session; t != 0 {
			holds[t]++
		}
	}
	all := make(map[machine.Token]ledger.Session)
	for t := range holds { // also those of which nothing is known any more
		all[t] = ledger.Session{Token: t, Dead: true, Holds: holds[t]}
	}
	for t, s := range db.sessions {
		if dead := !db.live(t, now); !dead || holds[t] > 0 {
			all[t] = ledger.Session{
				Token: t, Label: s.label, Opened: s.opened, Renewed: s.renewed, Expires: s.expires,
				Dead: dead, Knows: slices.Clone(s.knows), Holds: holds[t],
			}
		}
	}
	list := make([]ledger.Session, 0, len(all))
	for _, s := range all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b ledger.Session) int {
		return cmp.Or(order(a.Dead, b.Dead), a.Opened.Compare(b.Opened), cmp.Compare(a.Token, b.Token))
	})
	return list
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Overview "says what moves and what does not".
func (db *DB) Overview(ctx context.Context) (ledger.Overview, error) {
	return in(ctx, db, func(now time.Time) (ledger.Overview, error) {
		o := ledger.Overview{At: now, Sessions: db.listSessions(now), OldestSignal: db.oldestSignal()}
		o.Sessions = slices.DeleteFunc(o.Sessions, func(s ledger.Session) bool { return s.Dead })
		var known []ledger.Version
		for _, s := range o.Sessions {
			known = append(known, s.Knows...)
			if s.Renewed.After(now) {
				o.Ahead.Sessions = append(o.Ahead.Sessions, s)
			}
		}
		unknown, lines := make(map[ledger.Backlog]ledger.Backlog), make(map[string]ledger.Waiting)
		for _, w := range db.works {
			h := w.head
			waits := db.waiting(&h, now)
			if !waits.IsZero() && !knows(known, &h) {
				note(unknown, &h, waits)
			}
			if ahead(&h, now) && len(o.Ahead.Works) < ledger.MaxAhead {
				o.Ahead.Works = append(o.Ahead.Works, h)
			}
			if h.WaitsFor != "" {
				stand(lines, &h)
			} else if h.Status.Live() && (h.Session != 0 || due(&h, now)) {
				h.Updated = w.at(w.length()).At
				o.Oldest = append(o.Oldest, h)
			}
		}
		o.Unknown = slices.SortedFunc(maps.Values(unknown), ledger.Backlog.Compare)
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			o.Waiting = append(o.Waiting, lines[name])
		}
		slices.SortStableFunc(o.Oldest, func(a, b ledger.Instance) int { return a.Updated.Compare(b.Updated) })
		o.Oldest = o.Oldest[:min(len(o.Oldest), ledger.MaxOldest)]
		return o, nil
	}, "look over the ledger")
}

// waiting is when a work that no live session holds is or was due, zero when it waits for nothing.
func (db *DB) waiting(h *ledger.Instance, now time.Time) time.Time {
	switch {
	case h.Session == 0:
		return h.Due
	case db.live(h.Session, now), !h.Status.Live() && h.Posted == h.Consumed:
		return time.Time{}
	default:
		return db.since(h, now)
	}
}

// stand adds a work to what waits for its destination.
func stand(lines map[string]ledger.Waiting, h *ledger.Instance) {
	w, ok := lines[h.WaitsFor]
	if !ok || h.Due.Before(w.Oldest) {
		w.Oldest = h.Due
	}
	w.Destination, w.Works = h.WaitsFor, min(w.Works+1, ledger.MaxBacklog)
	lines[h.WaitsFor] = w
}

// note adds a work to the backlog of its definition.
func note(unknown map[ledger.Backlog]ledger.Backlog, h *ledger.Instance, due time.Time) {
	key := ledger.Backlog{Saga: h.ID.Saga, Version: h.Version, Ended: h.Status.Terminal()}
	b, ok := unknown[key]
	if !ok {
		b = key
	}
	if !ok || due.Before(b.Oldest) {
		b.Oldest = due
	}
	b.Works = min(b.Works+1, ledger.MaxBacklog)
	unknown[key] = b
}
