package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

// listing is what was listed of both systems.
type listing struct {
	source, destination *scan.Complete
	before              int64    // objects of the source in its complete listing before this one
	missing             string   // why there is nothing to compare; the rest says nothing then
	at                  string   // how far both have come, for people
	short               []string // what could not be listed this time; older rows stand for it
}

// list lists both systems, or goes on with listings that are under way. What they cannot list now
// stands as it was listed last: whatever differs is looked at again.
func (r *Reconciler) list(ctx context.Context) (*listing, error) {
	l := new(listing)
	for _, side := range []scan.Side{scan.SourceSide, scan.DestinationSide} {
		rep, err := r.sweep.List(ctx, side)
		if err != nil {
			return nil, err
		}
		if rep.Result != scan.OK {
			l.short = append(l.short, fmt.Sprintf("the %s was not listed whole: %s", side, rep.Why))
		}
		l.at += fmt.Sprintf("%s: %s. ", side, rep.Listed)
		whole := rep.Listed.Complete
		if whole == nil && l.missing == "" {
			l.missing = fmt.Sprintf("the %s was never listed whole (%s); %s", side, rep.Listed, cmp.Or(rep.Why, "the next run goes on"))
		}
		if side == scan.SourceSide {
			l.source, l.before = whole, rep.Listed.Before
		} else {
			l.destination = whole
		}
	}
	return l, nil
}

// listSince lists both systems until both listings are whole that began at since or later. Rows
// that are older would hide what was made after them.
func (r *Reconciler) listSince(ctx context.Context, since time.Time) (*listing, error) {
	for last := ""; ; {
		l, err := r.list(ctx)
		switch {
		case err != nil:
			return nil, err
		case len(l.short) > 0:
			l.missing = strings.Join(l.short, "; ")
			return l, nil
		case l.missing == "" && !l.source.Started.Before(since) && !l.destination.Started.Before(since):
			return l, nil
		case l.at == last:
			l.missing = "a listing makes no progress: " + l.at
			return l, nil
		}
		last = l.at
	}
}

// headsAtOnce is how many works are read at once.
const headsAtOnce = 5000

// compare merges the listings with the ledger, and hands on what is not plainly in sync.
func (r *Reconciler) compare(ctx context.Context, l *listing, yield func(*plan.Finding) error) (*plan.Counts, error) {
	source, destination := r.read(ctx, scan.SourceSide, l.source), r.read(ctx, scan.DestinationSide, l.destination)
	defer source.Close()
	defer destination.Close()
	objects, documents := r.fields(scan.SourceSide, l.source), r.fields(scan.DestinationSide, l.destination)
	how := plan.Comparison{Policy: &r.policy, Complete: true, Fields: func(ctx context.Context, key string) (object, document plan.Fields, err error) {
		if object, err = objects.of(ctx, key); err == nil {
			document, err = documents.of(ctx, key)
		}
		return object, document, err
	}}
	return how.Compare(ctx, plan.Sides{Source: source.Seen, Destination: destination.Seen, Ledger: r.heads(ctx)}, yield)
}

// read reads one side of a listing, without its fields. The caller closes the reader.
func (r *Reconciler) read(ctx context.Context, side scan.Side, of *scan.Complete) *scan.Reader {
	q := r.listed(side, of)
	q.Bare = true
	return scan.Read(ctx, r.sweep.Store, q)
}

// listed selects the rows of one side of a listing.
func (r *Reconciler) listed(side scan.Side, of *scan.Complete) scan.SightingQuery {
	return scan.SightingQuery{Name: r.sweep.Name, Side: side, Generation: of.Scan}
}

// heads streams the ledger.
func (r *Reconciler) heads(ctx context.Context) plan.Stream[plan.Head] {
	return plan.Pages(headsAtOnce, func(last *plan.Head, limit int) ([]plan.Head, error) {
		if last == nil {
			return r.instances.Heads(ctx, "", limit)
		}
		return r.instances.Heads(ctx, last.Key, limit)
	})
}
