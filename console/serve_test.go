package console

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/serving"
)

// A proxy on this machine proves itself: another user of the machine, who does not know its secret, is no one.
func TestAProxyProvesItself(t *testing.T) {
	t.Parallel()
	who := proven("sixteen bytes of it", Header("X-User", "X-Roles", netip.MustParsePrefix("127.0.0.1/32")))
	for secret, want := range map[string]string{"sixteen bytes of it": "maria", "": "", "guessed": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:4711"
		r.Header.Set("X-User", "maria")
		r.Header.Set("X-Roles", "reader")
		if secret != "" {
			r.Header.Set("X-Amends-Proxy", secret)
		}
		if p := who(r); p.Name != want {
			t.Errorf("with the secret %q it is %v, want %q", secret, p, want)
		}
	}
}

// A browser that has connected and asked nothing yet, as browsers do ahead of time, makes no stop a failure.
func TestServeStopsBesideAConnectionThatAsksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, &serving.Console{DB: w.db, Listener: at, Own: "you", Ready: func(url string) error { ready <- url; return nil }}, nil)
	}()
	<-ready
	ahead, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ahead.Close() }()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A check reads the whole ledger: one is under way at a time, and who waits for it in vain is told.
func TestOneCheckAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	h := &handler{db: w.db, desk: desk.New(w.db, ""), log: logrus.StandardLogger(), now: time.Now, checking: make(chan struct{}, 1)}
	check := func(ctx context.Context) *problem {
		_, wrong := h.run(ctx, &Person{"rita", []string{Reader}}, at(http.MethodGet, "/check"), &said{})
		return wrong
	}
	h.checking <- struct{}{} // another one
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if wrong := check(gone); wrong == nil || wrong.Status != http.StatusServiceUnavailable || !strings.Contains(wrong.Detail, "another check or report is under way") {
		t.Errorf("beside another one: %v", wrong)
	}
	<-h.checking
	if wrong := check(t.Context()); wrong != nil || len(h.checking) > 0 {
		t.Errorf("behind it: %v", wrong)
	}
}
