package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/store/internal/rows"
)

// sweeps implements [scan.Store].
//
// A page of a sweep is one transaction: the position, the events and the observations. The position
// goes first and decides alone whether anything is stored: it is a compare-and-set on its serial,
// so of two processes one moves on and the other stores nothing. Observations are one statement
// with one parameter, a JSON list.
//
// The table of observations has no index but its key, which is the order in which it is read: what
// is seen again changes in place. Counting and looking for what is old therefore read a listing
// from one end to the other, outside of any transaction that writes.
type sweeps struct{ db *Dialect }

// Position returns how far a sweep has come.
func (s *sweeps) Position(ctx context.Context, name string) (scan.Position, error) {
	p := scan.Position{Name: name}
	err := s.db.read(ctx, func(ctx context.Context, q Queries) (err error) {
		p, err = s.position(ctx, q, name)
		return err
	})
	return p, wrap(err, "read the position of %s", name)
}

func positionFields(p *scan.Position) []rows.Field {
	return []rows.Field{{"name", &p.Name}, {"version", &p.Serial}, {"checkpoint", &p.State}}
}

func (s *sweeps) position(ctx context.Context, q Queries, name string) (scan.Position, error) {
	var found []scan.Position
	err := s.db.choose(ctx, q, rows.Into(&found, positionFields), `SELECT name, version, checkpoint FROM amends_scans WHERE name = ?`, name)
	if err != nil || len(found) == 0 {
		return scan.Position{Name: name}, err
	}
	return found[0], nil
}

// Positions returns positions by the beginning of their names.
func (s *sweeps) Positions(ctx context.Context, prefix string) ([]scan.Position, error) {
	var ps []scan.Position
	err := s.db.get(ctx, rows.Into(&ps, positionFields), `SELECT name, version, checkpoint FROM amends_scans
		WHERE name >= ? AND substr(name, 1, length(?)) = ? ORDER BY name`, prefix, prefix, prefix)
	return orNone(ps, wrap(err, "read the positions of %s", prefix))
}

// Advance stores a page and the position behind it.
func (s *sweeps) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	seen, err := encodeSightings(page.Sightings)
	var ins []*rows.Incoming
	if err == nil {
		ins, err = s.db.Receive(page.Events)
	}
	if err != nil {
		return p, fmt.Errorf("advance %s: %w", p.Name, err)
	}
	var refused error
	err = s.db.Page(Again(ctx), ins, func(ctx context.Context, q Queries) (bool, error) {
		var moved bool
		var err error
		if moved, refused, err = s.move(ctx, q, p); err != nil || !moved {
			return false, err
		}
		if len(page.Sightings) == 0 {
			return true, nil
		}
		_, err = q.ExecContext(ctx, s.db.Bind(s.seeText()), page.Name, string(page.Side), seen)
		return true, err
	})
	if err = s.db.Explain(ctx, err); err == nil {
		err = refused
	}
	if err == nil {
		p.Serial++
	}
	return p, wrap(err, "advance %s", p.Name)
}

// move moves a position on, if it still is where the caller believes it to be. It has moved already
// when it is where the caller wants it: then an earlier try was stored after all.
func (s *sweeps) move(ctx context.Context, q Queries, p scan.Position) (moved bool, refused, err error) {
	text := `UPDATE amends_scans SET checkpoint = ?, updated_at = ` + s.db.Today + `, version = version + 1 WHERE name = ? AND version = ?`
	args := []any{string(p.State), p.Name, p.Serial}
	if p.Serial == 0 {
		text = `INSERT INTO amends_scans (checkpoint, name, version, updated_at) VALUES (?, ?, 1, ` + s.db.Today + `) ON CONFLICT (name) DO NOTHING`
		args = args[:2]
	}
	n, err := affected(q.ExecContext(ctx, s.db.Bind(text), args...))
	if err != nil || n > 0 {
		return n > 0, nil, err
	}
	stored, err := s.position(ctx, q, p.Name)
	if err == nil && (stored.Serial != p.Serial+1 || string(stored.State) != string(p.State)) {
		refused = scan.ErrMoved
	}
	return false, refused, err
}

// encodeSightings makes the parameter of a statement of sightings. Of two with one key and id the
// later one is stored.
func encodeSightings(sightings []scan.Sighting) (string, error) {
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

func (s *sweeps) seeText() string {
	return `INSERT INTO amends_observations AS s (name, side, key, id, scan, flags, created_at, partition, revision, fingerprint, fields)
		SELECT ?, ?, value ->> 0, value ->> 1, CAST(value ->> 2 AS bigint), CAST(value ->> 3 AS bigint), ` + s.db.MomentOf(`CAST(value ->> 4 AS bigint)`) + `,
			value ->> 5, value ->> 6, ` + s.db.BytesOf(`value ->> 7`) + `, value ->> 8
		FROM ` + s.db.Elements + ` WHERE true
		ORDER BY 3, 4
		ON CONFLICT (name, side, key, id) DO UPDATE SET scan = excluded.scan, flags = excluded.flags,
			created_at = excluded.created_at, partition = excluded.partition, revision = excluded.revision,
			fingerprint = excluded.fingerprint, fields = excluded.fields`
}

// Tally counts sightings of a listing by partition.
func (s *sweeps) Tally(ctx context.Context, q scan.SightingQuery) (map[string]int64, error) {
	var found []struct {
		Part  string `db:"partition"`
		Count int64
	}
	err := s.db.get(ctx, &found, `SELECT partition, count(*) AS count FROM amends_observations
		WHERE name = ? AND side = ? AND scan >= ? GROUP BY partition`, q.Name, string(q.Side), q.Generation)
	if err != nil {
		return nil, fmt.Errorf("count sightings of %s: %w", q.Name, err)
	}
	counts := make(map[string]int64, len(found))
	for _, f := range found {
		counts[f.Part] = f.Count
	}
	return counts, nil
}

// Discard erases sightings of earlier generations. They are looked for first, which takes its time;
// erasing them by their keys, if they still are old, takes none.
func (s *sweeps) Discard(ctx context.Context, q scan.SightingQuery, limit int) (n int, err error) {
	var old []struct{ Key, ID string }
	err = s.db.get(ctx, &old, `SELECT key, id FROM amends_observations
		WHERE name = ? AND side = ? AND scan < ? ORDER BY key, id LIMIT ?`, q.Name, string(q.Side), q.Generation, limit)
	if err == nil && len(old) > 0 {
		keys := make([][2]string, len(old))
		for i := range old {
			keys[i] = [2]string{old[i].Key, old[i].ID}
		}
		n, err = s.erase(ctx, q, keys)
	}
	return orNone(n, wrap(err, "discard sightings of %s", q.Name))
}

func (s *sweeps) erase(ctx context.Context, q scan.SightingQuery, keys [][2]string) (int, error) {
	text, err := json.Marshal(keys)
	if err != nil {
		return 0, err
	}
	var n int
	err = s.db.Page(ctx, nil, func(ctx context.Context, c Queries) (_ bool, err error) {
		n, err = affected(c.ExecContext(ctx, s.db.Bind(`DELETE FROM amends_observations WHERE (name, side, key, id) IN
			(SELECT CAST(? AS text), CAST(? AS text), value ->> 0, value ->> 1 FROM `+s.db.Elements+`) AND scan < ?`),
			q.Name, string(q.Side), string(text), q.Generation))
		return err == nil, err
	})
	return n, s.db.Explain(ctx, err)
}
