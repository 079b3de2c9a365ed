package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/rows"
)

// knows is where is read what a session knows, pairs of a saga and a version.
type knows ledger.Session

// Scan implements [sql.Scanner].
func (k *knows) Scan(v any) error {
	var pairs [][2]json.RawMessage
	var text Text
	if err := text.Scan(v); err != nil || text == "" {
		return err
	}
	err := json.Unmarshal([]byte(text), &pairs)
	for _, p := range pairs {
		var v ledger.Version
		err = cmp.Or(err, json.Unmarshal(p[0], &v.Saga), json.Unmarshal(p[1], &v.Version))
		k.Knows = append(k.Knows, v)
	}
	return wrap(err, "read what session %s knows", k.Token)
}

// Sessions returns the live sessions, then the dead ones that still hold works.
func (s *chains) Sessions(ctx context.Context) (list []ledger.Session, err error) {
	err = s.db.View(ctx, func(ctx context.Context, q Queries) error {
		list, err = s.sessions(ctx, q)
		return err
	})
	return orNone(list, s.failed(ctx, err, "list sessions"))
}

// sessions reads them. One that holds works and of which nothing is known any more has a token only.
func (s *chains) sessions(ctx context.Context, q Queries) (list []ledger.Session, err error) {
	err = rows.Select(ctx, q, rows.Into(&list, func(s *ledger.Session) []rows.Field {
		return []rows.Field{
			{"token", (*int64)(&s.Token)}, {"label", &s.Label}, {"knows", (*knows)(s)}, {"witness", &s.Witness}, {"opened_at", &s.Opened},
			{"renewed_at", &s.Renewed}, {"expires_at", &s.Expires}, {"dead", &s.Dead}, {"holds", &s.Holds},
		}
	}), s.db.Text(sessions), s.db.Clock())
	return list, err
}

