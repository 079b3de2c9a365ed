package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// Neither secrets nor signatures, headers, bodies, or names that a stranger made up are in the
// log, in what is stored, or in a printed configuration.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	source := shop(t)
	d := open(t, nil, source)
	h := signed(t, "msg_1", paid)
	h.Set("Authorization", "Bearer canary-token")
	h.Set("Cookie", "session=canary-cookie")
	forged := paid + "canary-body"
	d.post(t, "shop", h, paid)
	d.post(t, "shop", h, forged)
	d.post(t, "canary-source", h, paid)
	d.send(t, http.MethodGet, "/webhooks/shop?canary-query=1", h, nil)
	d.inbox.accept = func(context.Context) error { return errDown }
	d.post(t, "shop", signed(t, "msg_2", paid), paid)

	stored, err := json.Marshal(d.inbox.stored())
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(source.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{
		"log": d.log.String(), "inbox": string(stored), "config as JSON": string(config),
		"config": fmt.Sprintf("%v %+v %#v %s", source.Secrets, source.Secrets, source.Secrets, source.Secrets[0]),
	}
	signature := strings.TrimPrefix(h.Get("Webhook-Signature"), "v1,")
	for where, text := range seen {
		if text == "" {
			t.Errorf("the %s is empty", where)
		}
		for _, leaked := range []string{"canary", signature, newSecret, oldSecret, newSecret[6:], "new secret for"} {
			if strings.Contains(text, leaked) {
				t.Errorf("the %s contains %q", where, leaked)
			}
		}
	}
	if !strings.Contains(d.log.String(), errDown.Error()) {
		t.Error("the log does not say what is wrong with the database")
	}
}

// One line per source and reason a minute, with how many were left out, however many come; the
// counter has all.
func TestRefusalsAreQuiet(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(noon.UnixNano())
	d := open(t, &Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}, shop(t))
	forge := func(n int) {
		for range n {
			d.post(t, "shop", signed(t, "msg_1", paid), paid+" ")
		}
	}
	lines := func() int { return strings.Count(d.log.String(), "wrong_signature") }
	forge(50)
	if n := lines(); n != 1 {
		t.Errorf("%d lines for 50 refusals; want 1", n)
	}
	d.post(t, "nobody", http.Header{}, paid)
	d.post(t, "nobody-else", http.Header{}, paid)
	if n := strings.Count(d.log.String(), "unknown_source"); n != 1 {
		t.Errorf("%d lines for two unknown sources; want 1", n)
	}
	now.Add(int64(logEvery))
	forge(1)
	if n := lines(); n != 2 || !strings.Contains(d.log.String(), "not_logged=49") {
		t.Errorf("%d lines after a minute, want 2:\n%s", n, d.log)
	}
	count := 0
	for _, why := range d.reasons() {
		if why == WrongSignature {
			count++
		}
	}
	if count != 51 {
		t.Errorf("%d counted; want 51", count)
	}
}

// Who has no log sees what was refused: it is counted in the database by source and reason, and a flood costs one call a second.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, log := &fakeInbox{}, logrus.New()
		log.SetOutput(io.Discard)
		r, err := newReceiver(in, []named{shop(t)}, &Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		forge := func(n int, path string) {
			for range n {
				r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, strings.NewReader(paid)))
			}
		}
		counted := func(want ...string) {
			t.Helper()
			time.Sleep(tallyEvery)
			synctest.Wait()
			slices.Sort(in.refused)
			if !slices.Equal(in.refused, want) {
				t.Errorf("counted %q; want %q", in.refused, want)
			}
			in.refused = nil
		}
		forge(500, "/webhooks/shop")
		forge(2, "/webhooks/of-a-stranger")
		counted("refused:no_signature shop 500", "refused:unknown_source  2")
		counted()
		forge(1, "/webhooks/shop")
		counted("refused:no_signature shop 1")
	})
}

// What net/http says about the connections of strangers, and about a handler that panics, is in our
// log, a line a minute of each kind, and not in Go's standard log. Not parallel: that one is the
// process's.
func TestServerLogs(t *testing.T) {
	var standard logbook
	log.SetOutput(&standard)
	defer log.SetOutput(os.Stderr)
	d := open(t, nil, shop(t))
	s := d.Server("127.0.0.1:0")
	s.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a handler beside it") })
	proxy := httptest.NewUnstartedServer(nil) // it has a certificate for tests
	proxy.Config = &s.Server
	proxy.StartTLS()
	defer proxy.Close()
	address := proxy.Listener.Addr().String()
	for i := range 100 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 0:
			fmt.Fprint(c, "GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n")
		case 1:
			_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "canary.example", NextProtos: []string{"canary"}}).HandshakeContext(t.Context())
		case 2:
			_ = tls.Client(c, &tls.Config{ServerName: "canary.example"}).HandshakeContext(t.Context()) // it does not believe our certificate
		case 3:
			fmt.Fprint(c, "canary; it does not wait")
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1000)) // until it was answered
		c.Close()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := proxy.Client().Do(req); err == nil {
		r.Body.Close()
	}
	proxy.Close()
	said := d.log.String()
	if standard.String() != "" || strings.Contains(said, "canary") {
		t.Errorf("the standard log has %q, and ours\n%s", standard.String(), said)
	}
	if n := strings.Count(said, "a TLS handshake failed"); n != 1 {
		t.Errorf("%d lines about handshakes; want 1:\n%s", n, said)
	}
	if n := strings.Count(said, "a handler beside it"); n != 1 {
		t.Errorf("%d lines about the panic; want 1:\n%s", n, said)
	}
}

// The words of crypto/tls are kept without what the other side sent.
func TestHandshakeWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http: TLS handshake error from 192.0.2.1:5: tls: first record does not look like a TLS handshake":                     "a TLS handshake failed: first record does not look like a TLS handshake",
		"http: TLS handshake error from [::1]:5: remote error: tls: unknown certificate authority":                             "a TLS handshake failed: unknown certificate authority",
		`http: TLS handshake error from 192.0.2.1:5: tls: client requested unsupported application protocols (["canary"])`:     "a TLS handshake failed: client requested unsupported application protocols",
		"http: TLS handshake error from 192.0.2.1:5: tls: failed to verify certificate: x509: certificate is valid for canary": "a TLS handshake failed: failed to verify certificate",
		`http: TLS handshake error from 192.0.2.1:5: acme/autocert: host "canary.example" not configured in HostWhitelist`:     "a TLS handshake failed",
		"http: TLS handshake error from 192.0.2.1:5: EOF":                                                                      "a TLS handshake failed",
		"http: Accept error: accept tcp [::]:443: accept4: too many open files; retrying in 5ms":                               "http: Accept error: accept tcp [::]:443: accept4: too many open files; retrying in 5ms",
	} {
		d := open(t, nil, shop(t))
		fmt.Fprintln(serverLog{d.Receiver.log}, in)
		if got := d.log.String(); !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("%s\nis logged as %s", in, got)
		}
	}
}

// What an unknown source is called by is never passed on: it would be a label without bound.
func TestStrangersHaveNoName(t *testing.T) {
	t.Parallel()
	var sources []string
	d := open(t, nil, shop(t))
	d.opts.Listener.Refused = func(source string, _ Refusal, _ int) { sources = append(sources, source) }
	for i := range 3 {
		d.post(t, fmt.Sprint("made-up-", i), http.Header{}, paid)
	}
	d.post(t, "shop", http.Header{}, paid)
	if !slices.Equal(sources, []string{"", "", "", "shop"}) {
		t.Errorf("counted by %q", sources)
	}
}
