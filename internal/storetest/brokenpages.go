package storetest

import (
	"context"
	"slices"

	"github.com/amends-dev/amends/internal/plan"
)

// What breaks the rules of a reconciler's lists: filters that are not obeyed, and pages that lose
// their place.

// next is a number beside n, and no number where there is none.
func next(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return n + by
}

// turned: a page of findings begins n rows off its place.
type turned struct {
	Store

	by int
}

func (s turned) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	if q.After == "" {
		return s.Store.Findings(ctx, q)
	}
	limit, after := q.Limit, q.After
	q.After, q.Limit = "", 1<<20
	rows, err := s.Store.Findings(ctx, q)
	first := slices.IndexFunc(rows, func(r plan.Row) bool { return r.Key > after })
	if err != nil || first < 0 {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	rows = rows[min(first+s.by, len(rows)):]
	return rows[:min(limit, len(rows))], nil
}
