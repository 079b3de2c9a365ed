package webhook

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// Whoever proved nothing cannot keep small genuine deliveries out by large bodies, however many
// connections send them, how fast, and how much of them.
func TestFloodOfUnsignedBodies(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for name, f := range map[string]flood{
		"64 connections send half of 1 MiB":     {1 << 20, 64, 64, 1 << 19, 0},
		"ten connections at 0.2 MB/s, 64 KiB":   {64 << 10, 8, 10, 64<<10 - 1, 20_000},
		"ten connections, 64 KiB at once":       {64 << 10, 8, 10, 64<<10 - 1, 0},
		"one delivery in hand, ten connections": {64 << 10, 1, 10, 32 << 10, 0},
		"40 connections send 8 kB":              {64 << 10, 8, 40, 8000, 0},
	} {
		s := shop(t)
		s.MaxBody, s.Concurrent = f.maxBody, f.concurrent
		d := open(t, nil, s)
		all.Go(func() {
			stop := f.begin(t, d)
			defer stop()
			refused, tick := 0, time.NewTicker(20*time.Millisecond)
			for n := range 90 { // beyond the first round of the flood
				<-tick.C
				body := padded(500 + n%2*1500)
				if got := d.post(t, "shop", signed(t, fmt.Sprint("m", n), body), body); got != 200 {
					refused++
				}
			}
			if refused > 4 { // a busy machine may be late with one; a flood that works keeps out most
				t.Errorf("%s: %d of 90 genuine deliveries were refused", name, refused)
			}
		})
	}
	all.Wait()
}

// flood is what a stranger sends: bodies of which so many bytes come, by so many connections, each
// again and again.
type flood struct {
	maxBody     int64
	concurrent  int
	connections int
	sent, pace  int // bytes of each body, and a second on each connection; 0: all at once
}

// begin sends it until stop, and returns when all connections are open.
func (f flood) begin(t *testing.T, d *door) (stop func()) {
	t.Helper()
	var wg sync.WaitGroup
	over, ready := make(chan struct{}), make(chan bool, f.connections)
	header := fmt.Sprintf("POST /webhooks/shop HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n", signedLines, f.maxBody)
	part := bytes.Repeat([]byte(" "), f.sent)
	once := func() (again bool) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.server.Listener.Addr().String())
		if err != nil {
			return false
		}
		defer conn.Close()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = conn.Read(make([]byte, 100))
		}()
		_, _ = conn.Write([]byte(header))
		go pour(conn, part, f.pace)
		select {
		case ready <- true:
		default:
		}
		select {
		case <-answered:
			return true
		case <-over:
			return false
		}
	}
	for range f.connections {
		wg.Go(func() {
			pace := time.NewTicker(100 * time.Millisecond) // it is about what they hold, not about the processor
			defer pace.Stop()
			for once() {
				<-pace.C
			}
		})
	}
	for range f.connections {
		<-ready
	}
	return func() { close(over); wg.Wait() }
}

// pour writes a body at a pace, in bytes a second.
func pour(conn net.Conn, body []byte, pace int) {
	if pace == 0 {
		_, _ = conn.Write(body)
		return
	}
	for tick := time.NewTicker(50 * time.Millisecond); len(body) > 0; <-tick.C {
		n, err := conn.Write(body[:min(len(body), pace/20)])
		if body = body[n:]; err != nil {
			return
		}
	}
}

// What proved nothing never has more than its share, what was verified has the rest, and all of
// it is given back.
func TestShareOfMemory(t *testing.T) {
	t.Parallel()
	m := newRoom(8, 1000)
	var open []*hold
	for range 100 {
		h := (&source{memory: m}).hold()
		_, _ = h.readAll(strings.NewReader(strings.Repeat(" ", 999)), 999)
		open = append(open, h)
	}
	if m.unproven < firstRead || m.free-m.unproven != 4000 {
		t.Errorf("100 large bodies left %d of the share, and %d of all", m.unproven, m.free)
	}
	proved := open[0]
	proved.prove()
	if _, err := proved.readAll(strings.NewReader(strings.Repeat(" ", 999)), 999); err != nil {
		t.Errorf("what is genuine cannot be unpacked beside them: %v", err)
	}
	for _, h := range open {
		h.release()
	}
	if *newRoom(8, 1000) != (room{free: m.free, unproven: m.unproven}) {
		t.Errorf("%d and %d were given back", m.free, m.unproven)
	}
	for bodies := range 9 { // the largest body fits when it is alone, and one unpacked beside it
		m, limit := newRoom(bodies, 1001), int64(1000)
		h := (&source{memory: m}).hold()
		for range 2 {
			if _, err := h.readAll(strings.NewReader(padded(1000)), limit); err != nil {
				t.Errorf("memory for %d: %v", bodies, err)
			}
			h.prove()
			h.proved = true
		}
	}
}

