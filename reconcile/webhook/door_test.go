package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// noon is what the clock of these tests says.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const (
	newSecret = "whsec_bmV3IHNlY3JldCBmb3IgdGVzdHMgb25seQ==" // "new secret for tests only"
	oldSecret = "whsec_b2xkIHNlY3JldCBmb3IgdGVzdHMgb25seQ==" // "old secret for tests only"
	wooSecret = "a-secret-for-tests-only"
	wooID     = "X-WC-Webhook-ID" // for people only

	paid = `{"type":"order.paid","timestamp":"2026-11-20T11:59:59Z","data":{"id":"10492","version":3,"status":"paid"}}`
)

// inbox keeps the promise of intake.Inbox in memory.
type fakeInbox struct {
	// accept, if set, is called first; its error is Accept's.
	accept func(ctx context.Context) error

	mu      sync.Mutex
	events  []intake.Event
	copies  map[identity]int
	refused []string // each count
}

func (i *fakeInbox) Blocked(_ context.Context, why, source string, n int64) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = append(i.refused, fmt.Sprintf("%s %s %d", why, source, n))
	return nil
}

type identity struct {
	source, tenant string
	dedupe         intake.Digest
}

func (i *fakeInbox) Accept(ctx context.Context, events []intake.Event) error {
	if i.accept != nil {
		if err := i.accept(ctx); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.copies == nil {
		i.copies = make(map[identity]int)
	}
	for _, e := range events {
		id := identity{e.Object.Source, e.Object.Tenant, e.Dedupe}
		if i.copies[id]++; i.copies[id] == 1 {
			i.events = append(i.events, e)
		}
	}
	return nil
}

// stored returns the events in the order of their arrival.
func (i *fakeInbox) stored() []intake.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.events)
}

// door is a receiver behind a real server.
type door struct {
	*Receiver
	inbox  *fakeInbox
	server *httptest.Server
	log    *logbook

	mu      sync.Mutex
	refused []Refusal
}

// logbook is a log that can be read while it is written.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open starts a receiver for the sources. Options keep what they have; the clock says noon.
func open(t *testing.T, opts *Options, sources ...named) *door {
	t.Helper()
	d := &door{inbox: &fakeInbox{}, log: &logbook{}}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	if o.Listener == nil {
		o.Listener = &Listener{}
	}
	o.Listener.Refused = func(_ string, why Refusal, _ int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refused = append(d.refused, why)
	}
	log := logrus.New()
	log.SetOutput(d.log)
	o.Log = log
	var err error
	if d.Receiver, err = newReceiver(d.inbox, sources, &o); err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewServer(d.Receiver)
	t.Cleanup(d.server.Close)
	return d
}

// reasons returns why deliveries were refused so far.
func (d *door) reasons() []Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.refused)
}

// answer is what a sender sees.
type answer struct {
	status int
	header http.Header
	body   string
}

// dial opens a connection to write to by hand. It fails rather than hang.
func (d *door) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (d *door) send(t *testing.T, method, path string, h http.Header, body io.Reader) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h.Clone()
	resp, err := d.server.Client().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{resp.StatusCode, resp.Header, string(text)}
	neverWrong(t, a)
	return a
}

// neverWrong holds for every answer that any test of this package sees.
func neverWrong(t *testing.T, a answer) {
	t.Helper()
	possible := []int{200, 401, 404, 405, 408, 413, 415, 503}
	if !slices.Contains(possible, a.status) {
		t.Errorf("answer %d", a.status)
	}
	if a.body != "" || len(a.header.Values("Set-Cookie")) > 0 || a.header.Get("Location") != "" {
		t.Errorf("answer %d with body %q and header %v", a.status, a.body, a.header)
	}
	if (a.status == http.StatusServiceUnavailable) != (a.header.Get("Retry-After") != "") {
		t.Errorf("answer %d with Retry-After %q", a.status, a.header.Get("Retry-After"))
	}
}

func (d *door) post(t *testing.T, source string, h http.Header, body string) int {
	t.Helper()
	return d.send(t, http.MethodPost, "/webhooks/"+source, h, bytes.NewReader([]byte(body))).status
}

// made says what is wrong with what a provider was made from; New says it in a program.
func made(p Provider) (Provider, error) { return p, p.err }

// orders is a provider of orders with counters for versions.
func orders(tb testing.TB) Provider {
	tb.Helper()
	p, err := made(Standard(Mapping{Version: "data.version", Clock: inbox.CounterClock, Deleted: []string{"order.deleted"}}))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// shop is a source that signs as Standard Webhooks does, with two secrets.
func shop(t *testing.T) named {
	t.Helper()
	return named{"shop", Sender{Provider: orders(t), Secrets: []Secret{{"new", newSecret}, {"old", oldSecret}}}}
}

// woo is a source that signs as WooCommerce does.
func woo() named {
	return named{"woo", Sender{Provider: WooCommerce(), Secrets: []Secret{{"only", wooSecret}}, Types: []string{"order"}}}
}

// signed is the header of a delivery of body at noon.
func signed(t *testing.T, id, body string) http.Header {
	t.Helper()
	return signedAt(t, id, body, newSecret, noon)
}

func signedAt(t *testing.T, id, body, secret string, at time.Time) http.Header {
	t.Helper()
	h := http.Header{}
	if err := SignStandard(h, secret, id, at, []byte(body)); err != nil {
		t.Fatal(err)
	}
	return h
}

func wooSigned(body string) http.Header {
	h := http.Header{}
	h.Set(wooTopic, "order.updated")
	h.Set(wooID, "12")
	h.Set(wooDelivery, "d0")
	SignWooCommerce(h, wooSecret, []byte(body))
	return h
}

func fixture(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

var errDown = errors.New("the database is down")
