package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// What an endpoint returns is what the caller gets: a status and a JSON body,
// a refusal with its code, or 500 for any other error.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   any
		err    error
		want   int
		text   string
	}{
		{status: 201, body: map[string]int{"n": 1}, want: 201, text: `{"n":1}`},
		{status: 204, want: 204},
		{err: rest.Refuse(422, "no_tea", "out of %s", "tea"), want: 422, text: `{"code":"no_tea","message":"out of tea"}`},
		{err: errors.New("disk full"), want: 500, text: `{"code":"internal","message":"disk full"}`},
	} {
		w := httptest.NewRecorder()
		rest.Endpoint(func(*http.Request) (int, any, error) { return c.status, c.body, c.err }).
			ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		if w.Code != c.want || w.Body.String() != c.text {
			t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.want, c.text)
		}
	}
}

// Rule: an endpoint goes on when its caller has gone, and not beyond what Until says.
func TestAnEndpointLasts(t *testing.T) {
	t.Parallel()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	until := time.Now().Add(time.Hour)
	for name, ctx := range map[string]context.Context{"for ever": gone, "until then": rest.Until(gone, until), "no more": rest.Until(gone, time.Now())} {
		rest.Endpoint(func(r *http.Request) (int, any, error) {
			ends, bounded := r.Context().Deadline()
			switch err := r.Context().Err(); {
			case bounded != (name != "for ever"), (err != nil) != (name == "no more"), name == "until then" && !ends.Equal(until):
				t.Errorf("%s: it ends at %s (%v), and says %v", name, ends, bounded, err)
			}
			return http.StatusOK, nil, nil
		}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
	}
}

// Free addresses differ, and a server can listen at each.
func TestFreeAddresses(t *testing.T) {
	t.Parallel()
	found, err := rest.FreeAddresses(t.Context(), 3)
	if err != nil || len(found) != 3 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, address := range found {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // an address that is there twice cannot be listened at twice
	}
}

// What is not JSON is refused with 400.
func TestRead(t *testing.T) {
	t.Parallel()
	var v map[string]int
	read := func(body string) error {
		return rest.Read(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), &v)
	}
	if err := read(`{"n":1}`); err != nil || v["n"] != 1 {
		t.Errorf("read %v, %v", v, err)
	}
	var refused *rest.Error
	if err := read(`{"n":`); !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
		t.Errorf("got %v, want a refusal", err)
	}
}

// The caller hangs up: the endpoint's context lives on.
func TestCallerHangsUp(t *testing.T) {
	t.Parallel()
	hungUp, ended := make(chan struct{}), make(chan error, 1)
	endpoint := rest.Endpoint(func(r *http.Request) (int, any, error) {
		<-hungUp
		ended <- r.Context().Err()
		return http.StatusOK, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	server, err := rest.Listen(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // the server has noticed
		close(hungUp)
		endpoint.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
	if err := <-ended; err != nil {
		t.Errorf("the endpoint's context ended with its caller: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// The errors of the wire are the errors of Go.
func TestErrorTravels(t *testing.T) {
	t.Parallel()
	var refused *rest.Error
	if err := rest.Refuse(409, "taken", "seat %d is taken", 4); !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	wire, err := json.Marshal(refused)
	if err != nil {
		t.Fatal(err)
	}
	var read rest.Error
	if err := json.Unmarshal(wire, &read); err != nil || read.Error() != "taken: seat 4 is taken" {
		t.Errorf("read %v, %v", read.Error(), err)
	}
}