// Overview says what moves and what does not. What is released is looked at place by place in the
// order of claims, so that the number of works does not matter.
func (s *chains) Overview(ctx context.Context) (ledger.Overview, error) {
	var v view
	err := s.db.View(ctx, func(ctx context.Context, q Queries) error {
		v = view{store: s, ctx: ctx, q: q, backlogs: make(map[ledger.Backlog]ledger.Backlog)}
		for _, look := range []func() error{v.sessions, v.held, v.released, v.waiting, v.news, v.unread, v.reading} {
			if err := look(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return ledger.Overview{}, s.failed(ctx, err, "look over the ledger")
	}
	return v.done(), nil
}

// view is an overview in the making.
type view struct {
	ledger.Overview

	store    *chains
	ctx      context.Context //nolint:containedctx // it lives as long as one call
	q        Queries
	known    []ledger.Version
	backlogs map[ledger.Backlog]ledger.Backlog // by what they are of
}

func (v *view) sel(dest any, text string, args ...any) error {
	return sqlx.SelectContext(v.ctx, v.q, dest, v.store.db.Text(text), args...)
}

func (v *view) sessions() error {
	all, err := v.store.sessions(v.ctx, v.q)
	if err != nil {
		return err
	}
	var now Moment // behind what was seen: a session that is renewed meanwhile is not ahead of it
	if err := v.q.QueryRowxContext(v.ctx, v.store.db.Text(theTime), v.store.db.Clock()).Scan(&now, &v.Sealed); err != nil {
		return err
	}
	v.At = now.Time()
	for _, s := range all {
		if s.Dead {
			if err := v.orphans(&s); err != nil {
				return err
			}
			continue
		}
		v.Sessions = append(v.Sessions, s)
		v.known = append(v.known, s.Knows...)
		if s.Renewed.After(v.At) {
			v.Ahead.Sessions = append(v.Ahead.Sessions, s)
		}
	}
	return nil
}

// backlogRow counts works of one definition.
type backlogRow struct {
	Saga    string
	Version int
	Ended   Flag
	Works   int64
	Oldest  Moment
}

// orphans counts what a dead session still holds and that wants attention.
func (v *view) orphans(s *ledger.Session) error {
	var rows []backlogRow
	if err := v.sel(&rows, orphaned, int64(s.Token)); err != nil {
		return err
	}
	for _, r := range rows {
		since := s.Expires
		switch {
		case since.IsZero():
			since = r.Oldest.Time()
		case since.After(v.At):
			since = v.At
		}
		v.note(ledger.Backlog{Saga: r.Saga, Version: r.Version, Ended: bool(r.Ended)}, r.Works, since)
	}
	return nil
}

// note adds to the backlog of a definition.
func (v *view) note(of ledger.Backlog, works int64, oldest time.Time) {
	b, ok := v.backlogs[of]
	if !ok {
		b = of
	}
	if !ok || oldest.Before(b.Oldest) {
		b.Oldest = oldest
	}
	b.Works = min(b.Works+works, ledger.MaxBacklog)
	v.backlogs[of] = b
}

// held looks for what was not touched for long among the works in hand.
func (v *view) held() error {
	var rows []HeadRow
	if err := v.sel(&rows, oldestHeld, ledger.MaxOldest); err != nil {
		return err
	}
	v.old(rows)
	return nil
}

func (v *view) old(rows []HeadRow) {
	for i := range rows {
		h := rows[i].head()
		h.Updated = rows[i].Last.Time()
		v.Oldest = append(v.Oldest, h)
	}
}

// placeRow is a place in the order of claims at which works wait.
type placeRow struct {
	Saga    string
	Version int
	Class   int64
}

// released looks at each place in the order of claims.
func (v *view) released() error {
	var ps []placeRow
	if err := v.sel(&ps, places); err != nil {
		return err
	}
	for _, p := range ps {
		var b []backlogRow
		if err := v.sel(&b, backlog, p.Saga, p.Version, p.Class, ledger.MaxBacklog); err != nil {
			return err
		}
		v.note(ledger.Backlog{Saga: p.Saga, Version: p.Version}, b[0].Works, b[0].Oldest.Time())
		var due, late []HeadRow
		if err := v.sel(&due, oldestDue, v.store.db.Clock(), p.Saga, p.Version, p.Class, ledger.MaxOldest); err != nil {
			return err
		}
		v.old(due)
		if err := v.sel(&late, dueAhead, v.store.db.Clock(), p.Saga, p.Version, p.Class, ledger.MaxBacklog, ledger.MaxAhead); err != nil {
			return err
		}
		v.Ahead.Works = append(v.Ahead.Works, heads(late)...)
	}
	return nil
}

// lineRow is a place in the line of a destination at which works wait.
type lineRow struct {
	Destination string
	Saga        string
	Version     int
}

// waiting looks at each place in each destination's line.
func (v *view) waiting() error {
	var ls []lineRow
	if err := v.sel(&ls, linePlaces); err != nil {
		return err
	}
	for _, l := range ls {
		var b []backlogRow
		if err := v.sel(&b, lineBacklog, l.Destination, l.Saga, l.Version, ledger.MaxBacklog); err != nil {
			return err
		}
		works, oldest := b[0].Works, b[0].Oldest.Time()
		v.note(ledger.Backlog{Saga: l.Saga, Version: l.Version}, works, oldest)
		v.stand(l.Destination, works, oldest)
		var late []HeadRow
		if err := v.sel(&late, lineAhead, v.store.db.Clock(), l.Destination, l.Saga, l.Version, ledger.MaxBacklog, ledger.MaxAhead); err != nil {
			return err
		}
		v.Ahead.Works = append(v.Ahead.Works, heads(late)...)
	}
	return nil
}

// stand adds to what waits for a destination; the places come in its order.
func (v *view) stand(destination string, works int64, oldest time.Time) {
	if n := len(v.Waiting); n > 0 && v.Waiting[n-1].Destination == destination {
		w := &v.Waiting[n-1]
		w.Works = min(w.Works+works, ledger.MaxBacklog)
		if oldest.Before(w.Oldest) {
			w.Oldest = oldest
		}
		return
	}
	v.Waiting = append(v.Waiting, ledger.Waiting{Destination: destination, Works: works, Oldest: oldest})
}

// news counts works that have ended and have an unread signal.
func (v *view) news() error {
	var names []string
	if err := v.sel(&names, newsPlaces); err != nil {
		return err
	}
	for _, name := range names {
		var b []backlogRow
		if err := v.sel(&b, newsBacklog, name, ledger.MaxBacklog); err != nil {
			return err
		}
		for _, r := range b {
			v.note(ledger.Backlog{Saga: name, Version: r.Version, Ended: true}, r.Works, r.Oldest.Time())
		}
	}
	return nil
}

// unread looks for the signal that has waited for longest.
func (v *view) unread() error {
	var at Moment
	err := v.q.QueryRowxContext(v.ctx, OldestSignal).Scan(&at)
	v.OldestSignal = at.Time()
	return err
}

// reading looks for the transaction that has been open for longest, and at the log that grows meanwhile.
func (v *view) reading() error {
	if v.store.db.Log != nil {
		v.Log = v.store.db.Log()
	}
	if v.store.db.Reading == "" {
		return nil
	}
	var at Moment
	err := v.q.QueryRowxContext(v.ctx, v.store.db.Reading).Scan(&at)
	v.Reading = at.Time()
	return err
}

// done puts in order what was found, and keeps of the backlogs those that no live session knows.
func (v *view) done() ledger.Overview {
	for of, b := range v.backlogs {
		if !slices.ContainsFunc(v.known, func(k ledger.Version) bool {
			return k.Saga == of.Saga && (k.Version == of.Version || of.Ended && k.Version > of.Version)
		}) {
			v.Unknown = append(v.Unknown, b)
		}
	}
	slices.SortFunc(v.Unknown, func(a, b ledger.Backlog) int {
		return a.Compare(b)
	})
	slices.SortFunc(v.Oldest, func(a, b ledger.Instance) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Number, b.Number))
	})
	v.Oldest = v.Oldest[:min(len(v.Oldest), ledger.MaxOldest)]
	v.Ahead.Works = v.Ahead.Works[:min(len(v.Ahead.Works), ledger.MaxAhead)]
	return v.Overview
}
