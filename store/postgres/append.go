package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
	"github.com/amends-dev/amends/store/internal/valid"
)

// pending is an entry on its way: its row, and where its answer goes.
type pending struct {
	*ledger.Entry
	sqlstore.Bodies // as they are stored

	row    []any
	answer *ledger.Answer
}

// writing are the prepared statements of the write path, each for the calls of one lane.
type writing struct {
	follow, followOne, places *sqlx.Stmt
	followAlone               *sqlx.Stmt // one record that leaves its instance alone
	followMore, followMoreOne *sqlx.Stmt // with signals, or waits
	disputed                  *sqlx.Stmt // where places may be taken
	locked                    *sqlx.Stmt
	fresh, again              door // starts, and those that were blocked before, one by one
	claimable, rest, release  *sqlx.Stmt
	postMany, postOne         *sqlx.Stmt
}

// follows are for records.
func (w *writing) follows() []statement {
	return []statement{
		{&w.follow, followText(many(followColumns), false, false)},
		{&w.followOne, followText(one(followColumns), false, false)},
		{&w.followAlone, followAlone},
		{&w.followMore, followText(many(followColumns), true, false)},
		{&w.followMoreOne, followText(one(followColumns), true, false)},
		{&w.disputed, followText(many(followColumns), true, true)},
		{&w.places, placesText},
		{&w.locked, lockedText},
	}
}

func (w *writing) forClaims() []statement {
	return []statement{{&w.claimable, claimText}, {&w.rest, restText}, {&w.release, releaseText}}
}

// Append stores records and answers each at its own index. Starts and other records have lanes of
// their own, and so have starts that were blocked before; a caller who must not let the ones wait
// for the others gives them in calls of their own.
func (db *DB) Append(ctx context.Context, t machine.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers := make([]ledger.Answer, len(entries))
	err := db.sameDatabase(t)
	if err == nil {
		err = db.append(sqlstore.Again(ctx), t, entries, answers)
	}
	if err != nil {
		return nil, fmt.Errorf("append %d records: %w", len(entries), explain(ctx, err))
	}
	sqlstore.Saw(db.store, entries, answers)
	return answers, nil
}

func (db *DB) append(ctx context.Context, t machine.Token, entries []ledger.Entry, answers []ledger.Answer) error {
	b := db.collect(entries, answers)
	for len(b.starts)+len(b.follows) > 0 {
		again := b.repeated()
		if err := db.round(ctx, t, b); err != nil {
			return err
		}
		b = again
	}
	return nil
}

