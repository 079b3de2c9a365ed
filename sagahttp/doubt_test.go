package sagahttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// protocol.md §4: "timeout, cut, 5xx, cancelled: in doubt; unknown is not failed".
func TestUnknownBehindTheGate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer func(cancel func()) func(*wire, net.Conn, arrival) bool
		says   string
	}{
		{"cut before the answer", func(func()) func(*wire, net.Conn, arrival) bool {
			return func(*wire, net.Conn, arrival) bool { return false }
		}, "too early"},
		{"reset before the answer", func(func()) func(*wire, net.Conn, arrival) bool {
			return func(_ *wire, c net.Conn, _ arrival) bool {
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				return false
			}
		}, "reset"},
		{"cut within the header", func(func()) func(*wire, net.Conn, arrival) bool {
			return func(_ *wire, c net.Conn, _ arrival) bool {
				say(c, "HTTP/1.1 201 Created\r\nContent-Len")
				return false
			}
		}, "the connection broke"},
		{"cut within the body", func(func()) func(*wire, net.Conn, arrival) bool {
			return func(_ *wire, c net.Conn, _ arrival) bool {
				say(c, "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{")
				return false
			}
		}, "answered 201 Created, but its body was cut"},
		{"cancelled before the answer", func(cancel func()) func(*wire, net.Conn, arrival) bool {
			return func(*wire, net.Conn, arrival) bool { cancel(); return true }
		}, "cancelled"},
		{"cancelled within the body", func(cancel func()) func(*wire, net.Conn, arrival) bool {
			return func(_ *wire, c net.Conn, _ arrival) bool {
				say(c, "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{")
				cancel()
				return true
			}
		}, "cancelled"},
		{"not HTTP", func(func()) func(*wire, net.Conn, arrival) bool {
			return func(_ *wire, c net.Conn, _ arrival) bool { say(c, "220 mail.example ESMTP\r\n"); return false }
		}, "not readable HTTP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, gate := gated(t, nil)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			w := serve(t, tc.answer(cancel))
			_, err := dial(t, w.URL(), nil).Do(ctx, post)
			wantClass(t, err, saga.Unknown)
			if !gate.Passed() {
				t.Error("the request arrived, but the gate was not passed")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not contain %q", err, tc.says)
			}
		})
	}
}

// hasty reports the first bytes that are read from it.
type hasty struct {
	net.Conn
	once sync.Once
	read chan struct{}
}

func (h *hasty) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	h.once.Do(func() { close(h.read) })
	return n, err
}

// An answer that came before the question is not an answer to it.
func TestAnswerBeforeTheRequest(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err == nil {
			say(c, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	answered := make(chan struct{})
	ctx, _ := gated(t, func() error {
		<-answered
		return errors.New("no longer")
	})
	c := dial(t, "http://"+ln.Addr().String(), &sagahttp.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &hasty{Conn: raw, read: answered}, err
	}})
	_, err = c.Do(ctx, post)
	wantClass(t, err, saga.Unsent)
}

// A server that accepts and never reads: the bytes left this process, so the outcome is unknown.
func TestServerThatNeverReads(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // its backlog accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	for _, size := range []int{10, 8 << 20} { // fits into the socket's buffers, and does not
		ctx, cancel := context.WithCancel(t.Context())
		gate := program.NewGate(func() error {
			time.AfterFunc(50*time.Millisecond, cancel) // from the first byte on
			return nil
		})
		c := dial(t, "http://"+ln.Addr().String(), &sagahttp.Options{MaxRequest: 8 << 20})
		_, err = c.Do(program.WithGate(ctx, gate), sagahttp.Request{Method: "POST", Body: make([]byte, size)})
		wantClass(t, err, saga.Unknown)
		if !gate.Passed() || !errors.Is(err, context.Canceled) {
			t.Errorf("gate passed: %v, error: %v", gate.Passed(), err)
		}
	}
}

// A request without a deadline gets the client's.
func TestTimeoutWithoutDeadline(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := serve(t, func(*wire, net.Conn, arrival) bool { <-release; return false })
	defer close(release)
	_, err := dial(t, w.URL(), &sagahttp.Options{Timeout: 500 * time.Millisecond}).Do(t.Context(), post)
	wantClass(t, err, saga.Unknown)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a deadline", err)
	}
}

// "Not sent" must stay true: requests are cancelled at arbitrary moments, and none that is called
// not sent may have arrived.
func TestNotSentIsNeverALie(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), &sagahttp.Options{IdleTimeout: 100 * time.Millisecond})
	unsent := map[string]bool{}
	for i := range 400 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		path := fmt.Sprintf("/%d", i)
		_, err := c.Do(ctx, sagahttp.Request{Method: "POST", Path: path, Key: "k"})
		if class, _ := saga.Classify(err); err != nil && class == saga.Unsent {
			unsent[path] = true
		}
		timer.Stop()
		cancel()
	}
	c.Close()
	w.drain()
	for _, a := range w.seen() {
		if unsent[a.uri] {
			t.Errorf("%s was called not sent, and arrived", a.uri)
		}
	}
	t.Logf("%d of 400 were not sent, %d arrived", len(unsent), len(w.seen()))
}
