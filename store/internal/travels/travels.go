// Package travels keeps, for the SQL stores of package reconcile, how far sweeps have come and what they saw. What they
// ask differs between the databases in a few words only.
//
// A page of a sweep is one transaction: the position, the events and the sightings. The position goes first and decides
// alone whether anything is stored: it is a compare-and-set on its serial, so of two processes one moves on and the other
// stores nothing. Sightings are one statement with one parameter, a JSON list.
//
// The table of sightings has no index but its key, which is the order in which it is read: what is seen again changes in
// place. Counting and looking for what is old therefore read a listing from one end to the other, outside of any
// transaction that writes.
package travels

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/store/internal/column"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Queries runs statements: a connection or a transaction.
type Queries interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// Database is what one SQL database does differently from the other.
type Database struct {
	// Read runs statements that only read.
	Read sqlx.QueryerContext

	// Write runs fn in a transaction and stores events in the same one, unless fn answers that nothing is to be stored.
	// It may run fn again when the transaction has to be repeated.
	Write func(ctx context.Context, events []reconcile.Event, fn func(context.Context, Queries) (store bool, err error)) error

	// Elements is the table, with the one column value, of the elements of a JSON list that is a parameter.
	Elements string

	// Bind turns question marks into the database's own parameters.
	Bind func(string) string

	// Moment and Bytes make a column's value of an expression that is a number of microseconds, or a text in hex.
	Moment, Bytes func(expression string) string

	// Clock is the database's clock, as an expression.
	Clock string

	// Explain gives an error of the driver its meaning.
	Explain func(context.Context, error) error
}

// Travels implements [sweep.Store].
type Travels struct{ db Database }

var _ sweep.Store = (*Travels)(nil)

// New returns travels over db.
func New(db Database) *Travels { return &Travels{db: db} }

// Position returns how far a sweep has come.
func (t *Travels) Position(ctx context.Context, name string) (sweep.Position, error) {
	p, err := t.position(ctx, t.db.Read, name)
	if err != nil {
		return p, fmt.Errorf("read the position of %s: %w", name, t.db.Explain(ctx, err))
	}
	return p, nil
}

type position struct {
	Name   string
	Serial int64
	State  column.Text
}

func (p *position) of() sweep.Position {
	return sweep.Position{Name: p.Name, Serial: p.Serial, State: json.RawMessage(p.State)}
}

func (t *Travels) position(ctx context.Context, q sqlx.QueryerContext, name string) (sweep.Position, error) {
	var found []position
	err := sqlx.SelectContext(ctx, q, &found, t.db.Bind(`SELECT name, serial, state FROM amends_sweeps WHERE name = ?`), name)
	if err != nil || len(found) == 0 {
		return sweep.Position{Name: name}, err
	}
	return found[0].of(), nil
}

// Positions returns positions by the beginning of their names.
func (t *Travels) Positions(ctx context.Context, prefix string) ([]sweep.Position, error) {
	var found []position
	err := sqlx.SelectContext(ctx, t.db.Read, &found, t.db.Bind(`SELECT name, serial, state FROM amends_sweeps
		WHERE name >= ? AND substr(name, 1, length(?)) = ? ORDER BY name`), prefix, prefix, prefix)
	if err != nil {
		return nil, fmt.Errorf("read the positions of %s: %w", prefix, t.db.Explain(ctx, err))
	}
	ps := make([]sweep.Position, len(found))
	for i := range found {
		ps[i] = found[i].of()
	}
	return ps, nil
}

// Advance stores a page and the position behind it.
func (t *Travels) Advance(ctx context.Context, p sweep.Position, page sweep.Catch) (sweep.Position, error) {
	seen, err := list(page.Sightings)
	if err != nil {
		return p, fmt.Errorf("advance %s: %w", p.Name, err)
	}
	var refused error
	err = t.db.Write(ctx, page.Events, func(ctx context.Context, q Queries) (bool, error) {
		var moved bool
		var err error
		if moved, refused, err = t.move(ctx, q, p); err != nil || !moved {
			return false, err
		}
		if len(page.Sightings) == 0 {
			return true, nil
		}
		_, err = q.ExecContext(ctx, t.db.Bind(t.seeText()), page.Name, string(page.Side), seen)
		return true, err
	})
	if err = t.db.Explain(ctx, err); err == nil {
		err = refused
	}
	if err != nil {
		return p, fmt.Errorf("advance %s: %w", p.Name, err)
	}
	p.Serial++
	return p, nil
}

