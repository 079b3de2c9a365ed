package sagahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// answer returns a server that gives every request this status line and header.
func answer(t *testing.T, head string, body string) *wire {
	t.Helper()
	return serve(t, func(_ *wire, c net.Conn, _ arrival) bool {
		return say(c, "HTTP/1.1 "+head+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	})
}

// The table of the package comment, line by line.
func TestClassOfStatus(t *testing.T) {
	t.Parallel()
	const ok = saga.Class("ok")
	trust503 := &sagahttp.Options{NotExecuted: []int{429, 503}}
	trustNone := &sagahttp.Options{NotExecuted: []int{}}
	for _, tc := range []struct {
		because string
		status  int
		opts    *sagahttp.Options
		want    saga.Class
		noKey   saga.Class // where it differs
	}{
		{"2xx: done", 200, nil, ok, ""},
		{"2xx: done", 201, nil, ok, ""},
		{"2xx: done", 202, nil, ok, ""},
		{"2xx: done", 299, nil, ok, ""},
		{"429: listed by default", 429, nil, saga.Unsent, ""},
		{"429: no longer listed", 429, trustNone, saga.Unknown, ""},
		{"401: the credentials were refused, not the order", 401, nil, saga.Unsent, ""},
		{"403: the credentials were refused, not the order", 403, nil, saga.Unsent, ""},
		{"407: the credentials were refused, not the order", 407, nil, saga.Unsent, ""},
		{"421: defined as not here", 421, nil, saga.Unsent, ""},
		{"423: defined as locked", 423, nil, saga.Unsent, ""},
		{"425: defined as too early", 425, nil, saga.Unsent, ""},
		{"408: gave up on a request it may have passed on", 408, nil, saga.Unknown, ""},
		{"499: gave up on a request it may have passed on", 499, nil, saga.Unknown, ""},
		{"409: another attempt under this key may be running", 409, nil, saga.Unknown, saga.Refused},
		{"412: a concurrent change, and no refusal", 412, nil, saga.Unknown, ""},
		{"other 4xx: refused", 400, nil, saga.Refused, ""},
		{"other 4xx: refused", 402, nil, saga.Refused, ""},
		{"other 4xx: refused", 404, nil, saga.Refused, ""},
		{"other 4xx: refused", 410, nil, saga.Refused, ""},
		{"other 4xx: refused", 413, nil, saga.Refused, ""},
		{"other 4xx: refused", 422, nil, saga.Refused, ""},
		{"503: unknown by default", 503, nil, saga.Unknown, ""},
		{"503: its contract says not executed", 503, trust503, saga.Unsent, ""},
		{"other 5xx: unknown", 500, trust503, saga.Unknown, ""},
		{"other 5xx: unknown", 502, nil, saga.Unknown, ""},
		{"other 5xx: unknown", 504, nil, saga.Unknown, ""},
		{"3xx: proves nothing", 303, nil, saga.Unknown, ""},
		{"3xx: a destination known to redirect without acting", 308, &sagahttp.Options{NotExecuted: []int{308}}, saga.Unsent, ""},
		{"no such status: unknown", 600, nil, saga.Unknown, ""},
		{"101: nobody asked for another protocol", 101, nil, saga.Unknown, ""},
	} {
		for _, key := range []string{"k1", ""} {
			t.Run(fmt.Sprintf("%d with key %q", tc.status, key), func(t *testing.T) {
				t.Parallel()
				want := tc.want
				if key == "" && tc.noKey != "" {
					want = tc.noKey
				}
				w := answer(t, strconv.Itoa(tc.status)+" Text", "")
				ctx, _ := gated(t, nil)
				resp, err := dial(t, w.URL(), tc.opts).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Key: key})
				if resp == nil || resp.Status != tc.status {
					t.Fatalf("%s: response %v beside error %v", tc.because, resp, err)
				}
				if want == ok {
					if err != nil {
						t.Fatalf("%s: %v", tc.because, err)
					}
					return
				}
				if got, _ := saga.Classify(err); err == nil || got != want {
					t.Errorf("%s: class %s, want %s (%v)", tc.because, got, want, err)
				}
				if sagahttp.Status(err) != tc.status {
					t.Errorf("Status is %d, want %d", sagahttp.Status(err), tc.status)
				}
			})
		}
	}
}

