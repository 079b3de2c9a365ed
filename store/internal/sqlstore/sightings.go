package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/scan"
)

// sightingsPage is how many sightings are read at once when the query does not say.
const sightingsPage = 1000

// Sightings returns rows of a listing in the order of key and id.
func (s *sweeps) Sightings(ctx context.Context, q scan.SightingQuery) ([]scan.Sighting, error) {
	var found []scan.Sighting
	err := s.db.read(ctx, func(ctx context.Context, c Queries) (err error) {
		found, err = s.sightings(ctx, c, q)
		return err
	})
	return orNone(found, wrap(err, "read sightings of %s", q.Name))
}

func (s *sweeps) sightings(ctx context.Context, c Queries, q scan.SightingQuery) (found []scan.Sighting, err error) {
	columns := `key, id, flags, created_at, revision, fingerprint`
	if !q.Bare {
		columns += `, scan, partition, fields`
	}
	behind, args := `key > ?`, []any{q.Name, string(q.Side), q.After}
	if q.AfterID != "" {
		behind, args = `(key, id) > (?, ?)`, append(args, q.AfterID)
	}
	limit := cmp.Or(q.Limit, sightingsPage)
	result, err := c.QueryxContext(ctx, s.db.Bind(`SELECT `+columns+`
		FROM amends_observations WHERE name = ? AND side = ? AND `+behind+` AND scan >= ? ORDER BY key, id LIMIT ?`),
		append(args, q.Generation, limit)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = result.Close() }() // its error is that of Err
	found = make([]scan.Sighting, 0, min(limit, 5*sightingsPage))
	var r sightingRow
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

// sightingRow is what a sighting is read into; it is used again for the next one.
type sightingRow struct {
	scan.Sighting

	created          Moment
	revision, fields Text
	fingerprint      sql.RawBytes
}

// into is where a row is read to.
func (r *sightingRow) into(bare bool) []any {
	into := []any{&r.Key, &r.ID, &r.Flags, &r.created, &r.revision, &r.fingerprint}
	if !bare {
		into = append(into, &r.Generation, &r.Partition, &r.fields)
	}
	return into
}

// finish makes a sighting of what was read.
func (r *sightingRow) finish() error {
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
