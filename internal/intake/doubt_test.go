package intake

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// What may be wrong about a version that is newer than all others, by the number of the finding and
// the rule of doc.go.
func TestDoubt(t *testing.T) {
	t.Parallel()
	epoch := func(n int64, v Version) Version { v.Epoch = n; return v }
	for _, row := range []struct {
		name   string
		policy Policy
		story  func(d *desk)
	}{
		{"J6: an old delivery behind a new epoch is a hint", Policy{}, func(d *desk) {
			d.hears(says(clocked(1), "pending"), Applied).hears(says(clocked(20), "paid"), Applied)
			d.hears(says(epoch(1, clocked(1)), "pending"), Hint).holds(clocked(20), "paid", 2).owes(true)
			d.asks(shows(epoch(1, clocked(30)), "shipped"), "accepted").holds(epoch(1, clocked(30)), "shipped", 3)
			d.hears(says(epoch(1, clocked(1)), "pending"), Stale).hears(says(epoch(1, clocked(31)), "sent"), Applied)
		}},
		{"J6: it counts for nothing, so a source that was not restored is clean", Policy{}, func(d *desk) {
			d.hears(says(clocked(20), "paid"), Applied).hears(says(epoch(1, clocked(1)), "pending"), Hint)
			d.asks(shows(clocked(20), "paid"), "unchanged").owes(false)
		}},
		{"J6: nor does an old deletion bury the object, or a part of it name a version", Policy{}, func(d *desk) {
			d.hears(says(clocked(20), "paid"), Applied).hears(deletes(epoch(1, clocked(1))), Hint).hears(thin(epoch(1, clocked(1))), Hint)
			d.holds(clocked(20), "paid", 1)
			if d.e.Newest != clocked(20) {
				d.t.Fatalf("%s was spoken of", d.e.Newest.Revision())
			}
		}},
		{"J6: where nothing is known, nothing is older", Policy{}, func(d *desk) {
			d.hears(says(epoch(3, Counter(1)), "a"), Applied).holds(epoch(3, Counter(1)), "a", 1)
		}},
		{"J4: a counter beyond all reason is not believed, and what comes after it is", Policy{}, func(d *desk) {
			d.hears(says(Counter(7), "7"), Applied).hears(says(Counter(math.MaxInt64), "0"), Hint).holds(Counter(7), "7", 1).owes(true)
			d.hears(says(Counter(8), "8"), Applied).asks(shows(Counter(8), "8"), "unchanged").owes(false).hears(deletes(Counter(math.MaxInt64)), Hint)
			d.holds(Counter(8), "8", 2)
		}},
		{"J4: of a dense counter one leaps further than anything can be missed", Policy{Dense: true}, func(d *desk) {
			d.hears(says(Counter(7), "7"), Applied).hears(says(Counter(20_000), "x"), Hint).asks(shows(Counter(8), "8"), "accepted").owes(false)
			d.hears(says(Counter(9), "9"), Applied).hears(says(Counter(10_000), "y"), Applied)
		}},
		{"J4, J7: a counter of an epoch that is over neither leaps nor is far too low, it is old", Policy{Dense: true}, func(d *desk) {
			d.hears(says(epoch(1, Counter(15_000)), "a"), Applied).hears(says(Counter(40_000), "x"), Stale).hears(says(Counter(1), "y"), Stale).owes(false)
		}},
		{"J6: of an epoch that was spoken of before, it is not the first", Policy{}, func(d *desk) {
			d.hears(thin(epoch(1, clocked(1))), Hint).hears(says(epoch(1, clocked(2)), "a"), Applied)
		}},
		{"J4: the source itself may count as high as it wants", Policy{Dense: true}, func(d *desk) {
			d.hears(says(Counter(7), "7"), Applied).hears(says(Counter(math.MaxInt64), "z"), Hint).asks(shows(Counter(math.MaxInt64), "z"), "accepted")
			d.hears(thin(Version{}), Hint).later(2*time.Second).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone")
			if r := d.e.Snapshot().Revision; r != "9223372036854775807" {
				d.t.Fatalf("revision %s", r)
			}
		}},
		{"R10: what was only spoken of is forgotten when the source has shown less for an hour", Policy{}, func(d *desk) {
			d.hears(says(Counter(7), "7"), Applied).hears(thin(Counter(1<<50)), Hint).asks(shows(Counter(8), "8"), "spoken of").holds(Counter(8), "8", 2)
			d.later(59*time.Minute).asks(shows(Counter(9), "9"), "spoken of")
			if d.e.Blocked == "" || d.e.Due.IsZero() {
				d.t.Fatalf("blocked %q, due %s: a person should see it, and it should be tried", d.e.Blocked, d.e.Due)
			}
			d.later(time.Minute).asks(shows(Counter(10), "10"), "accepted; a newer version, which was only spoken of, is forgotten").owes(false)
			if d.e.Newest != Counter(10) || d.e.Blocked != "" || !d.e.Behind.IsZero() {
				d.t.Fatalf("newest %s, blocked %q, behind since %s", d.e.Newest.Revision(), d.e.Blocked, d.e.Behind)
			}
			d.hears(says(Counter(11), "11"), Applied).owes(false)
		}},
		{"R10: a source that is only slow is no reason to forget", Policy{}, func(d *desk) {
			d.hears(thin(Counter(9)), Hint).asks(shows(Counter(7), "7"), "spoken of").later(10*time.Second).asks(shows(Counter(8), "8"), "spoken of")
			if d.e.Blocked != "" {
				d.t.Fatalf("blocked %q", d.e.Blocked)
			}
			d.later(10*time.Second).asks(shows(Counter(9), "9"), "accepted").owes(false)
			if !d.e.Behind.IsZero() {
				d.t.Fatalf("it shows what was spoken of, and is behind since %s", d.e.Behind)
			}
		}},
		{"R10: news begin the hour again", Policy{}, func(d *desk) {
			d.hears(thin(Counter(9)), Hint).asks(shows(Counter(7), "7"), "spoken of").later(50*time.Minute).hears(thin(Counter(10)), Hint)
			d.asks(shows(Counter(9), "9"), "spoken of").later(50*time.Minute).asks(shows(Counter(9), "9"), "spoken of").owes(true)
		}},
		{"J7: a counter that is far too low says that the accepted one may be wrong", Policy{}, func(d *desk) {
			d.hears(says(Counter(1<<50), "0"), Applied).hears(says(Counter(8), "8"), Hint).owes(true).asks(shows(Counter(1<<50), "0"), "unchanged")
			d.hears(says(Counter(9), "9"), Stale) // the source has shown it
		}},
		{"R10: what was accepted goes to a person, who begins a new epoch; meanwhile it is blocked and tried", Policy{}, func(d *desk) {
			d.hears(says(Counter(1<<50), "0"), Applied).hears(says(Counter(8), "8"), Hint)
			for range 3 {
				d.asks(shows(Counter(8), "8"), "begin a new epoch").holds(Counter(1<<50), "0", 1).later(time.Hour)
			}
			if !strings.Contains(d.e.Blocked, "begin a new epoch") || d.e.Due.IsZero() {
				d.t.Fatalf("blocked %q, due %s", d.e.Blocked, d.e.Due)
			}
			d.asks(shows(epoch(1, Counter(9)), "9"), "accepted").holds(epoch(1, Counter(9)), "9", 2)
			if d.e.Blocked != "" || d.e.Snapshot().Revision != "1/9" {
				d.t.Fatalf("blocked %q, revision %s", d.e.Blocked, d.e.Snapshot().Revision)
			}
		}},
		{"R10: so does a deletion at a counter that was never the object's", Policy{}, func(d *desk) {
			d.hears(says(Counter(7), "7"), Applied).hears(deletes(Counter(1<<50)), Tombstoned).hears(says(Counter(8), "8"), Hint)
			d.asks(shows(Counter(8), "8"), "spoken of").later(time.Minute).asks(shows(Counter(8), "8"), "begin a new epoch")
			if d.e.Blocked == "" {
				d.t.Fatal("no person would see it")
			}
		}},
		{"a source that was restored to an older time is seen, too", Policy{}, func(d *desk) {
			d.hears(says(clocked(20), "paid"), Applied).hears(thin(Version{}), Hint).asks(shows(clocked(10), "pending"), "spoken of")
			d.later(time.Minute).asks(shows(clocked(10), "pending"), "restored")
			if d.e.Blocked == "" {
				d.t.Fatal("no person would see it")
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) { t.Parallel(); row.story(newDesk(t, row.policy)) })
	}
}

// A change names the delivery that led to it: the one that was applied, or the last reason to ask
// the source.
func TestCause(t *testing.T) {
	t.Parallel()
	d := newDesk(t, Policy{})
	judge := func(number int64, ev Event, want string) {
		t.Helper()
		e, _, _ := Judge(d.e, &Delivery{Number: number, Event: ev}, d.now, &d.p)
		d.e = e
		if got := e.Snapshot().Cause; got != want {
			t.Errorf("delivery %d: the cause is %q; want %q", number, got, want)
		}
	}
	if got := d.e.Snapshot().Cause; got != "" {
		t.Errorf("the cause of nothing is %q", got)
	}
	judge(4, says(Counter(1), "a"), "shop/4")
	judge(5, says(Counter(1), "a"), "shop/4") // a duplicate
	judge(7, says(Counter(3), "c"), "shop/7")
	judge(8, says(Counter(2), "b"), "shop/7") // stale
	judge(9, thin(Counter(4)), "shop/9")
	d.asks(shows(Counter(4), "d"), "accepted")
	dense := Policy{Dense: true, Merge: mergeObjects}
	e := Entry{Object: order}
	for n, ev := range []Event{says(Counter(1), "a"), says(Counter(3), "c"), delta(5)} {
		var why string
		e, _, why = Judge(e, &Delivery{Number: int64(n + 1), Event: ev}, noon, &dense)
		if got, want := e.Snapshot().Cause, fmt.Sprint("shop/", n+1); got != want {
			t.Errorf("the cause is %q, also when a change waits for the one before it; want %q", got, want)
		}
		if want := "newer; 1 versions after 1 were never heard of"; n == 1 && why != want {
			t.Errorf("a gap of one is told as %q; want %q", why, want)
		}
	}
	if got, name := d.e.Snapshot().Cause, (&Delivery{Number: 9, Event: says(Counter(4), "")}).Name(); got != name {
		t.Errorf("the cause of what the source said is %q; want %q", got, name)
	}
}