// round stores entries that are all of different works.
func (db *DB) round(ctx context.Context, t machine.Token, b appending) error {
	var all []func() error
	starts, blocked := db.waits.split(b.starts)
	if len(starts) > 0 {
		all = append(all, func() error {
			return db.inParts(starts, func(ps []*pending) error {
				return divide(ps, func(ps []*pending) error { return db.storeStarts(ctx, t, db.starts, &db.fresh, ps) })
			})
		})
	}
	if len(blocked) > 0 {
		all = append(all, func() error {
			for _, p := range blocked {
				store := func(ps []*pending) error { return db.storeStarts(ctx, t, db.blocked, &db.again, ps) }
				if err := divide([]*pending{p}, store); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if len(b.follows) > 0 {
		all = append(all, func() error {
			return db.inParts(b.follows, func(ps []*pending) error { return db.storeRecords(ctx, t, ps) })
		})
	}
	var g errgroup.Group
	for _, store := range all[1:] { // there is one at least, see append
		g.Go(store)
	}
	err := cmp.Or(all[0](), g.Wait()) // and most calls have one alone, which needs no goroutine
	db.waits.note(b.starts)
	return err
}

// storeRecords stores records behind their predecessors. When a lock is not had in time, those
// whose works are locked are answered so, and the others stored without them: one locked row holds
// up no other.
func (db *DB) storeRecords(ctx context.Context, t machine.Token, ps []*pending) error {
	store := func(ps []*pending) error { return db.storeFollows(ctx, t, ps) }
	err := store(ps)
	if !contended(err) || len(ps) == 1 {
		return split(ps, err, store)
	}
	free, err := db.passLocked(ctx, ps, err)
	if err != nil || len(free) == 0 {
		return err
	}
	return divide(free, store)
}

// passLocked answers the records whose works another transaction has locked and returns the others.
func (db *DB) passLocked(ctx context.Context, ps []*pending, why error) ([]*pending, error) {
	numbers := make(pq.Int64Array, len(ps))
	for i, p := range ps {
		numbers[i] = p.Number
	}
	var locked []int64
	if err := db.records.do(ctx, func(ctx context.Context) error { return db.locked.SelectContext(ctx, &locked, numbers) }); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ps), func(p *pending) bool {
		held := slices.Contains(locked, p.Number)
		if held {
			*p.answer = ledger.Answer{Result: ledger.Blocked, Err: why}
		}
		return held
	}), nil
}

// appending is what one call stores, in the order in which rows are locked.
type appending struct{ starts, follows []*pending }

// statementBytes is how much one statement carries at most; a record that is larger by itself is
// refused. At a message of a gigabyte the server hangs up, and the same batch would be sent again
// for ever.
const statementBytes = 256 << 20

// inParts stores entries in as many statements as their size demands.
func (db *DB) inParts(ps []*pending, store func([]*pending) error) error {
	for len(ps) > 0 {
		n, bytes := 1, ps[0].size()
		for ; n < len(ps) && bytes+ps[n].size() <= db.most; n++ {
			bytes += ps[n].size()
		}
		if err := store(ps[:n]); err != nil {
			return err
		}
		ps = ps[n:]
	}
	return nil
}

// size is about how many bytes the entry takes in a statement.
func (p *pending) size() (n int) {
	r := &p.Record
	return 1024 + len(p.Body) + len(p.Snapshot) + len(r.Error) + len(r.Note) + len(r.Why) + len(r.Cause) + 20*len(r.Signals) + 1024*len(p.Waits)
}

// collect makes rows of entries and answers those that no database takes.
func (db *DB) collect(entries []ledger.Entry, answers []ledger.Answer) appending {
	var b appending
	for i := range entries {
		p := &pending{Entry: &entries[i], answer: &answers[i]}
		err := valid.Entry(p.Entry)
		if err == nil {
			if p.Bodies, answers[i] = sqlstore.SealBodies(db.store, p.Entry); answers[i].Err != nil {
				continue
			}
		}
		if n := p.size(); n > db.most {
			err = errors.Join(err, fmt.Errorf("it takes %d bytes, the limit is %d", n, db.most))
		}
		switch {
		case err != nil:
			answers[i] = ledger.Answer{Result: ledger.Invalid, Err: err}
		case p.Record.Seq == 1:
			p.row = p.startRow(db.Hide(p.ID.Work))
			b.starts = append(b.starts, p)
		default:
			p.row = p.followRow()
			b.follows = append(b.follows, p)
		}
	}
	slices.SortStableFunc(b.starts, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.ID.Work, b.ID.Work), cmp.Compare(a.ID.Saga, b.ID.Saga))
	})
	slices.SortStableFunc(b.follows, func(a, b *pending) int { return cmp.Compare(a.Number, b.Number) })
	return b
}

// repeated takes every second entry of the same work out of b and returns them: they are answered
// from the first.
func (b *appending) repeated() (again appending) {
	b.starts, again.starts = firsts(b.starts, func(p *pending) saga.ID { return p.ID })
	b.follows, again.follows = firsts(b.follows, func(p *pending) int64 { return p.Number })
	return again
}

// firsts splits a sorted list into the first of each key and the others.
func firsts[K comparable](ps []*pending, key func(*pending) K) (first, others []*pending) {
	for i, p := range ps {
		if i > 0 && key(ps[i-1]) == key(p) {
			others = append(others, p)
		} else {
			first = append(first, p)
		}
	}
	return first, others
}

// divide stores entries at once and, when the database refuses one of them, one is waiting for a
// lock or others are in the way of one again and again, in halves, so that the others are stored
// whatever that one is.
func divide(ps []*pending, store func([]*pending) error) error { return split(ps, store(ps), store) }

// split goes on behind an attempt to store entries at once.
func split(ps []*pending, err error, store func([]*pending) error) error {
	switch {
	case err == nil || !refused(err) && !contended(err) && !undone(err):
		return err
	case len(ps) > 1:
		half := len(ps) / 2
		return errors.Join(divide(ps[:half], store), divide(ps[half:], store))
	case undone(err):
		return err
	case refused(err):
		*ps[0].answer = ledger.Answer{Result: ledger.Invalid, Err: err}
	default:
		*ps[0].answer = ledger.Answer{Result: ledger.Blocked, Err: err}
	}
	return nil
}

// attempts is how often an entry is tried that was not stored though nothing speaks against it:
// another transaction was in its way and is gone.
const attempts = 4

