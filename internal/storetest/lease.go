package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var leaseCases = []testCase{
	{name: "what is due, the longest first", run: leaseDue},
}

var updateCases = []testCase{
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
