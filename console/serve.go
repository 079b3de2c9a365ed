package console

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/serving"
)

// ownValid is for how long the token holds that a process gives to who started it.
const ownValid = 365 * 24 * time.Hour

// Serve is what "amends serve" does, and for programs of this module alone; others mount [New].
// metrics answers /metrics. It ends when ctx does, or when the listener fails.
func Serve(ctx context.Context, s *serving.Console, metrics http.Handler) error {
	o := &Options{Path: s.Path, Hosts: s.Hosts, Metrics: metrics}
	var err error
	if o.Tokens, err = OpenTokens(s.Tokens); err != nil {
		return err
	}
	if at, ok := s.Listener.Addr().(*net.TCPAddr); ok && !at.IP.IsUnspecified() {
		o.Hosts = append(slices.Clone(o.Hosts), at.IP.String()) // the address that is printed
	}
	if s.User != "" {
		o.Who = proven(s.Secret, Header(s.User, s.Roles, s.From...))
	}
	pages, err := New(s.DB, o)
	if err != nil {
		return err
	}
	url := "http://" + named(s.Listener.Addr()) + pathOf(s.Path) + "/"
	if s.Own != "" {
		token, err := o.Tokens.Issue(Person{Name: s.Own, Roles: []string{Admin}}, ownValid)
		if err != nil {
			return err
		}
		url += "sign-in?token=" + token
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, WriteTimeout: 2 * patience, MaxHeaderBytes: 64 << 10}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(wait)
	}()
	if err := s.Ready(url); err != nil {
		return err
	}
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// proven is who asks through a proxy that sends its secret; without one, the proxy's address has to do.
func proven(secret string, who func(*http.Request) Person) func(*http.Request) Person {
	return func(r *http.Request) Person {
		if secret != "" && subtle.ConstantTimeCompare([]byte(digest(secret)), []byte(digest(r.Header.Get("X-Amends-Proxy")))) == 0 {
			return Person{}
		}
		return who(r)
	}
}

// named is an address as a browser on this machine asks for it.
func named(a net.Addr) string {
	at, ok := a.(*net.TCPAddr)
	if ok && at.IP.IsUnspecified() {
		at = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.Port}
		return at.String()
	}
	return a.String()
}
