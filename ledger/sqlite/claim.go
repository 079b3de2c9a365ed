package sqlite

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger/internal/engine"
)

// claim gives a session works. It runs in a transaction that began as a writer, so what it reads stays true.
func (l *Ledger) claim(ctx context.Context, q engine.Queries, c engine.ClaimArgs) ([]engine.HeadRow, error) {
	now := l.clock()
	var held []engine.HeadRow
	if err := sqlx.SelectContext(ctx, q, &held, signalled, c.Token, c.Held, c.All); err != nil {
		return nil, err
	}
	for i := range held {
		if err := held[i].Since.Scan(now); err != nil {
			return nil, err
		}
	}
	var free []struct{ Number, Since int64 }
	if err := sqlx.SelectContext(ctx, q, &free, claimable, now, c.Known, c.GraceMS, c.Limit); err != nil {
		return nil, err
	}
	if len(free) == 0 {
		return held, nil
	}
	numbers, since := make([]int64, len(free)), make(map[int64]int64, len(free))
	for i, f := range free {
		numbers[i], since[f.Number] = f.Number, f.Since
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	if _, err := q.ExecContext(ctx, take, c.Token, string(list)); err != nil {
		return nil, err
	}
	var rows []engine.HeadRow
	if err := sqlx.SelectContext(ctx, q, &rows, taken, string(list)); err != nil {
		return nil, err
	}
	for i := range rows {
		if err := rows[i].Since.Scan(since[rows[i].Number]); err != nil {
			return nil, err
		}
	}
	return append(rows, held...), nil
}

// identity reads which file this is.
func identity(ctx context.Context, q engine.Queries) (string, error) {
	var id string
	err := q.QueryRowxContext(ctx, whoAmI).Scan(&id)
	return id, err
}
