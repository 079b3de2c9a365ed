package sqlstore

import (
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
)

// Each bucket has an order of its own. A listing in the order of starting walks all buckets side by
// side, a few rows in each, and merges what it finds: so buckets cost no write anything, and a
// ledger that has one knows nothing of this.

// Started is the place of a reference in the order of starting over all buckets: first its place in
// its bucket, then the bucket.
func Started(ref int64) int64 { return ref&(1<<StartedBits-1)<<bucketBits | ref>>StartedBits }

// started is [Started] of a row.
var started = fmt.Sprintf("((h.ref & %d) << %d | (h.ref >> %d))", 1<<StartedBits-1, bucketBits, StartedBits)

// inBuckets makes the range that of one bucket, b, behind where the page before ended.
func (l *listing) inBuckets(f *ledger.Filter, at ledger.Position, buckets int) {
	beyond := fmt.Sprintf("h.ref > (b << %d) + (($%%d - b) >> %d)", StartedBits, bucketBits)
	l.buckets, l.order, l.started = buckets, "h.ref", started
	if f.Newest {
		beyond = fmt.Sprintf("h.ref < (b << %d) - ((b - $%%d) >> %d)", StartedBits, bucketBits)
		l.order, l.started = "h.ref DESC", "-"+started
	}
	l.where(fmt.Sprintf("h.ref BETWEEN b << %[1]d AND (b << %[1]d) + %[2]d", StartedBits, 1<<StartedBits-1))
	if f.After != "" {
		l.args = append(l.args, Started(at.Number))
		l.where(fmt.Sprintf(beyond, len(l.args)))
	}
}

// merged is what was walked, n rows in each bucket, and the edge of that: the first one that may
// have others before it which were not walked. It is null when everything was.
func (l *listing) merged(n int) string {
	return fmt.Sprintf(`WITH merged AS (SELECT h.*, %[1]s AS started FROM generate_series(0::bigint, %[2]d) AS b, LATERAL (
			SELECT *, row_number() OVER (ORDER BY %[3]s) AS place FROM amends_instances AS h%[4]s ORDER BY %[3]s LIMIT %[5]d) AS h),
		edge AS (SELECT min(started) AS started FROM merged WHERE place > %[6]d) `, l.started, l.buckets-1, l.order, l.within, n+1, n)
}

// mergedPage selects n heads that match, of those before the edge.
func (l *listing) mergedPage(n int) string {
	each := walked / l.buckets
	if l.text.Len() == 0 { // everything matches
		each = min(each, n)
	}
	return l.merged(each) + fmt.Sprintf(`SELECT %s FROM (SELECT merged.* FROM merged, edge WHERE merged.started < edge.started OR edge.started IS NULL) AS h%s
		ORDER BY h.started LIMIT %d`, HeadColumns, l.text.String(), n)
}

// mergedEnd selects the last head before the edge, and the one at it.
func (l *listing) mergedEnd() string {
	return l.merged(walked/l.buckets) + fmt.Sprintf(`SELECT %s FROM (SELECT merged.* FROM merged, edge WHERE merged.started <= edge.started
		ORDER BY merged.started DESC LIMIT 2) AS h ORDER BY h.started`, HeadColumns)
}
