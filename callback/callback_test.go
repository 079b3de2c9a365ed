package callback_test

import (
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
	if len(d.said) != 7 || d.said[0] != `complete genuine {"id":"film"}` || d.said[1] != "fail genuine no disk" {
		t.Errorf("the coordinator heard %.300q", d.said)
	}
}
