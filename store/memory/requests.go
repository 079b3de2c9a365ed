package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
)

// Request "keeps r if nothing is kept under its key, and returns what is".
func (db *DB) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	now, unlock, err := db.enter(ctx)
	if err != nil {
		return r, fmt.Errorf("keep a request: %w", err)
	}
	defer unlock()
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
	if !known || kept.Nonce != nonce {
		return nil
	}
	if kept.Answer = slices.Clone(answer); answer == nil {
		delete(db.requests, key)
	} else {
		db.requests[key] = kept
	}
	return nil
}