// "400, 422, with a key: unknown, where the answer's words are about idempotency". A refusal that only echoes the key stays one.
func TestOfTheKey(t *testing.T) {
	t.Parallel()
	const stripe = `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests can only be used with the same parameters they were first used with."}}`
	for _, tc := range []struct {
		head, body, key string
		want            saga.Class
	}{
		{"400 Bad Request", stripe, "k", saga.Unknown},
		{"400 Bad Request", `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`, "k", saga.Unknown},
		{"422 Unprocessable", `{"type":"https://example.org/problems","title":"Idempotency-Key is already used"}`, "k", saga.Unknown},
		{"422 Unprocessable", "this idempotency key was used with another payload", "k", saga.Unknown},
		{"400 Bad Request", stripe, "", saga.Refused},
		{"402 Payment Required", `{"error":{"code":"card_declined"}}`, "k", saga.Refused},
		{"422 Unprocessable", `{"message":"no such customer","idempotency_key":"k"}`, "k", saga.Refused},
	} {
		w := answer(t, tc.head, tc.body)
		ctx, _ := gated(t, nil)
		_, err := dial(t, w.URL(), nil).Do(ctx, sagahttp.Request{Method: "POST", Path: "/charges", Key: tc.key})
		if got, _ := saga.Classify(err); got != tc.want {
			t.Errorf("%s %s with key %q: %s, want %s (%v)", tc.head, tc.body, tc.key, got, tc.want, err)
		}
		if says := err != nil && strings.Contains(err.Error(), "Look what that one made"); says != (tc.want == saga.Unknown) {
			t.Errorf("%s: %v", tc.head, err)
		}
	}
}

// "Options.SavedRefusals, with a key: refused for good, and so is every request under the key". So does an answer that says so itself.
func TestSavedUnderTheKey(t *testing.T) {
	t.Parallel()
	stripe := &sagahttp.Options{SavedRefusals: []int{402}}
	for _, tc := range []struct {
		head, key string
		opts      *sagahttp.Options
		want      saga.Class
	}{
		{"402 Payment Required", "k", stripe, saga.RefusedKey},
		{"402 Payment Required", "", stripe, saga.Refused},
		{"402 Payment Required", "k", nil, saga.Refused},
		{"400 Bad Request", "k", stripe, saga.Refused},
		{"402 Payment Required\r\nIdempotent-Replayed: true", "k", nil, saga.RefusedKey},
		{"401 Unauthorized\r\nIdempotent-Replayed: true", "k", nil, saga.Unsent},
		{"500 Oops\r\nIdempotent-Replayed: true", "k", nil, saga.Unknown},
	} {
		w := answer(t, tc.head, `{"error":{"code":"card_declined","message":"Your card was declined."}}`)
		ctx, _ := gated(t, nil)
		_, err := dial(t, w.URL(), tc.opts).Do(ctx, sagahttp.Request{Method: "POST", Path: "/charges", Key: tc.key})
		if got, _ := saga.Classify(err); got != tc.want {
			t.Errorf("%s with key %q: %s, want %s (%v)", tc.head, tc.key, got, tc.want, err)
		}
	}
	if _, err := sagahttp.New("https://pay.example", &sagahttp.Options{SavedRefusals: []int{503}}); err == nil {
		t.Error("a 503 is saved as a refusal")
	}
}

