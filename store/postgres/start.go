package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// door is what is prepared for starts of a lane.
type door struct{ many, one, manyMore, oneMore, places *sqlx.Stmt }

func (d *door) statements(patience time.Duration) []statement {
	return []statement{
		{&d.many, startText(many(startColumns), false, patience, "")},
		{&d.one, startText(one(startColumns), false, patience, "")},
		{&d.manyMore, startText(many(startColumns), true, patience, "")},
		{&d.oneMore, startText(one(startColumns), true, patience, "")},
		{&d.places, startPlacesText("")},
	}
}

// storeStarts accepts works that are not known yet.
func (db *DB) storeStarts(ctx context.Context, t machine.Token, l *lane, d *door, ps []*pending) error {
	for range attempts {
		var live bool
		db.name(ps)
		err := l.do(ctx, func(ctx context.Context) (err error) {
			batch, single := d.many, d.one
			if slices.ContainsFunc(ps, func(p *pending) bool { return len(p.Waits) > 0 }) {
				batch, single = d.manyMore, d.oneMore
			}
			live, err = accept(db.run(ctx, t, batch, single, ps), ps)
			return err
		})
		if err != nil {
			return err
		}
		if ps = unanswered(ps); len(ps) == 0 {
			return nil
		}
		known, err := placesOf(ps, func(rows *[]placeRow, args ...any) error {
			return l.do(ctx, func(ctx context.Context) error { return d.places.SelectContext(ctx, rows, args...) })
		})
		if err != nil {
			return err
		}
		if judgeStarts(ps, known, live); len(unanswered(ps)) == 0 {
			return nil
		}
		ps = unanswered(ps)
	}
	return fmt.Errorf("start of %s was not stored in %d attempts, and nothing is in its way", ps[0].ID, attempts)
}

// waiting remembers which starts were blocked, so that their repetitions do not hold up others:
// they take a lane of their own.
type waiting struct {
	mu sync.Mutex
	at map[saga.ID]time.Time
}

// What is remembered: for as long as callers repeat, and of as many as may be in a bad hour.
const (
	blockedFor = time.Minute
	mostWaits  = 10000
)

// split tells starts that were blocked a short while ago from the others.
func (w *waiting) split(ps []*pending) (fresh, blocked []*pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range ps {
		if at, ok := w.at[p.ID]; ok && time.Since(at) < blockedFor {
			blocked = append(blocked, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	return fresh, blocked
}

// note remembers what became of starts.
func (w *waiting) note(ps []*pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil || len(w.at) > mostWaits {
		w.at = make(map[saga.ID]time.Time)
	}
	for _, p := range ps {
		if p.answer.Result == ledger.Blocked {
			w.at[p.ID] = time.Now()
		} else {
			delete(w.at, p.ID)
		}
	}
}

// accept reads which works were accepted and answers them.
func accept(row interface{ Scan(dest ...any) error }, ps []*pending) (live bool, err error) {
	var at sqlstore.Moment
	var refs pq.Int64Array
	if err := row.Scan(&live, &at, &refs); err != nil {
		return false, err
	}
	accepted := make(map[int64]bool, len(refs))
	for _, ref := range refs {
		accepted[ref] = true
	}
	for _, p := range ps {
		if ref, _ := p.row[0].(int64); accepted[ref] {
			*p.answer = ledger.Answer{Result: ledger.Appended, At: at.Time(), Number: ref}
		}
	}
	return live, nil
}

func unanswered(ps []*pending) []*pending {
	return slices.DeleteFunc(slices.Clone(ps), func(p *pending) bool { return p.answer.Result != "" })
}

// placesOf reads the first records of works that were not accepted, by position in ps.
func placesOf(ps []*pending, query func(rows *[]placeRow, args ...any) error) (map[int]sqlstore.Place, error) {
	numbers, sagas, works, hidden := make([]int32, len(ps)), make([]string, len(ps)), make([]string, len(ps)), make([]string, len(ps))
	for i, p := range ps {
		numbers[i], sagas[i], works[i] = int32(i), p.ID.Saga, p.ID.Work
		hidden[i], _ = p.row[3].(string)
	}
	var rows []placeRow
	if err := query(&rows, pq.Int32Array(numbers), pq.StringArray(sagas), pq.StringArray(works), pq.StringArray(hidden)); err != nil {
		return nil, err
	}
	known := make(map[int]sqlstore.Place, len(rows))
	for _, r := range rows {
		known[r.I] = sqlstore.Place{Ref: r.Instance, Own: r.Own, OwnAt: r.OwnAt}
	}
	return known, nil
}

func judgeStarts(ps []*pending, known map[int]sqlstore.Place, live bool) {
	for i, p := range ps {
		place := known[i]
		if a, ok := place.Judge(p.Entry, live); ok {
			*p.answer = a
		}
	}
}

// StartTx inserts head and first record within the caller's transaction, unheld and due now. The
// answer is final only when tx commits; [ledger.Exists] does not abort it. tx must be of this
// ledger's database; its search_path does not matter. It keeps its own isolation level: at
// REPEATABLE READ and SERIALIZABLE others may be in its way, here as at its commit, and the caller
// repeats it from its beginning.
func (db *DB) StartTx(ctx context.Context, tx ledger.Tx, e ledger.Entry) (ledger.Answer, error) {
	a, err := db.startTx(ctx, tx, e)
	if undone(err) { // at the level that the caller chose
		return ledger.Answer{}, fmt.Errorf("start %s in a transaction: others changed what it saw, and it can only be rolled back; "+
			"repeat the transaction: %w", e.ID, err)
	}
	if err != nil {
		return ledger.Answer{}, fmt.Errorf("start %s in a transaction: %w", e.ID, explain(ctx, err))
	}
	return a, nil
}

func (db *DB) startTx(ctx context.Context, tx ledger.Tx, e ledger.Entry) (ledger.Answer, error) {
	if e.Record.Seq != 1 || e.Record.Dispatch != nil || len(e.Waits) > 0 {
		return ledger.Answer{}, errors.New("only a first record that arms nothing can be stored there")
	}
	e.Schedule = &ledger.Schedule{} // unheld
	answers := make([]ledger.Answer, 1)
	ps := db.collect([]ledger.Entry{e}, answers).starts
	if len(ps) == 0 {
		return answers[0], nil
	}
	schema := pq.QuoteIdentifier(db.schema) + "."
	for range attempts { // a reference that is taken is drawn again
		db.name(ps)
		args := append([]any{db.now(), int64(e.Record.Session)}, ps[0].row...)
		answer, err := tx.QueryContext(ctx, startText(one(startColumns), false, 0, schema), args...) //nolint:rowserrcheck // accept does
		if _, err := accept(sqlstore.One{Rows: answer, Err: err}, ps); err != nil {
			return ledger.Answer{}, err
		}
		if len(unanswered(ps)) == 0 {
			return answers[0], nil
		}
		known, err := placesOf(ps, func(rows *[]placeRow, args ...any) error {
			found, err := tx.QueryContext(ctx, startPlacesText(schema), args...) //nolint:rowserrcheck // StructScan does
			if err != nil {
				return err
			}
			defer found.Close()
			return sqlx.StructScan(found, rows)
		})
		if err != nil {
			return ledger.Answer{}, err
		}
		if judgeStarts(ps, known, false); len(unanswered(ps)) == 0 {
			return answers[0], nil
		}
	}
	return ledger.Answer{}, errors.New("the work is neither new nor there; begin another transaction")
}
