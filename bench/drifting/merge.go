package drifting

import (
	"context"
	"encoding/binary"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// Merge compares n objects whose three sides are at hand: what the merge alone costs, with the
// making of its rows.
func Merge(ctx context.Context, n int64) error {
	j := &Job{n: n}
	return j.compare(ctx, plan.Sides{Source: side(n, true), Destination: side(n, false), Ledger: heads(n)}, true)
}

// side makes the rows of one system.
func side(n int64, source bool) plan.Stream[plan.Seen] {
	next, old, fresh := int64(0), revision(then), revision(now)
	return func(s *plan.Seen) (bool, error) {
		for !source && next < n && matter(next) == missing {
			next++
		}
		if next >= n {
			return false, nil
		}
		*s = plan.Seen{Key: key(next), Revision: old, Wanted: source, Created: then}
		s.ID = s.Key[len(prefix):]
		binary.BigEndian.PutUint64(s.Fingerprint[:], uint64(next)+1)
		if source && matter(next) == stale {
			s.Revision, s.Fingerprint[15] = fresh, 1
		}
		next++
		return true, nil
	}
}

// heads makes the rows of the ledger.
func heads(n int64) plan.Stream[plan.Head] {
	next, old := int64(0), revision(then)
	return func(h *plan.Head) (bool, error) {
		for next < n && (matter(next) == missing || matter(next) == unknown) {
			next++
		}
		if next >= n {
			return false, nil
		}
		*h = plan.Head{Key: key(next), Known: plan.Known{Works: 1, Status: saga.Completed, Revision: old}}
		next++
		return true, nil
	}
}

// key is the natural key of an object.
func key(n int64) string {
	b := []byte(prefix + "00000000")
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b)
}
