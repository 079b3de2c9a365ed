package pgdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/address"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
)

// Server is a database: how to reach it, who it was when it was seen last, and when it was
// recognised.
type Server struct {
	connector  driver.Connector
	who        Provider
	path       []string               // the search_path that the DSN has, as a setting; none: the server's counts
	named      bool                   // the DSN has one
	identity   atomic.Pointer[string] // of the newest connection; nil: not asked yet
	recognised atomic.Pointer[string] // calls that are trusted reach no other; nil: they reach any
	doubt      atomic.Int64           // when the newest call began that had no answer in its time
	apart      atomic.Bool            // something stands between
}

// New reads a DSN, a URL or key=value pairs as lib/pq takes them. connect is for one attempt to
// connect, and how long the server may be silent, where the DSN does not say; 0 is 5 s for the one
// and [patience] for the other. The server follows: it takes the database that answers for
// the one it wants. Only what is done with a context of [Trusted] is refused there, once
// [Server.Recognise] was called.
func New(dsn string, connect time.Duration) (*Server, error) {
	cfg, silence, err := config(dsn, connect)
	if err != nil {
		return nil, err
	}
	c, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, err
	}
	c.Dialer(newDialer(silence))
	s := &Server{connector: c, who: Timeline{}, named: strings.Contains(cfg.Options, "search_path")}
	for name, value := range cfg.Runtime {
		if strings.EqualFold(name, "search_path") {
			s.path, s.named = []string{"search_path=" + value}, true
		}
	}
	return s, nil
}

// Between puts something between the driver and us, for tests. Its connections can do whatever the
// driver's can.
func (s *Server) Between(put func(driver.Connector) driver.Connector) { s.connector = put(s.connector) }

// config reads a DSN and sets what must not be left to chance.
func config(dsn string, connect time.Duration) (_ pq.Config, silence time.Duration, _ error) {
	a, err := address.Parse(dsn)
	if err != nil {
		return pq.Config{}, 0, err
	}
	if a.Postgres == nil {
		return pq.Config{}, 0, errors.New("this is the name of a file; open it by package store, or store/sqlite")
	}
	cfg := *a.Postgres
	cfg.BinaryParameters = true  // bytes are what they are, see [Array]
	if cfg.ConnectTimeout <= 0 { // it would wait for ever
		cfg.ConnectTimeout = connect
	}
	if silence = cfg.ConnectTimeout; silence <= 0 {
		cfg.ConnectTimeout, silence = connecting, patience
	}
	if len(cfg.Multi) > 0 && (cfg.TargetSessionAttrs == "" || cfg.TargetSessionAttrs == pq.TargetSessionAttrsAny) {
		cfg.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "amends" // the fallback is only looked at while a DSN is read
	}
	return cfg, silence, nil
}

// connecting is how long one attempt to connect may take, where neither the DSN nor the caller says
// so.
const connecting = 5 * time.Second

// Steady keeps one plan per statement, whatever the parameters are.
const Steady = "plan_cache_mode=force_generic_plan"

// ByIndex are plans that do not depend on how large the tables were when they were made: a plan
// made while a table was small reads all of it, or of a range, until the table is analysed.
var ByIndex = []string{"enable_hashjoin=off", "enable_mergejoin=off", "enable_seqscan=off", "enable_bitmapscan=off"}

// bounds are what no connection may do without: the server, too, gives up a peer that is gone, a
// lock that is not to be had, and a transaction that its client has forgotten, so that what it
// locked is free again. Pools may set others.
var bounds = []string{
	// A plan that avoids what is switched off looks expensive; compiling it would cost more than
	// running it.
	"jit=off",
	fmt.Sprintf("tcp_keepalives_idle=%d", int(probeIdle.Seconds())),
	fmt.Sprintf("tcp_keepalives_interval=%d", int(probeEvery.Seconds())),
	fmt.Sprintf("tcp_keepalives_count=%d", probes),
	fmt.Sprintf("tcp_user_timeout=%d", unacknowledged.Milliseconds()),
	"idle_in_transaction_session_timeout=10s",
	"lock_timeout=10s",
}

// pinned are the settings that change how literals are read and values written. A role or a database
// may have others, such as standard_conforming_strings=off, by which a backslash in a literal is another character.
var pinned = []string{
	"array_nulls=on", "bytea_output=hex", "standard_conforming_strings=on", "DateStyle=ISO, MDY", "IntervalStyle=postgres", "TimeZone=UTC",
	"client_encoding=UTF8", "extra_float_digits=1", "quote_all_identifiers=off", "transform_null_equals=off",
}

