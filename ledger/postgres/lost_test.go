package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// An answer that was lost behind the commit, or a request that was lost before it: the same entries again settle
// which, for starts and for records, alone and in batches.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.URL(t))
	l := open(t, p.url)
	defer closed(t, l)
	token := session(t, l)
	for name, c := range map[string]struct {
		cut  *atomic.Bool
		want ledger.Result
	}{
		"answer":  {&p.cutAnswer, ledger.Mine},
		"request": {&p.cutRequest, ledger.Appended},
	} {
		for _, size := range []int{1, 3} {
			var es []ledger.Entry
			for i := range size {
				es = append(es, start(token, name+strconv.Itoa(size)+strconv.Itoa(i)))
			}
			p.lose(t, c.cut, l, token, es, c.want)
			for i, a := range appendAll(t, l, token, es, ledger.Mine) {
				es[i] = next(es[i], a.Head, token, saga.Record{Kind: saga.KindNoted, Status: saga.Completed}, &ledger.Schedule{})
			}
			p.lose(t, c.cut, l, token, es, c.want)
			for _, e := range es {
				if records, err := l.History(t.Context(), e.ID); err != nil || len(records) != 2 {
					t.Errorf("%s: %d records, %v, want 2", e.ID, len(records), err)
				}
			}
		}
	}
}

// Backends that are terminated cost a repetition and nothing else: connections, settings and statements are made
// again.
func TestTerminatedBackends(t *testing.T) {
	t.Parallel()
	l := open(t, pgtest.URL(t))
	defer closed(t, l)
	token := session(t, l)
	es := []ledger.Entry{start(token, "a"), start(token, "b")}
	db := connect(t, l.url)
	for range 3 {
		terminate(t, db)
		repeat(t, l, token, es)
		for i, a := range appendAll(t, l, token, es, ledger.Mine) {
			es[i] = next(es[i], a.Head, token, saga.Record{Kind: saga.KindNoted, Status: saga.Running}, nil)
		}
	}
}

// terminate ends every connection of ledgers to a database.
func terminate(t *testing.T, db *sqlx.DB) {
	t.Helper()
	var n int
	err := db.GetContext(t.Context(), &n, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name = 'amends' AND datname = current_database()`)
	if err != nil || n == 0 {
		t.Fatalf("terminated %d backends, %v", n, err)
	}
}

// repeat appends the same entries until there is an answer, as the contract asks.
func repeat(t *testing.T, l *store, token saga.Token, es []ledger.Entry) []ledger.Answer {
	t.Helper()
	var errs []error
	for range 10 {
		as, err := l.Append(t.Context(), token, es)
		if err == nil {
			return as
		}
		errs = append(errs, err)
	}
	t.Fatalf("no answer: %v", errors.Join(errs...))
	return nil
}

// proxy stands between a ledger and its server. It can cut the next connection that is used, and let connections go
// silent: what comes is acknowledged and never forwarded.
type proxy struct {
	url                   string
	server                atomic.Pointer[target]
	cutRequest, cutAnswer atomic.Bool
	cuts                  atomic.Int32
	silent                atomic.Bool // new connections are silent
	wg                    sync.WaitGroup

	mu    sync.Mutex
	links []*link
}

// link is one connection through the proxy.
type link struct {
	client, server                net.Conn
	silentRequests, silentAnswers atomic.Bool
}

// hush lets every connection that is open go silent, in one direction or both. New ones are not.
func (p *proxy) hush(requests, answers bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.silentRequests.Store(requests)
		l.silentAnswers.Store(answers)
	}
}

// cut closes every connection that is open.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		_, _ = l.client.Close(), l.server.Close()
	}
	p.links = nil
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	p := &proxy{}
	p.lead(t, server)
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
	p.url = u.String()
	p.wg.Go(func() { p.accept(context.WithoutCancel(t.Context()), listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// target is where a server listens.
type target struct{ network, address string }

func (s *target) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, s.network, s.address)
}

// lead makes new connections go to a server. Those that are open stay where they are.
func (p *proxy) lead(t *testing.T, server string) {
	t.Helper()
	cfg, err := pq.NewConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(int(cfg.Port))
	to := &target{"tcp", net.JoinHostPort(cfg.Host, port)}
	if strings.HasPrefix(cfg.Host, "/") {
		to = &target{"unix", filepath.Join(cfg.Host, ".s.PGSQL."+port)}
	}
	p.server.Store(to)
}

func (p *proxy) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := p.server.Load().dial(ctx)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		l.silentAnswers.Store(p.silent.Load())
		p.mu.Lock()
		p.links = append(p.links, l)
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(client, server, &p.cutRequest, 'B', &l.silentRequests) })
		p.wg.Go(func() { p.pass(server, client, &p.cutAnswer, '2', &l.silentAnswers) })
	}
}

// pass carries bytes until one side ends. When told to cut, it loses the next message that begins with the given
// letter, and all behind it: B binds and executes a prepared statement, 2 begins the answer to that.
func (p *proxy) pass(from io.ReadCloser, to io.WriteCloser, cut *atomic.Bool, letter byte, silent *atomic.Bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if silent.Load() {
			continue
		}
		if b[0] == letter && cut.CompareAndSwap(true, false) {
			p.cuts.Add(1)
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// lose appends entries while what cut names is lost, and wants the answer after as many repetitions as it takes.
func (p *proxy) lose(t *testing.T, cut *atomic.Bool, l *store, token saga.Token, es []ledger.Entry, want ledger.Result) {
	t.Helper()
	before := p.cuts.Load()
	cut.Store(true)
	for i, a := range repeat(t, l, token, es) {
		if a.Result != want {
			t.Errorf("record %d of %s: got %+v, want %s", es[i].Record.Seq, es[i].ID, a, want)
		}
	}
	if p.cuts.Load() != before+1 {
		t.Error("nothing was lost: the test proves nothing")
	}
}
