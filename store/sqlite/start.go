package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
)

// StartTx inserts head and first record within the caller's transaction, unheld and due now. The
// answer is final only when tx commits. tx must be on this ledger's file, and should have begun
// IMMEDIATE (_txlock=immediate in the DSN of modernc.org/sqlite): a transaction that begins as a
// reader may be refused when it starts to write. Until tx ends, no other connection can write to
// the file, those of this ledger's own process included.
func (db *DB) StartTx(ctx context.Context, tx ledger.Tx, e ledger.Entry) (ledger.Answer, error) {
	a, err := db.startTx(ctx, tx, e)
	if err != nil {
		return ledger.Answer{}, fmt.Errorf("start %s in a transaction: %w", e.ID, explain(err))
	}
	return a, nil
}

func (db *DB) startTx(ctx context.Context, tx ledger.Tx, e ledger.Entry) (ledger.Answer, error) {
	if e.Record.Seq != 1 || e.Record.Dispatch != nil || len(e.Waits) > 0 {
		return ledger.Answer{}, errors.New("only a first record that arms nothing can be stored there")
	}
	e.Schedule = &ledger.Schedule{} // unheld
	p, a := db.prepare(&e)
	if p.Entry == nil {
		return a, nil
	}
	b := appending{tx: tx, now: db.clock(), hide: db.Hide}
	return b.add(ctx, &p)
}
