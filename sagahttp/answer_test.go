package sagahttp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

type invoice struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
}

func TestAnswerIsDecoded(t *testing.T) {
	t.Parallel()
	w := answer(t, "201 Created\r\nLocation: /invoices/inv_5530", `{"id":"inv_5530","total":42,"extra":[]}`)
	var made invoice
	resp, err := dial(t, w.URL(), nil).Do(t.Context(), sagahttp.Request{Method: "POST", Body: invoice{Total: 42}, Into: &made})
	if err != nil {
		t.Fatal(err)
	}
	if made != (invoice{"inv_5530", 42}) || resp.Status != 201 || resp.Header.Get("Location") != "/invoices/inv_5530" {
		t.Errorf("decoded %+v from %v", made, resp)
	}
	if !bytes.HasPrefix(resp.Body, []byte(`{"id"`)) {
		t.Errorf("the response does not hold the body")
	}
}

// "200 with an error in the body" is for the action to judge: to the client it is an answer.
func TestErrorInTheBodyIsTheActionsBusiness(t *testing.T) {
	t.Parallel()
	w := answer(t, "200 OK", `{"error":["UserError",["no such customer"]]}`)
	var got struct{ Error []any }
	if _, err := dial(t, w.URL(), nil).Do(t.Context(), sagahttp.Request{Method: "POST", Into: &got}); err != nil || len(got.Error) != 2 {
		t.Errorf("error %v, decoded %v", err, got)
	}
}

// A success that cannot be used is neither a success nor a refusal: its effect happened, its id is
// not known.
func TestUnreadableSuccessIsUnknown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		body string
		into any
		want error
		keep int
	}{
		{"not JSON", "<html>", new(invoice), sagahttp.ErrNotJSON, 6},
		{"two values", "{}{}", new(invoice), sagahttp.ErrNotJSON, 4},
		{"other shape", `{"id":5}`, new(invoice), sagahttp.ErrNotJSON, 8},
		{"one byte too large", strings.Repeat(" ", 98) + "{}1", new(invoice), sagahttp.ErrTooLarge, 100},
		{"too large, and nobody decodes it", strings.Repeat("x", 4000), nil, sagahttp.ErrTooLarge, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := answer(t, "201 Created\r\nLocation: /invoices/5", tc.body)
			ctx, _ := gated(t, nil)
			resp, err := dial(t, w.URL(), &sagahttp.Options{MaxAnswer: 100}).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: tc.into})
			wantClass(t, err, saga.Unknown)
			if !errors.Is(err, tc.want) || sagahttp.Status(err) != 0 {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if !strings.Contains(err.Error(), "POST /x: answered 201 Created: the body is") {
				t.Errorf("error %q does not tell what happened", err)
			}
			if resp == nil || resp.Header.Get("Location") != "/invoices/5" || len(resp.Body) != tc.keep {
				t.Errorf("the action cannot finish from the header: %v with %d bytes", resp, len(resp.Body))
			}
		})
	}
}

// A write that is answered with an empty success is done, and decodes nothing. To a read, which wants
// to know something, it says nothing.
func TestAnEmptySuccess(t *testing.T) {
	t.Parallel()
	for status, body := range map[string]string{"204 No Content": "", "200 OK": " \n"} {
		w := answer(t, status, body)
		got := invoice{ID: "before"}
		ctx, _ := gated(t, nil)
		if _, err := dial(t, w.URL(), nil).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: &got}); err != nil || got.ID != "before" {
			t.Errorf("%s: error %v, decoded %v", status, err, got)
		}
		_, err := dial(t, w.URL(), nil).Do(t.Context(), sagahttp.Request{Method: "GET", Path: "/x", Into: &got})
		if wantClass(t, err, saga.Unsent); !errors.Is(err, sagahttp.ErrNotJSON) {
			t.Errorf("a read answered %s: %v", status, err)
		}
	}
}

