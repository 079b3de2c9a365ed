package console

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
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
