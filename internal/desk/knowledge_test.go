package desk

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// A work that has ended waits for no definition, unless it has a signal to be read: its version or
// a newer one reads that.
func TestWhatALiveProcessKnows(t *testing.T) {
	t.Parallel()
	k := knowledgeOf([]ledger.Session{
		{Knows: []ledger.Version{{Saga: "s", Version: 1}}},
		{Dead: true, Knows: []ledger.Version{{Saga: "s", Version: 2}}},
	})
	for _, c := range []struct {
		saga    string
		version int
		status  saga.Status
		posted  int64
		want    string
	}{
		{"s", 1, saga.Running, 0, ""},
		{"s", 2, saga.Running, 0, "s version 2"},
		{"s", 2, saga.Review, 1, "s version 2"},
		{"s", 2, saga.Completed, 0, ""},
		{"s", 1, saga.Completed, 1, ""},
		{"s", 2, saga.Completed, 1, "s version 2 or a newer one"},
		{"s", 0, saga.Completed, 1, ""},
		{"t", 1, saga.Completed, 1, "t version 1 or a newer one"},
		{"t", 1, saga.Retrying, 0, "t version 1"},
	} {
		h := ledger.Instance{ID: saga.ID{Saga: c.saga, Work: "w"}, Version: c.version, Status: c.status, Posted: c.posted}
		if got := k.lacking(&h); got != c.want {
			t.Errorf("%+v lacks %q", c, got)
		}
	}
}

// Why a work waits and when it goes on: a pause of everything hides no destination's own state, and
// nothing is promised for a time while a destination is away.
func TestWhyAWorkWaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := &flow{Standing: coordinator.Standing{Destinations: []coordinator.DestinationStatus{
		{Name: "books", State: "failing", Since: at, Until: at.Add(time.Minute), Evidence: "ten in a row failed", Why: "connection refused"},
		{Name: "mail", State: "paused", Since: at, Actor: "anna", Why: "moving"},
		{Name: "shop", State: "healthy"},
		{Name: "tax", State: "limited", Until: at},
	}}}
	says := func(name, because, then string) {
		t.Helper()
		if why, next := f.waits(name); why != because || !strings.HasPrefix(next, then) {
			t.Errorf("%s: it waits because %q, and %q; not %q, and %q", name, why, next, because, then)
		}
	}
	fails := "books fails since 2026-03-01T12:00:00Z, and is tried next at 2026-03-01T12:01:00Z: ten in a row failed; the latest: connection refused"
	says("books", fails, "It goes on by itself when books is back, and spends nothing until then. To try now: amends destination probe books --reason WHY.")
	says("retry:books", fails, "It goes on by itself when books is back")
	says("retry:shop", "shop failed this one; it does not count as away", "It is tried again by itself. To try now, when shop is mended: amends destination probe shop --reason WHY.")
	says("tax", "tax asked to be left alone until 2026-03-01T12:00:00Z", "It goes on by itself when tax is back")
	says("shop", "shop has no room for it yet", "It goes on by itself as soon as shop has room for it.")
	says("mail", "mail is paused, says anna: moving", "It goes on when the pause ends: amends resume --destination mail --reason WHY.")
	says("saga:s", "the pause is over, and it goes on with the next claim", "It goes on by itself, with the next claim.")
	f.Paused = []coordinator.Paused{{Scope: coordinator.Everything(), By: saga.Actor{Name: "ben", Reason: "INC-77"}, At: at}}
	for _, name := range []string{"books", "mail", "saga:s", "all"} {
		says(name, "everything is paused, says ben: INC-77", "It goes on when the pause ends: amends resume --all --reason WHY.")
	}
}

// A list of destinations says which of their slots serve none, and until when.
func TestDestinationsSayWhatIsKept(t *testing.T) {
	t.Parallel()
	d := coordinator.DestinationStatus{Name: "books", State: "healthy", Parts: 4}
	if got := (&flow{}).doc(&d).Note; got != "" {
		t.Errorf("nothing is kept, and the note is %q", got)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d.Unanswered, d.UnansweredUntil, d.Left, d.LeftUntil = 2, at, 1, at.Add(time.Minute)
	want := "requests without an answer hold 2 slots of its limit, half or more of what a process may use; what is awaited no more is over at 2026-03-01T12:00:00Z; " +
		"a process that ended left 1 of 4 parts of its limit, with requests that may be under way: they are free at 2026-03-01T12:01:00Z at the latest"
	if got := (&flow{}).doc(&d).Note; got != want {
		t.Errorf("the note is %q", got)
	}
	f := &flow{Standing: coordinator.Standing{Destinations: []coordinator.DestinationStatus{d}}}
	if j := f.doc(&d); j.Unanswered != 2 || !j.UnansweredUntil.Equal(at) || j.Left != 1 || !j.LeftUntil.Equal(at.Add(time.Minute)) {
		t.Errorf("as JSON it is %+v", j)
	}
}
