package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// 200 with an empty body, and only once the inbox has said that it has the event.
func TestStoredThenAnswered(t *testing.T) {
	t.Parallel()
	var order []string
	d := open(t, &Options{
		Listener: &Listener{Stored: func(source string, n int, _ time.Duration) {
			order = append(order, fmt.Sprint("stored ", source, n))
		}},
	}, shop(t))
	d.inbox.accept = func(context.Context) error { order = append(order, "inbox"); return nil }
	a := d.send(t, http.MethodPost, "/webhooks/shop", signed(t, "msg_1", paid), strings.NewReader(paid))
	if a.status != 200 || a.body != "" || a.header.Get("Content-Length") != "0" {
		t.Errorf("%+v", a)
	}
	if !slices.Equal(order, []string{"inbox", "stored shop1"}) {
		t.Errorf("order %v", order)
	}
}

// The process dies after the commit and before the answer. The sender comes again, and there is
// one event. It dies before the commit: no 200 was ever sent, and the next delivery is stored.
func TestCrashes(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	lost := d.inbox
	d.Receiver.inbox = acceptFunc(func(ctx context.Context, events []intake.Event) error {
		if err := lost.Accept(ctx, events); err != nil {
			return err
		}
		return errDown // the answer of the commit is lost
	})
	if got := d.post(t, "shop", signed(t, "msg_1", paid), paid); got != 503 {
		t.Errorf("answer %d to a delivery of which nothing is known", got)
	}
	d.Receiver.inbox = lost
	if got := d.post(t, "shop", signed(t, "msg_1", paid), paid); got != 200 || len(lost.stored()) != 1 {
		t.Errorf("answer %d, %d events; want 200 and 1", got, len(lost.stored()))
	}
	lost.accept = func(context.Context) error { return errDown }
	if got := d.post(t, "shop", signed(t, "msg_2", paid), paid); got != 503 {
		t.Errorf("answer %d", got)
	}
	lost.accept = nil
	if got := d.post(t, "shop", signed(t, "msg_2", paid), paid); got != 200 || len(lost.stored()) != 2 {
		t.Errorf("answer %d, %d events; want 200 and 2", got, len(lost.stored()))
	}
}

type acceptFunc func(context.Context, []intake.Event) error

func (f acceptFunc) Accept(ctx context.Context, events []intake.Event) error {
	return f(ctx, events)
}

func (acceptFunc) Blocked(context.Context, string, string, int64) error { return nil }

// Whatever is wrong with the database is our affair: 503 and when to come again, never 4xx,
// within the budget even when the inbox does not come back, and with nothing of the error in the
// answer.
func TestDatabaseTrouble(t *testing.T) {
	t.Parallel()
	hang := make(chan bool)
	defer close(hang)
	for name, accept := range map[string]func(context.Context) error{
		"down":             func(context.Context) error { return errDown },
		"says invalid":     func(context.Context) error { return errors.New("400 invalid input syntax") },
		"waits for us":     func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"does not listen":  func(context.Context) error { <-hang; return nil },
		"panics":           func(context.Context) error { panic("index out of range") },
		"cancelled itself": func(context.Context) error { return context.Canceled },
	} {
		d := open(t, &Options{Budget: time.Second, RetryAfter: 7 * time.Second}, shop(t))
		d.inbox.accept = accept
		began := time.Now()
		a := d.send(t, http.MethodPost, "/webhooks/shop", signed(t, "msg_1", paid), strings.NewReader(paid))
		if a.status != 503 || a.header.Get("Retry-After") != "7" {
			t.Errorf("%s: answer %d, Retry-After %q", name, a.status, a.header.Get("Retry-After"))
		}
		if took := time.Since(began); took > hardStop {
			t.Errorf("%s took %s", name, took)
		}
		if got := d.reasons(); !slices.Equal(got, []Refusal{NotStored}) {
			t.Errorf("%s: counted as %v", name, got)
		}
	}
}