// Pool returns a pool of at most n connections with the given settings. One that was not used for a
// while is closed: the server has few.
func (s *Server) Pool(n int, settings ...string) *sqlx.DB {
	db := sql.OpenDB(&door{Server: s, greeting: greeting(slices.Concat(pinned, s.path, bounds, settings))})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	db.SetConnMaxIdleTime(unused)
	return sqlx.NewDb(db, "postgres")
}

// unused is how long a connection stays open that nothing uses.
const unused = time.Minute

// greeting is the first statement of every connection: it makes the settings and asks what is
// there. What was answered must be durable, so a synchronous_commit that is off is switched on.
func greeting(settings []string) string {
	var b strings.Builder
	b.WriteString(`SELECT current_setting('server_version_num')::bigint, pg_backend_pid()::bigint, current_setting('transaction_read_only')` +
		`, current_setting('default_transaction_read_only'), current_setting('server_encoding'), set_config('synchronous_commit', CASE current_setting('synchronous_commit')
			WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)` +
		// Only a superuser may set it. The driver knows a fatal error by its English word.
		`, CASE WHEN current_setting('is_superuser') = 'on' THEN set_config('lc_messages', 'C', false) END, COALESCE(inet_client_port(), 0)::bigint`)
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		fmt.Fprintf(&b, ", set_config(%s, %s, false)", pq.QuoteLiteral(name), pq.QuoteLiteral(value))
	}
	return b.String()
}

// Identify asks who is there, on a connection that is open already.
func (s *Server) Identify(ctx context.Context, q sqlx.QueryerContext) (string, error) {
	var id string
	err := q.QueryRowxContext(ctx, s.who.Query()).Scan(&id)
	if err == nil && id == "" {
		return "", errStandby
	}
	return id, err
}

var errStandby = fmt.Errorf("%w: it is a standby or read-only. Connect to the primary; "+
	"with several hosts in the DSN, target_session_attrs=read-write finds it", ledger.ErrReadOnly)

// errFenced is reported and never overridden: a process that wrote on would fill the disk.
var errFenced = fmt.Errorf("%w: default_transaction_read_only is on, for this role, this database or the whole server. "+
	"Providers switch it on when a disk is nearly full: make room, or switch it off where it was switched on; on a standby, connect to the primary",
	ledger.ErrReadOnly)

// oldest is the first version of Postgres a ledger can use.
const oldest = 140000

// door is a [driver.Connector] that lets in only connections to the database we know.
type door struct {
	*Server

	greeting string
}

// Driver implements [driver.Connector].
func (d *door) Driver() driver.Driver { return d.connector.Driver() }

// Connect implements [driver.Connector].
func (d *door) Connect(ctx context.Context) (driver.Conn, error) {
	known := d.identity.Load()
	c, err := d.greet(ctx)
	if err != nil {
		return nil, err
	}
	c.socket.working = func(ctx context.Context) bool { return d.atWork(ctx, c.process) }
	d.identity.CompareAndSwap(known, &c.identity) // what was recognised meanwhile counts
	return c, nil
}

// Forgets reports whether a fail-over may forget what was acknowledged.
func (s *Server) Forgets() bool { return s.who.Forgets() }

// FailedOver reports whether the second identity is of what became of a standby of the first.
func (s *Server) FailedOver(from, to string) bool { return s.who.FailedOver(from, to) }

// Identity is who the database was when it was last seen, "" before the first connection.
func (s *Server) Identity() string {
	if id := s.identity.Load(); id != nil {
		return *id
	}
	return ""
}

// Recognise accepts the database as it is now: a new session begins on it. From then on calls that
// are trusted are refused on another one, until it is recognised in its turn.
func (s *Server) Recognise(ctx context.Context) error {
	c, err := (&door{Server: s, greeting: greeting(nil)}).greet(ctx)
	if err != nil {
		return err
	}
	s.identity.Store(&c.identity)
	s.recognised.Store(&c.identity)
	return c.Close() //nolint:contextcheck // a farewell has a time of its own
}

type trustedKey struct{}

// Trusted returns a context for calls that may reach only the database that was recognised last:
// what a ledger does for its sessions. Others, such as accepting deliveries, go on with whatever
// primary answers.
func Trusted(ctx context.Context) context.Context { return context.WithValue(ctx, trustedKey{}, true) }

