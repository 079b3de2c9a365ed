package webhook

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// endless is a body without end that counts what is taken of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// small is the shop with a limit of 1000 bytes.
func small(t *testing.T) named {
	t.Helper()
	s := shop(t)
	s.MaxBody = 1000
	return s
}

func zipped(t *testing.T, plain []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// padded is a delivery of exactly n bytes.
func padded(n int) string { return paid + strings.Repeat(" ", n-len(paid)) }

// A body of the limit passes, one byte more is 413, whether its length is announced or it
// comes in chunks.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	d := open(t, nil, small(t))
	for n, want := range map[int]int{1000: 200, 1001: 413} {
		body := padded(n)
		if got := d.post(t, "shop", signed(t, fmt.Sprint("length", n), body), body); got != want {
			t.Errorf("%d bytes: answer %d; want %d", n, got, want)
		}
		chunked := io.MultiReader(strings.NewReader(body)) // hides the length
		a := d.send(t, http.MethodPost, "/webhooks/shop", signed(t, fmt.Sprint("chunked", n), body), chunked)
		if a.status != want {
			t.Errorf("%d bytes in chunks: answer %d; want %d", n, a.status, want)
		}
	}
	if got := d.reasons(); !slices.Equal(got, []Refusal{LargeBody, LargeBody}) {
		t.Errorf("counted as %v", got)
	}
}

