package pgdb

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/amends-dev/amends/internal/ledger"
)

// errPooled: one client's values would meet another one's statement.
var errPooled = fmt.Errorf("%w: between this program and Postgres stands a pooler in transaction mode, such as PgBouncer with pool_mode=transaction: "+
	"the statements of one connection reach different server processes. Connect to Postgres itself, or to a pool with pool_mode=session", ledger.ErrUnsupported)

// apart reports whether the server sees another peer than our end of a TCP connection: something stands between, a pooler perhaps.
func apart(c net.Conn, port int64) bool {
	at, ok := c.LocalAddr().(*net.TCPAddr)
	return ok && int64(at.Port) != port
}

// Direct refuses a pooler in transaction mode, where something stands between at all. There two connections share a server process, or
// one has another from one statement to the next; in session mode neither can be.
func (s *Server) Direct(ctx context.Context) (err error) {
	if !s.apart.Load() {
		return nil
	}
	d := &door{Server: s, greeting: greeting(nil)}
	one, err := d.greet(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }() //nolint:contextcheck // a farewell has a time of its own
	other, err := d.greet(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }() //nolint:contextcheck // as above
	now, err := firstRow(ctx, one.pqConn, "SELECT pg_backend_pid()::bigint")
	if err == nil && (now[0] != one.process || other.process == one.process) {
		return errPooled
	}
	return During("ask which server process it is", err)
}
