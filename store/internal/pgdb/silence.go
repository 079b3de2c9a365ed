package pgdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// A context may have no end, as in a program that starts, or in a verb of the command. So whatever
// is read from a server has one: a server that has said nothing for half of that time is asked on
// another connection whether it works on what it was told. If so it may take however long, as a
// migration does; if not, or if it does not say either, the silent connection is ended.

// patience is how long a server may say nothing, where the address does not say how long connecting
// may take.
const patience = 10 * time.Second

// Silence is the error of a connection on which the server said nothing for too long. What was
// stored on it is not known.
type Silence struct {
	Server string // host and port, or the path of a socket
	During string // what it was asked for, "" where the caller says so
	For    time.Duration
}

// Error implements error.
func (s *Silence) Error() string {
	during := s.During
	if during != "" {
		during = " to: " + during
	}
	return fmt.Sprintf("the server %s has said nothing for %s%s. Look at the network, at proxies and at the server itself; "+
		"connect_timeout in the address says how long it may be silent", s.Server, s.For.Round(time.Millisecond), during)
}

// During says in an error of silence what the server was asked for.
func During(step string, err error) error {
	if s, ok := errors.AsType[*Silence](err); ok && s.During == "" {
		s.During = step
	}
	return err
}

// Read implements [net.Conn]. The driver reads when it awaits an answer, and never else.
func (s *socket) Read(b []byte) (int, error) {
	for began := moment(); ; {
		from := time.Now()
		s.await(from)
		n, err := s.Conn.Read(b)
		if n > 0 {
			s.heard.Store(moment())
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || s.hasEnded() {
			return n, err
		}
		if s.isOver() || !s.works() {
			silent := time.Duration(moment() - began)
			if !s.hasEnded() { // by its context, while the server was asked
				s.unheard(began)
				s.end()
				err = &Silence{Server: s.server, For: silent}
			}
			return n, err
		}
	}
}

// await lets the next read end when the server has been silent for too long, or when the driver
// wants it to end.
func (s *socket) await(from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	wait := s.patience
	if s.working != nil { // to ask takes the other half
		wait /= 2
	}
	until := from.Add(wait)
	if !s.readBy.IsZero() && s.readBy.Before(until) {
		until = s.readBy
	}
	_ = s.Conn.SetReadDeadline(until) // it fails on a closed socket, on which the read fails, too
}

// isOver reports whether the time is over that the driver has set.
func (s *socket) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.readBy.IsZero() && !time.Now().Before(s.readBy)
}

// works asks the server by another connection whether it works on what it was told on this one.
func (s *socket) works() bool {
	if s.working == nil {
		return false // it is not connected yet
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience/2)
	defer cancel()
	s.mu.Lock()
	s.asking = cancel
	ended := s.ended
	s.mu.Unlock()
	return !ended && s.working(ctx)
}

// atWork reports whether the server is at work for the connection that its process serves. Waiting
// for its client is no work: then the client's words were lost, or the server's. A server that has
// no connection left is there, and is asked again.
func (s *Server) atWork(ctx context.Context, process int64) bool {
	c, err := (&door{Server: s, greeting: greeting(nil)}).greet(ctx)
	if err != nil {
		return pq.As(err, pqerror.TooManyConnections) != nil
	}
	defer func() { _ = c.Close() }()
	defer c.socket.watch(ctx)()
	answer, err := firstRow(ctx, c.pqConn, fmt.Sprintf(
		`SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'`, process))
	if err != nil {
		return false
	}
	working, _ := answer[0].(int64)
	return working > 0
}