// An announced length over the limit is answered before a byte of the body has come, and the
// connection closed.
func TestAnnouncedLength(t *testing.T) {
	t.Parallel()
	d := open(t, &Options{Budget: hardStop}, small(t))
	conn := d.dial(t)
	defer conn.Close()
	began := time.Now()
	fmt.Fprintf(conn, "POST /webhooks/shop HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// Whoever waits for the body waits for readShare of the budget.
	if took := time.Since(began); resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close || took > hardStop/2 {
		t.Errorf("answer %d after %s, connection closed: %t", resp.StatusCode, took, resp.Close)
	}
}

// A bomb is unpacked up to the limit and no further. Not parallel: it looks at what was
// allocated meanwhile.
func TestBombCostsNoMemory(t *testing.T) {
	bomb := []byte(zipped(t, make([]byte, 4<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := newSource(small(t))
	if err != nil {
		t.Fatal(err)
	}
	h := s.hold()
	h.prove()
	_, err = unpack(http.Header{"Content-Encoding": {"gzip"}}, bomb, 16<<10, h)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errTooLarge) {
		t.Errorf("%v", err)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 10; n > 1024 {
		t.Errorf("%d KiB were allocated for a limit of 16 KiB", n)
	}
}

// Reading stops one byte behind the limit, however much the sender has.
func TestReadingStops(t *testing.T) {
	t.Parallel()
	d := open(t, nil, small(t))
	body := &endless{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/shop", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.ContentLength = signed(t, "msg_1", paid), -1
	w := &plainWriter{}
	d.ServeHTTP(w, req)
	if w.status != 413 || body.read > 16<<10 {
		t.Errorf("answer %d after %d bytes; want 413 after about 1000", w.status, body.read)
	}
}

// plainWriter is a ResponseWriter without deadlines.
type plainWriter struct {
	status int
	header http.Header
}

func (w *plainWriter) WriteHeader(status int)      { w.status = status }
func (w *plainWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *plainWriter) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// A packed body is verified as it was sent, unpacked up to the limit and no further; what is
// larger is 413.
func TestGzip(t *testing.T) {
	t.Parallel()
	d := open(t, nil, small(t))
	for name, tc := range map[string]struct {
		body        string
		status      int
		disposition intake.Disposition
	}{
		"fits":      {zipped(t, []byte(padded(1000))), 200, ""},
		"too large": {zipped(t, []byte(padded(1001))), 413, ""},
		"bomb":      {zipped(t, make([]byte, 800_000)), 413, ""},
		"two parts": {zipped(t, []byte(padded(600))) + zipped(t, bytes.Repeat([]byte(" "), 600)), 413, ""},
		"cut":       {zipped(t, []byte(paid))[:40], 200, intake.Malformed},
		"not gzip":  {paid, 200, ""}, // it only says so
	} {
		if len(tc.body) > 1000 {
			t.Fatalf("%s: %d bytes are over the limit as they are", name, len(tc.body))
		}
		h := signed(t, "msg_"+strings.ReplaceAll(name, " ", "_"), tc.body)
		h.Set("Content-Encoding", "gzip")
		before := len(d.inbox.stored())
		if got := d.post(t, "shop", h, tc.body); got != tc.status {
			t.Errorf("%s: answer %d; want %d", name, got, tc.status)
		}
		after := d.inbox.stored()[before:]
		if tc.status == 200 && (len(after) != 1 || after[0].Disposition != tc.disposition) || tc.status != 200 && len(after) != 0 {
			t.Errorf("%s: stored %+v", name, after)
		}
	}
	// Nobody unpacks what nobody signed.
	h := signed(t, "msg_forged", paid)
	h.Set("Content-Encoding", "gzip")
	if got := d.post(t, "shop", h, zipped(t, make([]byte, 800_000))); got != 401 {
		t.Errorf("a forged bomb: answer %d", got)
	}
}

// Limits: a header beyond the limit is refused before anything of the body is read.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	d := open(t, &Options{MaxHeader: 2000}, shop(t))
	h := signed(t, "msg_1", paid)
	h.Set("X-Padding", strings.Repeat("x", 2000))
	if got := d.post(t, "shop", h, paid); got != 413 || !slices.Equal(d.reasons(), []Refusal{LargeHeader}) {
		t.Errorf("answer %d for %v", got, d.reasons())
	}
}

// signedLines are the header of a delivery whose signature can be read, and is wrong.
const signedLines = "Webhook-Id: m\r\nWebhook-Timestamp: 1763640000\r\nWebhook-Signature: v1,AAAA\r\n"

// A body that trickles in is cut off within the budget: 408, and the connection is closed. The
// same holds for a body that belongs to no source, and nothing is stored.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	d := open(t, &Options{Budget: 300 * time.Millisecond}, shop(t))
	for path, want := range map[string]string{"/webhooks/shop": "408", "/webhooks/nobody": "404"} {
		conn := d.dial(t)
		defer conn.Close()
		began := time.Now()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\n%sContent-Length: 500\r\n\r\n{", path, signedLines)
		r := bufio.NewReader(conn)
		line, err := r.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("%s answers %q, %v; want %s", path, line, err, want)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("%s: the connection is open still: %v", path, err)
		}
		if took := time.Since(began); took > hardStop {
			t.Errorf("%s took %s; the hard stop is %s", path, took, hardStop)
		}
	}
	if got := d.reasons(); !slices.Contains(got, SlowBody) || len(d.inbox.stored()) != 0 {
		t.Errorf("counted as %v, %d events stored", got, len(d.inbox.stored()))
	}
}

// A sender that goes away in the middle of its body is no delivery.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	refused := make(chan Refusal, 1)
	d := open(t, nil, shop(t))
	d.opts.Listener.Refused = func(_ string, why Refusal, _ int) { refused <- why }
	conn := d.dial(t)
	fmt.Fprintf(conn, "POST /webhooks/shop HTTP/1.1\r\nHost: h\r\n%sContent-Length: 500\r\n\r\n{", signedLines)
	conn.Close()
	if why := <-refused; why != BrokenBody {
		t.Errorf("counted as %s; want %s", why, BrokenBody)
	}
}

// Deliveries beyond Concurrent wait shortly and then are asked to come again, and the place is
// free afterwards.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Concurrent = 2
	d := open(t, nil, s)
	d.opts.Budget = time.Minute // the two inside outlast the third, however slow the machine is
	inside, leave := make(chan bool, 2), make(chan bool)
	d.inbox.accept = func(context.Context) error {
		inside <- true
		<-leave
		return nil
	}
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		wg.Go(func() {
			if got := d.post(t, "shop", signed(t, id, paid), paid); got != 200 {
				t.Errorf("answer %d", got)
			}
		})
		<-inside
	}
	d.opts.Budget = 2 * time.Second
	if got := d.post(t, "shop", signed(t, "c", paid), paid); got != 503 || !slices.Equal(d.reasons(), []Refusal{Busy}) {
		t.Errorf("the third at once: answer %d for %v", got, d.reasons())
	}
	d.opts.Budget = time.Minute
	close(leave)
	wg.Wait()
	if got := d.post(t, "shop", signed(t, "c", paid), paid); got != 200 {
		t.Errorf("afterwards: answer %d", got)
	}
}