// storeFollows stores records behind their predecessors.
func (db *DB) storeFollows(ctx context.Context, t machine.Token, ps []*pending) error {
	disputed := false // a place of theirs was taken
	if len(ps) == 1 && !sqlstore.Projects(ps[0].Entry) && len(ps[0].Waits) == 0 {
		done, err := db.storeAlone(ctx, t, ps[0])
		if disputed = taken(err); done || err != nil && !disputed {
			return err
		}
	}
	ps = slices.Clone(ps) // it shrinks
	for range attempts {
		var live bool
		var from, to sqlstore.Moment
		var stored pq.Int64Array
		scan := func(row *sqlx.Row) error { return row.Scan(&live, &from, &to, &stored) }
		err := db.records.do(ctx, func(ctx context.Context) error {
			batch, single := db.follow, db.followOne
			if slices.ContainsFunc(ps, func(p *pending) bool { return len(p.Record.Signals)+len(p.Waits) > 0 }) {
				batch, single = db.followMore, db.followMoreOne
			}
			if !disputed {
				err := scan(db.run(ctx, t, batch, single, ps))
				if disputed = taken(err); !disputed {
					return err
				}
			}
			return scan(db.run(ctx, t, db.disputed, nil, ps))
		})
		if err != nil {
			return err
		}
		heads := make(map[int64]bool, len(stored))
		for _, head := range stored {
			heads[head] = true
		}
		ps = slices.DeleteFunc(ps, func(p *pending) bool {
			done := heads[p.Number] && from == to
			if done {
				*p.answer = ledger.Answer{Result: ledger.Appended, At: to.Time(), Number: p.Number}
			}
			return done
		})
		if len(ps) == 0 {
			return nil
		}
		if ps, err = db.judge(ctx, ps, live, heads); err != nil || len(ps) == 0 {
			return err
		}
	}
	return fmt.Errorf("record %d of %s was not stored in %d attempts, and nothing is in its way", ps[0].Record.Seq, ps[0].ID, attempts)
}

// storeAlone stores a record that leaves its instance alone. One that is not stored, or whose place is taken, is looked at as
// one of many.
func (db *DB) storeAlone(ctx context.Context, t machine.Token, p *pending) (done bool, err error) {
	var at sqlstore.Moment
	err = db.records.do(ctx, func(ctx context.Context) error {
		args := append([]any{db.now(), int64(t)}, p.row[:storedColumns]...)
		return db.followAlone.QueryRowxContext(ctx, args...).Scan(&at)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		*p.answer = ledger.Answer{Result: ledger.Appended, At: at.Time(), Number: p.Number}
	}
	return err == nil, err
}

// run executes the form of a statement for a batch or for a single row.
func (db *DB) run(ctx context.Context, t machine.Token, batch, single *sqlx.Stmt, ps []*pending) *sqlx.Row {
	args := []any{db.now(), int64(t)}
	if len(ps) == 1 && single != nil {
		return single.QueryRowxContext(ctx, append(args, ps[0].row...)...)
	}
	return batch.QueryRowxContext(ctx, appendArrays(args, ps)...)
}

// placeRow is a row of placesText.
type placeRow struct {
	I        int
	Instance int64
	Own      []byte
	OwnAt    sqlstore.Moment
	Previous []byte
	Unread   sqlstore.Number
}

// judge answers entries from what stands at their places and returns those that can be tried again.
// Those in stored were stored by us, at a time of their own because the clock went back.
func (db *DB) judge(ctx context.Context, ps []*pending, live bool, stored map[int64]bool) ([]*pending, error) {
	numbers, heads, seqs := make([]int32, len(ps)), make([]int64, len(ps)), make([]int64, len(ps))
	for i, p := range ps {
		numbers[i], heads[i], seqs[i] = int32(i), p.Number, p.Record.Seq
	}
	var rows []placeRow
	err := db.records.do(ctx, func(ctx context.Context) error {
		return db.places.SelectContext(ctx, &rows, pq.Int32Array(numbers), pq.Int64Array(heads), pq.Int64Array(seqs))
	})
	if err != nil {
		return nil, err
	}
	var again []*pending
	for _, r := range rows {
		p := ps[r.I]
		place := sqlstore.Place{Ref: r.Instance, Own: r.Own, OwnAt: r.OwnAt, Previous: r.Previous, Unread: int64(r.Unread)}
		a, ok := place.Judge(p.Entry, live)
		if !ok {
			again = append(again, p)
			continue
		}
		if a.Result == ledger.Mine && stored[p.Number] {
			a.Result = ledger.Appended
		}
		*p.answer = a
	}
	return again, nil
}