// An inbox that hangs holds its place, so that calls do not pile up without bound; when it
// comes back the source is open again.
func TestHangingInbox(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Concurrent = 1
	d := open(t, &Options{Budget: 800 * time.Millisecond}, s)
	var calls atomic.Int32
	hang, left := make(chan bool), make(chan bool, 9)
	d.inbox.accept = func(context.Context) error { calls.Add(1); <-hang; left <- true; return nil }
	for i := range 3 {
		if got := d.post(t, "shop", signed(t, fmt.Sprint(i), paid), paid); got != 503 {
			t.Errorf("answer %d", got)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls wait in the inbox; want 1", n)
	}
	close(hang)
	<-left
	if got := d.post(t, "shop", signed(t, "later", paid), paid); got != 200 {
		t.Errorf("afterwards: answer %d", got)
	}
}

// A sender that hangs up while we store does not undo it: the delivery is stored, and answered when
// it comes again.
func TestHangUp(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	ctx, hangUp := context.WithCancel(t.Context())
	d.inbox.accept = func(ctx context.Context) error {
		hangUp()
		return ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/webhooks/shop", strings.NewReader(paid))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = signed(t, "msg_1", paid)
	d.ServeHTTP(&plainWriter{}, req)
	if n := len(d.inbox.stored()); n != 1 {
		t.Errorf("%d events are stored; want 1", n)
	}
}

// What was verified and can be of no use is stored with its disposition and answered with 200,
// so that the sender neither repeats it nor switches us off. Its bytes are kept as JSON, whatever
// they were.
func TestUseless(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Types = []string{"order"}
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		body        string
		disposition intake.Disposition
		why         string
		kept        string
	}{
		"empty":         {"", intake.Malformed, "no JSON object", `""`},
		"cut":           {`{"type":"order.paid","data":{`, intake.Malformed, "no JSON object", `"{\"type\":\"order.paid\",\"data\":{"`},
		"an array":      {`[]`, intake.Malformed, "no JSON object", `"[]"`},
		"two values":    {`{} {}`, intake.Malformed, "no JSON object", `"{} {}"`},
		"not UTF-8":     {"{\"type\":\"\xff\"}", intake.Malformed, "UTF-8", `"base64:eyJ0eXBlIjoi/yJ9"`},
		"too deep":      {strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), intake.Malformed, "", ""},
		"a zero byte":   {`{"type":"order.paid","data":{"id":"\u0000"}}`, intake.Malformed, "printed", ""},
		"a long id":     {`{"type":"order.paid","data":{"id":"` + long + `"}}`, intake.Malformed, "255", ""},
		"no object":     {`{"type":"order.paid","data":{}}`, intake.Malformed, `nothing is at "data.id"`, ""},
		"an odd id":     {`{"type":"order.paid","data":{"id":{}}}`, intake.Malformed, `nothing is at "data.id"`, `{"type":"order.paid","data":{"id":{}}}`},
		"no type":       {`{"data":{"id":"1"}}`, intake.Unknown, `nothing is at "type"`, `{"id":"1"}`},
		"a test":        {`{"type":"webhook.test","data":{}}`, intake.Unknown, `nothing is at "data.id"`, ""},
		"no such thing": {`{"type":"ping","data":{}}`, intake.Unknown, "names no object", ""},
		"unwanted type": {`{"type":"basket.filled","data":{"id":"1"}}`, intake.Unknown, "Types", `{"id":"1"}`},
	} {
		d := open(t, nil, s)
		if got := d.post(t, "shop", signed(t, "msg_1", tc.body), tc.body); got != 200 {
			t.Errorf("%s: answer %d; want 200", name, got)
		}
		events := d.inbox.stored()
		if len(events) != 1 || events[0].Disposition != tc.disposition || !strings.Contains(events[0].Why, tc.why) {
			t.Errorf("%s: stored %+v; want %s for %q", name, events, tc.disposition, tc.why)
			continue
		}
		if tc.kept == "" && events[0].Object.ID == "" && len(tc.body) < 1000 && !strings.Contains(tc.why, "printed") {
			tc.kept = tc.body // all of what names no object, so that it can be read again
		}
		if tc.kept != "" && string(events[0].Body) != tc.kept {
			t.Errorf("%s: kept %s; want %s", name, events[0].Body, tc.kept)
		}
		if e := events[0]; e.Object.Source != "shop" || !e.Received.Equal(noon) || e.Dedupe.IsZero() {
			t.Errorf("%s: incomplete: %+v", name, e)
		}
	}
}

// A parser of ours that fails is not the sender's affair.
func TestParserPanics(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.Provider.parse = func(message) ([]intake.Event, error) { panic("a secret inside") }
	d := open(t, nil, s)
	if got := d.post(t, "shop", signed(t, "msg_1", paid), paid); got != 200 {
		t.Errorf("answer %d", got)
	}
	events := d.inbox.stored()
	if len(events) != 1 || events[0].Disposition != intake.Malformed || strings.Contains(events[0].Why, "secret") {
		t.Errorf("stored %+v", events)
	}
}

// No reason that we have leads to an answer that redirects, disables a subscription or blames
// the sender for our database. The helpers of these tests check the same of every answer they see.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, r := range []Refusal{
		UnknownSource, WrongMethod, LargeHeader, LargeBody, SlowBody, BrokenBody, NoSignature, BadSignature, WrongSignature,
		TooOld, TooNew, Busy, Closed, NotStored, "a new one",
	} {
		if s := r.Status(); !slices.Contains([]int{401, 404, 405, 408, 413, 503}, s) {
			t.Errorf("%s answers %d", r, s)
		}
	}
}

// Many copies at once all get 200, are counted, and are one event.
func TestConcurrentCopies(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t), woo())
	order := fixture(t, "woocommerce.json")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if i%2 == 0 {
				if got := d.post(t, "shop", signed(t, "msg_1", paid), paid); got != 200 {
					t.Errorf("answer %d", got)
				}
				return
			}
			if got := d.post(t, "woo", wooSigned(order), order); got != 200 {
				t.Errorf("answer %d", got)
			}
		})
	}
	wg.Wait()
	events := d.inbox.stored()
	if len(events) != 2 {
		t.Fatalf("%d events; want one of each source", len(events))
	}
	for id, n := range d.inbox.copies {
		if n != 20 {
			t.Errorf("%d copies of %v; want 20", n, id)
		}
	}
	if got := d.Secrets(); got[0].Count != 20 || got[2].Count != 20 {
		t.Errorf("use of secrets: %v", got)
	}
}
