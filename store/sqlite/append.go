package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/sqlstore"
	"github.com/amends-dev/amends/store/internal/valid"
)

// appending is one transaction of appends.
type appending struct {
	statements
	tx ledger.Tx // of a caller; nil: the statements are prepared

	now  int64               // one moment for the whole batch
	live bool                // the session may arm
	hide func(string) string // what is left of a name; nil: nothing was erased
	hand *prepared
}

// Append stores records and answers each at its own index.
func (db *DB) Append(ctx context.Context, t machine.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers, err := db.append(ctx, t, entries)
	if err != nil {
		return nil, fmt.Errorf("append %d records: %w", len(entries), explain(err))
	}
	sqlstore.Saw(db.store, entries, answers)
	return answers, nil
}

// append stores entries in one transaction, row by row.
//
// The statements are not cancelled: the driver watches a context with a goroutine per
// statement, which costs more than the statement. The transaction as a whole is short.
func (db *DB) append(ctx context.Context, t machine.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	answers := make([]ledger.Answer, len(entries))
	all := make([]prepared, len(entries))
	for i := range entries {
		all[i], answers[i] = db.prepare(&entries[i])
	}
	err := db.writer.share(ctx, func(ctx context.Context, _ sqlstore.Queries) error {
		b := appending{statements: db.statements, now: db.clock()}
		var erased bool
		if err := b.lives.QueryRowContext(ctx, int64(t), b.now).Scan(&b.live, &erased); err != nil {
			return err
		}
		if erased {
			b.hide = db.Hide
		}
		for i := range all {
			if all[i].Entry == nil {
				continue
			}
			var err error
			if answers[i], err = b.add(ctx, &all[i]); err != nil {
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

// prepared is an entry as it is stored, with its document.
type prepared struct {
	*ledger.Entry
	sqlstore.Bodies

	doc string
}

// prepare does what needs no transaction, so that the thread that writes has less to do. Without an entry the answer says why.
func (db *DB) prepare(e *ledger.Entry) (prepared, ledger.Answer) {
	if fault := valid.Entry(e); fault != nil {
		return prepared{}, invalid(fault)
	}
	bodies, a := sqlstore.SealBodies(db.store, e)
	if a.Err != nil {
		return prepared{}, a
	}
	return prepared{e, bodies, string(sqlstore.Document(make([]byte, 0, 256), e))}, a
}

// add stores one entry or says why not. An error ends the batch; a value the database refuses does
// not.
func (b *appending) add(ctx context.Context, p *prepared) (ledger.Answer, error) {
	e := p.Entry
	b.hand = p
	store := b.follow
	if e.Record.Seq == 1 {
		store = b.start
	}
	a, err := store(ctx, e)
	if refused(err) {
		return invalid(err), nil
	}
	if err == nil && a.Result == ledger.Appended && len(e.Waits) > 0 {
		_, err = b.addWaits.ExecContext(ctx, b.now, sqlstore.WaitList(e.Waits))
	}
	return a, err
}

// follow stores a record behind its predecessor.
func (b *appending) follow(ctx context.Context, e *ledger.Entry) (ledger.Answer, error) {
	var unread int64
	if len(e.Record.Signals) > 0 {
		if err := b.unread.QueryRowContext(ctx, e.Number).Scan(&unread); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return ledger.Answer{}, err
		}
	}
	if (e.Record.Dispatch == nil || b.live) && int64(len(e.Record.Signals)) <= unread {
		if ok, err := b.record(ctx, e, b.now); ok || err != nil {
			return appended(e.Number, b.now), err
		}
	}
	place, before, err := b.look(ctx, e)
	if err != nil {
		return ledger.Answer{}, err
	}
	place.Unread = unread
	if a, ok := place.Judge(e, b.live); ok {
		return a, nil
	}
	// Nothing speaks against it but the time of its predecessor: the clock went back. A chain's
	// does not.
	ok, err := b.record(ctx, e, before)
	if err == nil && !ok {
		err = fmt.Errorf("record %d of %s was not stored, and nothing is in its way", e.Record.Seq, e.ID)
	}
	return appended(e.Number, before), err
}

// record stores a record if its predecessor is there and is not later, and brings its instance up
// to date. When that is refused, the record goes too.
func (b *appending) record(ctx context.Context, e *ledger.Entry, at int64) (ok bool, err error) {
	r := &e.Record
	res, err := b.addRecord.ExecContext(ctx, e.Number, r.Seq, at, e.Prev[:], int64(r.Session), r.Hash[:], sqlstore.Null(r.ExternalID),
		b.hand.doc, sqlstore.Null(string(b.hand.Body)), sqlstore.Null(string(b.hand.Snapshot)))
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil || !sqlstore.Projects(e) {
		return n > 0, err
	}
	if err := b.show(ctx, e, at); err != nil {
		_, derr := b.dropRecord.ExecContext(ctx, e.Number, r.Seq)
		return false, errors.Join(err, derr)
	}
	for _, number := range r.Signals {
		if _, err := b.mark.ExecContext(ctx, e.Number, r.Seq, number); err != nil {
			return false, err
		}
	}
	return true, nil
}

// show brings the instance up to date with the record that was stored.
func (b *appending) show(ctx context.Context, e *ledger.Entry, at int64) error {
	r := &e.Record
	row := append(make([]any, 0, len(projectParameters)), e.Number, at, r.Seq, int64(r.Session), sqlstore.Null(string(b.hand.Snapshot)))
	_, err := b.project.ExecContext(ctx, sqlstore.AppendValues(row, e)...)
	return err
}

// exec runs a statement: as it is prepared, or by its text in the transaction of a caller.
func (b *appending) exec(ctx context.Context, prepared *sql.Stmt, text string, args ...any) (sql.Result, error) {
	if b.tx != nil {
		return b.tx.ExecContext(ctx, text, args...)
	}
	return prepared.ExecContext(ctx, args...)
}

// row asks for one row in the same way.
func (b *appending) row(ctx context.Context, prepared *sql.Stmt, text string, args ...any) sqlstore.One {
	query := prepared.QueryContext
	if b.tx != nil {
		query = func(ctx context.Context, args ...any) (*sql.Rows, error) {
			return b.tx.QueryContext(ctx, text, args...)
		}
	}
	rows, err := query(ctx, args...) //nolint:rowserrcheck // One does
	return sqlstore.One{Rows: rows, Err: err}
}

// start stores an instance and its first record, unless the work is known.
func (b *appending) start(ctx context.Context, e *ledger.Entry) (ledger.Answer, error) {
	r := &e.Record
	var was int64 // the work that was erased
	if b.hide != nil {
		err := b.row(ctx, b.erased, erasedWork, b.hide(e.ID.Work), e.ID.Saga).Scan(&was)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return ledger.Answer{}, err
		}
	}
	if was != 0 {
		return ledger.Answer{Result: ledger.Exists}, nil
	}
	if r.Dispatch == nil || b.live {
		ref, err := b.newInstance(ctx, e)
		if err != nil {
			return ledger.Answer{}, err
		}
		if ref != 0 {
			_, err := b.exec(ctx, b.addStart, addStart, ref, b.now, int64(r.Session), r.Hash[:], sqlstore.Null(r.ExternalID),
				b.hand.doc, sqlstore.Null(string(b.hand.Body)), sqlstore.Null(string(b.hand.Snapshot)))
			if err != nil {
				_, derr := b.exec(ctx, b.dropInstance, dropInstance, ref)
				return ledger.Answer{}, errors.Join(err, derr)
			}
			for _, tag := range r.Tags {
				if _, err := b.exec(ctx, b.addTag, addTag, tag, ref); err != nil {
					return ledger.Answer{}, err
				}
			}
			return appended(ref, b.now), nil
		}
	}
	var p sqlstore.Place
	err := b.row(ctx, b.startPlace, placeOfStart, e.ID.Work, e.ID.Saga).Scan(&p.Ref, &p.Own, &p.OwnAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return ledger.Answer{}, err
	}
	a, ok := p.Judge(e, b.live)
	if !ok {
		return ledger.Answer{}, fmt.Errorf("start of %s: the work has an instance but no first record; run amends check", e.ID)
	}
	return a, nil
}

// newInstance inserts the row of a new instance and returns its reference, 0 when the work is
// known.
func (b *appending) newInstance(ctx context.Context, e *ledger.Entry) (int64, error) {
	row := append(make([]any, 0, len(instanceParameters)), e.ID.Saga, e.ID.Work, e.Salt[:], b.now, int64(e.Record.Session))
	res, err := b.exec(ctx, b.addInstance, addInstance, sqlstore.AppendValues(row, sqlstore.Scheduled(e))...)
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
	p.Ref = e.Number
	rows, err := b.place.QueryContext(ctx, e.Number, e.Record.Seq-1, e.Record.Seq)
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
	return ledger.Answer{Result: ledger.Appended, At: m.Time(), Number: head}
}
