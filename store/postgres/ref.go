package postgres

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// refs draws the references of new instances: six bits for the bucket, then microseconds, then a
// little chance. It is in no hash, no key and no record, and nothing is read out of it but its
// bucket and, by listings, what was started before what.
//
// Within a process they never step back, whatever the clock does: rows that are made one after the
// other lie side by side.
type refs struct {
	mu   sync.Mutex
	last int64 // microseconds since the epoch that were given last

	now    func() time.Time // nil but in tests: the computer's clock
	chance func() int64     // nil but in tests
}

const (
	chanceBits = 5
	timeBits   = sqlstore.StartedBits - chanceBits // 142 years
)

// refEpoch is when the microseconds of references begin.
var refEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// draw returns a reference in a bucket.
func (r *refs) draw(bucket int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, chance := time.Now, func() int64 { return rand.Int64N(1 << chanceBits) }
	if r.now != nil {
		now = r.now
	}
	if r.chance != nil {
		chance = r.chance
	}
	r.last = max(r.last+1, now().Sub(refEpoch).Microseconds())
	return int64(bucket)<<sqlstore.StartedBits | (r.last&(1<<timeBits-1))<<chanceBits | chance()
}

// name gives every start a reference, in its work's bucket, that was never given before.
func (db *DB) name(starts []*pending) {
	for _, p := range starts {
		p.row[0] = db.refs.draw(sqlstore.Bucket(p.ID.Work, db.meta.Buckets))
	}
}
