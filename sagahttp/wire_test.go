package sagahttp_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(quiet{m}) }

// quiet are the tests, none of which may make net/http write to the standard log: it would be what
// a destination said.
type quiet struct{ *testing.M }

func (q quiet) Run() int {
	var said bytes.Buffer
	log.SetOutput(&said)
	code := q.M.Run()
	if said.Len() > 0 {
		fmt.Fprintf(os.Stderr, "the standard log has:\n%s", &said)
		return max(code, 1)
	}
	return code
}

// wire is a server on loopback that reads requests itself, so that a test decides what happens on
// each connection, and knows what arrived.
type wire struct {
	net.Listener
	t      *testing.T
	answer func(w *wire, c net.Conn, r arrival) (keep bool)
	done   sync.WaitGroup

	mu       sync.Mutex
	arrivals []arrival
	conns    []net.Conn
	bytes    int
}

// arrival is a request as the server saw it.
type arrival struct {
	n      int // counts from 1, over all connections
	conn   int // counts from 1
	method string
	uri    string
	header http.Header
	body   string
}

// serve starts a server that lets answer deal with each request. Without keep the connection is
// closed.
func serve(t *testing.T, answer func(w *wire, c net.Conn, r arrival) (keep bool)) *wire {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: ln, t: t, answer: answer}
	w.done.Go(w.accept)
	t.Cleanup(w.stop)
	return w
}

func (w *wire) URL() string { return "http://" + w.Addr().String() }

func (w *wire) accept() {
	for {
		c, err := w.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.conns = append(w.conns, c)
		id := len(w.conns)
		w.mu.Unlock()
		w.done.Go(func() { w.talk(c, id) })
	}
}

func (w *wire) talk(c net.Conn, id int) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(io.TeeReader(c, counter{w}))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		a := arrival{conn: id, method: req.Method, uri: req.RequestURI, header: req.Header, body: string(body)}
		a.header["Transfer-Encoding"] = req.TransferEncoding // ReadRequest takes it out
		w.mu.Lock()
		a.n = len(w.arrivals) + 1
		w.arrivals = append(w.arrivals, a)
		w.mu.Unlock()
		if !w.answer(w, c, a) {
			return
		}
	}
}

// drain waits until the clients have closed their connections, so that all they sent has been read.
func (w *wire) drain() {
	_ = w.Close()
	w.done.Wait()
}

// stop closes everything and waits for it.
func (w *wire) stop() {
	_ = w.Close()
	w.mu.Lock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// seen returns what arrived so far.
func (w *wire) seen() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]arrival(nil), w.arrivals...)
}

// total returns how many connections were made and how many bytes arrived on them.
func (w *wire) total() (conns, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns), w.bytes
}

type counter struct{ *wire }

func (c counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.bytes += len(p)
	c.mu.Unlock()
	return len(p), nil
}

// say writes a raw answer.
func say(c net.Conn, raw string) bool {
	_, err := io.WriteString(c, raw)
	return err == nil
}

// yes answers every request with an empty JSON object and keeps the connection.
func yes(_ *wire, c net.Conn, r arrival) bool {
	if r.method == http.MethodHead {
		return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
	}
	return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
}

// dial returns a client for base that is closed with the test.
func dial(t *testing.T, base string, o *sagahttp.Options) *sagahttp.Client {
	t.Helper()
	c, err := sagahttp.New(base, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// gated returns a context with a gate, and the gate.
func gated(t *testing.T, admit func() error) (context.Context, *program.Gate) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	g := program.NewGate(admit)
	return program.WithGate(ctx, g), g
}

// wantClass fails unless err has the class.
func wantClass(t *testing.T, err error, want saga.Class) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of class %s", want)
	}
	if got, _ := saga.Classify(err); got != want {
		t.Fatalf("class %s, want %s: %v", got, want, err)
	}
}