func TestAnswerUpToTheLimit(t *testing.T) {
	t.Parallel()
	w := answer(t, "200 OK", strings.Repeat(" ", 98)+"{}")
	if _, err := dial(t, w.URL(), &sagahttp.Options{MaxAnswer: 100}).Do(t.Context(), sagahttp.Request{Method: "GET", Into: new(invoice)}); err != nil {
		t.Error(err)
	}
}

// The status of a refusal says it all, even when its body is too large or cut.
func TestRefusalWithAnUnusableBody(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"too large": "HTTP/1.1 422 X\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 4000),
		"cut":       "HTTP/1.1 422 X\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 50),
	} {
		w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool { say(c, raw); return false })
		_, err := dial(t, w.URL(), &sagahttp.Options{MaxAnswer: 100}).Do(t.Context(), post)
		wantClass(t, err, saga.Refused)
		var status *sagahttp.StatusError
		if !errors.As(err, &status) || len(status.Body) == 0 || len(status.Body) > 100 {
			t.Errorf("%s: the action sees %d bytes", name, len(status.Body))
		}
	}
}

func TestAnswerHeaderLimit(t *testing.T) {
	t.Parallel()
	w := answer(t, "200 OK\r\nX-Long: "+strings.Repeat("x", 9000), "{}")
	_, err := dial(t, w.URL(), &sagahttp.Options{MaxHeader: 2000}).Do(t.Context(), post)
	wantClass(t, err, saga.Unknown)
	if _, err := dial(t, w.URL(), nil).Do(t.Context(), post); err != nil {
		t.Errorf("within the limit: %v", err)
	}
}

func TestRequestLimit(t *testing.T) {
	t.Parallel()
	w := serve(t, yes)
	c := dial(t, w.URL(), &sagahttp.Options{MaxRequest: 100})
	if _, err := c.Do(t.Context(), sagahttp.Request{Method: "POST", Body: make([]byte, 100)}); err != nil {
		t.Error(err)
	}
	_, err := c.Do(t.Context(), sagahttp.Request{Method: "POST", Body: make([]byte, 101)})
	wantClass(t, err, saga.Unsent)
	if !strings.Contains(err.Error(), "101 bytes, more than the 100") {
		t.Error(err)
	}
	if n := len(w.seen()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}

// A large answer comes back in a bounded piece, and its connection is not used again.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
		say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for say(c, "5\r\nabcde\r\n") {
			continue // until the client hangs up
		}
		return false
	})
	resp, err := dial(t, w.URL(), nil).Do(t.Context(), sagahttp.Request{Method: "GET"})
	if !errors.Is(err, sagahttp.ErrTooLarge) || len(resp.Body) != 1<<20 {
		t.Errorf("got %v", err)
	}
}

type identified struct {
	ID string `json:"id"`
}

func (i identified) ExternalID() string { return i.ID }

// A success without the one thing it was asked for is not done: the outcome is unknown, and says
// why. The destination works all the same.
func TestSuccessWithoutAnID(t *testing.T) {
	t.Parallel()
	for body, id := range map[string]string{
		`{"id":"inv_1"}`: "inv_1",
		`{}`:             "", `null`: "", `{"data":{"id":"inv_1"}}`: "", ``: "", ` `: "", `{"id":""}`: "", `{"id":null}`: "", `{"uuid":"inv_1"}`: "",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			c := dial(t, answer(t, "200 OK", body).URL(), nil)
			d, err := saga.Define("s", 1, saga.Do("a", func(ctx context.Context, _ saga.Call[string]) (made identified, err error) {
				_, err = c.Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: &made})
				return made, err
			}).Idempotent().NoUndo("a test"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, gate := gated(t, nil)
			o := d.Act(ctx, &program.Invocation{Step: "a", Direction: saga.Forward, Attempt: 1, Input: []byte(`"x"`), Gate: gate})
			if id != "" {
				if !o.Done() || o.ExternalID != id {
					t.Errorf("%+v", o)
				}
				return
			}
			if o.Class != saga.Unknown || !o.Nameless || !strings.Contains(o.Error, "the result has no external id") {
				t.Errorf("%+v", o)
			}
		})
	}
}
