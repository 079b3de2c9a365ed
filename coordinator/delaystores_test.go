package coordinator_test

import (
	"context"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Waits on the databases, by their own clocks: a cancel, a wake, a newer version and a deadline while it waits, and
// times that come, or are past. No wait is begun twice or over before its time.
func TestDelaysOnDatabases(t *testing.T) {
	t.Parallel()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t)
			soon := time.Now().Add(2 * time.Second)
			p := several(t, l, config{}, waiter(t, "long", saga.Delay[order]("rest", time.Hour)),
				waiter(t, "short", saga.Delay[order]("rest", 1500*time.Millisecond)),
				waiter(t, "until", saga.Until("day", func(saga.Call[order]) time.Time { return soon.In(time.FixedZone("", 13*60*60)) })),
				waiter(t, "past", saga.Until("day", func(saga.Call[order]) time.Time { return time.Time{} })),
				waiter(t, "hurried", saga.Deadline[order](1500*time.Millisecond, saga.Compensate), saga.Delay[order]("rest", time.Hour)),
				waiter(t, "asked", saga.Deadline[order](1500*time.Millisecond, saga.AskPerson), saga.Delay[order]("rest", time.Hour)))
			long := func(work string) saga.ID { return saga.ID{Saga: "long", Work: work} }
			start := func(id saga.ID, total int, o *saga.StartOptions) {
				t.Helper()
				if _, err := p.Start(t.Context(), id.Saga, id.Work, order{Total: total}, o); err != nil {
					t.Fatal(err)
				}
			}
			is := func(id saga.ID, want saga.Status, revision ...string) {
				t.Helper()
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for late := time.After(time.Minute); ; {
					s, err := p.Show(t.Context(), id)
					if err == nil && s.Status == want && (revision == nil || s.Revision == revision[0]) {
						break
					}
					select {
					case <-tick.C:
					case <-late:
						t.Fatalf("%s is %s (%v), want %s", id, s.Status, err, want)
					}
				}
				rs, err := l.History(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				waited(t, rs)
			}
			for _, work := range []string{"cancelled", "woken", "revised"} {
				start(long(work), 1, &saga.StartOptions{Revision: "1"})
			}
			start(long("later"), 1, &saga.StartOptions{NotBefore: time.Now().Add(time.Hour)})
			for _, name := range []string{"short", "until", "past", "hurried", "asked"} {
				start(saga.ID{Saga: name, Work: "w"}, 1, nil)
			}
			for _, work := range []string{"cancelled", "woken", "revised", "later"} {
				is(long(work), saga.Waiting)
			}
			for _, err := range []error{p.Cancel(t.Context(), long("cancelled"), anna), p.Wake(t.Context(), long("woken"), anna)} {
				if err != nil {
					t.Error(err)
				}
			}
			start(long("revised"), 2, &saga.StartOptions{Revision: "2"})
			is(long("cancelled"), saga.Compensated)
			is(long("woken"), saga.Completed)
			is(saga.ID{Saga: "hurried", Work: "w"}, saga.Compensated)
			is(saga.ID{Saga: "asked", Work: "w"}, saga.Review)
			for _, name := range []string{"short", "until", "past"} {
				is(saga.ID{Saga: name, Work: "w"}, saga.Completed)
			}
			is(long("revised"), saga.Waiting, "2")
		})
	}
}

// waiter is a saga that waits between two steps.
func waiter(t *testing.T, name string, waits ...saga.Step[order]) saga.Program {
	t.Helper()
	act := func(_ context.Context, c saga.Call[order]) (thing, error) {
		return thing{ID: c.Step + "-" + c.Work}, nil
	}
	undo := func(context.Context, saga.Call[order], *thing) error { return nil }
	steps := []saga.Step[order]{saga.Do("authorize", act).Keyed(90 * day).EachRun().UndoMaybe(undo)}
	steps = append(append(steps, waits...), saga.Do("capture", act).Keyed(90*day).EachRun().NoUndo("a test").Pivot())
	d, err := saga.Define(name, 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
