package callback_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/callback"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// desk answers as a coordinator does.
type desk struct{ said []string }

func (d *desk) Complete(_ context.Context, token string, body []byte) (coordinator.Ack, error) {
	d.said = append(d.said, "complete "+token+" "+string(body))
	return d.ack(token, false)
}

func (d *desk) Fail(_ context.Context, token, why string) (coordinator.Ack, error) {
	d.said = append(d.said, "fail "+token+" "+why)
	return d.ack(token, true)
}

func (d *desk) ack(token string, failed bool) (coordinator.Ack, error) {
	switch token {
	case "genuine":
		return coordinator.Ack{At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Failed: failed}, nil
	case "declined":
		return coordinator.Ack{}, fmt.Errorf("complete film shop:7: %w: it names no film", coordinator.ErrDeclined)
	case "away":
		return coordinator.Ack{}, errors.New("dial tcp 10.0.0.7:5432: connection refused")
	default:
		return coordinator.Ack{}, coordinator.ErrUnknownToken
	}
}

// Every answer of the handler is as its documentation says; what does not exist is always answered alike, and what went wrong here
// is nothing that the other side reads.
func TestHandler(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	d := &desk{}
	mux := http.NewServeMux()
	mux.Handle("/callbacks/", http.StripPrefix("/callbacks", callback.Handler(d, log)))
	const none = `{"error":"no such callback"}` + "\n"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/callbacks/genuine", `{"id":"film"}`, 200, `{"receivedAt":"2026-11-26T12:00:00Z","outcome":"completed"}` + "\n"},
		{"POST", "/callbacks/genuine/fail", "no disk", 200, `{"receivedAt":"2026-11-26T12:00:00Z","outcome":"failed"}` + "\n"},
		{"POST", "/callbacks/forged", "{}", 404, none},
		{"POST", "/callbacks/forged/fail", "", 404, none},
		{"POST", "/callbacks/", "", 404, none},
		{"POST", "/callbacks/genuine/other", "", 404, none},
		{"POST", "/callbacks/declined", "{}", 422, `{"error":"it is declined as an answer: it names no film"}` + "\n"},
		{"POST", "/callbacks/away", "{}", 503, `{"error":"not taken; send it again"}` + "\n"},
		{"POST", "/callbacks/genuine", strings.Repeat("x", 64<<10), 200, ""},
		{"POST", "/callbacks/genuine", strings.Repeat("x", 64<<10+1), 413, `{"error":"the body has more than 64 KiB"}` + "\n"},
		{"POST", "/callbacks/genuine/", "{}", 200, ""},
		{"PUT", "/callbacks/genuine", "{}", 200, ""},
		{"PUT", "/callbacks/genuine/fail/", "no disk", 200, ""},
		{"PUT", "/callbacks/forged/", "{}", 404, none},
		{"GET", "/callbacks/genuine", "", 405, ""},
		{"HEAD", "/callbacks/genuine", "", 405, ""},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || c.want != "" && w.Body.String() != c.want {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, w.Code, w.Body, c.status, c.want)
		}
		if retry := w.Header().Get("Retry-After"); (retry != "") != (c.status == 503) {
			t.Errorf("%s: Retry-After %q", c.path, retry)
		}
	}
	if len(d.said) != 11 || d.said[0] != `complete genuine {"id":"film"}` || d.said[1] != "fail genuine no disk" {
		t.Errorf("the coordinator heard %.300q", d.said)
	}
}

// An answer is read as webhooks and the answers to our own requests are: unpacked, in UTF-8, without a byte order mark. What
// cannot be read is refused, and a bomb does not unfold.
func TestBodies(t *testing.T) {
	t.Parallel()
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		status int
		want   string
	}{
		"plain":                   {`{"id":1}`, nil, 200, `{"id":1}`},
		"gzip":                    {pack(`{"id":1}`), map[string]string{"Content-Encoding": "gzip"}, 200, `{"id":1}`},
		"says gzip, and is not":   {`{"id":1}`, map[string]string{"Content-Encoding": "gzip"}, 200, `{"id":1}`},
		"half of a gzip":          {pack(`{"id":1}`)[:20], map[string]string{"Content-Encoding": "gzip"}, 415, ""},
		"a mark":                  {"\uFEFF{}", nil, 200, `{}`},
		"a mark, packed":          {pack("\uFEFF{}"), map[string]string{"Content-Encoding": "gzip"}, 200, `{}`},
		"a charset":               {"caf\xe9", map[string]string{"Content-Type": "text/plain; charset=iso-8859-1"}, 200, "caf\u00e9"},
		"no charset":              {"x", map[string]string{"Content-Type": "text/plain; charset=klingon"}, 415, ""},
		"no encoding":             {"x", map[string]string{"Content-Encoding": "br"}, 415, ""},
		"a bomb":                  {pack(strings.Repeat("x", 1<<20)), map[string]string{"Content-Encoding": "gzip"}, 413, ""},
		"large in another letter": {strings.Repeat("\xe9", 40<<10), map[string]string{"Content-Type": "text/plain; charset=iso-8859-1"}, 413, ""},
	} {
		d := &desk{}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/genuine", strings.NewReader(c.body))
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		callback.Handler(d, nil).ServeHTTP(w, r)
		if heard := strings.TrimPrefix(strings.Join(d.said, ","), "complete genuine "); w.Code != c.status || heard != c.want {
			t.Errorf("%s: %d %s, and the coordinator heard %q; want %d and %q", name, w.Code, w.Body, heard, c.status, c.want)
		}
	}
	var v struct{ ID int64 }
	if err := callback.Into(saga.Message{Body: []byte(`{"id":105.0}`)}, &v); err != nil || v.ID != 105 {
		t.Errorf("a whole id is read as %d, %v", v.ID, err)
	}
}