// What a delivery holds beyond the bound is not stored event by event, which would take longer
// than its sender waits: it is answered, and kept as one that could not be read. Not parallel: the time
// for an answer runs.
func TestManyEvents(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%d", i)
		}
		return b.String()[1:]
	}
	merges := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"Customer","operation":"Merge","id":"%d","deletedId":"x%d","lastUpdated":"2026-11-20T11:00:00Z"}`, i, i)
		}
		return b.String()[1:]
	}
	notices := func(entities ...string) string {
		var b strings.Builder
		for i, e := range entities {
			fmt.Fprintf(&b, `,{"realmId":"%d","dataChangeEvent":{"entities":[%s]}}`, i, e)
		}
		return `{"eventNotifications":[` + b.String()[1:] + `]}`
	}
	xero := named{"xero", Sender{Provider: Xero(), Secrets: []Secret{{"only", wooSecret}}, Tenants: []string{AnyTenant}}}
	books := named{"books", Sender{Provider: QuickBooks(), Secrets: []Secret{{"only", wooSecret}}, Tenants: []string{AnyTenant}}}
	for name, tc := range map[string]struct {
		source named
		header string
		body   string
		holds  int
	}{
		"165,626 of Xero":         {xero, "X-Xero-Signature", `{"events":[` + numbers(165_626) + `]}`, 165_626},
		"one too many of Xero":    {xero, "X-Xero-Signature", `{"events":[` + numbers(maxEvents+1) + `]}`, maxEvents + 1},
		"as many as may be":       {xero, "X-Xero-Signature", `{"events":[` + numbers(maxEvents) + `]}`, 0},
		"too many CloudEvents":    {books, "Intuit-Signature", `[` + numbers(100_000) + `]`, 100_000},
		"too many notifications":  {books, "Intuit-Signature", notices(numbers(600), numbers(401)), 1001},
		"too many by merges":      {books, "Intuit-Signature", notices(merges(501)), 1002},
		"as many by merges":       {books, "Intuit-Signature", notices(merges(500)), 0},
		"many companies, no news": {books, "Intuit-Signature", notices(numbers(1000), ""), 0},
	} {
		d := open(t, nil, tc.source)
		h := http.Header{}
		SignWooCommerce(h, wooSecret, []byte(tc.body)) // base64 of an HMAC over the body, as theirs
		h.Set(tc.header, h.Get(wooSignature))
		status, events := d.post(t, tc.source.Name, h, tc.body), d.inbox.stored()
		if status != 200 {
			t.Errorf("%s: answer %d", name, status)
			continue
		}
		if tc.holds == 0 {
			if len(events) != maxEvents {
				t.Errorf("%s: %d events", name, len(events))
			}
			continue
		}
		why := fmt.Sprintf("it holds %d events, and one delivery may hold 1000", tc.holds)
		if len(events) != 1 || events[0].Disposition != intake.Malformed || events[0].Why != why {
			t.Errorf("%s: %d events, the first %s because %q; want %q", name, len(events), events[0].Disposition, events[0].Why, why)
		}
	}
}

// What is counted without being read is what there is.
func TestLongest(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		``: 0, `{}`: 0, `[]`: 0, `[ ]`: 0, `[1]`: 1, `[1,2,3]`: 3, `{"a":[1,2],"b":{"c":1,"d":[{"x":1,"y":2},[],[1,2,3,4]]}}`: 4,
		`["a,b","\",","[,,,"]`: 3, `[[1,2],[3],4,5]`: 4, `{"a":1,"b":2}`: 0, `]]]}`: 0, `["`: 1, `[1,2`: 2, `"\`: 0, `[[[[`: 1,
	} {
		if got := longest([]byte(body)); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}
