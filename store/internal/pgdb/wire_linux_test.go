package pgdb

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel gives up a server that acknowledges nothing, while something is under way and
// while nothing is: of the calls of a process that are without a deadline, and of the connections
// that no call uses, nothing else would.
func TestUnacknowledged(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx := context.WithValue(t.Context(), openingKey{}, &opening{ctx: t.Context()})
	c, err := newDialer(time.Hour).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, ok := c.(*socket)
	if !ok {
		t.Fatalf("the connection is a %T", c)
	}
	tcp, ok := s.Conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("the socket's connection is a %T", s.Conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[[2]int]int{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:      1,
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}:     int(probeIdle.Seconds()),
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}:    int(probeEvery.Seconds()),
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT}:      probes,
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT}: int(unacknowledged.Milliseconds()),
	} {
		err := raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), option[0], option[1]); err != nil || got != want {
				t.Errorf("socket option %v is %d, %v, want %d", option, got, err, want)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
