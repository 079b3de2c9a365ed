package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A15: neither secrets nor signatures, headers, bodies, or names that a stranger made up are in the
// log, in what is stored, or in a printed configuration.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	source := shop(t)
	d := open(t, nil, source)
	h := signed(t, "msg_1", paid)
	h.Set("Authorization", "Bearer canary-token")
	h.Set("Cookie", "session=canary-cookie")
	forged := paid + "canary-body"
	d.post(t, "shop", h, paid)
	d.post(t, "shop", h, forged)
	d.post(t, "canary-source", h, paid)
	d.send(t, http.MethodGet, "/webhooks/shop?canary-query=1", h, nil)
	d.inbox.accept = func(context.Context) error { return errDown }
	d.post(t, "shop", signed(t, "msg_2", paid), paid)

	stored, err := json.Marshal(d.inbox.stored())
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(source.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{
		"log": d.log.String(), "inbox": string(stored), "config as JSON": string(config),
		"config": fmt.Sprintf("%v %+v %#v %s", source.Secrets, source.Secrets, source.Secrets, source.Secrets[0]),
	}
	signature := strings.TrimPrefix(h.Get("Webhook-Signature"), "v1,")
	for where, text := range seen {
		if text == "" {
			t.Errorf("the %s is empty", where)
		}
		for _, leaked := range []string{"canary", signature, newSecret, oldSecret, newSecret[6:], "new secret for"} {
			if strings.Contains(text, leaked) {
				t.Errorf("A15: the %s contains %q", where, leaked)
			}
		}
	}
	if !strings.Contains(d.log.String(), errDown.Error()) {
		t.Error("B4: the log does not say what is wrong with the database")
	}
}

// One line per source and reason a minute, with how many were left out, however many come; the
// counter has all.
func TestRefusalsAreQuiet(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(noon.UnixNano())
	d := open(t, &Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}, shop(t))
	forge := func(n int) {
		for range n {
			d.post(t, "shop", signed(t, "msg_1", paid), paid+" ")
		}
	}
	lines := func() int { return strings.Count(d.log.String(), "wrong_signature") }
	forge(50)
	if n := lines(); n != 1 {
		t.Errorf("%d lines for 50 refusals; want 1", n)
	}
	d.post(t, "nobody", http.Header{}, paid)
	d.post(t, "nobody-else", http.Header{}, paid)
	if n := strings.Count(d.log.String(), "unknown_source"); n != 1 {
		t.Errorf("%d lines for two unknown sources; want 1", n)
	}
	now.Add(int64(logEvery))
	forge(1)
	if n := lines(); n != 2 || !strings.Contains(d.log.String(), "not_logged=49") {
		t.Errorf("%d lines after a minute, want 2:\n%s", n, d.log)
	}
	count := 0
	for _, why := range d.reasons() {
		if why == WrongSignature {
			count++
		}
	}
	if count != 51 {
		t.Errorf("%d counted; want 51", count)
	}
}

// What an unknown source is called by is never passed on: it would be a label without bound.
func TestStrangersHaveNoName(t *testing.T) {
	t.Parallel()
	var sources []string
	d := open(t, nil, shop(t))
	d.opts.Listener.Refused = func(source string, _ Refusal, _ int) { sources = append(sources, source) }
	for i := range 3 {
		d.post(t, fmt.Sprint("made-up-", i), http.Header{}, paid)
	}
	d.post(t, "shop", http.Header{}, paid)
	if !slices.Equal(sources, []string{"", "", "", "shop"}) {
		t.Errorf("counted by %q", sources)
	}
}
