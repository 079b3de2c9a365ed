package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// lane is the room that calls of one urgency have in a pool: as many connections as no other lane
// can take. A lane may be a part of another, which then always has some left.
type lane struct {
	pool    *sqlx.DB
	room    []chan struct{} // its own, then that of the lane of which it is a part
	trusted bool            // it leads to the database that was recognised, and to no other
	reads   bool            // nothing is written there
	runs    *statements     // what its calls run; nil: nothing that is prepared
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

// asked are statements that are known by their texts.
func asked(texts []string) []statement {
	all := make([]statement, len(texts))
	for i, text := range texts {
		all[i] = statement{new(*sqlx.Stmt), text}
	}
	return all
}

// running is l with statements for its calls alone.
func (l *lane) running(s ...statement) *lane {
	running := *l
	running.runs = &statements{all: s, turn: make(chan struct{}, 1)}
	return &running
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

// do makes a call for which the lane has room. It runs fn again as [pgdb.Repeat] does: after what
// the database undid, and after a lost answer when fn only reads or belongs to a verb that may be
// repeated.
func (l *lane) do(ctx context.Context, fn func(context.Context) error) error {
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l.trusted {
		ctx = pgdb.Trusted(ctx)
	}
	if err := l.runs.prepare(ctx, l.pool); err != nil {
		return err
	}
	return pgdb.Repeat(ctx, l.reads || sqlstore.Repeatable(ctx), fn)
}

// statement is one that is prepared: where it is kept, and its text.
type statement struct {
	kept **sqlx.Stmt
	text string
}

// statements are prepared when the first call needs them: a process that does not write takes no
// connection to prepare it.
type statements struct {
	all  []statement
	turn chan struct{} // of the call that prepares them
	done atomic.Bool
}

// prepare has the statements there when it returns. The caller has room in the lane and no
// connection yet.
func (s *statements) prepare(ctx context.Context, pool *sqlx.DB) error {
	if s == nil || s.done.Load() {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return pgdb.Repeat(ctx, true, func(ctx context.Context) (err error) {
		for _, st := range s.all {
			if *st.kept == nil {
				if *st.kept, err = pool.PreparexContext(ctx, st.text); err != nil { //nolint:sqlclosecheck // it lives as long as the pool
					return fmt.Errorf("prepare the statements: %w", err)
				}
			}
		}
		s.done.Store(true)
		return nil
	})
}

// of is the statement with a text, nil when it is not prepared.
func (s *statements) of(text string) *sqlx.Stmt {
	if s != nil {
		for _, st := range s.all {
			if st.text == text {
				return *st.kept
			}
		}
	}
	return nil
}

// plain runs fn with a connection for each statement.
func (l *lane) plain(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	return l.do(ctx, func(ctx context.Context) error {
		return fn(ctx, sqlstore.Prepared{Queries: l.pool, Stmt: func(_ context.Context, text string) *sqlx.Stmt { return l.runs.of(text) }})
	})
}

// view runs fn on a consistent view of the database.
func (l *lane) view(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	return l.do(ctx, func(ctx context.Context) error {
		tx, err := l.pool.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		return fn(ctx, l.prepared(tx))
	})
}

// prepared runs the lane's statements as they were prepared, in a transaction, which closes them.
func (l *lane) prepared(tx *sqlx.Tx) sqlstore.Prepared {
	return sqlstore.Prepared{Queries: tx, Stmt: func(ctx context.Context, text string) *sqlx.Stmt {
		if s := l.runs.of(text); s != nil {
			return tx.StmtxContext(ctx, s)
		}
		return nil
	}}
}

// whole is transaction for [sqlstore.Dialect].
func (l *lane) whole(ctx context.Context, fn func(context.Context, sqlstore.Queries) error) error {
	return l.transaction(ctx, func(tx *sqlx.Tx) error { return fn(ctx, l.prepared(tx)) })
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
	work, batch, load, read *sqlx.DB

	records, claims, pulse *lane // of work: each sees its own row of an index, and is planned so
	writes, blocked        *lane // of work: all other writes, and among them starts that were blocked before
	posting                *lane // the same room as writes: signals
	gate, others           *lane // the same room as writes: what the reconciler writes, with and without the gate's statements
	starts, deliveries     *lane // of batch: what comes in, many rows at a time
	loads                  *lane // of load: chains for the coordinator
	lists, reads           *lane // of read, and in the room of loads: the ledger's lists for people, and the reconciler's
}

func newLanes(s *pgdb.Server, o Options, w *writing) lanes {
	const own = 1 // connection for claims, the heartbeat, starts and deliveries each
	level := "default_transaction_isolation=" + o.level
	l := lanes{
		work:  s.Pool(o.Writers+o.Workers+2*own, append(slices.Clone(pgdb.ByIndex), pgdb.Steady, level)...),
		batch: s.Pool(2*own, pgdb.Steady, "enable_nestloop=off", level), // a batch is joined with itself
		load:  s.Pool(o.Readers, append(slices.Clone(pgdb.ByIndex), pgdb.Steady, level)...),
		read:  s.Pool(max(1, o.Readers-1), append(slices.Clone(pgdb.ByIndex), level)...),
	}
	l.records = newLane(l.work, o.Writers).trusting().running(w.follows()...)
	l.claims = newLane(l.work, own).trusting().running(w.forClaims()...)
	l.pulse = newLane(l.work, own).trusting()
	l.others = newLane(l.work, o.Workers)
	l.gate = l.others.running(asked(append(sqlstore.Gated(words), setEntries.many, setEntries.one, addEntries.many, addEntries.one))...)
	l.writes = l.others.trusting().running(asked(sqlstore.Told(words))...)
	l.posting = l.writes.running(w.forPosts()...)
	l.blocked = l.writes.butOne().running(w.again.statements(blockedPatience)...)
	l.starts = newLane(l.batch, own).trusting().running(w.fresh.statements(startPatience)...)
	l.deliveries = newLane(l.batch, own).running(asked([]string{receive.many, receive.one})...)
	loads := newLane(l.load, o.Readers).trusting().reading()
	l.lists = loads.butOne()
	l.lists.pool = l.read
	l.loads = loads.running(asked(sqlstore.Asked(words))...)
	l.reads = &lane{pool: l.lists.pool, room: l.lists.room, reads: true}
	return l
}

// close closes all pools at once: each may have to wait for a server that says nothing.
func (l *lanes) close() error {
	var g errgroup.Group
	for _, pool := range []*sqlx.DB{l.work, l.batch, l.load, l.read} {
		g.Go(pool.Close)
	}
	return g.Wait()
}
