package shop

import "context"

// Exec does to the shop's file what only tests do.
func (s *Store) Exec(ctx context.Context, sql string) error {
	_, err := s.db.ExecContext(ctx, sql)
	return err
}
