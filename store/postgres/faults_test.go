package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// What goes wrong between a driver and a database whose nodes come and go.
type fault int

const (
	none       fault = iota
	undone           // 40001 instead of the statement or the commit: nothing was stored
	undoneLate       // its rows, and then 40001: nothing was stored either
	unknown          // 40003 behind the statement or the commit: all was stored
	cut              // the same, and the connection is gone
)

var (
	errUndone  = &pq.Error{Severity: "ERROR", Code: pqerror.TRSerializationFailure, Message: "restart transaction (injected)"}
	errUnknown = &pq.Error{Severity: "ERROR", Code: pqerror.TRStatementCompletionUnknown, Message: "result is ambiguous (injected)"}
	errCut     = errors.Join(io.ErrUnexpectedEOF, errors.New("connection cut (injected)"))
)

// faults stand between the driver and the store.
type faults struct {
	// draw chooses what becomes of a statement, or of a commit when it is "". mayTwice says that
	// the verb may be done twice, inTx that the statement belongs to a transaction.
	draw func(statement string, mayTwice, inTx bool) fault

	struck [cut + 1]atomic.Int64
}

// between is for [postgres.Between].
func (f *faults) between(c driver.Connector) driver.Connector { return &faultyConnector{c, f} }

// happened fails a test in which there was not one fault of each kind: it proved nothing.
func (f *faults) happened(t *testing.T) {
	t.Helper()
	for what := undone; what <= cut; what++ {
		if f.struck[what].Load() == 0 {
			t.Errorf("there was no fault of kind %d: the test proves nothing", what)
		}
	}
}

// random draws each fault once in a hundred times, 40001 more often and all less often within a
// transaction, which has many statements. What leaves open what was stored befalls only verbs that
// may be done twice: of the others the caller learns, and knows what to do.
func random(_ string, mayTwice, inTx bool) fault {
	n := rand.IntN(1000)
	if inTx {
		n *= 4
	}
	switch {
	case n < 40:
		return undone
	case n < 50:
		return undoneLate
	case mayTwice && n < 60 && !inTx:
		return unknown
	case mayTwice && n < 65:
		return cut
	}
	return none
}

func (f *faults) next(ctx context.Context, statement string, inTx, readOnly bool) fault {
	// The greeting, the schema's version and a migration are let through.
	if statement != "" && (!strings.Contains(statement, "amends_") || strings.Contains(statement, "version_id") || strings.Contains(statement, "system_identifier")) {
		return none
	}
	reads := statement != "" && !writes(statement)
	what := f.draw(statement, sqlstore.Repeatable(ctx) || reads && (!inTx || readOnly), inTx)
	if what != none {
		f.struck[what].Add(1)
	}
	return what
}

// writes reports whether a statement does more than read.
func writes(statement string) bool {
	return strings.Contains(statement, "INSERT") || strings.Contains(statement, "UPDATE") || strings.Contains(statement, "DELETE")
}

type faultyConnector struct {
	driver.Connector

	faults *faults
}

// driverConn and driverStmt are what the store uses of the driver.
type (
	driverConn interface {
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
	driverStmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
)

func (c *faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	raw, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{driverConn: raw.(driverConn), faults: c.faults}, nil //nolint:forcetypeassert // the driver's own
}

// faultyConn is one connection. Its users take turns.
type faultyConn struct {
	driverConn

	faults         *faults
	gone           bool
	inTx, readOnly bool // it is in a transaction, which writes nothing
}

func (c *faultyConn) IsValid() bool { return !c.gone && c.driverConn.IsValid() }

func (c *faultyConn) ResetSession(ctx context.Context) error {
	if c.gone {
		return driver.ErrBadConn
	}
	return c.driverConn.ResetSession(ctx)
}

// behind is the error behind what was done in full.
func (c *faultyConn) behind(what fault) error {
	if what == unknown {
		return errUnknown
	}
	if what == cut {
		c.gone = true
		return errCut
	}
	return nil
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, query, func() (driver.Rows, error) { return c.driverConn.QueryContext(ctx, query, args) })
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, query, func() (driver.Result, error) { return c.driverConn.ExecContext(ctx, query, args) })
}

// query runs a statement that returns rows.
func (c *faultyConn) query(ctx context.Context, text string, do func() (driver.Rows, error)) (driver.Rows, error) {
	what := c.faults.next(ctx, text, c.inTx, c.readOnly)
	if what == none {
		return do()
	}
	if what == undone {
		return nil, errUndone
	}
	var back driver.Tx
	if what == undoneLate && !c.inTx {
		var err error
		if back, err = c.driverConn.BeginTx(ctx, driver.TxOptions{}); err != nil {
			return nil, err
		}
	}
	rows, err := read(do())
	if back != nil {
		err = errors.Join(err, back.Rollback())
	}
	if err != nil {
		return nil, err
	}
	if what == undoneLate {
		rows.end = errUndone
		return rows, nil
	}
	return nil, c.behind(what)
}

// exec runs a statement that returns none.
func (c *faultyConn) exec(ctx context.Context, text string, do func() (driver.Result, error)) (driver.Result, error) {
	what := c.faults.next(ctx, text, c.inTx, c.readOnly)
	if what == undone || what == undoneLate {
		return nil, errUndone
	}
	result, err := do()
	if err == nil {
		err = c.behind(what)
	}
	return result, err
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{s.(driverStmt), c, query}, nil //nolint:forcetypeassert // the driver's own
}

type faultyStmt struct {
	driverStmt

	conn *faultyConn
	text string
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, func() (driver.Rows, error) { return s.driverStmt.QueryContext(ctx, args) })
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.text, func() (driver.Result, error) { return s.driverStmt.ExecContext(ctx, args) })
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.driverConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.inTx, c.readOnly = true, o.ReadOnly
	return &faultyTx{tx, c, ctx}, nil
}

type faultyTx struct {
	driver.Tx

	conn *faultyConn
	ctx  context.Context //nolint:containedctx // the transaction's own
}

func (t *faultyTx) Commit() error {
	t.conn.inTx = false
	what := t.conn.faults.next(t.ctx, "", false, false)
	if what == undone || what == undoneLate {
		return errors.Join(errUndone, t.Tx.Rollback())
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.conn.behind(what)
}

func (t *faultyTx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}

// kept are rows that were read to their end.
type kept struct {
	columns []string
	rows    [][]driver.Value
	end     error
}

func read(from driver.Rows, err error) (*kept, error) {
	if err != nil {
		return nil, err
	}
	k := &kept{columns: from.Columns(), end: io.EOF}
	for err == nil {
		row := make([]driver.Value, len(k.columns))
		if err = from.Next(row); err == nil {
			for i, v := range row { // the driver reuses its buffer
				if b, ok := v.([]byte); ok {
					row[i] = append([]byte{}, b...)
				}
			}
			k.rows = append(k.rows, row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return k, errors.Join(err, from.Close())
}

func (k *kept) Columns() []string { return k.columns }

// Close tells of the error at the end, as the driver does, which reads on to it.
func (k *kept) Close() error {
	if errors.Is(k.end, io.EOF) {
		return nil
	}
	return k.end
}

func (k *kept) Next(row []driver.Value) error {
	if len(k.rows) == 0 {
		return k.end
	}
	copy(row, k.rows[0])
	k.rows = k.rows[1:]
	return nil
}
