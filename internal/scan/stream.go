package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/plan"
)

// chunk is how many rows a stream reads at once; another chunk is read ahead.
const chunk = 5000

// Reader reads the rows of one listing in their order.
type Reader struct {
	cancel context.CancelFunc
	chunks <-chan rows
	now    []Sighting
	last   bool // there is nothing behind now
	err    error
}

// rows is one chunk. What ends without a last one has ended early.
type rows struct {
	of   []Sighting
	last bool
	err  error
}

var errClosed = errors.New("the reading was ended before the listing was")

// Read begins to read a listing. The caller closes the reader.
func Read(ctx context.Context, store Store, q SightingQuery) *Reader {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan rows, 1)
	q.Limit = cmp.Or(max(q.Limit, 0), chunk)
	go func() {
		defer close(chunks)
		for {
			of, err := store.Sightings(ctx, q)
			if err != nil {
				err = fmt.Errorf("read what was listed of the %s: %w", q.Side, err)
			}
			last := err == nil && len(of) < q.Limit
			select {
			case chunks <- rows{of, last, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || last {
				return
			}
			q.After, q.AfterID = of[len(of)-1].Key, of[len(of)-1].ID
		}
	}()
	return &Reader{cancel: cancel, chunks: chunks}
}

// Next returns the next row, nil at the end. The row is good until the next call.
func (r *Reader) Next() (*Sighting, error) {
	for len(r.now) == 0 && r.err == nil && !r.last {
		next, more := <-r.chunks
		if r.now, r.last, r.err = next.of, next.last, next.err; !more {
			r.err = errClosed
		}
	}
	if r.err != nil || len(r.now) == 0 {
		return nil, r.err
	}
	row := &r.now[0]
	r.now = r.now[1:]
	return row, nil
}

// Seen hands out rows as a comparison takes them: it is a [plan.Stream].
func (r *Reader) Seen(seen *plan.Seen) (bool, error) {
	row, err := r.Next()
	if row == nil || err != nil {
		return false, err
	}
	*seen = plan.Seen{
		Key: row.Key, ID: row.ID, Revision: row.Revision, Fingerprint: plan.Fingerprint(row.Fingerprint),
		Fields: row.Fields, Created: row.Created,
		Wanted: row.Flags&Wanted != 0, Unreadable: row.Flags&Unreadable != 0,
		Void: row.Flags&Void != 0, Locked: row.Flags&Locked != 0, Foreign: row.Flags&Foreign != 0,
	}
	return true, nil
}

// Close ends the reading.
func (r *Reader) Close() { r.cancel() }
