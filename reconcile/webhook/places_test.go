package webhook

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// unfinished is a delivery whose body has not come to its end yet.
type unfinished struct {
	w    *plainWriter
	body *io.PipeWriter
	done chan struct{}
}

// begin sends the header of a delivery of the shop's and the beginning of its body, and returns
// when that was read.
func (d *door) begin(t *testing.T, h http.Header, beginning string) *unfinished {
	t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/shop", r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.ContentLength = h, -1
	u := &unfinished{w: &plainWriter{}, body: w, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		d.ServeHTTP(u.w, req)
		r.Close()
	}()
	if _, err := io.WriteString(w, beginning); err != nil {
		<-u.done
	}
	return u
}

// end sends the rest and returns the answer.
func (u *unfinished) end(rest string) int {
	_, _ = io.WriteString(u.body, rest)
	u.body.Close()
	<-u.done
	return u.w.status
}

// free reports whether all memory of the shop's was given back.
func (d *door) free() bool {
	s := d.sources["shop"]
	m, fresh := s.memory, newRoom(s.Concurrent, s.MaxBody+1)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free == fresh.free && m.unproven == fresh.unproven && len(s.slots) == 0
}

// Bodies that do not come to their end take no place: whatever number of them is open, a
// genuine delivery is stored.
func TestUnfinishedBodiesTakeNoPlace(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Concurrent = 1
	d := open(t, nil, s)
	d.opts.Budget = time.Minute // however slow the machine is
	forged := signed(t, "forged", "another body")
	var open []*unfinished
	for range 160 {
		open = append(open, d.begin(t, forged, "123456789"))
	}
	open = append(open, d.begin(t, signed(t, "late", paid), paid[:20]))
	for _, id := range []string{"a", "b", "c"} {
		if got := d.post(t, "shop", signed(t, id, paid), paid); got != 200 {
			t.Errorf("answer %d to a genuine delivery beside 161 unfinished ones", got)
		}
	}
	for i, u := range open {
		want, rest := 401, ""
		if i == 160 {
			want, rest = 200, paid[20:]
		}
		if got := u.end(rest); got != want {
			t.Errorf("unfinished delivery %d: answer %d; want %d", i, got, want)
		}
	}
	if !d.free() {
		t.Error("memory or a place was not given back")
	}
}

// Memory is counted in bytes that came, not in deliveries: nine bytes cost little of it,
// however much is announced. When it is used up what comes next is asked to come again, and goes on
// when it was given back.
func TestMemoryIsCountedInBytes(t *testing.T) {
	t.Parallel()
	s := small(t)
	s.Concurrent = 12 // so there is memory for six bodies of 1000 bytes that proved nothing
	d := open(t, nil, s)
	forged := signed(t, "forged", "another body")
	var open []*unfinished
	for range 5 {
		open = append(open, d.begin(t, forged, "123456789"))
	}
	if got := d.post(t, "shop", signed(t, "small", paid), paid); got != 200 {
		t.Errorf("answer %d beside 45 bytes", got)
	}
	large := d.begin(t, forged, strings.Repeat(" ", 900))
	if got := d.post(t, "shop", signed(t, "large", padded(1000)), padded(1000)); got != 503 || !slices.Contains(d.reasons(), Busy) {
		t.Errorf("answer %d for %v when the memory is used up", got, d.reasons())
	}
	large.end("")
	if got := d.post(t, "shop", signed(t, "large", padded(1000)), padded(1000)); got != 200 {
		t.Errorf("answer %d when it was given back", got)
	}
	for _, u := range open {
		u.end("")
	}
	if !d.free() {
		t.Error("memory or a place was not given back")
	}
}

// Without a signature that can be read, nothing of the body is read, whatever it is.
func TestUnsignedIsNotRead(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t), woo(), gitSource())
	for source, h := range map[string]http.Header{
		"shop": {}, "github": {"X-Hub-Signature-256": {"sha256=xyz"}}, "woo": {wooSignature: {"A"}},
	} {
		body := &endless{}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/"+source, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header, req.ContentLength = http.Header{}, -1
		for name, values := range h {
			req.Header.Set(name, values[0])
		}
		w := &plainWriter{}
		if d.ServeHTTP(w, req); w.status != 401 || body.read != 0 {
			t.Errorf("%s: answer %d after %d bytes; want 401 after none", source, w.status, body.read)
		}
	}
}

// What may be an unsigned greeting is read as far as a greeting goes.
func TestGreetingIsShort(t *testing.T) {
	t.Parallel()
	d := open(t, nil, woo())
	body := &endless{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/woo", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.ContentLength = http.Header{}, -1
	w := &plainWriter{}
	if d.ServeHTTP(w, req); w.status != 413 || body.read > 4<<10 {
		t.Errorf("answer %d after %d bytes", w.status, body.read)
	}
	if got := d.post(t, "woo", http.Header{}, strings.Repeat(" ", 2000)); got != 401 {
		t.Errorf("answer %d", got)
	}
}

// A delivery keeps its memory for as long as the inbox has it, also when its sender was
// answered long ago.
func TestInboxKeepsMemory(t *testing.T) {
	t.Parallel()
	d := open(t, &Options{Budget: 300 * time.Millisecond}, shop(t))
	hang, left := make(chan bool), make(chan bool)
	d.inbox.accept = func(context.Context) error { <-hang; close(left); return nil }
	if got := d.post(t, "shop", signed(t, "m1", paid), paid); got != 503 {
		t.Errorf("answer %d", got)
	}
	if d.free() {
		t.Error("memory was given back while the inbox has the delivery")
	}
	close(hang)
	<-left
	for !d.free() {
		runtime.Gosched()
	}
}
