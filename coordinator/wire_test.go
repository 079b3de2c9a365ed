package coordinator_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"
)

// wire is the network between processes and a PostgreSQL. Its connections can fall silent one by one: both ends are
// acknowledged for ever, and nothing arrives any more. New connections are not affected.
type wire struct {
	url     string
	network string // where the server listens
	address string

	mu    sync.Mutex
	hoses []*hose
	done  sync.WaitGroup
}

// hose is one connection.
type hose struct {
	client, server net.Conn
	silent         atomic.Bool
	over           atomic.Bool
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	cfg, err := pq.NewConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(int(cfg.Port))
	w := &wire{network: "tcp", address: net.JoinHostPort(cfg.Host, port)}
	if strings.HasPrefix(cfg.Host, "/") {
		w.network, w.address = "unix", filepath.Join(cfg.Host, ".s.PGSQL."+port)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), q.Encode()
	w.url = u.String()
	w.done.Go(func() { w.accept(context.WithoutCancel(t.Context()), listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		for _, s := range w.open() {
			s.end()
		}
		w.done.Wait()
	})
	return w
}

func (w *wire) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, w.network, w.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		s := &hose{client: client, server: server}
		w.mu.Lock()
		w.hoses = append(w.hoses, s)
		w.mu.Unlock()
		w.done.Go(func() { s.pass(client, server) })
		w.done.Go(func() { s.pass(server, client) })
	}
}

// pass carries bytes one way until one side ends. What arrives in silence is acknowledged and lost; so is that a side
// has ended.
func (s *hose) pass(from, to net.Conn) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		switch {
		case err != nil && s.silent.Load() && !s.over.Load():
			return // the other end is not told
		case err != nil:
			s.end()
			return
		case s.silent.Load():
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			s.end()
			return
		}
	}
}

func (s *hose) end() {
	s.over.Store(true)
	_, _ = s.client.Close(), s.server.Close()
}

// open returns the connections on which something can still be heard.
func (w *wire) open() (all []*hose) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.hoses {
		if !s.over.Load() {
			all = append(all, s)
		}
	}
	return all
}

// silence lets n of the connections fall silent, or all of them when n is 0, and returns how many did.
func (w *wire) silence(r *rand.Rand, n int) (silent int) {
	all := w.open()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all {
		if n > 0 && silent == n {
			break
		}
		if !s.silent.Swap(true) {
			silent++
		}
	}
	return silent
}