// Genuine deliveries beyond the rate are asked to come again; forged ones use up nothing of it.
func TestRate(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.PerSecond, s.Burst = 0.001, 3
	d := open(t, nil, s)
	for range 20 {
		if got := d.post(t, "shop", signed(t, "x", paid), paid+" "); got != 401 {
			t.Errorf("answer %d to a forged delivery", got)
		}
	}
	for i, want := range []int{200, 200, 200, 503, 503} {
		if got := d.post(t, "shop", signed(t, fmt.Sprint("m", i), paid), paid); got != want {
			t.Errorf("delivery %d: answer %d; want %d", i+1, got, want)
		}
	}
}

// Without read deadlines in the server a line says so, once, and deliveries are taken all the same.
func TestNoDeadlines(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/shop", strings.NewReader(paid))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = signed(t, "msg_1", paid)
		w := &plainWriter{}
		if d.ServeHTTP(w, req); w.status != 200 {
			t.Errorf("answer %d", w.status)
		}
	}
	if n := strings.Count(d.log.String(), "no read deadlines"); n != 1 {
		t.Errorf("%d lines; want 1", n)
	}
}

// The server that a receiver makes has limits on everything in front of the handler.
func TestServer(t *testing.T) {
	t.Parallel()
	d := open(t, &Options{MaxHeader: 4000}, shop(t))
	s := d.Server("127.0.0.1:0")
	if s.Handler != http.Handler(d.Receiver) || s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes != 4000 {
		t.Errorf("%+v", &s.Server)
	}
}

// A server that is run serves until it is told to end, answers what is in hand by then, and says
// when it cannot serve.
func TestServerRuns(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	s := d.Server("127.0.0.1:0")
	at := make(chan net.Addr, 1)
	s.BaseContext = func(l net.Listener) context.Context { at <- l.Addr(); return t.Context() }
	ctx, stop := context.WithCancel(t.Context())
	d.inbox.accept = func(context.Context) error { stop(); return nil } // it is to end while a delivery is in hand
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	address := (<-at).String()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/webhooks/shop", strings.NewReader(paid))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = signed(t, "msg_1", paid)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the delivery in hand was answered with %d", answer.StatusCode)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if err := d.Server(address + "0000").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serve webhooks") {
		t.Errorf("at an address that there is not: %v", err)
	}
}

// The limits and the answers over HTTP/2, where a delivery is a stream among others.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := small(t)
	d := open(t, &Options{Budget: time.Second}, s)
	server := httptest.NewUnstartedServer(d.Receiver)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	post := func(body io.Reader) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/webhooks/shop", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = signed(t, "msg_1", paid)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Fatalf("the answer came by %s", resp.Proto)
		}
		return resp.StatusCode
	}
	if got := post(strings.NewReader(paid)); got != 200 {
		t.Errorf("answer %d", got)
	}
	if got := post(io.MultiReader(strings.NewReader(padded(1001)))); got != 413 {
		t.Errorf("answer %d", got)
	}
	trickle, end := io.Pipe()
	defer end.Close()
	if got := post(trickle); got != 408 {
		t.Errorf("answer %d", got)
	}
	if n := len(d.inbox.stored()); n != 1 {
		t.Errorf("%d events; want 1", n)
	}
}
