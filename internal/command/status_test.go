package command

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// "amends status names the oldest live instance that has not moved", what is dated ahead of the
// clock (T4, T5), and how large a backlog of an unknown definition is.
func TestStatusFindings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	head := func(work string, moved time.Time) ledger.Instance {
		return ledger.Instance{ID: saga.ID{Saga: "s", Work: work}, Version: 1, Status: saga.Running, Updated: moved, Due: now.Add(time.Hour)}
	}
	o := ledger.Overview{
		At:       now,
		Sessions: []ledger.Session{{Token: 1, Knows: []ledger.Version{{Saga: "s", Version: 1}}}},
		Unknown: []ledger.Backlog{
			{Saga: "s", Version: 2, Works: ledger.MaxBacklog, Oldest: now.Add(-90 * time.Minute)},
			{Saga: "gone", Version: 3, Ended: true, Works: 1, Oldest: now.Add(time.Minute)},
		},
		Oldest: []ledger.Instance{head("o1", now.Add(-11*time.Minute)), head("o2", now.Add(-9*time.Minute))},
		Ahead:  ledger.Ahead{Works: []ledger.Instance{head("o3", now)}, Sessions: []ledger.Session{{Token: 2, Label: "vm pid 7", Renewed: now.Add(time.Minute)}}},
	}
	var got []string
	for _, f := range findingsOf(&o, 10*time.Minute) {
		got = append(got, f.Kind+": "+f.Words+" > "+f.Next)
	}
	want := []string{
		"unknown-definition: no live process knows s version 2: at least 1000 works, the first due for 1h30m > start a program that registers s version 2",
		"unknown-definition: no live process knows gone version 3 or a newer one: 1 ended work, the first due in 1m00s > start a program that registers gone version 3 or a newer one",
		"still: s o1 (running) has not moved for 11m00s > look: amends show o1 --saga s",
		"ahead: s o3 is due at 2026-03-01T13:00:00Z, later than the ledger's clock can explain: it was further once > see that the database's clock is right; then make it due: amends catch-up",
		"ahead: session 0000000000000002 (vm pid 7) was renewed at 2026-03-01T12:01:00Z, later than the ledger's clock: its lease ends late > see that the database's clock is right; then make it due: amends catch-up",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if o = (ledger.Overview{At: now, Sessions: o.Sessions}); len(findingsOf(&o, time.Minute)) != 0 {
		t.Errorf("everything moves, and there are %v", findingsOf(&o, time.Minute))
	}
}

// What a sender was told to have arrived and could not be read is a finding for a day, for each source.
func TestStatusUnreadable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	counts := []intake.Count{
		{Source: "shop", Disposition: intake.Malformed, Count: 3, Last: now.Add(-23 * time.Hour)},
		{Source: "books", Disposition: intake.Malformed, Count: 1, Last: now},
		{Source: "old", Disposition: intake.Malformed, Count: 9, Last: now.Add(-24 * time.Hour)},
		{Source: "fine", Disposition: intake.Applied, Count: 9, Last: now},
		{Source: "foreign", Disposition: intake.Unknown, Count: 9, Last: now},
	}
	want := []troubleJSON{{
		"unreadable", "3 genuine webhooks of shop could not be read, the latest at 2026-02-28T13:00:00Z: nothing follows from what it said",
		"look: amends inbox list --disposition malformed --source shop", "",
	}, {
		"unreadable", "1 genuine webhook of books could not be read, the latest at 2026-03-01T12:00:00Z: nothing follows from what it said",
		"look: amends inbox list --disposition malformed --source books", "",
	}}
	if got := unreadable(counts, now); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What is held of a source is a finding that says what is safe to do.
func TestStatusHeld(t *testing.T) {
	t.Parallel()
	want := []troubleJSON{{
		"held", "withdrawals of shop that are held: 30; it cancelled or removed more at once than its bound lets through, and nothing of that is undone",
		"look: amends inbox objects --held --source shop; if the source is right, undo it all: amends inbox release shop --reason WHY; " +
			"if it is wrong, leave all as it is: amends inbox drop shop --reason WHY", "shop",
	}}
	if got := heldBack([]intake.Holding{{Source: "shop", Count: 30}}); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A work that has ended waits for no definition, unless it has a signal to be read: its version or
// a newer one reads that (A0, CORE-2).
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
		if is := f.because(name); is != because {
			t.Errorf("%s: it waits because %q, not %q", name, is, because)
		}
		if is := f.then(name); !strings.HasPrefix(is, then) {
			t.Errorf("%s: %q, not %q", name, is, then)
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
	for _, is := range f.findings() {
		if is.Kind == "destination" && strings.Contains(is.Words, "everything") {
			t.Errorf("a destination is said to be everything: %s", is.Words)
		}
	}
}
