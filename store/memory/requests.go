package memory

import (
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// Request "keeps r if nothing is kept under its key, and returns what is".
func (db *DB) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	err := db.do(ctx, func(now time.Time) error {
		for key, old := range db.requests {
			if now.Sub(old.At) > ledger.RequestsKept {
				delete(db.requests, key)
			}
		}
		kept, known := db.requests[r.Key]
		if !known {
			r.At, r.Answer = now, nil
			kept = r
			db.requests[r.Key] = kept
		}
		r = kept
		r.Answer = slices.Clone(kept.Answer)
		return nil
	}, "keep a request")
	return r, err
}

// Answer keeps "what the request with that key and nonce was answered with. Nil frees the key".
func (db *DB) Answer(ctx context.Context, key string, nonce int64, answer []byte) error {
	return db.do(ctx, func(time.Time) error {
		kept, known := db.requests[key]
		if !known || kept.Nonce != nonce {
			return nil
		}
		if kept.Answer = slices.Clone(answer); answer == nil {
			delete(db.requests, key)
		} else {
			db.requests[key] = kept
		}
		return nil
	}, "answer a request")
}
