package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// appending is one transaction of appends.
type appending struct {
	statements

	now  int64 // one moment for the whole batch
	live bool  // the session may arm
}

// Append stores records and answers each at its own index.
func (db *DB) Append(ctx context.Context, t saga.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers, err := db.append(ctx, t, entries)
	if err != nil {
		return nil, fmt.Errorf("append %d records: %w", len(entries), explain(err))
	}
	return answers, nil
}

// append stores entries in one transaction, row by row.
//
// The statements cannot be cancelled one by one: the driver watches a context with a goroutine per statement,
// which costs more than the statement. The transaction as a whole is short.
func (db *DB) append(ctx context.Context, t saga.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers := make([]ledger.Answer, len(entries))
	err := db.writer.transaction(ctx, func(sqlstore.Queries) error {
		ctx := context.WithoutCancel(ctx)
		b := appending{statements: db.statements, now: db.clock()}
		var n int
		if err := b.lives.QueryRowContext(ctx, int64(t), b.now).Scan(&n); err != nil {
			return err
		}
		b.live = n > 0
		for i := range entries {
			var err error
			if answers[i], err = b.add(ctx, &entries[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// add stores one entry or says why not. An error ends the batch; a value the database refuses does not.
func (b *appending) add(ctx context.Context, e *ledger.Entry) (ledger.Answer, error) {
	values, fault := sqlstore.Values(e)
	if fault != nil {
		return invalid(fault), nil
	}
	store := b.follow
	if e.Record.Seq == 1 {
		store = b.start
	}
	a, err := store(ctx, e, values)
	if refused(err) {
		return invalid(err), nil
	}
	return a, err
}

// follow stores a record behind its predecessor.
func (b *appending) follow(ctx context.Context, e *ledger.Entry, values []any) (ledger.Answer, error) {
	if e.Record.Arm == nil || b.live {
		res, err := b.addRecord.ExecContext(ctx, append(values, b.now, e.Head, e.Record.Seq-1, e.Prev[:], b.now)...)
		if err != nil {
			return ledger.Answer{}, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return ledger.Answer{}, err
		}
		if n == 1 {
			return b.stored(ctx, e, b.now)
		}
	}
	place, before, err := b.look(ctx, e)
	if err != nil {
		return ledger.Answer{}, err
	}
	if a, ok := place.Judge(e, b.live); ok {
		return a, nil
	}
	// Nothing speaks against it but the time of its predecessor: the clock went back. A chain's does not.
	if _, err := b.addStart.ExecContext(ctx, append(values, before)...); err != nil {
		return ledger.Answer{}, err
	}
	return b.stored(ctx, e, before)
}

// stored brings the head up to date and answers. When the head refuses, the record goes too.
func (b *appending) stored(ctx context.Context, e *ledger.Entry, at int64) (ledger.Answer, error) {
	if sqlstore.Projects(e) {
		if _, err := b.project.ExecContext(ctx, e.Head, e.Record.Seq); err != nil {
			_, derr := b.dropRecord.ExecContext(ctx, e.Head, e.Record.Seq)
			return ledger.Answer{}, errors.Join(err, derr)
		}
	}
	if len(e.Record.Signals) > 0 {
		list, err := json.Marshal(e.Record.Signals)
		if err != nil {
			return ledger.Answer{}, err
		}
		if _, err := b.mark.ExecContext(ctx, e.Head, e.Record.Seq, string(list)); err != nil {
			return ledger.Answer{}, err
		}
	}
	return appended(e.Head, at), nil
}

// start stores a head and its first record, unless the work is known.
func (b *appending) start(ctx context.Context, e *ledger.Entry, values []any) (ledger.Answer, error) {
	if e.Record.Arm == nil || b.live {
		head, err := b.newHead(ctx, e)
		if err != nil {
			return ledger.Answer{}, err
		}
		if head != 0 {
			values[0] = head
			if _, err := b.addStart.ExecContext(ctx, append(values, b.now)...); err != nil {
				_, derr := b.dropHead.ExecContext(ctx, head)
				return ledger.Answer{}, errors.Join(err, derr)
			}
			return appended(head, b.now), nil
		}
	}
	var p sqlstore.Place
	err := b.startPlace.QueryRowContext(ctx, e.ID.Work, e.ID.Saga).Scan(&p.Head, &p.Own, &p.OwnAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return ledger.Answer{}, err
	}
	a, ok := p.Judge(e, b.live)
	if !ok {
		return ledger.Answer{}, fmt.Errorf("start of %s: the work has a head but no first record; run amends check", e.ID)
	}
	return a, nil
}

// newHead inserts the head of a new work and returns its number, 0 when the work is known.
func (b *appending) newHead(ctx context.Context, e *ledger.Entry) (int64, error) {
	r := &e.Record
	var s ledger.Schedule
	if e.Schedule != nil {
		s = *e.Schedule
	}
	var session, due, finished any
	switch {
	case r.Status.Terminal():
		finished = b.now
	case r.Status.Live() && s.Hold:
		session = int64(r.Session)
	case r.Status.Live():
		due = b.now + r.Wait.Microseconds()
	}
	res, err := b.addHead.ExecContext(ctx, e.ID.Saga, e.ID.Work, r.Version, null(r.Revision), string(r.Status), null(string(r.Reason)),
		int64(s.Class), session, due, finished, b.now, b.now)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// look reads what stands at the entry's place, and the time of the record before it.
func (b *appending) look(ctx context.Context, e *ledger.Entry) (p sqlstore.Place, before int64, err error) {
	p.Head = e.Head
	rows, err := b.place.QueryContext(ctx, e.Head, e.Record.Seq-1, e.Record.Seq)
	if err != nil {
		return p, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq, at int64
		var hash []byte
		if err := rows.Scan(&seq, &hash, &at); err != nil {
			return p, 0, err
		}
		if seq == e.Record.Seq {
			p.Own = hash
			if err := p.OwnAt.Scan(at); err != nil {
				return p, 0, err
			}
		} else {
			p.Previous, before = hash, at
		}
	}
	return p, before, rows.Err()
}

func invalid(err error) ledger.Answer { return ledger.Answer{Result: ledger.Invalid, Err: err} }

func appended(head, at int64) ledger.Answer {
	var m sqlstore.Moment
	_ = m.Scan(at) // an int64 always scans
	return ledger.Answer{Result: ledger.Appended, At: m.Time(), Head: head}
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