// "404, 410, to an update: gone". Every other answer, a read, and a request that is no update are as
// they were.
func TestGone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status  int
		r       sagahttp.Request
		want    saga.Class
		because string
	}{
		{404, sagahttp.Request{Method: "PUT", Updates: true}, saga.Gone, "what was left is not there"},
		{410, sagahttp.Request{Method: "PATCH", Updates: true, Key: "k"}, saga.Gone, "the same"},
		{404, sagahttp.Request{Method: "PUT"}, saga.Refused, "it is no update of what was left"},
		{404, sagahttp.Request{Method: "GET", Updates: true}, saga.Refused, "a read updates nothing"},
		{422, sagahttp.Request{Method: "PUT", Updates: true}, saga.Refused, "it is there"},
		{409, sagahttp.Request{Method: "PUT", Updates: true, Key: "k"}, saga.Unknown, "it is there"},
		{401, sagahttp.Request{Method: "PUT", Updates: true}, saga.Unsent, "the credentials were refused"},
		{500, sagahttp.Request{Method: "PUT", Updates: true}, saga.Unknown, "nothing is known"},
	} {
		t.Run(fmt.Sprintf("%d to %s", tc.status, tc.r.Method), func(t *testing.T) {
			t.Parallel()
			w := answer(t, strconv.Itoa(tc.status)+" Text", "")
			ctx, _ := gated(t, nil)
			tc.r.Path = "/invoices/7"
			_, err := dial(t, w.URL(), nil).Do(ctx, tc.r)
			if got, _ := saga.Classify(err); err == nil || got != tc.want {
				t.Errorf("%s: class %s, want %s (%v)", tc.because, got, tc.want, err)
			}
		})
	}
	t.Run("what is to be undone is not there", func(t *testing.T) {
		t.Parallel()
		for status, options := range map[string]*sagahttp.Options{"404 Text": nil, "410 Text": nil, "404 Deploying": {NotExecuted: []int{404}}, "422 Text": nil} {
			w := answer(t, status, "")
			ctx, _ := gated(t, nil)
			_, err := dial(t, w.URL(), options).Do(ctx, sagahttp.Request{Method: "DELETE", Path: "/invoices/7", Undoes: true})
			if done := status == "404 Text" || status == "410 Text"; (err == nil) != done {
				t.Errorf("%s: %v", status, err)
			}
		}
	})
	t.Run("a destination that promises that its 404 did nothing", func(t *testing.T) {
		t.Parallel()
		w := answer(t, "404 Text", "")
		ctx, _ := gated(t, nil)
		_, err := dial(t, w.URL(), &sagahttp.Options{NotExecuted: []int{404}}).Do(ctx, sagahttp.Request{Method: "PUT", Path: "/invoices/7", Updates: true})
		if got, _ := saga.Classify(err); got != saga.Unsent {
			t.Errorf("class %s", got)
		}
	})
}

func TestStatusOfOtherErrors(t *testing.T) {
	t.Parallel()
	if s := sagahttp.Status(errors.New("x")); s != 0 {
		t.Errorf("Status of an error without an answer is %d", s)
	}
	if s := sagahttp.Status(nil); s != 0 {
		t.Errorf("Status of nil is %d", s)
	}
}

