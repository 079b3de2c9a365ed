package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Load returns chains from their latest snapshots on, in the order of ids. Works that do not exist
// are left out. Head, records and signals are of one moment.
func (s *chains) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	switch len(ids) {
	case 0:
		return nil, nil
	case 1:
		chain, err := s.loads.ask(ctx, ids[0])
		if err != nil || chain == nil {
			return nil, s.failed(ctx, err, "load %s", ids[0])
		}
		own := *chain // others may have asked for the same
		own.Records, own.Signals = slices.Clone(own.Records), slices.Clone(own.Signals)
		return []ledger.Chain{own}, nil
	}
	byID, err := s.loadEach(ctx, ids)
	if errors.Is(err, ledger.ErrKeys) {
		return s.loadOpen(ctx, ids)
	}
	if err != nil {
		return nil, s.failed(ctx, err, "load %d works", len(ids))
	}
	chains := make([]ledger.Chain, 0, len(ids))
	for _, c := range byID {
		if c != nil {
			chains = append(chains, *c)
		}
	}
	return chains, nil
}

// loadOpen loads works one by one, and leaves out those that cannot be opened.
func (s *chains) loadOpen(ctx context.Context, ids []saga.ID) (all []ledger.Chain, err error) {
	for _, id := range ids {
		one, err := s.Load(ctx, []saga.ID{id})
		if err != nil && !errors.Is(err, ledger.ErrKeys) {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// loadEach loads the chain of each work; nil: it does not exist. One statement does, unless it finds what asks for others of the same moment.
func (s *chains) loadEach(ctx context.Context, ids []saga.ID) ([]*ledger.Chain, error) {
	var err error
	l := loading{store: s}
	more := s.changed.Load() != nil // all of them are asked about
	if !more {
		err = s.db.Ask(ctx, func(ctx context.Context, q Queries) error { return l.together(ctx, q, ids) })
		more = l.wants(ids)
	}
	if err == nil && more {
		err = s.db.Load(ctx, func(ctx context.Context, q Queries) error { return l.all(ctx, q, ids) })
	}
	if err == nil {
		err = l.goesOn()
	}
	chains := make([]*ledger.Chain, len(ids))
	for i, id := range ids {
		chains[i] = l.chains[l.numbers[id]]
	}
	return chains, err
}

// AtRest returns those of the works that have ended, are in review or paused.
func (s *chains) AtRest(ctx context.Context, ids []saga.ID) (rest []saga.ID, err error) {
	list, err := pairs(ids)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(ctx context.Context, q Queries) error {
		rest = rest[:0]
		return sqlx.SelectContext(ctx, q, &rest, s.db.Text(atRest), list)
	})
	return rest, s.failed(ctx, err, "ask which of %d works are at rest", len(ids))
}

// pairs encodes works as statements take them, each once.
func pairs(ids []saga.ID) (string, error) {
	list := make([][2]string, 0, len(ids))
	seen := make(map[saga.ID]bool, len(ids))
	for _, id := range ids {
		if !seen[id] && valid.Text("saga", id.Saga) == nil && valid.Text("work", id.Work) == nil { // others cannot be there
			seen[id] = true
			list = append(list, [2]string{id.Saga, id.Work})
		}
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// loading collects chains by the numbers of their heads.
type loading struct {
	store   *chains
	chains  map[int64]*ledger.Chain
	lost    map[int64]error // why something of a chain cannot be opened
	numbers map[saga.ID]int64
}

// together loads heads, records and signals at once.
func (l *loading) together(ctx context.Context, q Queries, ids []saga.ID) error {
	l.chains, l.lost, l.numbers = make(map[int64]*ledger.Chain), make(map[int64]error), make(map[saga.ID]int64)
	return l.called(ctx, q, ids, func(id saga.ID) saga.ID { return id })
}

// wants reports whether other statements have something to say.
func (l *loading) wants(ids []saga.ID) bool {
	for _, c := range l.chains {
		if c.Arms() || beheaded(c) {
			return true
		}
	}
	return slices.ContainsFunc(ids, func(id saga.ID) bool { return l.numbers[id] == 0 })
}

// all loads what there is, with all statements.
func (l *loading) all(ctx context.Context, q Queries, ids []saga.ID) error {
	if err := l.together(ctx, q, ids); err != nil {
		return err
	}
	if err := l.remains(ctx, q, ids); err != nil {
		return err
	}
	if err := l.whole(ctx, q); err != nil {
		return err
	}
	if err := l.changes(ctx, q); err != nil {
		return err
	}
	return l.sessions(ctx, q)
}

// remains loads what stands under what is left of the names that were not found.
func (l *loading) remains(ctx context.Context, q Queries, ids []saga.ID) error {
	missing := slices.DeleteFunc(slices.Clone(ids), func(id saga.ID) bool { return l.numbers[id] != 0 })
	asked := make(map[saga.ID]saga.ID, len(missing))
	for i, id := range missing {
		missing[i].Work = l.store.Hide(id.Work)
		asked[missing[i]] = id
	}
	if len(missing) == 0 {
		return nil
	}
	return l.called(ctx, q, missing, func(id saga.ID) saga.ID { return asked[id] })
}

// loadedRow is one of a head, of a record or of a signal, in this order for each instance.
type loadedRow struct {
	Part int64
	HeadRow
	Record recordRow `db:"r"`
	Signal signalRow `db:"s"`
}

// called loads what stands under ids, and calls each as it was asked for.
func (l *loading) called(ctx context.Context, q Queries, ids []saga.ID, asked func(saga.ID) saga.ID) error {
	list, err := pairs(ids)
	if err != nil {
		return err
	}
	found, err := q.QueryxContext(ctx, l.store.db.Text(load), l.store.db.Clock(), list)
	if err != nil {
		return err
	}
	var of *ledger.Chain
	var chain reading
	return each(found, func(row *loadedRow) (err error) {
		switch row.Part {
		case 0:
			of, err = l.head(&row.HeadRow, asked)
			if err == nil {
				chain = reading{db: l.store.db, id: of.Instance.ID}
			}
		case 1:
			r, err := chain.next(&row.Record)
			l.lost[of.Instance.Number] = chain.lost
			of.Records = append(of.Records, r)
			return err
		default:
			sig, err := l.store.db.signal(of.Instance.ID, &row.Signal)
			if err != nil && !(errors.Is(err, ledger.ErrKeys) && of.Instance.Status.Terminal()) {
				return err
			}
			of.Signals = append(of.Signals, sig)
		}
		return err
	})
}

func (l *loading) head(row *HeadRow, asked func(saga.ID) saga.ID) (*ledger.Chain, error) {
	h := row.head()
	h.ID = asked(h.ID)
	if !h.Status.Valid() { // it is not taken for another
		return nil, fmt.Errorf("%s has status %q, which this program does not know", h.ID, h.Status)
	}
	c := &ledger.Chain{Instance: h, At: row.Now.Time()}
	if h.Left() == ledger.LeftRemains {
		c.Records = []machine.Record{ledger.Remembered(&h)}
	}
	l.chains[h.Number], l.numbers[h.ID] = c, h.Number
	return c, nil
}

// beheaded reports whether a chain begins with a snapshot that cannot be opened.
func beheaded(c *ledger.Chain) bool {
	return len(c.Records) > 0 && c.Records[0].Seq > 1 && len(c.Records[0].Snapshot) == 0
}

// whole loads from the beginning what is beheaded.
func (l *loading) whole(ctx context.Context, q Queries) error {
	for n, c := range l.chains {
		if !beheaded(c) {
			continue
		}
		found, err := q.QueryxContext(ctx, l.store.db.Text(history), n)
		if err != nil {
			return err
		}
		chain := reading{db: l.store.db, id: c.Instance.ID}
		c.Records = c.Records[:0]
		err = each(found, func(row *recordRow) error {
			r, err := chain.next(row)
			c.Records = append(c.Records, r)
			return err
		})
		if err != nil {
			return err
		}
		l.lost[n] = chain.lost
	}
	return nil
}

// goesOn refuses what cannot go on without what is lost.
func (l *loading) goesOn() error {
	for n, lost := range l.lost {
		if c := l.chains[n]; lost != nil && !c.Instance.Status.Terminal() {
			return fmt.Errorf("it has not ended (%s), and cannot go on: %w", c.Instance.Status, lost)
		}
	}
	return nil
}

// changes marks the chains whose tails were written before the database became another one.
func (l *loading) changes(ctx context.Context, q Queries) error {
	c := l.store.changed.Load()
	if c == nil {
		return nil
	}
	writers := make(map[machine.Token]string)
	for _, chain := range l.chains {
		if n := len(chain.Records); n > 0 {
			writers[chain.Records[n-1].Session] = ""
		}
	}
	if len(writers) == 0 { // PostgreSQL takes no null for a list
		return nil
	}
	list, err := json.Marshal(slices.Collect(maps.Keys(writers)))
	if err != nil {
		return err
	}
	var others []struct {
		Token    machine.Token
		Database string
	}
	if err := sqlx.SelectContext(ctx, q, &others, l.store.db.Text(elsewhere), c.identity, string(list)); err != nil {
		return err
	}
	for _, o := range others {
		writers[o.Token] = o.Database
	}
	for _, chain := range l.chains {
		if n := len(chain.Records); n > 0 {
			tail := &chain.Records[n-1]
			switch on := writers[tail.Session]; {
			case on != "":
				chain.Changed, chain.Restored = c.since, on == ledger.SessionForgone
			case tail.Session == 0 && tail.At.Before(c.since):
				chain.Changed, chain.Restored = c.since, c.restored
			}
		}
	}
	return nil
}

// sessions marks the chains whose latest record arms an attempt under a session that is over.
func (l *loading) sessions(ctx context.Context, q Queries) error {
	arms := func(chain *ledger.Chain) bool { return chain.Arms() && chain.Changed.IsZero() }
	if !slices.ContainsFunc(slices.Collect(maps.Values(l.chains)), arms) {
		return nil
	}
	living, err := live(ctx, q)
	if err != nil {
		return err
	}
	for _, chain := range l.chains {
		chain.Over = arms(chain) && !slices.Contains(living, chain.Records[len(chain.Records)-1].Session)
	}
	return nil
}

// each scans every row into a T and closes rows.
func each[T any](rows *sqlx.Rows, fn func(*T) error) (err error) {
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for rows.Next() {
		var row T
		if err := rows.StructScan(&row); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if err := fn(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}
