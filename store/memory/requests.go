package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Request "keeps r if nothing is kept under its key, and returns what is".
func (db *DB) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	now, unlock, err := db.enter(ctx)
	if err != nil {
		return r, fmt.Errorf("keep a request: %w", err)
	}
	defer unlock()
	if err := valid.Request(&r); err != nil {
		return r, fmt.Errorf("keep a request: %w", err)
	}
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
	kept.Answer = slices.Clone(kept.Answer)
	return kept, nil
}

// Answer keeps "what the request with that key and nonce was answered with. Nil frees the key".
func (db *DB) Answer(ctx context.Context, key string, nonce int64, answer []byte) error {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return fmt.Errorf("answer a request: %w", err)
	}
	defer unlock()
	kept, known := db.requests[key]
	switch {
	case !known || kept.Nonce != nonce:
	case answer == nil:
		delete(db.requests, key)
	default:
		kept.Answer = slices.Clone(answer)
		db.requests[key] = kept
	}
	return nil
}
