package console

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// onSomethingElse are acts on what these tests have none of; they go the way of the others.
const onSomethingElse = `/inbox/deliveries/{number}/replay /jobs/{job}/run /jobs/{job}/backfill /alerts/test /jobs/{job}/plan /jobs/{job}/plans/{plan}/apply /jobs/{job}/approve
	/jobs/{job}/pause /jobs/{job}/unpause /jobs/{job}/findings/{verdict}`

// Two equal requests under one key are one deed, for every act there is: the second is answered as the first was, also when the
// instance has moved on, and two at the same time.
func TestEveryActOnceForAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("ada", Admin)
	lost := letter{Outcome: "the line went dead"}
	review := func(id string) func() { return func() { w.start("mail", id, lost, saga.Review) } }
	waits := func(id string) func() { return func() { w.start("pay", id, letter{To: "Otto"}, saga.Waiting) } }
	held := func(id string) func() {
		return func() {
			waits(id)()
			if status, text := x.post("/api/v1/works/pay/"+id+"/pause", `{"reason":"r","wait":"30s"}`); status != http.StatusOK {
				t.Fatal(text)
			}
		}
	}
	shown := func(id string) string {
		a, err := w.c.Approval(t.Context(), saga.ID{Saga: "pay", Work: id}, "")
		if err != nil {
			t.Fatal(err)
		}
		return `"shown":"` + a.Digest + `"`
	}
	asks := func(id string) func() { return func() { w.start("ask", id, letter{}, saga.Waiting) } }
	all := []act{
		{"/works/{saga}/{work}/retry", "/works/pay/w1/retry", saying(``), func() { w.start("pay", "w1", letter{Outcome: "a bug"}, saga.Review) }},
		{"/works/{saga}/{work}/resolve", "/works/mail/w2/resolve", saying(`"step":"send","did-not-happen":true`), review("w2")},
		{"/works/{saga}/{work}/skip", "/works/mail/w3/skip", saying(`"no-result":true`), review("w3")},
		{"/works/{saga}/{work}/cancel", "/works/mail/w4/cancel", saying(``), review("w4")},
		{"/works/{saga}/{work}/rerun", "/works/mail/w5/rerun", saying(``), func() { w.start("mail", "w5", letter{}, saga.Completed) }},
		{"/works/{saga}/{work}/undo", "/works/mail/w15/undo", saying(``), func() { w.start("mail", "w15", letter{}, saga.Completed) }},
		{"/works/{saga}/{work}/pause", "/works/pay/w6/pause", saying(``), waits("w6")},
		{"/works/{saga}/{work}/resume", "/works/pay/w7/resume", saying(``), held("w7")},
		{"/works/{saga}/{work}/extend", "/works/pay/w8/extend", saying(`"by":"1h"`), waits("w8")},
		{"/works/{saga}/{work}/approve", "/works/pay/w9/approve", func() string { return shown("w9") }, waits("w9")},
		{"/works/{saga}/{work}/reject", "/works/pay/w10/reject", func() string { return shown("w10") }, waits("w10")},
		{"/works/{saga}/{work}/complete", "/works/ask/w11/complete", saying(`"body":{}`), asks("w11")},
		{"/works/{saga}/{work}/fail", "/works/ask/w12/fail", saying(``), asks("w12")},
		{"/works/{saga}/{work}/wake", "/works/later/w13/wake", saying(``), func() { w.start("later", "w13", letter{}, saga.Waiting) }},
		{"/batches", "/batches", saying(`"act":"retry","filter":["saga=pay","reason=poison"]`), func() { w.start("pay", "w16", letter{Outcome: "a bug"}, saga.Review) }},
		{"/messages/{name}/{key}", "/messages/paid/w14", saying(`"id":"1"`), func() {}},
		{"/destinations/{name}/pause", "/destinations/mail%2Fsend/pause", saying(``), func() {}},
		{"/destinations/{name}/resume", "/destinations/mail%2Fsend/resume", saying(``), func() {}},
		{"/destinations/{name}/probe", "/destinations/mail%2Fsend/probe", saying(``), func() {}},
		{"/sagas/{saga}/pause", "/sagas/mail/pause", saying(``), func() {}},
		{"/sagas/{saga}/resume", "/sagas/mail/resume", saying(``), func() {}},
		{"/everything/pause", "/everything/pause", saying(``), func() {}},
		{"/everything/resume", "/everything/resume", saying(``), func() {}},
		{"/catch-up", "/catch-up", saying(``), func() {}},
		{"/inbox/replay", "/inbox/replay", saying(`"since":"1h"`), func() {}},
		{"/inbox/sources/{source}/release", "/inbox/sources/shop/release", saying(``), func() { w.holds("shop", 1, 2) }},
		{"/inbox/sources/{source}/drop", "/inbox/sources/shop/drop", saying(``), func() { w.holds("shop", 3, 4) }},
		{"/jobs/pause", "/jobs/pause", saying(``), func() {}},
		{"/jobs/unpause", "/jobs/unpause", saying(``), func() {}},
	}
	for _, c := range all {
		t.Run(c.route, func(t *testing.T) {
			c.before()
			op := at(http.MethodPost, c.route)
			body := c.body()
			for flag, value := range map[string]string{"reason": `"r"`, "wait": `"30s"`} {
				if op.field(flag) != nil {
					body = strings.TrimPrefix(body+`,"`+flag+`":`+value, ",")
				}
			}
			ask := func() (int, string, string) {
				return x.keyed(c.path, "{"+body+"}", c.route)
			}
			var first string
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					switch status, text, replayed := ask(); {
					case status == http.StatusOK && replayed == "":
						first = text
					case status != http.StatusOK && !strings.Contains(text, "it is under way"): // on a slow machine
						t.Errorf("%d %s", status, text)
					}
				})
			}
			both.Wait()
			var begun desk.BatchPlan
			if _ = json.Unmarshal([]byte(first), &begun); begun.Batch != "" { // it is said by and by
				if _, err := w.c.Wait(t.Context(), coordinator.BatchSaga, begun.Batch); err != nil {
					t.Fatal(err)
				}
			}
			deeds := w.deeds()
			for range 3 {
				if status, text, replayed := ask(); status != http.StatusOK || replayed != "true" || text != first {
					t.Errorf("again: %d, replayed %q: %s\nwant %s", status, replayed, text, first)
				}
			}
			if now := w.deeds(); now != deeds {
				t.Errorf("asked again, there are %d deeds more", now-deeds)
			}
			if status, text, _ := x.keyed(c.path, "{"+strings.Replace(body, `"reason":"r"`, `"reason":"s"`, 1)+"}", c.route); strings.Contains(body, "reason") && status != http.StatusUnprocessableEntity {
				t.Errorf("something else under that key: %d %s", status, text)
			}
		})
	}
	days, err := w.db.BlockedDays(t.Context(), time.Time{})
	if i := slices.IndexFunc(days, func(d ledger.BlockedDay) bool { return d.By == ledger.ByRequest }); err != nil || i < 0 || days[i].Count < int64(3*len(all)) {
		t.Errorf("of %d requests that each came again three times there are %+v, %v", len(all), days, err)
	}
	for i := range operations {
		op := &operations[i]
		tried := slices.ContainsFunc(all, func(a act) bool { return a.route == op.path })
		if op.changes() && !tried && !slices.Contains(strings.Fields(onSomethingElse), op.path) {
			t.Errorf("%s is an act, and was not tried", op.path)
		}
	}
}

