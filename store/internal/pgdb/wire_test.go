package pgdb

import (
	"net"
	"testing"
	"time"
)

// ends counts what sets a deadline on a connection.
type ends struct {
	net.Conn

	deadlines int
}

func (e *ends) SetDeadline(time.Time) error      { e.deadlines++; return nil }
func (e *ends) SetReadDeadline(time.Time) error  { e.deadlines++; return nil }
func (e *ends) SetWriteDeadline(time.Time) error { e.deadlines++; return nil }

// Once a socket has ended no deadline brings it back, and its connection is not used again,
// although the driver may not have noticed: its context can end behind the last byte of an answer.
func TestEndedSocket(t *testing.T) {
	t.Parallel()
	e, identity := &ends{}, "7/1"
	s := &socket{Conn: e}
	server := &Server{}
	server.identity.Store(&identity)
	c := &conn{socket: s, server: server, identity: identity}
	if !c.current() {
		t.Error("it cannot be used before it has ended")
	}
	s.end()
	for _, set := range []func(time.Time) error{s.SetDeadline, s.SetReadDeadline, s.SetWriteDeadline} {
		if err := set(time.Time{}); err != nil || e.deadlines != 1 {
			t.Errorf("%v, %d deadlines, want the one that ended it", err, e.deadlines)
		}
	}
	if c.current() {
		t.Error("it can be used after it has ended")
	}
}