// move moves a position on, if it still is where the caller believes it to be. It has moved already when it is where
// the caller wants it: then an earlier try was stored after all.
func (t *Travels) move(ctx context.Context, q Queries, p sweep.Position) (moved bool, refused, err error) {
	text := `UPDATE amends_sweeps SET state = ?, updated = ` + t.db.Clock + `, serial = serial + 1 WHERE name = ? AND serial = ?`
	args := []any{string(p.State), p.Name, p.Serial}
	if p.Serial == 0 {
		text = `INSERT INTO amends_sweeps (state, name, serial, updated) VALUES (?, ?, 1, ` + t.db.Clock + `) ON CONFLICT (name) DO NOTHING`
		args = args[:2]
	}
	result, err := q.ExecContext(ctx, t.db.Bind(text), args...)
	if err != nil {
		return false, nil, err
	}
	n, err := result.RowsAffected()
	if err != nil || n > 0 {
		return n > 0, nil, err
	}
	stored, err := t.position(ctx, q, p.Name)
	if err == nil && (stored.Serial != p.Serial+1 || string(stored.State) != string(p.State)) {
		refused = sweep.ErrMoved
	}
	return false, refused, err
}

// list makes the parameter of a statement of sightings. Of two with one key and id the later one is stored.
func list(sightings []sweep.Sighting) (string, error) {
	last := make(map[[2]string]int, len(sightings))
	values := make([][]any, 0, len(sightings))
	for i := range sightings {
		row, key := rows.Sighting(&sightings[i])
		if at, twice := last[key]; twice {
			values[at] = row
			continue
		}
		last[key] = len(values)
		values = append(values, row)
	}
	b, err := json.Marshal(values)
	return string(b), err
}

func (t *Travels) seeText() string {
	return `INSERT INTO amends_sightings AS s (name, side, key, id, generation, flags, created, part, revision, fingerprint, fields)
		SELECT ?, ?, value ->> 0, value ->> 1, CAST(value ->> 2 AS bigint), CAST(value ->> 3 AS bigint), ` + t.db.Moment(`CAST(value ->> 4 AS bigint)`) + `,
			value ->> 5, value ->> 6, ` + t.db.Bytes(`value ->> 7`) + `, value ->> 8
		FROM ` + t.db.Elements + ` WHERE true
		ORDER BY 3, 4
		ON CONFLICT (name, side, key, id) DO UPDATE SET generation = excluded.generation, flags = excluded.flags,
			created = excluded.created, part = excluded.part, revision = excluded.revision,
			fingerprint = excluded.fingerprint, fields = excluded.fields`
}

// Tally counts sightings of a listing by partition.
func (t *Travels) Tally(ctx context.Context, q sweep.SightingQuery) (map[string]int64, error) {
	var found []struct {
		Part  string
		Count int64
	}
	err := sqlx.SelectContext(ctx, t.db.Read, &found, t.db.Bind(`SELECT part, count(*) AS count FROM amends_sightings
		WHERE name = ? AND side = ? AND generation >= ? GROUP BY part`), q.Name, string(q.Side), q.Generation)
	if err != nil {
		return nil, fmt.Errorf("count sightings of %s: %w", q.Name, t.db.Explain(ctx, err))
	}
	counts := make(map[string]int64, len(found))
	for _, f := range found {
		counts[f.Part] = f.Count
	}
	return counts, nil
}

// Discard erases sightings of earlier generations. They are looked for first, which takes its time; erasing them by
// their keys, if they still are old, takes none.
func (t *Travels) Discard(ctx context.Context, q sweep.SightingQuery, limit int) (n int, err error) {
	var old []struct{ Key, ID string }
	err = sqlx.SelectContext(ctx, t.db.Read, &old, t.db.Bind(`SELECT key, id FROM amends_sightings
		WHERE name = ? AND side = ? AND generation < ? ORDER BY key, id LIMIT ?`), q.Name, string(q.Side), q.Generation, limit)
	if err == nil && len(old) > 0 {
		keys := make([][2]string, len(old))
		for i := range old {
			keys[i] = [2]string{old[i].Key, old[i].ID}
		}
		n, err = t.erase(ctx, q, keys)
	}
	if err != nil {
		return 0, fmt.Errorf("discard sightings of %s: %w", q.Name, t.db.Explain(ctx, err))
	}
	return n, nil
}

func (t *Travels) erase(ctx context.Context, q sweep.SightingQuery, keys [][2]string) (int, error) {
	text, err := json.Marshal(keys)
	if err != nil {
		return 0, err
	}
	var n int64
	err = t.db.Write(ctx, nil, func(ctx context.Context, c Queries) (bool, error) {
		result, err := c.ExecContext(ctx, t.db.Bind(`DELETE FROM amends_sightings WHERE (name, side, key, id) IN
			(SELECT CAST(? AS text), CAST(? AS text), value ->> 0, value ->> 1 FROM `+t.db.Elements+`) AND generation < ?`),
			q.Name, string(q.Side), string(text), q.Generation)
		if err != nil {
			return false, err
		}
		n, err = result.RowsAffected()
		return true, err
	})
	return int(n), err
}