// act is something that a person does: its route, with what is in its path, what is said, and what there is before it.
type act struct {
	route, path string
	body        func() string
	before      func()
}

func saying(body string) func() string { return func() string { return body } }

// deeds is how many things people did.
func (w *world) deeds() int {
	w.t.Helper()
	all, err := w.db.Deeds(w.t.Context(), time.Time{}, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

// keyed says something to /api/v1 under an Idempotency-Key.
func (x *window) keyed(path, body, key string) (status int, text, replayed string) {
	x.w.t.Helper()
	r, err := http.NewRequestWithContext(x.w.t.Context(), http.MethodPost, x.w.server.URL+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		x.w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return x.sends(r)
}

// A rerun by HTTP says its run, or a key: what comes twice is done once. A form that is sent twice is one act.
func TestRerunByHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("ada", Admin)
	w.start("mail", "w1", letter{}, saga.Completed)
	revision := func(sagaName, want string) {
		t.Helper()
		if s, err := w.c.Show(t.Context(), saga.ID{Saga: sagaName, Work: "w1"}); err != nil || s.Revision != want {
			t.Errorf("it is at %q, want %q (%v)", s.Revision, want, err)
		}
	}
	for _, body := range []string{`{"reason":"r"}`, `{"reason":"r","run":""}`, `{"reason":"r","request":"","run":null}`} {
		if status, text := x.post("/api/v1/works/mail/w1/rerun", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, text := x.post("/api/v1/works/mail/w1/rerun", `{"reason":"r"}`); status != http.StatusBadRequest || !strings.Contains(text, "what comes twice would be done twice") {
		t.Errorf("a rerun that could come twice: %d %s", status, text)
	}
	for range 3 {
		if status, text := x.post("/api/v1/works/mail/w1/rerun", `{"reason":"r","run":"-","wait":"30s"}`); status != http.StatusOK || !strings.Contains(text, `"revision": "+1"`) {
			t.Errorf("of a run: %d %s", status, text)
		}
	}
	revision("mail", "+1")
	w.start("pay", "w1", letter{}, saga.Waiting)
	has(t, x.press(address("pay", "w1"), "Give it up and undo", map[string]string{"reason": "r", "wait": "30s"}), "said good")
	w.until("pay", "w1", saga.Compensated)
	_, page := x.get(address("pay", "w1"))
	for range 2 {
		has(t, x.send(page, "Run it again", map[string]string{"reason": "r", "wait": "30s"}), "said good")
	}
	revision("pay", "+1")
	// A key whose first request has no answer: its process died over it. Nothing is done, and that is said.
	key := ledger.Request{Key: digest("ada\x00dead"), Nonce: 7, Asks: digest(`["/works/{saga}/{work}/rerun",{"saga":"mail","work":"w1"},{"reason":"r"}]`)}
	if _, err := w.db.Request(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if status, text, _ := x.keyed("/works/mail/w1/rerun", `{"reason":"r"}`, "dead"); status != http.StatusConflict || !strings.Contains(text, "may be done") {
		t.Errorf("a request whose process died: %d %s", status, text)
	}
	revision("mail", "+1")
	if status, text, _ := x.keyed("/works/mail/w1/cancel", `{"reason":"r"}`, "refused"); status != http.StatusConflict {
		t.Errorf("a cancel of what has ended: %d %s", status, text)
	}
	w.start("mail", "w2", letter{Outcome: "the line went dead"}, saga.Review)
	if status, text, _ := x.keyed("/works/mail/w2/cancel", `{"reason":"r"}`, "refused"); status != http.StatusOK { // what was refused frees its key
		t.Errorf("under a key whose request was refused: %d %s", status, text)
	}
	w.start("mail", "w3", letter{Outcome: "the line went dead"}, saga.Review)
	w.halt()
	for _, want := range []string{"", "true"} { // what was stored keeps its key, however its wait ended
		if status, text, replayed := x.keyed("/works/mail/w3/cancel", `{"reason":"r","wait":"100ms"}`, "stored"); status != http.StatusAccepted || replayed != want {
			t.Errorf("what was stored and not read: %d, replayed %q: %s", status, replayed, text)
		}
	}
	w.run()
	if status, text, _ := x.keyed("/works/mail/w2/cancel", `{"reason":"r"}`, strings.Repeat("k", 256)); status != http.StatusBadRequest {
		t.Errorf("a key without a bound: %d %s", status, text)
	}
}

// What ended otherwise and was done all the same keeps its key; what was refused frees it.
func TestWhatWasDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	h := &handler{db: w.db, log: logrus.StandardLogger(), now: time.Now}
	for _, c := range []struct {
		f     desk.Failure
		times int
	}{
		{desk.Failure{Code: desk.TimedOut, What: "the run goes on", Done: true}, 1},
		{desk.Failure{Code: desk.Failed, What: "the run ended badly", Done: true}, 1},
		{desk.Failure{Code: desk.Conflict, What: "it is stored, and not applied", Done: true}, 1},
		{desk.Failure{Code: desk.Conflict, What: "it was refused"}, 3},
	} {
		times := 0
		op := of("POST", "/"+c.f.What, Operator, "", func(*desk.Desk, context.Context, *desk.Nothing) (*desk.Status, error) {
			times++
			return nil, &c.f
		}, nil)
		for range 3 {
			if was, _ := h.keyed(t.Context(), &Person{"ada", []string{Admin}}, &op, &said{}, c.f.What); was.Problem == nil || was.Problem.Detail != c.f.What {
				t.Errorf("it is told %v", was.Problem)
			}
		}
		if times != c.times {
			t.Errorf("%q: done %d times, want %d", c.f.What, times, c.times)
		}
	}
}
