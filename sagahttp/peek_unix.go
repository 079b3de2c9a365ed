//go:build linux || darwin || freebsd || netbsd || openbsd

package sagahttp

import (
	"net"
	"syscall"
)

// saidBefore reports whether something has come on a connection that was not read yet, its end included.
// It asks the socket: net/http may not have got round to it.
func saidBefore(c net.Conn) (found bool) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK) // it does not wait: Go's sockets never do
		found = err == nil
	})
	return found && err == nil
}
