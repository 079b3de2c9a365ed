package sqlstore

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
)

// Prepared runs a statement as it was prepared, if it was.
type Prepared struct {
	Queries
	Stmt func(ctx context.Context, text string) *sqlx.Stmt // nil: it was not
}

func (p Prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.Stmt(ctx, text); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.Queries.QueryContext(ctx, text, args...)
}

func (p Prepared) QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error) {
	if s := p.Stmt(ctx, text); s != nil {
		return s.QueryxContext(ctx, args...)
	}
	return p.Queries.QueryxContext(ctx, text, args...)
}

func (p Prepared) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := p.Stmt(ctx, text); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return p.Queries.ExecContext(ctx, text, args...)
}
