package sqlite

import (
	"context"
	"slices"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// setControl stores a control in a transaction that began as a writer.
func (db *DB) setControl(ctx context.Context, c sqlstore.ControlArgs) (version int64, at sqlstore.Moment, stored bool, err error) {
	err = db.writer.transaction(ctx, func(q sqlstore.Queries) error {
		now := db.clock()
		if c.Token != 0 {
			var live bool
			if err := q.QueryRowxContext(ctx, sessionLives, c.Token, now).Scan(&live); err != nil || !live {
				return err
			}
		}
		if err := q.QueryRowxContext(ctx, newestControl).Scan(&version); err != nil {
			return err
		}
		version++
		row := []any{version, now, c.Token, c.Nonce, c.Kind, c.Name, c.Body, c.Actor, c.Reason}
		set, args := addControl, row
		if c.Version > 0 {
			set, args = changeControl, append(slices.Clip(row), c.Version)
		}
		res, err := q.ExecContext(ctx, set, args...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n == 0 || err != nil {
			return err
		}
		stored = true
		if _, err := q.ExecContext(ctx, countControl, version); err != nil {
			return err
		}
		if err := at.Scan(now); err != nil || c.Acted == nil {
			return err
		}
		return c.Acted(ctx, q, version, at)
	})
	return version, at, stored && err == nil, err
}
