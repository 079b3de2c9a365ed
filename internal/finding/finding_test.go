package finding

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// of are the findings of one kind.
func (f *Facts) of(kind string) (all []Finding) {
	return slices.DeleteFunc(f.All(Still), func(is Finding) bool { return is.Kind != kind })
}

// "amends status names the oldest live instance that has not moved", what is dated ahead of the
// clock, and how large a backlog of an unknown definition is.
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
	for _, f := range (&Facts{Overview: o}).All(Still) {
		got = append(got, f.Kind+": "+f.Words+" > "+f.Next)
	}
	want := []string{
		"unknown-definition: no live process knows s version 2: at least 1000 works, the first due for 1h30m > start a program that registers s version 2",
		"unknown-definition: no live process knows gone version 3 or a newer one: 1 ended work, the first due in 1m00s > start a program that registers gone version 3 or a newer one",
		"still: s o1 (running) has not moved for 11m00s > look: amends show o1 --saga s",
		"ahead: s o3 is due at 2026-03-01T13:00:00Z, in 1h00m, later than the ledger's clock can explain: it was further once > see that the database's clock is right; then make it due: amends catch-up",
		"ahead: session 0000000000000002 (vm pid 7) was renewed at 2026-03-01T12:01:00Z, 1m00s later than the ledger's clock: its lease ends late > see that the database's clock is right; then make it due: amends catch-up",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f := (&Facts{Overview: ledger.Overview{At: now, Sessions: o.Sessions}}); len(f.All(time.Minute)) != 0 {
		t.Errorf("everything moves, and there are %v", f.All(time.Minute))
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
	want := []Finding{{
		"unreadable", "3 genuine webhooks of shop could not be read, the latest at 2026-02-28T13:00:00Z: nothing follows from what it said",
		"look: amends inbox list --disposition malformed --source shop", "", "shop",
	}, {
		"unreadable", "1 genuine webhook of books could not be read, the latest at 2026-03-01T12:00:00Z: nothing follows from what it said",
		"look: amends inbox list --disposition malformed --source books", "", "books",
	}}
	if got := (&Facts{Overview: ledger.Overview{At: now}, Counts: counts}).of("unreadable"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What is held of a source is a finding that says what is safe to do.
func TestStatusHeld(t *testing.T) {
	t.Parallel()
	want := []Finding{{
		"held", "withdrawals of shop that are held: 30; it cancelled or removed more at once than its bound lets through, and nothing of that is undone",
		"look: amends inbox objects --held --source shop; if the source is right, undo it all: amends inbox release shop --reason WHY; " +
			"if it is wrong, leave all as it is: amends inbox drop shop --reason WHY", "shop", "shop",
	}}
	if got := (&Facts{Holdings: []intake.Holding{{Source: "shop", Count: 30}}}).of("held"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A deadline that passed while a person has a work is a finding.
func TestOverdueIsAFinding(t *testing.T) {
	t.Parallel()
	f := &Facts{Paused: []ledger.Instance{{ID: saga.ID{Saga: "slow", Work: "slow:1"}, Status: saga.Paused, Deadline: time.Unix(0, 0)}}}
	f.At = time.Unix(0, 0)
	if fs := f.of("overdue"); len(fs) != 1 || fs[0].Kind != "overdue" || !strings.Contains(fs[0].Words, "slow slow:1 (paused): its deadline passed at 1970") {
		t.Errorf("the findings are %+v", fs)
	}
}

// A limit of which half serves none is a finding when that lasts: while requests have no answer, and after a process has died.
func TestSlotsAreAFinding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 42, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		kept  flow.Kept
		state string
		want  []string
	}{
		"none":           {flow.Kept{}, "healthy", nil},
		"a blip":         {flow.Kept{Unanswered: 2, UnansweredUntil: in(9 * time.Second)}, "healthy", nil},
		"over by now":    {flow.Kept{Unanswered: 2, UnansweredUntil: in(-9 * time.Second)}, "healthy", nil},
		"a part of four": {flow.Kept{Left: 1, LeftUntil: in(time.Minute)}, "healthy", nil},
		"away itself":    {flow.Kept{Unanswered: 2, UnansweredUntil: in(time.Minute)}, "failing", nil},
		"settling": {flow.Kept{Unanswered: 3, UnansweredUntil: in(20 * time.Second)}, "healthy", []string{
			"destination books: requests without an answer hold 3 slots of its limit, half or more of what a process may use; " +
				"what is awaited no more is over at 2026-03-01T10:42:20Z; 7 works wait for it",
		}},
		"hanging": {flow.Kept{Unanswered: 1}, "healthy", []string{
			"destination books: requests without an answer hold 1 slot of its limit, half or more of what a process may use; 7 works wait for it",
		}},
		"dead": {flow.Kept{Left: 2, LeftUntil: in(time.Minute)}, "healthy", []string{
			"destination books: a process that ended left 2 of 4 parts of its limit, with requests that may be under way: " +
				"they are free at 2026-03-01T10:43:00Z at the latest; 7 works wait for it",
		}},
	} {
		f := &Facts{Standing: coordinator.Standing{Destinations: []coordinator.DestinationStatus{{Name: "books", State: c.state, Parts: 4, Kept: c.kept}}}}
		f.At, f.Waiting = now, []ledger.Waiting{{Destination: "books", Works: 3}, {Destination: "retry:books", Works: 4}}
		var got []string
		for _, is := range f.of("slots") {
			got = append(got, is.Words)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What keeps a database from cleaning up is a finding, with its size or its age.
func TestReadersAreAFinding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, o := range map[string]ledger.Overview{
		"":                                       {Log: 64 << 20, Reading: now.Add(-59 * time.Minute)},
		"has grown to 96 MB":                     {Log: 96 << 20},
		"for 2h00m, since 2026-03-01T10:00:00Z:": {Reading: now.Add(-2 * time.Hour)},
	} {
		o.At = now
		if fs := (&Facts{Overview: o}).of("reader"); len(fs) != min(len(want), 1) || len(fs) == 1 && !strings.Contains(fs[0].Words, want) {
			t.Errorf("%q: %v", want, fs)
		}
	}
}

// A source of which ten webhooks in a row named no object is a finding, until one does.
func TestNamelessIsAFinding(t *testing.T) {
	t.Parallel()
	db := memory.New(nil)
	hear := func(n int, o intake.Object, d intake.Disposition) {
		t.Helper()
		for range n {
			e := intake.Event{Object: o, Dedupe: intake.DigestOf(fmt.Sprint(time.Now().UnixNano())), Received: time.Now(), Disposition: d, Why: `nothing is at "data.id"`}
			if err := db.Accept(t.Context(), []intake.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := db.Judge(t.Context(), 100, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
			for i := range ds {
				ds[i].Outcome, ds[i].Because = cmp.Or(d, intake.Applied), "judged"
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found := func(want int) {
		t.Helper()
		f, err := Read(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if fs := f.of("nameless"); len(fs) != want || want == 1 && !strings.Contains(fs[0].Words, `none of the latest 10 genuine webhooks of shop named an object, so nothing follows from them: nothing is at "data.id"`) {
			t.Errorf("the findings are %v, want %d", fs, want)
		}
	}
	shop := intake.Object{Source: "shop"}
	hear(9, shop, intake.Unknown)
	found(0)
	hear(1, shop, intake.Unknown)
	found(1)
	hear(1, intake.Object{Source: "shop", Type: "order", ID: "1"}, "")
	found(0)
	hear(10, intake.Object{Source: "shop", Type: "cart", ID: "2"}, intake.Unknown) // of a type that is not set up
	found(0)
}

// A source whose times lie ahead is a finding with the difference, told by what the gate itself says of it.
func TestClocksAreAFinding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ahead := func(id string, by, due time.Duration) intake.Entry {
		f := &intake.Fetched{Version: intake.Version{Clock: intake.ObjectClock, N: now.Add(by).UnixNano(), Epoch: 2}, Body: []byte(`{}`)}
		e, _, err := intake.Receive(intake.Entry{Object: intake.Object{Source: "shop", Type: "order", ID: id}, FetchRequested: 1}, f, 1, now, &intake.Policy{})
		if err == nil {
			t.Fatal("a state of the future is believed")
		}
		intake.Finish(&e, &intake.Round{FetchSeq: 1, Fetch: err}, now, &intake.Policy{})
		e.Due = now.Add(due)
		return e
	}
	f := &Facts{Future: []intake.Entry{ahead("1", time.Hour, time.Minute), ahead("2", 118*time.Minute, 30*time.Second), ahead("3", 20*time.Minute, time.Hour)}}
	f.At = now.Add(25 * time.Minute)
	want := "source shop: 2 objects changed up to 1h33m ahead of our clock, and each waits until its time has come; the next is asked about at 2026-03-01T12:00:30Z"
	if fs := f.of("clock"); len(fs) != 1 || fs[0].Words != want {
		t.Errorf("the findings are %v", fs)
	}
	if f.At = now.Add(3 * time.Hour); len(f.of("clock")) != 0 {
		t.Errorf("their time has come, and there are %v", f.of("clock"))
	}
}

// What is found is of one of [Kinds], which docs/situations.md explains, and none of them is never found.
func TestKinds(t *testing.T) {
	t.Parallel()
	var written []string
	for _, file := range []string{"finding.go", "destinations.go", "inbox.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:Kind: |add\()"([a-z-]+)[":]`).FindAllStringSubmatch(string(code), -1) {
			written = append(written, m[1])
		}
	}
	slices.Sort(written)
	if written = slices.Compact(written); !slices.Equal(written, slices.Sorted(slices.Values(Kinds))) {
		t.Errorf("the kinds are %q, and found are %q", Kinds, written)
	}
}

// A ledger that cannot be read is no ledger in which everything moves.
func TestUnreadLedger(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := Read(ctx, memory.New(nil)); err == nil {
		t.Errorf("read %+v", f)
	}
}

// Requests that hang at a limit of four are a finding after ten seconds, and while they settle; once they are answered there is none.
func TestHangingRequestsAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		log := logrus.New()
		log.SetOutput(io.Discard)
		c, err := coordinator.New(db, &coordinator.Options{Log: log, Destinations: map[string]coordinator.Limit{"books": {Concurrent: 4}}})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan struct{})
		d, err := saga.Define("o", 1, saga.Do("make", func(ctx context.Context, _ saga.Call[string]) (string, error) {
			select {
			case <-answers:
				return "made", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}).Idempotent().NoUndo("the test does not look").To("books"))
		if err == nil {
			err = c.Register(t.Context(), d)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for i := range 4 {
			if _, err := c.Start(t.Context(), "o", fmt.Sprint(i), "", nil); err != nil {
				t.Fatal(err)
			}
		}
		found := func(after time.Duration, want string) {
			t.Helper()
			<-time.After(after)
			f, err := Read(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			if fs := f.of("slots"); len(fs) != min(len(want), 1) || want != "" && !strings.HasPrefix(fs[0].Words, want) {
				t.Errorf("at %s the findings are %q, want %q: %+v", time.Now(), fs, want, f.Standing.Destinations)
			}
		}
		found(5*time.Second, "")
		found(15*time.Second, "destination books: requests without an answer hold 4 slots of its limit")
		found(30*time.Second, "destination books: requests without an answer hold ") // three are tried again, and one slot is kept for what settles
		close(answers)
		found(2*time.Minute, "")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A ledger of which no process that runs has a witness is a finding; one that has is enough.
func TestNoWitnessIsAFinding(t *testing.T) {
	t.Parallel()
	for want, has := range map[string][]string{
		"":                                 {"permission denied", ledger.WitnessKept},
		"the ledger has no witness":        {"permission denied"},
		"the witness of what runs knew no": {ledger.WitnessNew},
	} {
		f := &Facts{}
		for _, w := range has {
			f.Sessions = append(f.Sessions, ledger.Session{Witness: w})
		}
		if fs := f.of("witness"); len(fs) != min(len(want), 1) || want != "" && !strings.HasPrefix(fs[0].Words, want) {
			t.Errorf("%q: %v", has, fs)
		}
	}
}
