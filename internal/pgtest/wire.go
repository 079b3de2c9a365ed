package pgtest

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lib/pq"
)

// Way is a direction on a [Wire].
type Way int

// The ways, which can be joined.
const (
	Requests Way = 1 << iota
	Answers
	Both = Requests | Answers
)

// Wire is the network between clients and a server. Its connections can be cut, and can fall silent
// one by one: what comes is acknowledged for ever and never forwarded, and neither end is told when
// the other has gone.
type Wire struct {
	address string
	server  atomic.Pointer[listener]
	silent  atomic.Int64 // the ways in which new connections are silent
	lose    atomic.Int64 // the way of the message that is lost next
	lost    atomic.Int64
	behind  atomic.Int64 // behind how many messages of its client the next connection falls silent, and one more
	passing sync.WaitGroup

	mu    sync.Mutex
	links []*link
}

// link is one connection through a wire.
type link struct {
	client, server net.Conn
	silent         atomic.Int64
	behind         int64 // as in [Wire]; 0: it does not
	over           atomic.Bool
}

// NewWire returns a wire to a server, for the length of the test.
func NewWire(tb TB, server string) *Wire {
	tb.Helper()
	w := &Wire{}
	w.Lead(tb, server)
	u, err := parse(server)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	door, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("%v", err)
	}
	w.address = through(u, door.Addr().String())
	var accepting sync.WaitGroup
	accepting.Go(func() { w.accept(door) })
	tb.Cleanup(func() {
		_ = door.Close()
		accepting.Wait() // behind it there is nothing new to cut
		w.Cut()
		w.passing.Wait()
	})
	return w
}

// through is the URL of a server with another address.
func through(u *url.URL, address string) string {
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = address, q.Encode()
	return u.String()
}

// URL leads to the server through the wire.
func (w *Wire) URL() string { return w.address }

// Lead makes new connections go to another server. Those that are open stay where they are.
func (w *Wire) Lead(tb TB, server string) {
	tb.Helper()
	cfg, err := pq.NewConfig(server)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	port := strconv.Itoa(int(cfg.Port))
	to := &listener{"tcp", net.JoinHostPort(cfg.Host, port)}
	if strings.HasPrefix(cfg.Host, "/") {
		to = &listener{"unix", filepath.Join(cfg.Host, ".s.PGSQL."+port)}
	}
	w.server.Store(to)
}

// listener is where a server listens.
type listener struct{ network, address string }

// Silence lets every connection that is open fall silent in the given ways. New ones are not
// affected.
func (w *Wire) Silence(in Way) {
	for _, l := range w.open() {
		l.silent.Or(int64(in))
	}
}

// SilenceSome lets n connections that can be heard fall silent both ways, or all of them when n is
// 0. It returns how many did.
func (w *Wire) SilenceSome(r *rand.Rand, n int) (silent int) {
	all := w.open()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all {
		if n > 0 && silent == n {
			break
		}
		if l.silent.Swap(int64(Both)) != int64(Both) {
			silent++
		}
	}
	return silent
}

// SilenceNew makes connections that are opened from now on silent in the given ways; 0 is none.
func (w *Wire) SilenceNew(in Way) { w.silent.Store(int64(in)) }

// SilenceNext lets the next connection that is opened fall silent both ways behind so many messages
// of its client, or what it sends at a time. The answers to these come still.
func (w *Wire) SilenceNext(messages int) { w.behind.Store(int64(messages) + 1) }

// Cut closes every connection that is open.
func (w *Wire) Cut() {
	for _, l := range w.open() {
		l.end()
	}
}

// LoseNext loses the next message that goes the given way about a prepared statement, and all
// behind it: its connection is closed.
func (w *Wire) LoseNext(way Way) { w.lose.Store(int64(way)) }

// Lost is how many messages were lost that way.
func (w *Wire) Lost() int { return int(w.lost.Load()) }

// open returns the connections that have not ended, and forgets the others.
func (w *Wire) open() []*link {
	w.mu.Lock()
	defer w.mu.Unlock()
	var left []*link
	for _, l := range w.links {
		if !l.over.Load() {
			left = append(left, l)
		}
	}
	w.links = left
	return append([]*link(nil), left...)
}

func (w *Wire) accept(door net.Listener) {
	for {
		client, err := door.Accept()
		if err != nil {
			return
		}
		to := w.server.Load()
		server, err := new(net.Dialer).DialContext(context.Background(), to.network, to.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server, behind: w.behind.Swap(0)}
		l.silent.Store(w.silent.Load())
		w.mu.Lock()
		w.links = append(w.links, l)
		w.mu.Unlock()
		w.passing.Go(func() { w.pass(l, client, server, Requests) })
		w.passing.Go(func() { w.pass(l, server, client, Answers) })
	}
}

// first is how a message about a prepared statement begins: B binds and executes it, 2 begins the
// answer to that.
var first = map[Way]byte{Requests: 'B', Answers: '2'}

// pass carries bytes one way until one side ends.
func (w *Wire) pass(l *link, from io.Reader, to io.Writer, way Way) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if way == Requests && l.behind > 0 && n > 0 {
			if l.behind--; l.behind == 0 {
				l.silent.Or(int64(Both))
			}
		}
		silent := l.silent.Load()&int64(way) != 0
		switch {
		case err != nil && silent:
			return // the other end is not told
		case err != nil:
			l.end()
			return
		case silent:
			continue
		case b[0] == first[way] && w.lose.CompareAndSwap(int64(way), 0):
			w.lost.Add(1)
			l.end()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			l.end()
			return
		}
	}
}

func (l *link) end() {
	l.over.Store(true)
	_, _ = l.client.Close(), l.server.Close()
}
