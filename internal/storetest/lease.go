package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var leaseCases = []testCase{
	{name: "what is due, the longest first", run: leaseDue},
	{name: "leased entries are left alone", run: leaseHeld, breaks: broken{"lease-held": func(s Store) Store { return thief{s} }}},
	{name: "only those with a lease are returned", run: leaseReturned},
	{name: "an error stores nothing", run: leaseError},
}

var updateCases = []testCase{
	{name: "everything comes back", run: updateRoundTrip},
	{name: "an empty entry when there is none", run: updateEmpty},
	{name: "an error stores nothing", run: updateError},
	{name: "a late write finds another fence", run: updateFence},
}

// take is how a process leases an entry.
func take(holder string) func(time.Time, *intake.Entry) error {
	return func(now time.Time, e *intake.Entry) error {
		e.Holder, e.Until = holder, now.Add(time.Hour)
		e.Fence++
		return nil
	}
}

// overdue makes an entry due since an hour ago.
func overdue(b *bench) func(*intake.Entry) {
	b.Helper()
	now := b.calendar()
	return func(e *intake.Entry) { e.Due = now.Add(-time.Hour) }
}

func ids(es []intake.Entry) string {
	var all []string
	for _, e := range es {
		all = append(all, e.Object.ID)
	}
	return fmt.Sprint(all)
}

// same compares two entries, but for when they were written.
func same(b *bench, what string, got, want intake.Entry) {
	b.Helper()
	got.Updated, want.Updated = time.Time{}, time.Time{}
	if !reflect.DeepEqual(got, want) {
		b.Errorf("%s is\n%+v, want\n%+v", what, got, want)
	}
}

// "Lease hands up to limit entries that are due and whose lease, if any, is over".
func leaseDue(b *bench) {
	now := b.calendar()
	for id, due := range map[string]time.Time{
		"old": now.Add(-time.Hour), "older": now.Add(-2 * time.Hour), "oldest": now.Add(-3 * time.Hour),
		"tomorrow": now.Add(24 * time.Hour), "never": {},
	} {
		b.put(object(id), func(e *intake.Entry) { e.Due = due })
	}
	b.put(object("old"), func(e *intake.Entry) { e.Holder, e.Until = "a process that is gone", now.Add(-time.Minute) })
	for _, want := range []string{"[oldest older]", "[old]", "[]"} {
		es, err := b.Lease(b.Context(), 2, take("me"))
		if err != nil || ids(es) != want {
			b.Fatalf("claimed %s, %v; want %s", ids(es), err, want)
		}
		for _, e := range es {
			if e.Holder != "me" || e.Fence != 1 {
				b.Errorf("it was returned as %+v", e)
			}
			same(b, "what is stored", b.known(e.Object), e)
		}
	}
}

// G5: no process claims what another works on.
func leaseHeld(b *bench) {
	b.put(object("1"), overdue(b))
	if es, err := b.Lease(b.Context(), 10, take("me")); err != nil || ids(es) != "[1]" {
		b.Fatalf("claimed %s, %v", ids(es), err)
	}
	if es, err := b.Lease(b.Context(), 10, take("you")); err != nil || len(es) != 0 {
		b.Errorf("claimed %s, %v; I have it", ids(es), err)
	}
	end := b.calendar().Add(5 * time.Millisecond)
	b.put(object("1"), func(e *intake.Entry) { e.Until = end })
	b.until(b.calendar, end)
	if es, err := b.Lease(b.Context(), 10, take("you")); err != nil || ids(es) != "[1]" || es[0].Fence != 2 {
		b.Errorf("claimed %+v, %v; my lease is over", es, err)
	}
}

// "Those are returned that the callback leaves with a Holder and a lease in the future." The others
// are stored.
func leaseReturned(b *bench) {
	now := b.calendar()
	for i, id := range []string{"a", "b", "c"} {
		b.put(object(id), func(e *intake.Entry) { e.Due = now.Add(time.Duration(i-10) * time.Hour) })
	}
	es, err := b.Lease(b.Context(), 10, func(now time.Time, e *intake.Entry) error {
		switch e.Object.ID {
		case "a":
			e.Due = time.Time{} // nothing to do after all
		case "b":
			e.Holder, e.Until = "me", now.Add(-time.Minute)
		case "c":
			return take("me")(now, e)
		}
		return nil
	})
	if err != nil || ids(es) != "[c]" {
		b.Errorf("claimed %s, %v; want c", ids(es), err)
	}
	if e := b.known(object("a")); !e.Due.IsZero() {
		b.Errorf("what the callback left of a was not stored: %+v", e)
	}
}

