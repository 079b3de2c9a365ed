package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// What Decide leaves empty is filled in, what it says stays, and what is deleted is withdrawn,
// whatever it says: it is not asked about an object of which there is no body, and what it makes of
// a body that it cannot read does not matter then.
func TestChangeIsCompleted(t *testing.T) {
	t.Parallel()
	state := inbox.Snapshot{
		Object: inbox.Object{Source: "shop", Type: "order", ID: "41"}, Revision: "7", Cause: "shop/3", Body: json.RawMessage(`{"total":5}`),
	}
	deleted, bare := state, state
	deleted.Deleted, bare.Deleted, bare.Body = true, true, nil
	named := saga.Change{ID: saga.ID{Saga: "other", Work: "w"}, Revision: "8", Cause: "c", Want: saga.WantNothing, Input: 1}
	full := saga.Change{ID: saga.ID{Saga: "order-to-invoice", Work: "shop:order:41"}, Revision: "7", Cause: "shop/3"}
	run, gone, kept := full, full, full
	run.Input = 1
	gone.Want, gone.Reason = saga.WantWithdrawn, "deleted at the source"
	kept.Want, kept.Reason, kept.Input = saga.WantWithdrawn, "deleted at the source", 1
	for name, c := range map[string]struct {
		state inbox.Snapshot
		says  saga.Change
		err   error
		want  saga.Change
		fails bool
	}{
		"filled in":           {state, saga.Change{Input: 1}, nil, run, false},
		"said":                {state, named, nil, named, false},
		"deleted":             {deleted, saga.Change{Input: 1}, nil, kept, false},
		"deleted, unreadable": {deleted, saga.Change{}, errors.New("unreadable"), gone, false},
		"deleted, no body":    {bare, saga.Change{Input: "it was asked"}, nil, gone, false},
		"unreadable":          {state, saga.Change{}, errors.New("unreadable"), full, true},
	} {
		s := inbox.Source{Saga: "order-to-invoice", Decide: func(inbox.Snapshot) (saga.Change, error) { return c.says, c.err }}
		if got, err := s.Change(c.state); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// An object that Decide cannot read is blocked at once, with its words, until something new comes.
// Another try would not make it readable.
func TestUnreadableObjectsAreBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		decide, asked := b.source.Decide, 0
		b.source.Decide = func(c inbox.Snapshot) (saga.Change, error) {
			if asked++; c.Revision == "1" {
				return saga.Change{}, errors.New("a currency that is not mapped")
			}
			return decide(c)
		}
		b.pushes("1", 1)
		_, stop := b.run()
		defer stop()
		b.after(time.Hour)
		if e := b.entry("1"); !strings.Contains(e.Blocked, "a currency that is not mapped") || asked != 1 {
			t.Fatalf("asked %d times: %+v", asked, e)
		}
		b.pushes("1", 2)
		b.after(time.Minute)
		if e := b.entry("1"); e.Blocked != "" || e.Owing() || len(b.delivered) != 1 {
			t.Fatalf("behind the news: %+v; delivered %v", e, b.delivered)
		}
	})
}

// What a Fetch gives no fingerprint of gets one, over its body without what is volatile.
func TestFetchedBodiesHaveFingerprints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.source.Policy.Volatile = []string{"seen"}
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) {
			return inbox.Fetched{Version: inbox.Counter(1), Body: json.RawMessage(`{"seen":1,"total":5}`)}, nil
		}
		b.hints("1")
		_, stop := b.run()
		defer stop()
		b.after(time.Minute)
		want, err := intake.Fingerprint(json.RawMessage(`{"total":5}`))
		if e := b.entry("1"); err != nil || e.Fingerprint != want {
			t.Errorf("%x, want %x, %v", e.Fingerprint, want, err)
		}
	})
}