// greet connects and learns who is there.
func (d *door) greet(ctx context.Context) (_ *conn, err error) {
	o := &opening{ctx: ctx}
	defer o.done()
	raw, err := d.connector.Connect(context.WithValue(ctx, openingKey{}, o))
	if err != nil {
		return nil, During("connect", err)
	}
	defer func() {
		if err != nil {
			_ = raw.Close()
		}
	}()
	c, ok := raw.(pqConn)
	if !ok {
		return nil, fmt.Errorf("a connection of lib/pq is a %T, which lacks what we need", raw)
	}
	answer, err := firstRow(ctx, c, d.greeting)
	if err != nil {
		return nil, During("make its settings", err)
	}
	version, _ := answer[0].(int64)
	process, _ := answer[1].(int64)
	port, _ := answer[7].(int64)
	if err := admit(version, text(answer[2]), text(answer[3]), text(answer[4])); err != nil {
		return nil, err
	}
	if answer, err = firstRow(ctx, c, d.who.Query()); err != nil {
		return nil, During("say which database it is", err)
	}
	id := text(answer[0])
	if id == "" {
		return nil, errStandby
	}
	o.socket.doubt.Store(&d.doubt)
	d.apart.Store(apart(o.socket.Conn, port))
	return &conn{pqConn: c, socket: o.socket, server: d.Server, identity: id, process: process}, nil
}

// admit refuses a server on which a ledger cannot be written.
func admit(version int64, readOnly, fenced, encoding string) error {
	switch {
	case version < oldest:
		return fmt.Errorf("%w: Postgres %d.%d; a ledger needs 14 or newer", ledger.ErrUnsupported, version/10000, version%10000)
	case readOnly == "on" && fenced == "on":
		return errFenced
	case readOnly == "on":
		return errStandby
	}
	if err := migrations.CheckEncoding(encoding); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrUnsupported, err)
	}
	return nil
}

func firstRow(ctx context.Context, c pqConn, query string) (_ []driver.Value, err error) {
	rows, err := c.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return row, nil
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return "" // what is not text
}

// pqConn is what a connection of lib/pq can do. All of it is passed on.
type pqConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection that knows to which database it leads, and that ends with the context of
// what is done on it. Once a newer one leads to another database, the pool throws it away.
type conn struct {
	pqConn

	socket   *socket
	server   *Server
	identity string
	process  int64 // of the server
}

// latest reports whether the connection leads where the newest one does.
func (c *conn) latest() bool { return c.identity == *c.server.identity.Load() }

// allowed refuses what is trusted on a connection to another database than was recognised.
func (c *conn) allowed(ctx context.Context) error {
	known := c.server.recognised.Load()
	if ctx.Value(trustedKey{}) == nil || known == nil || *known == c.identity {
		return nil
	}
	return fmt.Errorf("%w: it was %s, now it is %s", ledger.ErrDatabaseChanged, *known, c.identity)
}

// current reports whether the connection can be used again.
func (c *conn) current() bool {
	return !c.socket.hasEnded() && c.socket.heardSince(c.server.doubt.Load()) && c.latest()
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.allowed(ctx); err != nil {
		return nil, err
	}
	return watched(ctx, c.socket, func() (driver.Rows, error) { return c.pqConn.QueryContext(ctx, query, args) })
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.allowed(ctx); err != nil {
		return nil, err
	}
	defer c.socket.watch(ctx)()
	return c.pqConn.ExecContext(ctx, query, args)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.socket.watch(ctx)()
	s, err := c.pqConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	ps, ok := s.(pqStmt)
	if !ok {
		return nil, fmt.Errorf("a statement of lib/pq is a %T, which lacks what we need", s)
	}
	return &stmt{ps, c}, nil
}

// BeginTx implements [driver.ConnBeginTx]. What is done in the transaction is watched, too.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.allowed(ctx); err != nil {
		return nil, err
	}
	stop := c.socket.watch(ctx)
	t, err := c.pqConn.BeginTx(ctx, opts)
	if err != nil {
		stop()
		return nil, err
	}
	return &tx{t, stop}, nil
}

// Ping implements [driver.Pinger].
func (c *conn) Ping(ctx context.Context) error {
	defer c.socket.watch(ctx)()
	return c.pqConn.Ping(ctx)
}

// ResetSession implements [driver.SessionResetter].
func (c *conn) ResetSession(ctx context.Context) error {
	if !c.current() {
		return driver.ErrBadConn
	}
	return c.pqConn.ResetSession(ctx)
}

// IsValid implements [driver.Validator].
func (c *conn) IsValid() bool { return c.pqConn.IsValid() && c.current() }

// Close implements [driver.Conn]. Saying goodbye to a server that is gone fails; that is no error
// of ours: every answer was final before.
func (c *conn) Close() error {
	_ = c.socket.within(farewell, c.pqConn.Close)
	return nil
}