// "Its error is returned as it is, and nothing is stored".
func leaseError(b *bench) {
	for _, id := range []string{"a", "b"} {
		b.put(object(id), overdue(b))
	}
	n := 0
	es, err := b.Lease(b.Context(), 10, func(now time.Time, e *intake.Entry) error {
		if n++; n == 2 {
			return errRefused
		}
		return take("me")(now, e)
	})
	if err != errRefused || len(es) != 0 { //nolint:errorlint // as it is
		b.Errorf("got %s and %v, want the callback's own error", ids(es), err)
	}
	if es, err := b.Lease(b.Context(), 10, take("you")); err != nil || len(es) != 2 || es[0].Fence != 1 || es[1].Fence != 1 {
		b.Errorf("then %+v, %v", es, err)
	}
}

// An entry comes back as the callback left it.
func updateRoundTrip(b *bench) {
	now := b.calendar()
	parked := event("1")
	parked.Payload, parked.Deleted = intake.Delta, true
	o := intake.Object{Source: "shop", Tenant: "eu", Type: "order", ID: "1"}
	parked.Object = o
	want := intake.Entry{
		Object:  o,
		Version: intake.Version{Epoch: 2, Clock: intake.CounterClock, N: 17}, Rank: 1, Ticket: 4,
		Fingerprint: intake.DigestOf("fp"), Deleted: true, Body: json.RawMessage(`{"a": 1}`),
		Dirty: 5, Clean: 4, Newest: intake.At(now, time.Second), Missing: now.Add(-1), Reread: now.Add(time.Hour),
		Behind: now.Add(-time.Minute), Cause: 12,
		Accepted: 9, Delivered: 8, Parked: []intake.Event{parked, parked},
		Due: now.Add(time.Minute), Holder: "me", Until: now.Add(2 * time.Minute), Fence: 3,
		Attempts: 6, LastError: "it was refused", Blocked: "poison",
		Held: 8, Let: 7, Withdrawn: now.Add(-2 * time.Minute), Changed: now.Add(-3 * time.Minute),
		First: now.Add(-time.Hour),
	}
	want.Missing = want.Missing.Truncate(time.Microsecond)
	want.Newest.N = now.UnixNano()
	b.put(o, func(e *intake.Entry) { *e = want })
	same(b, "the entry", b.known(o), want)
	if e := b.known(o); e.Updated.Before(now) {
		b.Errorf("updated at %v", e.Updated)
	}
	bare := intake.Entry{Object: o, First: want.First}
	b.put(o, func(e *intake.Entry) { *e = bare })
	same(b, "the emptied entry", b.known(o), bare)
}

// "Update hands one entry, an empty one when there is none".
func updateEmpty(b *bench) {
	o := object("1")
	b.put(o, func(e *intake.Entry) {
		same(b, "a new entry", *e, intake.Entry{Object: o, First: e.First})
		e.Dirty = 1
	})
	b.put(o, func(e *intake.Entry) {
		if e.Dirty != 1 || e.First.IsZero() {
			b.Errorf("the second time it is %+v", e)
		}
	})
	if e, err := b.Entry(b.Context(), object("2")); e != nil || err != nil {
		b.Errorf("an unknown entry is %+v, %v; want none", e, err)
	}
}

// "Its error is returned as it is, and nothing is stored".
func updateError(b *bench) {
	o := object("1")
	for range 2 {
		err := b.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error {
			e.Dirty = 9
			return errRefused
		})
		if err != errRefused { //nolint:errorlint // as it is
			b.Errorf("got %v, want the callback's own error", err)
		}
		if e, err := b.Entry(b.Context(), o); err != nil || e != nil && e.Dirty == 9 {
			b.Errorf("stored %+v, %v", e, err)
		}
		b.put(o, func(e *intake.Entry) { e.Dirty = 1 })
	}
}

// G6: "raised by every lease; a write with an older one is refused" by the callback, which sees the
// newest.
func updateFence(b *bench) {
	other := b.again()
	o := object("1")
	b.put(o, overdue(b))
	mine, err := b.Lease(b.Context(), 1, take("me"))
	if err != nil || len(mine) != 1 {
		b.Fatalf("claimed %v, %v", mine, err)
	}
	if err := other.Update(b.Context(), o, take("you")); err != nil {
		b.Fatal(err)
	}
	err = b.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error {
		if e.Fence != mine[0].Fence {
			return errRefused
		}
		e.Holder = ""
		return nil
	})
	if err != errRefused { //nolint:errorlint // as it is
		b.Errorf("the late write got %v", err)
	}
	if e := b.known(o); e.Holder != "you" || e.Fence != 2 {
		b.Errorf("it is %+v", e)
	}
}
