package sqlstore

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
)

// requestRow is a row of amends_requests.
type requestRow struct {
	Nonce        int64
	Asks, Answer Text
	At           Moment
}

// Request keeps a request, and returns what is kept under its key. Old ones go when another comes.
func (s *chains) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	var row requestRow
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		if err := s.dropRequests(ctx, q); err != nil {
			return err
		}
		return sqlx.GetContext(ctx, q, &row, s.db.Text(addRequest), s.db.Clock(), r.Key, r.Nonce, r.Asks)
	})
	if err != nil {
		return r, s.failed(ctx, err, "keep a request")
	}
	if r.Nonce, r.Asks, r.At = row.Nonce, string(row.Asks), row.At.Time(); row.Answer != "" {
		r.Answer = []byte(row.Answer)
	}
	return r, nil
}

// dropRequests drops those that are too old to be asked again.
func (s *chains) dropRequests(ctx context.Context, q Queries) error {
	_, err := q.ExecContext(ctx, s.db.Text(dropRequests), s.db.Clock(), ledger.RequestsKept.Milliseconds())
	return err
}

// Answer keeps what a request was answered with, or frees its key.
func (s *chains) Answer(ctx context.Context, key string, nonce int64, answer []byte) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) (err error) {
		if answer == nil {
			_, err = q.ExecContext(ctx, s.db.Text(freeRequest), key, nonce)
		} else {
			_, err = q.ExecContext(ctx, s.db.Text(addAnswer), key, nonce, string(answer))
		}
		return err
	})
	return s.failed(ctx, err, "answer a request")
}

const (
	dropRequests = `
		DELETE FROM amends_requests WHERE key IN (SELECT key FROM amends_requests WHERE at < (SELECT {now}) - $2 * {ms} {passing})`

	// addRequest answers with what is kept: an earlier one stays as it is.
	addRequest = `
		INSERT INTO amends_requests (key, nonce, asks, at) VALUES ($2, $3, $4, {now})
		ON CONFLICT (key) DO UPDATE SET nonce = amends_requests.nonce
		RETURNING nonce, asks, at, answer`

	addAnswer   = `UPDATE amends_requests SET answer = $3 WHERE key = $1 AND nonce = $2`
	freeRequest = `DELETE FROM amends_requests WHERE key = $1 AND nonce = $2`
)
