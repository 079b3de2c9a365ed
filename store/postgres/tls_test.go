package postgres_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/amends-dev/amends/store/postgres"
)

// A server without TLS, as a local one is, and an address that asks for it: the error says what to
// add to the address.
func TestWithoutTLS(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := io.ReadFull(c, make([]byte, 8)); err == nil { // may it be TLS?
				_, _ = c.Write([]byte("N"))
			}
			_ = c.Close()
		}
	}()
	for _, asks := range []string{"", "?sslmode=require"} {
		_, err := postgres.Open(t.Context(), "postgres://app@"+listener.Addr().String()+"/db"+asks, nil)
		if err == nil || !strings.Contains(err.Error(), "add sslmode=disable to the address") {
			t.Errorf("%q: %v", asks, err)
		}
	}
}
