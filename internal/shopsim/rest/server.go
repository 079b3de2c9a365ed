package rest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Server is an HTTP server on a loopback port of its own.
type Server struct {
	// URL is where it answers, without a slash at the end.
	URL string

	http *http.Server
	done chan error
}

// Listen starts a server for h on a free loopback port. The context bounds the
// start only; the server runs until it is closed.
func Listen(ctx context.Context, h http.Handler) (*Server, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a loopback port: %w", err)
	}
	s := &Server{
		URL:  "http://" + l.Addr().String(),
		http: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second},
		done: make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// FreeAddresses finds loopback addresses at which n processes can listen. A process
// that is killed and started again listens at its own address. So they lie below
// the ports that systems give to outgoing connections, one of which could take
// the address meanwhile.
func FreeAddresses(ctx context.Context, n int) (found []string, err error) {
	var held []net.Listener // all are held until all are found
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for tries := 0; len(held) < n; tries++ {
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		switch {
		case err == nil:
			held, found = append(held, l), append(found, l.Addr().String())
		case tries == 1000:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
	}
	return found, nil
}

// Close lets running requests finish for a moment, then cuts what is left.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		// Connections that a client opened and never used do not count as
		// idle for some seconds; nothing is lost by closing them.
		_ = s.http.Close()
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.URL, err)
	}
	return nil
}