// protocol.md §7: "429 with Retry-After: honoured"; and on every other answer that is not a
// success.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Date: Wed, 21 Oct 2026 07:28:00 GMT\r\n" // far from this machine's clock, on purpose
	for _, tc := range []struct {
		head string
		want time.Duration
	}{
		{"429 X\r\nRetry-After: 120", 2 * time.Minute},
		{"503 X\r\nRetry-After: 7", 7 * time.Second},
		{"422 X\r\nRetry-After: 7", 7 * time.Second},
		{"429 X\r\nRetry-After: 2.0", 2 * time.Second},
		{"429 X\r\nRetry-After: 0.25", 250 * time.Millisecond},
		{"429 X\r\n" + date + "Retry-After: Wed, 21 Oct 2026 07:28:30 GMT", 30 * time.Second},
		{"429 X\r\n" + date + "Retry-After: Wed, 21 Oct 2026 07:27:30 GMT", 0},
		{"429 X\r\n" + date + "Retry-After: Thu, 21 Oct 2027 07:28:00 GMT", time.Hour},
		{"429 X\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT", 0},
		{"429 X\r\nRetry-After: 86400", time.Hour},
		// 90 s after the answer's own date, as a point in time.
		{"429 X\r\n" + date + "Retry-After: 1792567770", 90 * time.Second},
		{"429 X\r\n" + date + "Retry-After: 1792567770.5", 90*time.Second + 500*time.Millisecond},
		{"429 X\r\n" + date + "Retry-After: 1792567770000", 90 * time.Second},
		{"503 X\r\n" + date + "Retry-After: 1792567770000000", 90 * time.Second},
		{"503 X\r\n" + date + "Retry-After: 1792567770000000000", 90 * time.Second},
		{"429 X\r\n" + date + "Retry-After: 2026-10-21T07:29:30Z", 90 * time.Second},
		{"429 X\r\n" + date + "Retry-After: 2026-10-21T09:29:30+02:00", 90 * time.Second},
		{"429 X\r\n" + date + "Retry-After: 1792560000", 0},             // over
		{"429 X\r\n" + date + "Retry-After: 1892567770", time.Hour},     // in three years
		{"429 X\r\n" + date + "Retry-After: 20261021072930", time.Hour}, // neither
		{"429 X\r\nRetry-After: 99999999999999999999999999", time.Hour},
		{"429 X\r\nRetry-After: " + strings.Repeat("9", 400), time.Hour},
		{"429 X\r\nRetry-After: 0", 0},
		{"429 X\r\nRetry-After: -5", 0},
		{"429 X\r\nRetry-After: 1e3", 0},
		{"429 X\r\nRetry-After: NaN", 0},
		{"429 X\r\nRetry-After: ..", 0},
		{"429 X\r\nRetry-After: soon", 0},
		{"429 X\r\nRetry-After:", 0},
		{"429 X", 0},
	} {
		w := answer(t, tc.head, "")
		_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
		if _, got := saga.Classify(err); err == nil || got != tc.want {
			t.Errorf("%.80q: wait %v, want %v (%v)", tc.head, got, tc.want, err)
		}
	}
}

// A wait does not change what is known about the effect.
func TestRetryAfterKeepsTheClass(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]saga.Class{"429 X": saga.Unsent, "503 X": saga.Unknown, "422 X": saga.Refused} {
		w := answer(t, head+"\r\nRetry-After: 5", "")
		_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
		wantClass(t, err, want)
	}
}

// Only a 429 and a 503 speak of the whole destination; any other Retry-After is about one
// request. The mark changes neither class nor wait.
func TestHoldBack(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]bool{
		"502 X": false, "504 X": false, "408 X": false, "499 X": false, "400 X": false,
		"429 X\r\nRetry-After: 5": true, "503 X\r\nRetry-After: 5": true, "503 X": true,
		"409 X\r\nRetry-After: 5": false, "422 X\r\nRetry-After: 5": false, "500 X\r\nRetry-After: 5": false, "423 X": false,
	} {
		w := answer(t, head, "")
		c := dial(t, w.URL(), nil)
		d, err := saga.Define("s", 1, saga.Do("a", func(ctx context.Context, _ saga.Call[string]) (string, error) {
			_, err := c.Do(ctx, post)
			return "", fmt.Errorf("the books: %w", err)
		}).Idempotent().NoUndo("a test").Find(func(ctx context.Context, _ saga.Call[string]) (saga.Finding[string], error) {
			_, err := c.Do(ctx, post)
			return saga.NotFound[string](), err
		}))
		if err != nil {
			t.Fatal(err)
		}
		in := func() *program.Invocation {
			return &program.Invocation{Step: "a", Direction: saga.Forward, Attempt: 1, Input: []byte(`"x"`)}
		}
		gone := strings.Contains("502 504 408 499", head[:3]) // who asked for us has not waited
		if o := d.Act(t.Context(), in()); o.HoldBack != want || o.Answered == gone {
			t.Errorf("an attempt that is answered %q: %+v", head, o)
		}
		if f := d.Look(t.Context(), in()); f.HoldBack != want {
			t.Errorf("a lookup that is answered %q: %+v", head, f)
		}
	}
}

// protocol.md §7: "the action classifies by body". The mark it adds wins over the client's.
func TestActionReclassifiesByBody(t *testing.T) {
	t.Parallel()
	w := answer(t, "400 Bad Request\r\nX-Code: lock", `{"code":"lock_timeout"}`)
	_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
	wantClass(t, err, saga.Refused)

	var status *sagahttp.StatusError
	if !errors.As(err, &status) || string(status.Body) != `{"code":"lock_timeout"}` || status.Header.Get("X-Code") != "lock" {
		t.Fatalf("the action cannot see the answer: %+v", status)
	}
	wantClass(t, saga.NotSent(err), saga.Unsent)
}

