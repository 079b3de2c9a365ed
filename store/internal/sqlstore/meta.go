package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
)

// Meta is what there is one of in a ledger, and what never changes in it.
type Meta struct {
	LedgerID        string `db:"ledger_id"`
	Buckets         int
	BucketHash      string `db:"bucket_hash"`
	DocumentVersion int    `db:"document_version"`
	Secret          []byte // under which names are hashed that were erased
	Sealed          bool   // bodies are
}

// SealFrom has the ledger refuse, from now on, processes that would store bodies as they are, but for keys that are for a sealed one.
func SealFrom(ctx context.Context, q Queries, m *Meta, keys ledger.Keys) error {
	if _, of := keys.(ledger.OfSealed); of || keys == nil || m.Sealed {
		return nil
	}
	_, err := q.ExecContext(ctx, `UPDATE amends_meta SET sealed = true`)
	m.Sealed = err == nil
	return err
}

// bucketHash is the one by which [Bucket] spreads works.
const bucketHash = "sha256"

// ReadMeta reads what the ledger is, and refuses one that this program would misread.
func ReadMeta(ctx context.Context, q Queries) (m Meta, err error) {
	row := q.QueryRowxContext(ctx, `SELECT ledger_id, buckets, bucket_hash, document_version, secret, sealed FROM amends_meta`)
	if err := row.StructScan(&m); err != nil {
		return m, fmt.Errorf("read what the ledger is: %w", err)
	}
	switch {
	case m.BucketHash != bucketHash:
		err = fmt.Errorf("%w: it spreads works by %q, this program by %q", ledger.ErrSchema, m.BucketHash, bucketHash)
	case m.Buckets < 1 || m.Buckets > 1<<bucketBits || m.Buckets&(m.Buckets-1) != 0:
		err = fmt.Errorf("%w: it spreads works over %d buckets, this program over a power of two up to %d", ledger.ErrSchema, m.Buckets, 1<<bucketBits)
	case m.DocumentVersion != 1:
		err = fmt.Errorf("%w: its documents have version %d, this program knows 1", ledger.ErrSchema, m.DocumentVersion)
	default:
		return m, nil
	}
	return m, fmt.Errorf("%w. Nothing was changed; use a newer program", err)
}

// bucketBits is how much room a reference has for its bucket, StartedBits for what orders it
// within.
const (
	bucketBits  = 6
	StartedBits = 63 - bucketBits
)

// Bucket is where a work belongs: the first eight bytes of the SHA-256 of its id, modulo their
// number. It is a format.
func Bucket(work string, buckets int) int {
	if buckets == 1 {
		return 0
	}
	sum := sha256.Sum256([]byte(work))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(buckets))
}
