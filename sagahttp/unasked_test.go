package sagahttp_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// An answer belongs to the request that was sent. What a destination says besides is no answer
// to the next one: the connection is closed, and what was said is not read.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	length := func(r arrival) string {
		body := fmt.Sprintf(`{"id":"inv_%d"}`, r.n)
		return fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	chunked := func(r arrival) string {
		body := fmt.Sprintf("{\n\"id\":\"inv_%d\"}", r.n)
		return fmt.Sprintf("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n%x;x=%s\r\n%s\r\n0\r\nTrailer-Id: 7\r\n\r\n",
			len(body)-1, strings.Repeat("y", 100), body[1:])
	}
	empty := func(arrival) string { return "HTTP/1.1 204 No Content\r\n\r\n" }
	hinted := func(r arrival) string { return "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + length(r) }
	large := func(r arrival) string {
		body := fmt.Sprintf(`{"note":"%s","id":"inv_%d"}`, strings.Repeat("x", 100_000), r.n)
		return fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	twice := func(answer func(arrival) string) func(arrival) string {
		return func(r arrival) string { return answer(r) + answer(r) }
	}
	more := func(answer func(arrival) string, tail string) func(arrival) string {
		return func(r arrival) string { return answer(r) + tail }
	}
	const email = ",\"customer\":{\"email\":\"jane@example.com\"}}"
	for _, tc := range []struct {
		name   string
		answer func(arrival) string
		kept   bool // the connection is used for all
	}{
		{"length", length, true},
		{"chunks", chunked, true},
		{"empty", empty, true},
		{"hints first", hinted, true},
		{"large", large, true},
		{"length, twice", twice(length), false},
		{"chunks, twice", twice(chunked), false},
		{"empty, twice", twice(empty), false},
		{"hints first, twice", twice(hinted), false},
		{"large, twice", twice(large), false},
		{"empty, and another", func(r arrival) string { return empty(r) + length(r) }, false},
		{"a length that is too short", more(length, email), false},
		{"a line more", more(length, "\r\n"), false},
		{"chunks, and a body", more(chunked, email), false},
		{"a body that 204 may not have", more(empty, email), false},
		{"hints behind it", more(length, "HTTP/1.1 103 Early Hints\r\n\r\n"), false},
		{"a time-out behind it", more(length, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(_ *wire, c net.Conn, r arrival) bool {
				if r.method == http.MethodHead { // the answer to a HEAD has the length of what it does not have
					return say(c, strings.TrimSuffix(length(r), fmt.Sprintf(`{"id":"inv_%d"}`, r.n))+strings.Repeat("x", map[bool]int{false: 9}[tc.kept]))
				}
				return say(c, tc.answer(r))
			})
			c := dial(t, w.URL(), nil)
			for n := range 60 {
				var made struct{ ID string }
				r := sagahttp.Request{Method: "POST", Path: "/invoices", Body: map[string]int{"work": n}, Into: &made}
				switch n % 5 {
				case 3:
					r.Body = nil
				case 4:
					r = sagahttp.Request{Method: "HEAD", Path: "/invoices"}
				}
				resp, err := c.Do(t.Context(), r)
				if err != nil || made.ID != fmt.Sprint("inv_", n+1) && r.Into != nil && resp.Status != 204 {
					t.Fatalf("request %d was answered with %q, %v", n+1, made.ID, err)
				}
			}
			if conns, _ := w.total(); tc.kept && conns > 6 || !tc.kept && conns != 60 { // on a busy machine a connection may be given up that is not yet back
				t.Errorf("%d connections", conns)
			}
		})
	}
}

// What comes while nothing is under way ends the connection, whenever it comes and however much
// it is.
func TestUnaskedLater(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]string{
		"an answer":   "HTTP/1.1 201 Created\r\nContent-Length: 15\r\n\r\n{\"id\":\"forged\"}",
		"a byte":      "x",
		"a line":      "\r\n",
		"a time-out":  "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
		"many bytes":  strings.Repeat("jane@example.com ", 10_000),
		"a TLS alert": "\x15\x03\x03\x00\x02\x01\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over, gone := make(chan bool), make(chan bool)
			w := serve(t, func(_ *wire, c net.Conn, r arrival) bool {
				if r.n > 1 {
					return say(c, "HTTP/1.1 201 Created\r\nContent-Length: 14\r\n\r\n{\"id\":\"inv_2\"}")
				}
				go func() {
					defer close(gone)
					<-over
					say(c, late)
					_, _ = c.Read(make([]byte, 1)) // until the client closes it
				}()
				say(c, "HTTP/1.1 201 Created\r\nContent-Length: 14\r\n\r\n{\"id\":\"inv_1\"}")
				<-gone
				return false
			})
			c := dial(t, w.URL(), nil)
			for n := 1; n <= 2; n++ {
				var made struct{ ID string }
				_, err := c.Do(t.Context(), sagahttp.Request{Method: "POST", Path: "/invoices", Body: 1, Into: &made})
				if err != nil || made.ID != fmt.Sprint("inv_", n) {
					t.Errorf("request %d was answered with %q, %v", n, made.ID, err)
				}
				if n == 1 {
					close(over)
					<-gone
				}
			}
		})
	}
}

// What is there when the next request comes has been said before it, also where net/http has not
// read it yet: the socket is asked. So is whether the other side has closed the connection.
func TestUnread(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the socket cannot be asked")
	}
	const forged = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"id\":\"forged\"}"
	for name, first := range map[string]func(c net.Conn){
		"an answer": func(c net.Conn) { say(c, forged) },
		"a byte":    func(c net.Conn) { say(c, "x") },
		"its end":   func(c net.Conn) { _ = c.Close() },
	} {
		ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		dialer := func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			there, err := ln.Accept()
			if err != nil {
				return nil, err
			}
			first(there)
			t.Cleanup(func() { _ = there.Close() })
			return deaf{c, make(chan struct{})}, nil
		}
		var made struct{ ID string }
		_, err = dial(t, "http://"+ln.Addr().String(), &sagahttp.Options{Dial: dialer, Timeout: 2 * time.Second}).
			Do(t.Context(), sagahttp.Request{Method: "POST", Path: "/invoices", Body: 1, Into: &made})
		if made.ID != "" {
			t.Errorf("%s: %q is believed", name, made.ID)
		}
		wantClass(t, err, saga.Unsent)
	}
}

// deaf is a connection of which net/http reads nothing before it has closed it.
type deaf struct {
	net.Conn

	closed chan struct{}
}

func (d deaf) NetConn() net.Conn { return d.Conn }

func (d deaf) Read([]byte) (int, error) { <-d.closed; return 0, net.ErrClosed }

func (d deaf) Close() error { close(d.closed); return d.Conn.Close() }