// Errors and responses name status and request id; they never print what may be personal data or a
// secret.
func TestNothingSecretIsPrinted(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	for _, tc := range []struct {
		name string
		raw  string
		says string
	}{
		{"refusal", "HTTP/1.1 422 " + canary + "\r\nX-Request-Id: req_1\r\nSet-Cookie: " + canary + "\r\nContent-Length: 11\r\n\r\n" + canary, "POST /invoices answered 422 Unprocessable Entity (request id req_1)"},
		{"request id that is none", "HTTP/1.1 500 X\r\nX-Request-Id: <" + canary + ">\r\nContent-Length: 0\r\n\r\n", "answered 500 Internal Server Error"},
		{"redirect", "HTTP/1.1 302 X\r\nLocation: /?token=" + canary + "\r\nContent-Length: 0\r\n\r\n", "redirects are not followed"},
		{"credentials", "HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n", "check the client's credentials"},
		{"success that is not JSON", "HTTP/1.1 200 X\r\nContent-Length: 11\r\n\r\n" + canary, "not the JSON"},
		{"success of another shape", "HTTP/1.1 200 X\r\nContent-Length: 20\r\n\r\n{\"id\":\"" + canary + "\"}", "not the JSON"},
		{"status line", canary + " " + canary + "\r\n\r\n", "not readable HTTP"},
		{"status code", "HTTP/1.1 " + canary + "\r\n\r\n", "not readable HTTP"},
		{"header line", "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", "not readable HTTP"},
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n", "not readable HTTP"},
		{"transfer encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n", "not readable HTTP"},
		{"chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n", "its body was cut"},
		{"trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n" + canary + "\r\n\r\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(_ *wire, c net.Conn, _ arrival) bool { say(c, tc.raw); return false })
			c := dial(t, w.URL(), &sagahttp.Options{Authorize: func(r *http.Request) error {
				r.Header.Set("Authorization", canary)
				return nil
			}})
			resp, err := c.Do(t.Context(), sagahttp.Request{
				Method: "POST", Path: "/invoices", Key: "k1", Into: new(struct{ ID int }),
				Query: url.Values{"token": {canary}}, Body: map[string]string{"name": canary},
			})
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q does not contain %q", err, tc.says)
			}
			var status *sagahttp.StatusError
			errors.As(err, &status)
			asJSON, _ := json.Marshal([]any{status, resp})
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v %+v %#v", status, status, resp, resp), string(asJSON)} {
				if strings.Contains(text, canary) {
					t.Errorf("printed: %s", text)
				}
			}
		})
	}
}

// A wait that is cut to an hour is told with the header as it came.
func TestLongRetryAfterIsTold(t *testing.T) {
	t.Parallel()
	for asked, told := range map[string]bool{"99999": true, "Thu, 21 Oct 2027 07:28:00 GMT": true, "3600": false, "120": false, "soon": false} {
		w := answer(t, "429 X\r\nDate: Wed, 21 Oct 2026 07:28:00 GMT\r\nRetry-After: "+asked, "")
		_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
		if want := fmt.Sprintf("its Retry-After is %q, and 1h0m0s are waited", asked); strings.Contains(err.Error(), want) != told {
			t.Errorf("%q is told as %v", asked, err)
		}
	}
}

// Whatever it is given, it waits neither in the past nor for longer than an hour.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "120", "1792567770", "1792567770000", "1e3", "NaN", strings.Repeat("9", 400), "Wed, 21 Oct 2026 07:28:30 GMT", "2026-10-21T07:29:30Z", "0000-01-01T00:00:00Z"} {
		f.Add(value, "Wed, 21 Oct 2026 07:28:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		wait, capped := sagahttp.WaitOf(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(1792567680, 0))
		if wait < 0 || wait > time.Hour || capped && wait != time.Hour {
			t.Errorf("%q at %q: %v, %v", value, date, wait, capped)
		}
	})
}
