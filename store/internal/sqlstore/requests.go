package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/valid"
)

// requestRow is a row of amends_requests.
type requestRow struct {
	Nonce  int64
	Asks   Text
	At     Moment
	Answer Text
}

// Request keeps a request, and returns what is kept under its key. Old ones go when another comes.
func (s *chains) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	err := valid.Request(&r)
	var rows []requestRow
	if err == nil {
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
			rows = rows[:0]
			if _, err := q.ExecContext(ctx, s.text.dropRequests, s.db.Clock(), ledger.RequestsKept.Milliseconds()); err != nil {
				return err
			}
			if _, err := q.ExecContext(ctx, s.text.addRequest, s.db.Clock(), r.Key, r.Nonce, r.Asks); err != nil {
				return err
			}
			return s.db.choose(ctx, q, &rows, `SELECT nonce, asks, at, answer FROM amends_requests WHERE key = ?`, r.Key)
		})
	}
	if err == nil && len(rows) != 1 { // another process dropped it in between
		err = fmt.Errorf("%w: it was kept for its time, and is gone", ledger.ErrChanged)
	}
	if err != nil {
		return r, s.failed(ctx, err, "keep a request")
	}
	r.Nonce, r.Asks, r.At, r.Answer = rows[0].Nonce, string(rows[0].Asks), rows[0].At.Time(), slices.Clip([]byte(rows[0].Answer))
	if len(r.Answer) == 0 {
		r.Answer = nil
	}
	return r, nil
}

// Answer keeps what a request was answered with, or frees its key.
func (s *chains) Answer(ctx context.Context, key string, nonce int64, answer []byte) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		if answer == nil {
			_, err := q.ExecContext(ctx, s.text.freeRequest, key, nonce)
			return err
		}
		_, err := q.ExecContext(ctx, s.text.addAnswer, key, nonce, string(answer))
		return err
	})
	return s.failed(ctx, err, "answer a request")
}

const (
	dropRequests = `
		DELETE FROM amends_requests WHERE key IN (
			SELECT key FROM amends_requests WHERE at < (SELECT {now}) - $2 * {ms} ORDER BY at LIMIT 1000 {passing})`

	addRequest = `
		INSERT INTO amends_requests (key, nonce, asks, at) VALUES ($2, $3, $4, {now}) ON CONFLICT (key) DO NOTHING`

	addAnswer   = `UPDATE amends_requests SET answer = $3 WHERE key = $1 AND nonce = $2`
	freeRequest = `DELETE FROM amends_requests WHERE key = $1 AND nonce = $2`
)
