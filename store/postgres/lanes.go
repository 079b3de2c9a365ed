package postgres

import (
	"context"
	"database/sql"
	"slices"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// lane is the room that calls of one urgency have in a pool: as many connections as no other lane can take. A lane may be
// a part of another, which then always has some left.
type lane struct {
	pool    *sqlx.DB
	room    []chan struct{} // its own, then that of the lane of which it is a part
	trusted bool            // it leads to the database that was recognised, and to no other
	reads   bool            // nothing is written there
}

func newLane(pool *sqlx.DB, connections int) *lane {
	return &lane{pool: pool, room: []chan struct{}{make(chan struct{}, connections)}}
}

// butOne is a part of l that leaves one connection to the others, where there is more than one.
func (l *lane) butOne() *lane {
	part := *l
	part.room = append([]chan struct{}{make(chan struct{}, max(1, cap(l.room[0])-1))}, l.room...)
	return &part
}

// trusting is l for calls that must not reach another database than the one that was recognised.
func (l *lane) trusting() *lane {
	trusting := *l
	trusting.trusted = true
	return &trusting
}

// reading is l for calls that write nothing.
func (l *lane) reading() *lane {
	reading := *l
	reading.reads = true
	return &reading
}

// enter waits for a connection of the lane. Who enters also leaves.
func (l *lane) enter(ctx context.Context) (leave func(), err error) {
	for i, room := range l.room {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			free(l.room[:i])
			return nil, ctx.Err()
		}
	}
	return func() { free(l.room) }, nil
}

func free(rooms []chan struct{}) {
	for _, room := range slices.Backward(rooms) {
		<-room
	}
}

// do makes a call for which the lane has room. It runs fn again as [pgdb.Repeat] does: after what the database undid, and
// after a lost answer when fn only reads or belongs to a verb that may be repeated.
func (l *lane) do(ctx context.Context, fn func(context.Context) error) error {
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l.trusted {
		ctx = pgdb.Trusted(ctx)
	}
	return pgdb.Repeat(ctx, l.reads || sqlstore.Repeatable(ctx), fn)
}

// plain runs fn with a connection for each statement.
func (l *lane) plain(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	return l.do(ctx, func(ctx context.Context) error { return fn(ctx, l.pool) })
}

// view runs fn on a consistent view of the database.
func (l *lane) view(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	return l.do(ctx, func(ctx context.Context) error {
		tx, err := l.pool.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		return fn(ctx, tx)
	})
}

// transaction runs fn in a transaction.
func (l *lane) transaction(ctx context.Context, fn func(*sqlx.Tx) error) error {
	return l.do(ctx, func(ctx context.Context) error {
		tx, err := l.pool.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // without effect after a commit
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// lanes are the pools, and who has how much room in them.
type lanes struct {
	work, batch, read *sqlx.DB

	records, claims, pulse *lane // of work: each sees its own row of an index, and is planned so
	writes, blocked        *lane // of work: all other writes, and among them starts that were blocked before
	gate                   *lane // the same room as writes
	starts, deliveries     *lane // of batch: what comes in, many rows at a time
	loads, lists, reads    *lane // of read: chains for the coordinator; for people the ledger's and the reconciler's lists
}

func newLanes(s *pgdb.Server, o Options) lanes {
	const own = 1 // connection for claims, the heartbeat, starts and deliveries each
	level := "default_transaction_isolation=" + o.level
	l := lanes{
		work:  s.Pool(o.Writers+o.Workers+2*own, append(slices.Clone(pgdb.ByIndex), pgdb.Steady, level)...),
		batch: s.Pool(2*own, pgdb.Steady, "enable_nestloop=off", level), // a batch is joined with itself
		read:  s.Pool(o.Readers, append(slices.Clone(pgdb.ByIndex), level)...),
	}
	l.records, l.claims, l.pulse = newLane(l.work, o.Writers).trusting(), newLane(l.work, own).trusting(), newLane(l.work, own).trusting()
	l.gate = newLane(l.work, o.Workers)
	l.writes = l.gate.trusting()
	l.blocked = l.writes.butOne()
	l.starts, l.deliveries = newLane(l.batch, own).trusting(), newLane(l.batch, own)
	l.loads = newLane(l.read, o.Readers).trusting().reading()
	l.lists = l.loads.butOne()
	l.reads = &lane{pool: l.lists.pool, room: l.lists.room, reads: true}
	return l
}

// close closes all pools at once: each may have to wait for a server that says nothing.
func (l *lanes) close() error {
	var g errgroup.Group
	for _, pool := range []*sqlx.DB{l.work, l.batch, l.read} {
		g.Go(pool.Close)
	}
	return g.Wait()
}
