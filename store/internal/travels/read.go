package travels

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/store/internal/column"
)

// pageSize is how many sightings are read at once when nobody says.
const pageSize = 1000

// Sightings returns rows of a listing in the order of key and id.
func (t *Travels) Sightings(ctx context.Context, q sweep.SightingQuery) ([]sweep.Sighting, error) {
	found, err := t.sightings(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read sightings of %s: %w", q.Name, t.db.Explain(ctx, err))
	}
	return found, nil
}

func (t *Travels) sightings(ctx context.Context, q sweep.SightingQuery) (found []sweep.Sighting, err error) {
	columns := `key, id, flags, created, revision, fingerprint`
	if !q.Bare {
		columns += `, generation, part, fields`
	}
	behind, args := `key > ?`, []any{q.Name, string(q.Side), q.After}
	if q.AfterID != "" {
		behind, args = `(key, id) > (?, ?)`, append(args, q.AfterID)
	}
	limit := cmp.Or(q.Limit, pageSize)
	result, err := t.db.Read.QueryxContext(ctx, t.db.Bind(`SELECT `+columns+`
		FROM amends_sightings WHERE name = ? AND side = ? AND `+behind+` AND generation >= ? ORDER BY key, id LIMIT ?`),
		append(args, q.Generation, limit)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = result.Close() }() // its error is that of Err
	found = make([]sweep.Sighting, 0, min(limit, 5*pageSize))
	var r row
	into := r.into(q.Bare)
	for result.Next() {
		if err := result.Scan(into...); err != nil {
			return nil, err
		}
		if err := r.finish(); err != nil {
			return nil, err
		}
		found = append(found, r.Sighting)
	}
	return found, result.Err()
}

// row is what a sighting is read into; it is used again for the next one.
type row struct {
	sweep.Sighting

	created          column.Moment
	revision, fields column.Text
	fingerprint      sql.RawBytes
}

// into is where a row is read to.
func (r *row) into(bare bool) []any {
	into := []any{&r.Key, &r.ID, &r.Flags, &r.created, &r.revision, &r.fingerprint}
	if !bare {
		into = append(into, &r.Generation, &r.Partition, &r.fields)
	}
	return into
}

// finish makes a sighting of what was read.
func (r *row) finish() error {
	r.Created, r.Revision, r.Fields = r.created.Time(), string(r.revision), nil
	if r.Fingerprint = [16]byte{}; len(r.fingerprint) == len(r.Fingerprint) {
		copy(r.Fingerprint[:], r.fingerprint)
	}
	if r.fields == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(r.fields), &r.Fields); err != nil {
		return fmt.Errorf("the fields of %s are no JSON: %w", r.Key, err)
	}
	return nil
}
