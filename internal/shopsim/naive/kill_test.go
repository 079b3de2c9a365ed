package naive_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// killAfter stands in front of the shop and stops the sync at its limit-th
// mark: at odd limits before the mark reaches the shop, at even ones after.
type killAfter struct {
	limit int
	kill  context.CancelFunc
	marks atomic.Int32
}

func (k *killAfter) listen(t *testing.T, shopURL string) string {
	t.Helper()
	target, err := url.Parse(shopURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && int(k.marks.Add(1)) == k.limit {
			defer k.kill()
			if k.limit%2 == 1 {
				k.kill()
				panic(http.ErrAbortHandler)
			}
			r = r.WithContext(context.WithoutCancel(r.Context()))
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
