package console

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// No body is read before it is known who asks, but for what a sign-in and a callback have to say: a hundred connections of
// 10 MB each cost next to nothing, and beside them people sign in. Not parallel: it measures the memory of the process.
func TestStrangersCostNoMemory(t *testing.T) {
	w := newWorld(t, nil)
	was := inUse()
	chunk := bytes.Repeat([]byte("a=b&"), 16<<10)
	var all sync.WaitGroup
	var open []net.Conn
	for i := range 100 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		path := []string{"/nothing", "/sign-in", "/works", "/do", "/api/v1/works", "/api/v1/works/mail/x/retry", "/api/v1/callbacks/x"}[i%7]
		all.Go(func() {
			_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second)) // what is not read stands in the way of the rest
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 20000000\r\n\r\n", path)
			for n := 0; n < 10_000_000 && err == nil; n += len(chunk) {
				_, err = conn.Write(chunk)
			}
		})
	}
	all.Wait()
	if now := inUse(); now > was+64<<20 {
		t.Errorf("100 bodies of 10 MB without a token: memory went from %d to %d MiB", was>>20, now>>20)
	}
	if status, _ := w.as("olaf", Operator).get("/"); status != http.StatusOK {
		t.Errorf("beside them a person gets %d", status)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// All bodies in hand are bounded together, and however many large ones come, there is room for a small one; what has ended gives
// back what it had. Those of people who are known have room of their own.
func TestRoomForBodies(t *testing.T) {
	t.Parallel()
	h := &handler{now: time.Now, opts: Options{Who: func(r *http.Request) Person { return Person{Name: r.Header.Get("Who")} }}}
	take := func(who string, size int) (read int, done func()) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/sign-in", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Who", who)
		done = h.bound(nil, r)
		body, _ := io.ReadAll(r.Body)
		return len(body), done
	}
	var ends []func()
	for range 1000 {
		_, done := take("", maxStranger-1)
		ends = append(ends, done)
	}
	if used := h.room.strangers.Load(); used > ofStrangers {
		t.Errorf("1000 bodies have %d bytes in hand, and may have %d", used, ofStrangers)
	}
	for who, size := range map[string]int{"": 200, "anna": maxBody - 1} {
		n, done := take(who, size)
		if n != size {
			t.Errorf("%q has %d bytes to say beside them, and %d were read", who, size, n)
		}
		done()
	}
	for _, done := range ends {
		done()
	}
	if h.room.strangers.Load() != 0 || h.room.known.Load() != 0 {
		t.Errorf("%d and %d bytes are not given back", h.room.strangers.Load(), h.room.known.Load())
	}
}

// What is no page takes no body, an address that a form comes back to is in its address, and a limit is a decimal number.
func TestWhatIsNoRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("olaf", Operator)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/nothing", "/works", "/"} {
			if status, _ := x.ask(method, path, "to=%2Facts", form); status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
	if _, text := w.as("").ask("POST", "/do", "to=%2Facts", form); strings.Contains(text, "acts") {
		t.Error("the body says where a form comes back to")
	}
	for _, limit := range []string{"0x7fffffff", "1_000_000", "0b1111111111111", "0o7777", "1001", "", "1e3"} {
		if status, _ := x.get("/api/v1/works?limit=" + limit); status != http.StatusBadRequest {
			t.Errorf("limit=%s: %d", limit, status)
		}
	}
	w.start("mail", "order:1", letter{}, saga.Completed)
	for path, body := range map[string]string{ // what is empty would select all there is
		"/inbox/replay": `{"reason":"r","source":"","since":"2h"}`, "/works/mail/order:1/skip": `{"reason":"r","step":""}`,
	} {
		if status, text := x.post("/api/v1"+path, body); status != http.StatusBadRequest || !strings.Contains(text, "is empty") {
			t.Errorf("%s %s: %d %s", path, body, status, text)
		}
	}
	if status, _ := x.get("/api/v1/works?saga="); status != http.StatusBadRequest {
		t.Errorf("an empty saga lists all: %d", status)
	}
	if status, _ := x.get("/api/v1/works?limit=1000"); status != http.StatusOK {
		t.Errorf("limit=1000: %d", status)
	}
}
