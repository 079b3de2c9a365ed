package drifting

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// The databases.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Job is a reconciler over listings of a number of objects, in one database.
type Job struct {
	n      int64
	world  world
	db     store.DB
	runs   *coordinator.Coordinator // of the saga, which is never run
	sweep  *scan.Sweep
	repair *reconcile.Reconciler
}

// Open opens a job on a database that is empty, or was filled with as many objects.
func Open(ctx context.Context, database, address string, n int64) (_ *Job, err error) {
	j := &Job{n: n}
	if j.db, err = store.Open(ctx, address, &store.Options{Migrate: true}); err == nil {
		err = j.wire(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open a job on %s: %w", database, err)
	}
	return j, nil
}

// Close closes what is open.
func (j *Job) Close() error { return j.db.Close() }

type paper struct{ ID string }

func (p paper) ExternalID() string { return p.ID }

// wire makes the reconciler. Its saga is never run.
func (j *Job) wire(ctx context.Context) error {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	c, err := coordinator.New(j.db, &coordinator.Options{Log: silent}) //nolint:contextcheck // it runs nothing here
	if err != nil {
		return err
	}
	never := func(context.Context, saga.Call[plan.Fields]) (paper, error) {
		return paper{}, errors.New("nothing is made here")
	}
	program, err := saga.Define(sagaName, 1, saga.Do("invoice", never).Idempotent().NoUndo("nothing is made here"))
	if err == nil {
		err = c.Register(ctx, program)
	}
	if err != nil {
		return err
	}
	j.runs = c
	source, destination := j.world.source(), j.world.destination()
	var faults [2]error
	j.sweep, faults[0] = scan.New(scan.Config{Name: job, Source: source, Destination: destination, Store: j.db, Mapping: "1"})
	j.repair, faults[1] = reconcile.New(j.db, reconcile.Config{
		Name: job, Type: source.Object.Type, All: noObjects,
		Destination: reconcile.Destination{
			Limits: destination.Limits, Settle: destination.Settle, Partitions: j.world.named, Marked: noDocuments, Find: destination.Find,
		},
		Source:      &inbox.Source{Name: source.Object.Source, Saga: sagaName, Fetch: fetch, Decide: decide, Apply: apply, Limits: inbox.Limits{PerSecond: 1e9}},
		Coordinator: c, Step: "invoice", Fields: reconcile.FieldsOf(func(f plan.Fields) plan.Fields { return f }),
	}, &reconcile.Options{Mapping: "1", Partitions: j.world.named})
	return errors.Join(faults[:]...)
}

// Fill makes listings of all objects and documents, and their works. db is a connection of its own
// to the database.
func (j *Job) Fill(ctx context.Context, db *sqlx.DB, database string, progress func(string)) error {
	for _, side := range []scan.Side{scan.SourceSide, scan.DestinationSide} { // of nothing; the rows follow
		if _, err := j.sweep.List(ctx, side); err != nil {
			return err
		}
	}
	progress("adopting works")
	var batch []coordinator.Adoption
	for n := int64(0); n < j.n; n += each {
		if matter(n) == stale {
			batch = append(batch, adopted(n))
		}
		if len(batch) == 500 || n+each >= j.n {
			if err := j.adopt(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return fill(ctx, db, database, j.n, progress)
}

func adopted(n int64) coordinator.Adoption {
	return coordinator.Adoption{
		Saga: sagaName, Work: prefix + numbered(n), Input: content(n, then), Revision: revision(then),
		Effects: map[string]coordinator.Effect{"invoice": {ExternalID: "inv_" + numbered(n)}},
		By:      saga.Actor{Name: "bench", Reason: "to have something that is stale"},
	}
}

func (j *Job) adopt(ctx context.Context, as []coordinator.Adoption) error {
	if len(as) == 0 {
		return nil
	}
	answers, err := j.runs.Adopt(ctx, as)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	return err
}

// Plan is the whole way of a reconciler from the listings to a stored plan.
func (j *Job) Plan(ctx context.Context) error {
	j.world.listed = true
	r, err := j.repair.Plan(ctx)
	if err != nil {
		return err
	}
	if r.Seen != j.n || r.Planned != drifted(j.n) {
		return fmt.Errorf("the plan is wrong: %d keys and %d actions, of %d and %d: %s", r.Seen, r.Planned, j.n, drifted(j.n), r.Message)
	}
	return nil
}

// Compare merges the listings with the ledger and counts what differs. With bare it leaves the
// fields unread.
func (j *Job) Compare(ctx context.Context, bare bool) error {
	read := func(side scan.Side) *scan.Reader {
		return scan.Read(ctx, j.db, scan.SightingQuery{Name: job, Side: side, Generation: 1, Bare: bare})
	}
	source, destination := read(scan.SourceSide), read(scan.DestinationSide)
	defer source.Close()
	defer destination.Close()
	heads := plan.Pages(5000, func(last *plan.Head, limit int) ([]plan.Head, error) {
		if last == nil {
			return j.heads(ctx, "", limit)
		}
		return j.heads(ctx, last.Key, limit)
	})
	return j.compare(ctx, plan.Sides{Source: source.Seen, Destination: destination.Seen, Ledger: heads}, bare)
}

// heads reads where instances stand, as a reconciler does.
func (j *Job) heads(ctx context.Context, after string, limit int) ([]plan.Head, error) {
	heads, err := ledger.First(ctx, j.db, ledger.Filter{Saga: sagaName, ByWork: true, AfterWork: after, Limit: limit})
	known := make([]plan.Head, len(heads))
	for i := range heads {
		h := &heads[i]
		known[i] = plan.Head{Key: h.ID.Work, Known: plan.Known{Works: 1, Status: h.Status, Reason: h.Reason, Revision: h.Revision}}
	}
	return known, err
}

func (j *Job) compare(ctx context.Context, sides plan.Sides, bare bool) error {
	how, found := plan.Comparison{Policy: &plan.Policy{}, Complete: true}, int64(0)
	if bare {
		how.Fields = func(_ context.Context, key string) (o, d plan.Fields, err error) {
			var n int64
			_, err = fmt.Sscan(key[len(prefix):], &n)
			return content(n, now), content(n, then), err
		}
	}
	counts, err := how.Compare(ctx, sides, func(*plan.Finding) error {
		found++
		return nil
	})
	if err == nil && (counts.Census.Keys != j.n || found != drifted(j.n)) {
		err = fmt.Errorf("the comparison is wrong: %d keys, %d differ, of %d and %d", counts.Census.Keys, found, j.n, drifted(j.n))
	}
	return err
}
