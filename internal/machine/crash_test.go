package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "F20: ... it is poison: review, with how many other steps were in flight each time. A crash does
// not count as a try".
func TestF20NamesBystanders(t *testing.T) {
	d := begin(t, "a idempotent undo attempts=2")
	d.most, d.over = 3, true
	for n, beside := range []int{7, 0, 12} {
		d.feed(Event{Bystanders: beside})
		r := d.chain[len(d.chain)-1]
		if r.Kind != KindLost || n < 2 && !strings.HasSuffix(strings.Split(r.Said(), ";")[1], []string{": 7", ": 0"}[n]) {
			t.Errorf("crash %d is recorded as %s %q", n+1, r.Kind, r.Said())
		}
		if e := d.st.Step("a").Forward; e.Crashes != n+1 || e.CountedAttempts > 1 {
			t.Errorf("after %d crashes: %+v", n+1, e)
		}
		if d.last.Do.Do == Wait {
			d.due()
		}
	}
	if d.review(saga.ReasonPoison); !strings.Contains(d.st.Note, "at 3 crashes") || !strings.Contains(d.st.Note, "7, 0, 12") {
		t.Errorf("the review says %q", d.st.Note)
	}
	d.over = false
	d.resolution("").due().wants("act a forward", saga.Running).crash().wants("act a forward", saga.Running) // it counts from one again
}

// "F20: ... from its second crash on a step that may be repeated pauses, 1 s and twice as long each
// time, to 15 min".
func TestF20PausesLonger(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.most, d.over = 100, true
	key, want := d.key(), time.Second
	d.tick().wants("wait until 12:00:02", saga.Retrying).due().wants("act a forward", saga.Running)
	for n := 1; n < 30; n++ {
		d.wait(grace).wants("wait", saga.Retrying)
		got := d.tail().Wait
		if got != (program.Retry{}).Backoff(key, n) || got > want || got < want/2-time.Millisecond {
			t.Fatalf("the pause after crash %d is %s, want about %s", n+1, got, want)
		}
		want = min(2*want, 15*time.Minute)
		d.due().wants("act a forward", saga.Running)
	}
	if e := d.st.Step("a").Forward; e.Crashes != 30 || len(e.ConcurrentSteps) != defaultMaxCrashes { // in every snapshot
		t.Errorf("after 30 crashes: %+v", e)
	}
}

// "C7: an undo is a step of its own: its own ... crashes", so it pauses from its second crash on,
// whatever its step says of being repeated forward: an undo may be repeated.
func TestF20AnUndoPauses(t *testing.T) {
	d := begin(t, "a at-most-once undo-maybe\nb at-most-once no-undo").succeed("1").fail(saga.Refused).wants("act a undo", saga.Compensating)
	d.crash().wants("act a undo", saga.Compensating)
	d.over = true
	d.tick().wants("wait", saga.Compensating)
	if e := d.st.Step("a").Undo; e.Crashes != 2 || !e.BackoffUntil.After(d.now) {
		t.Errorf("after its second crash: %+v", e)
	}
}

// Of the crashes only the latest are told, whatever MaxCrashes is, and none of a step that was done
// after all.
func TestF20TellsTheLatestCrashes(t *testing.T) {
	d := begin(t, "a idempotent undo\nb idempotent undo")
	d.most, d.over = 100, true
	for n := range defaultMaxCrashes + 5 {
		d.feed(Event{Bystanders: n})
		if d.last.Do.Do == Wait {
			d.due()
		}
	}
	e := d.st.Step("a").Forward
	if last := len(e.ConcurrentSteps) - 1; e.Crashes != defaultMaxCrashes+5 || last != defaultMaxCrashes-1 || e.ConcurrentSteps[0] != 5 || e.ConcurrentSteps[last] != defaultMaxCrashes+4 {
		t.Errorf("after %d crashes it tells of %v", e.Crashes, e.ConcurrentSteps)
	}
	if e := d.succeed("1").st.Step("a").Forward; e.Crashes != 0 || e.ConcurrentSteps != nil {
		t.Errorf("it is done, and tells of %d crashes: %v", e.Crashes, e.ConcurrentSteps)
	}
}

// A process that is killed every eight seconds for an hour, always with the same step
// in flight, and is known to be dead at once, which is the worst that can happen to a step: no step
// that may be repeated goes to review, and it is neither given up nor undone. (In an hour there is
// time for 18 crashes at most: twelve within the pauses up to 8.5 min, halved by their jitter, and
// one in each 7.5 min of the rest.)
func TestF20AnHourOfCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		dir   saga.Direction
		ends  saga.Status
	}{
		"idempotent": {"a idempotent undo", saga.Forward, saga.Completed}, "idempotent with a lookup": {"a idempotent lookup undo", saga.Forward, saga.Completed},
		"keyed": {"a keyed=24h undo", saga.Forward, saga.Completed}, "find": {"a find undo", saga.Forward, saga.Completed},
		"an undo": {"a idempotent undo\nb find undo", saga.Undo, saga.Compensated},
	} {
		t.Run(name, func(t *testing.T) {
			d := begin(t, c.lines)
			if c.dir == saga.Undo {
				d.succeed("1").fail(saga.Refused)
			}
			for end := d.now.Add(time.Hour); d.now.Before(end); d.now = d.now.Add(8 * time.Second) {
				d.over = true
				d.tick() // a new process: what the one before it had in flight is lost
				d.over = false
				d.settle()
			}
			e := d.st.Step("a").effort(c.dir)
			if d.st.Status == saga.Review || d.st.Compensating != (c.dir == saga.Undo) || e.Crashes >= defaultMaxCrashes || e.Crashes < 8 {
				t.Fatalf("after an hour of crashes it is %s %s, turned %v: %+v", d.st.Status, d.st.Reason, d.st.Compensating, e)
			}
			for d.last.Do.Do != Act {
				d.due().settle()
			}
			d.succeed("2").wants("rest", c.ends)
		})
	}
}

// settle answers a lookup: nothing is there.
func (d *desk) settle() {
	d.t.Helper()
	if d.last.Do.Do == Look {
		d.found(KindNotFound)
	}
}
