package intake

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Each row names the rule that decides it.
func TestGate(t *testing.T) {
	v1, v2, v3 := clocked(1), clocked(2), clocked(3)
	millis := func(ms int) Version {
		return At(clocked(1).Time().Add(time.Duration(ms)*time.Millisecond), time.Millisecond)
	}
	ahead := At(noon.Add(11*time.Minute), time.Second)
	event := func(v Version) Version { v.Clock = EventClock; return v }
	epoch2 := func(v Version) Version { v.Epoch = 2; return v }
	deltas := Policy{Dense: true, Merge: mergeObjects, ParkMost: 3}
	for _, row := range []struct {
		name   string
		policy Policy
		story  func(d *desk)
	}{
		{"J1: the first is applied", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).holds(v1, "a", 1).owes(false)
		}},
		{"J1: a newer one is applied", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v2, "b"), Applied).holds(v2, "b", 2).owes(false)
		}},
		{"J7: an older one is stale", Policy{}, func(d *desk) {
			d.hears(says(v2, "b"), Applied).hears(says(v1, "a"), Stale).holds(v2, "b", 1).owes(false)
		}},
		{"J8: the same again is a duplicate", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v1, "a"), Duplicate).holds(v1, "a", 1).owes(false)
		}},
		{"J8: a tie is asked about, whoever came first", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v1, "b"), Tie).holds(v1, "a", 1).owes(true)
			d.asks(shows(v1, "b"), "accepted").holds(v1, "b", 2).owes(false)
		}},
		{"J3: without a version it is a hint", Policy{}, func(d *desk) {
			d.hears(says(Version{}, "a"), Hint).owes(true).asks(shows(v1, "a"), "accepted").holds(v1, "a", 1)
		}},
		{"J4: a stamp of the future is a hint and advances nothing", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(ahead, "b"), Hint).holds(v1, "a", 1).owes(true)
			d.asks(shows(v2, "b"), "accepted").holds(v2, "b", 2).owes(false).hears(says(v3, "c"), Applied)
		}},
		{"J4: nor may the time of an event of the future fill an empty entry", Policy{}, func(d *desk) {
			d.hears(says(event(ahead), "b"), Hint).owes(true).asks(shows(Version{}, "a"), "accepted")
		}},
		{"within the skew it is believed", Policy{}, func(d *desk) {
			d.hears(says(At(noon.Add(9*time.Minute), time.Second), "a"), Applied)
		}},
		{"R8: the source itself is not believed either, and nothing is lost", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(shows(ahead, "b"), "in the future").holds(v1, "a", 1).owes(true)
			d.later(2*time.Minute).asks(shows(ahead, "b"), "accepted").holds(ahead, "b", 2)
		}},
		{"R3: within one second the later answer wins, and no answer loops", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v1, "b"), Tie).asks(shows(v1, "b"), "accepted")
			d.hears(says(v1, "a"), Tie).later(3*time.Second).asks(shows(v1, "c"), "accepted").holds(v1, "c", 3).owes(false)
		}},
		{"R5: a state of the running second is read once more, and not twice", Policy{}, func(d *desk) {
			now := At(noon, time.Second)
			d.hears(thin(Version{}), Hint).asks(shows(now, "a"), "accepted").owes(false)
			d.later(3*time.Second).asks(shows(now, "b"), "accepted").later(3*time.Second).asks(shows(now, "b"), "unchanged")
			if !d.e.Reread.IsZero() || !d.e.Due.IsZero() {
				d.t.Fatalf("it is read once more at %s, due %s", d.e.Reread, d.e.Due)
			}
		}},
		{"states of one second are revisions of their own, in order", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied)
			first := d.e.Snapshot().Revision
			d.hears(says(v1, "b"), Tie).asks(shows(v1, "b"), "accepted")
			second := d.e.Snapshot().Revision
			d.hears(says(v2, "c"), Applied)
			if third := d.e.Snapshot().Revision; first != "2026-11-20T11:58:21Z" || second != "2026-11-20T11:58:21.000000001Z" || third != "2026-11-20T11:58:22Z" {
				d.t.Fatalf("revisions %s, %s, %s", first, second, third)
			}
		}},
		{"R3: of one version, an answer to an earlier question comes too late", Policy{}, func(d *desk) {
			d.hears(thin(v1), Hint).hears(thin(v1), Hint).asks(shows(v1, "b"), "accepted")
			e, what, err := Receive(d.e, &Fetched{Version: v1, Body: json.RawMessage(`{"is":"a"}`)}, 1, d.now, &d.p)
			if d.e = e; what != "an answer that came too late" || err != nil {
				d.t.Fatalf("%s, %v", what, err)
			}
			d.holds(v1, "b", 1)
		}},
		{"J8: versions of two resolutions are equal within the coarser", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(millis(900), "a"), Duplicate).hears(says(millis(900), "b"), Tie)
			d.asks(shows(millis(900), "b"), "accepted").hears(says(v1, "a"), Tie).hears(says(v2, "c"), Applied)
		}},
		{"J6, R9: another way of counting is asked about and stops there", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(Counter(7), "b"), Hint).asks(shows(Counter(7), "b"), "begin a new epoch").holds(v1, "a", 1)
			if !strings.Contains(d.e.Blocked, "new epoch") || !d.e.Due.IsZero() {
				d.t.Fatalf("blocked %q, due %s", d.e.Blocked, d.e.Due)
			}
			d.hears(says(epoch2(Counter(1)), "c"), Hint).asks(shows(epoch2(Counter(1)), "c"), "accepted").holds(epoch2(Counter(1)), "c", 2)
			d.hears(says(clocked(99), "d"), Stale)
		}},
		{"J1: the next of a dense counter is applied", Policy{Dense: true}, func(d *desk) {
			d.hears(says(Counter(1), "a"), Applied).hears(says(Counter(2), "b"), Applied).holds(Counter(2), "b", 2)
		}},
		{"J1: a gap of whole states is noted and not waited for", Policy{Dense: true}, func(d *desk) {
			d.hears(says(Counter(1), "a"), Applied)
			e, disposition, why := Judge(d.e, &Delivery{Event: says(Counter(5), "b")}, d.now, &d.p)
			if d.e = e; disposition != Applied || !strings.Contains(why, "3 versions after 1") {
				d.t.Fatalf("%s: %s", disposition, why)
			}
			d.holds(Counter(5), "b", 2).owes(false).hears(says(Counter(3), "x"), Stale)
		}},
		{"J11: deltas are parked and released in order", deltas, func(d *desk) {
			d.hears(says(Counter(1), "a"), Applied).hears(delta(4), Parked).hears(delta(3), Parked).hears(delta(3), Duplicate).owes(false)
			d.hears(delta(2), Applied)
			if got := string(d.e.Body); got != `{"is":"a","n2":2,"n3":3,"n4":4}` || len(d.e.Parked) != 0 || d.e.Accepted != 4 || d.e.Version != Counter(4) {
				d.t.Fatalf("%s, version %s, %d parked, %d accepted", got, d.e.Version.Revision(), len(d.e.Parked), d.e.Accepted)
			}
			d.owes(false).hears(delta(4), Duplicate).hears(delta(2), Stale)
		}},
		{"R1: after the park time the source is asked, and what it covers is dropped", deltas, func(d *desk) {
			d.hears(says(Counter(1), "a"), Applied).hears(delta(3), Parked).hears(delta(5), Parked)
			if due := d.e.Due; !due.Equal(d.now) { // the first state is to be delivered
				d.t.Fatalf("due %s", due)
			}
			d.e.Delivered = d.e.Accepted
			d.later(31*time.Second).asks(shows(Counter(4), "b"), errBehind.Error())
			if len(d.e.Parked) != 0 || d.e.Version != Counter(5) { // 3 was covered, 5 followed
				d.t.Fatalf("version %s, %d parked", d.e.Version.Revision(), len(d.e.Parked))
			}
			d.later(time.Minute).asks(shows(Counter(5), "c"), "accepted").owes(false)
		}},
		{"a whole state fills the gap", deltas, func(d *desk) {
			d.hears(delta(3), Parked).hears(delta(1), Parked).hears(says(Counter(2), "b"), Applied)
			if got := string(d.e.Body); got != `{"is":"b","n3":3}` || len(d.e.Parked) != 0 {
				d.t.Fatalf("%s, %d parked", got, len(d.e.Parked))
			}
		}},
		{"parking is bounded", deltas, func(d *desk) {
			d.hears(delta(3), Parked).hears(delta(4), Parked).hears(delta(5), Parked).hears(delta(6), Hint).owes(true)
			d.asks(shows(Counter(6), "z"), "accepted").holds(Counter(6), "z", 1)
			if len(d.e.Parked) != 0 {
				d.t.Fatal("what the fetch covers is still parked")
			}
		}},
		{"R2: nothing stays parked of an object that is gone", deltas, func(d *desk) {
			d.hears(delta(2), Parked).hears(delta(3), Parked).later(31*time.Second).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone")
			d.later(20*time.Second).asks(gone, "still gone").buried(Version{}, 0).owes(false)
			if len(d.e.Parked) != 0 || !d.e.Due.IsZero() {
				d.t.Fatalf("%d parked, due %s", len(d.e.Parked), d.e.Due)
			}
		}},
		{"a delta that nobody can apply is a hint", Policy{}, func(d *desk) {
			d.hears(says(Counter(1), "a"), Applied).hears(delta(2), Hint).owes(true).asks(shows(Counter(2), "b"), "accepted")
		}},
		{"a delta that does not fit is a hint", deltas, func(d *desk) {
			broken := with(delta(2), func(ev *Event) { ev.Body = json.RawMessage(`[]`) })
			d.hears(says(Counter(1), "a"), Applied).hears(broken, Hint).owes(true).holds(Counter(1), "a", 1)
		}},
		{"J3: a part of the object is a hint", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(v2), Hint).holds(v1, "a", 1).owes(true)
		}},
		{"J7: a part of an older state is stale", Policy{}, func(d *desk) {
			d.hears(says(v2, "a"), Applied).hears(thin(v1), Stale).owes(false)
		}},
		{"J8: a part of the same state is a hint where a version is long, else a duplicate", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(v1), Hint)
			d.e = Entry{Object: order}
			d.hears(says(Counter(1), "a"), Applied).hears(thin(Counter(1)), Duplicate)
		}},
		{"J8: applied twice around a crash it is a duplicate", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v1, "a"), Duplicate)
			if d.e.Accepted != 1 {
				d.t.Fatalf("%d accepted", d.e.Accepted)
			}
		}},
		{"J5: an event's time fills an empty entry and proves nothing else", Policy{}, func(d *desk) {
			d.hears(says(event(v2), "b"), Applied).holds(Version{}, "b", 1).owes(false)
			d.hears(says(event(v3), "c"), Hint).holds(Version{}, "b", 1).owes(true)
			d.asks(shows(Version{}, "d"), "accepted").holds(Version{}, "d", 2)
			d.hears(says(event(v3), "c"), Hint).holds(Version{}, "d", 2)
		}},
		{"objects without version are numbered revisions", Policy{}, func(d *desk) {
			d.hears(says(event(v2), "b"), Applied)
			first := d.e.Snapshot().Revision
			d.hears(says(event(v3), "c"), Hint).asks(shows(Version{}, "d"), "accepted")
			if second := d.e.Snapshot().Revision; first != "1" || second != "2" {
				d.t.Fatalf("revisions %s, %s", first, second)
			}
		}},
		{"J5: nor does it where the source is to be asked already", Policy{}, func(d *desk) {
			d.hears(thin(Version{}), Hint).hears(says(event(clocked(1)), "a"), Hint).asks(shows(clocked(2), "b"), "accepted").holds(clocked(2), "b", 1)
		}},
		{"J9: a newer deletion is a tombstone", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(v2), Tombstoned).buried(v2, 2).owes(false).hears(deletes(v2), Duplicate)
			if c := d.e.Snapshot(); !c.Deleted || string(c.Body) != `{"is":"a"}` {
				d.t.Fatalf("the change is %+v; it should carry the last words", c)
			}
		}},
		{"J7: a late update after the deletion is stale", Policy{}, func(d *desk) {
			d.hears(deletes(v3), Tombstoned).hears(says(v2, "b"), Stale).buried(v3, 0)
		}},
		{"J10: only the source brings an object back", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(v2), Tombstoned).hears(says(v3, "c"), Hint).buried(v2, 2).owes(true)
			d.asks(shows(v3, "c"), "accepted").holds(v3, "c", 3).owes(false)
		}},
		{"and if it does not, the object stays gone", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(v2), Tombstoned).hears(says(v3, "c"), Hint).asks(gone, "still gone").buried(v2, 2).owes(false)
		}},
		{"R7: at the version it was deleted at it is believed at the second look", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(Version{}), Hint).goes().buried(v1, 2)
			d.hears(thin(Version{}), Hint).later(2*time.Second).asks(shows(v1, "a"), "a second look").buried(v1, 2).owes(true)
			d.later(2*time.Second).asks(shows(v1, "a"), "accepted").holds(v1, "a", 3)
		}},
		{"R7: a late event and a lagging read together bring nothing back", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(Version{}), Hint).goes().hears(says(v2, "b"), Hint)
			d.asks(shows(v2, "b"), "a second look").buried(v1, 2).later(2*time.Second).asks(gone, "still gone").buried(v1, 2)
		}},
		{"R5: a hint while the second look is due is answered by a look that is later still", Policy{}, func(d *desk) {
			d.hears(thin(Version{}), Hint).asks(shows(Version{}, "a"), "accepted").later(2*time.Second).hears(thin(Version{}), Hint)
			if !d.e.Due.Equal(d.now.Add(d.p.Settle)) {
				d.t.Fatalf("due %s", d.e.Due)
			}
			d.later(2*time.Second).asks(shows(Version{}, "b"), "accepted").holds(Version{}, "b", 2)
		}},
		{"R5: hints without end do not put the second look off for ever", Policy{}, func(d *desk) {
			d.hears(thin(Version{}), Hint).asks(shows(Version{}, "a"), "accepted")
			for range 10 {
				d.later(time.Second).hears(thin(Version{}), Hint)
			}
			d.asks(shows(Version{}, "a"), "unchanged")
			if d.e.Due.IsZero() { // and that look is not the last: the source may not have settled
				d.t.Fatal("the last hint was answered too early")
			}
		}},
		{"J3, R6: a deletion without version is asked about", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(deletes(Version{}), Hint).holds(v1, "a", 1).owes(true).goes().buried(v1, 2).owes(false)
			if d.e.Origin != 1 || d.e.FetchSeq != 1 {
				d.t.Fatalf("rank %d, ticket %d", d.e.Origin, d.e.FetchSeq)
			}
		}},
		{"R6: of a state that everybody is shown by now, the answer is the second to say so", Policy{}, func(d *desk) {
			d.hears(says(clocked(-900), "a"), Applied).hears(deletes(Version{}), Hint).asks(gone, "gone").buried(clocked(-900), 2)
		}},
		{"R6: restored in the second of its deletion, and read before that, it is not gone", Policy{}, func(d *desk) {
			now := At(noon, time.Second)
			d.hears(says(now, "back"), Applied).hears(deletes(now), Tie).asks(gone, "a second look").later(2*time.Second).asks(shows(now, "back"), "unchanged").holds(now, "back", 1)
		}},
		{"R5: if the source still has it, it is read once more", Policy{}, func(d *desk) {
			d.hears(says(clocked(-90000), "a"), Applied).hears(deletes(Version{}), Hint).asks(shows(clocked(-90000), "a"), "unchanged").owes(false)
			d.later(3*time.Second).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone")
		}},
		{"a deletion that nobody gave a version is a revision of its own", Policy{}, func(d *desk) {
			d.hears(says(Counter(17), "a"), Applied).hears(deletes(Version{}), Hint).goes().buried(Counter(17), 2)
			counted := d.e.Snapshot().Revision
			d.e = Entry{Object: order}
			d.hears(says(v1, "a"), Applied).hears(deletes(Version{}), Hint).goes().buried(v1, 2)
			if timed := d.e.Snapshot().Revision; counted != "18" || timed != "2026-11-20T11:58:21.000000001Z" {
				d.t.Fatalf("revisions %s and %s", counted, timed)
			}
		}},
		{"J9, J7: a deletion before anything else is a tombstone that nobody is told of", Policy{}, func(d *desk) {
			d.hears(deletes(v2), Tombstoned).buried(v2, 0).hears(says(v1, "a"), Stale).buried(v2, 0)
		}},
		{"a deletion is handed on as a proposal, with the last words; it undoes nothing here", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied)
			d.e.Delivered = 1
			d.hears(deletes(v2), Tombstoned)
			if d.e.Accepted <= d.e.Delivered {
				d.t.Fatal("nobody would be told")
			}
		}},
		{"R6: nothing found twice is a deletion", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(gone, "a second look").holds(v1, "a", 1).owes(true)
			d.later(2*time.Second).asks(gone, "gone").buried(v1, 2)
		}},
		{"nothing found and then something is no deletion", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(gone, "a second look").later(2*time.Second).asks(shows(v1, "a"), "unchanged").holds(v1, "a", 1).owes(false)
		}},
		{"an update between two looks is no deletion", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(thin(Version{}), Hint).asks(gone, "a second look").hears(says(v2, "b"), Applied)
			d.later(2*time.Second).asks(gone, "a second look").holds(v2, "b", 2)
		}},
		{"what nobody ever saw is looked for once more, much later", Policy{}, func(d *desk) {
			d.hears(thin(v1), Hint).asks(gone, "a second look").later(2*time.Second).asks(gone, "gone").buried(Version{}, 0).owes(false)
			d.later(20*time.Second).asks(shows(v1, "a"), "a second look").later(2*time.Second).asks(shows(v1, "a"), "accepted").holds(v1, "a", 1)
		}},
		{"R2: a hint during the fetch forces exactly one more round", Policy{}, func(d *desk) {
			d.hears(thin(v1), Hint)
			d.asksWhile(func() { d.hears(thin(v2), Hint).hears(thin(v2), Hint) }, shows(v1, "a"), errBehind.Error()).owes(true)
			d.later(4*time.Second).asks(shows(v2, "b"), "accepted").owes(false)
		}},
		{"R2: only what was asked for before is answered", Policy{}, func(d *desk) {
			d.hears(thin(Version{}), Hint)
			d.asksWhile(func() { d.hears(thin(Version{}), Hint) }, shows(v1, "a"), "accepted").owes(true)
		}},
		{"R4: what is behind the newest word is not clean, though it may be news", Policy{}, func(d *desk) {
			d.hears(thin(v3), Hint).asks(shows(v2, "b"), "spoken of").holds(v2, "b", 1).owes(true)
			if d.e.Attempts != 1 || !d.e.Due.After(d.now.Add(d.p.Settle-1)) {
				d.t.Fatalf("attempts %d, due %s", d.e.Attempts, d.e.Due)
			}
			d.later(4*time.Second).asks(shows(v3, "c"), "accepted").holds(v3, "c", 2).owes(false)
		}},
		{"a lagging read never replaces a pushed state", Policy{}, func(d *desk) {
			d.hears(says(v2, "b"), Applied).hears(thin(Version{}), Hint).asks(shows(v1, "a"), "spoken of").holds(v2, "b", 1).owes(true)
		}},
		{"J3: hints without a version wait for the second look that is planned", Policy{}, func(d *desk) {
			d.hears(thin(Version{}), Hint).asks(shows(At(noon, time.Second), "a"), "accepted")
			d.e.Delivered = 1
			for range 1000 {
				d.hears(thin(Version{}), Hint)
			}
			if !d.e.Due.Equal(noon.Add(3 * time.Second)) {
				d.t.Fatalf("due %s", d.e.Due)
			}
			d.later(3*time.Second).asks(shows(At(noon, time.Second), "a"), "unchanged").owes(false)
			if !d.e.Due.IsZero() {
				d.t.Fatalf("due again at %s", d.e.Due)
			}
		}},
		{"J2: an id that came with another body is a hint", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(with(says(v2, "b"), func(ev *Event) { ev.Disposition = Conflict }), Conflict).holds(v1, "a", 1).owes(true)
		}},
		{"B10: our own doing is noted and nothing follows", Policy{Echo: func(_ Object, body json.RawMessage) bool { return strings.Contains(string(body), "ours") }}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v2, "ours"), Echo).holds(v2, "ours", 1).hears(says(v1, "a"), Stale).hears(says(v3, "b"), Applied).holds(v3, "b", 2)
		}},
		{"B10: also when it is fetched", Policy{Echo: func(_ Object, body json.RawMessage) bool { return strings.Contains(string(body), "ours") }}, func(d *desk) {
			d.hears(thin(v1), Hint).asks(shows(v1, "ours"), "unchanged").holds(v1, "ours", 0)
		}},
		{"B10: a newer version of the same content is nothing to do", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied).hears(says(v2, "a"), Applied).holds(v2, "a", 1).hears(says(v1, "a"), Stale)
		}},
		{"AlwaysFetch (J3): everything newer is a hint", Policy{AlwaysFetch: true}, func(d *desk) {
			d.hears(says(v1, "a"), Hint).asks(shows(v1, "a"), "accepted").hears(says(v1, "a"), Duplicate).hears(says(v2, "b"), Hint)
			d.hears(deletes(v3), Hint).holds(v1, "a", 1).goes().buried(v1, 2)
		}},
		{"J12: a replay lifts a block and goes through the gate again", Policy{}, func(d *desk) {
			d.hears(says(v1, "a"), Applied)
			d.e.Blocked, d.e.Due, d.e.Attempts = "refused", time.Time{}, 1
			e, disposition, _ := Judge(d.e, &Delivery{Event: says(v1, "a"), Outcome: Applied}, d.now, &d.p)
			if disposition != Duplicate || e.Blocked != "" || !e.Due.Equal(d.now) {
				d.t.Fatalf("%s, blocked %q, due %s", disposition, e.Blocked, e.Due)
			}
		}},
		{"J12: a replay of what the door put aside asks the source", Policy{}, func(d *desk) {
			d.hears(with(says(v1, "a"), func(ev *Event) { ev.Disposition = Unknown }), Hint).owes(true)
		}},
		{"J3: a body that was erased meanwhile tells nothing", Policy{}, func(d *desk) {
			erased := func(ev *Event) { ev.Body = nil }
			d.hears(with(says(v1, "a"), erased), Hint).owes(true).asks(shows(v1, "a"), "accepted").hears(with(says(v2, "b"), erased), Hint).holds(v1, "a", 1)
		}},
		{"J13: what names no object asks nobody, replayed or not", Policy{}, func(d *desk) {
			nameless := with(says(v1, "a"), func(ev *Event) { ev.Disposition, ev.Why, ev.Object.ID = Unknown, "it names no object", "" })
			d.hears(nameless, Unknown).hears(with(nameless, func(ev *Event) { ev.Disposition = Conflict }), Conflict).owes(false)
		}},
		{"J13: nor does what names no type of it (H1)", Policy{}, func(d *desk) {
			d.hears(with(says(v1, "a"), func(ev *Event) {
				ev.Disposition, ev.Why, ev.Object.Type = Unknown, "its type is told by a header only", ""
			}), Unknown).owes(false)
		}},
		{"J13: nor does what the door put aside beside an id that was heard before", Policy{}, func(d *desk) {
			d.hears(with(says(v1, "a"), func(ev *Event) { ev.Disposition, ev.Why = Conflict, "its tenant is not among the source's Tenants" }), Conflict).owes(false)
		}},
		{"behind a blocked version an older one is stale, a newer one lifts the block", Policy{}, func(d *desk) {
			d.hears(says(v2, "poison"), Applied)
			d.e.Blocked, d.e.Due = "refused", time.Time{}
			d.hears(says(v1, "good"), Stale).holds(v2, "poison", 1)
			if d.e.Blocked == "" || !d.e.Due.IsZero() {
				d.t.Fatal("an old event lifted the block")
			}
			d.hears(says(v3, "good"), Applied)
			if d.e.Blocked != "" || d.e.Due.IsZero() {
				d.t.Fatal("a newer state does not lift the block")
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) { row.story(newDesk(t, row.policy)) })
	}
}
