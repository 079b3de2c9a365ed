package machine

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "F20: ... after MaxCrashes crashes it is poison: review".
func TestF20Poison(t *testing.T) {
	for _, repeat := range []string{"idempotent", "keyed=24h"} {
		d := begin(t, "a "+repeat+" undo")
		for range defaultMaxCrashes - 1 {
			d.crash()
			if d.last.Do.Do == Wait {
				d.due()
			}
			d.wants("act a forward", saga.Running)
		}
		d.crash().review(saga.ReasonPoison)
	}
	d := begin(t, "a find undo")
	for range defaultMaxCrashes - 1 {
		d.crash().due().found(KindNotFound)
	}
	d.tick().due().review(saga.ReasonPoison)
}

// "F20": the first crash is the process's fault and costs no wait; from the second on the step
// waits.
func TestF20FirstCrashDoesNotWait(t *testing.T) {
	d := begin(t, "a idempotent undo").crash().wants("act a forward", saga.Running)
	d.crash().wants("wait", saga.Retrying)
}

// "An announced shutdown is no crash, and does not count as a try".
func TestF20Shutdown(t *testing.T) {
	d := begin(t, "a idempotent undo attempts=2")
	for n := 2; n < 20; n++ {
		class := saga.Unknown
		if n%2 == 0 {
			class = saga.Unsent
		}
		d.outcome(program.Outcome{Class: class, Error: "stopped", Shutdown: true}).wants("act a forward", saga.Running)
		if e := d.st.Step("a").Forward; e.Attempts != n || e.CountedAttempts != 1 || e.Crashes != 0 {
			t.Fatalf("after %d shutdowns: %+v", n-1, e)
		}
	}
	d.fail(saga.Unknown).due().wants("act a forward", saga.Running).fail(saga.Unknown).review(saga.ReasonExhausted) // the second and last try
}

// A shutdown during an answer does not change the answer.
func TestF20ShutdownWithAnswer(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.outcome(program.Outcome{Class: program.Succeeded, ExternalID: "1", Shutdown: true}).wants("rest", saga.Completed)
	d = begin(t, "a idempotent undo")
	d.outcome(program.Outcome{Class: saga.Refused, Error: "no", Shutdown: true}).wants("rest", saga.Compensated)
	if d.tail().ErrorClass != saga.Refused {
		t.Errorf("class %s", d.tail().ErrorClass)
	}
}

// "F21: an action or definition at fault has sent nothing: review".
func TestF21Fault(t *testing.T) {
	d := begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Fault).review(saga.ReasonPoison)
	if e := d.st.Step("b").Forward; e.Phase != Ready || !e.OutcomeUnknownUntil.IsZero() {
		t.Errorf("nothing was sent, but the step is %+v", e)
	}
	d.wait(time.Hour).review(saga.ReasonPoison)
	d.cancel().wants("act a undo", saga.Compensating) // b is owed nothing
}

// "F22: when the next try comes is the Retry policy's: exponential, capped. A Retry-After lengthens
// a wait and never shortens it".
func TestF22Backoff(t *testing.T) {
	d := begin(t, "a idempotent undo initial=10s max=1m attempts=9")
	key := d.key()
	policy := d.spec.Steps[0].Retry
	for n := 1; n < 6; n++ {
		d.fail(saga.Unsent)
		if got, want := d.tail().Wait, policy.Backoff(key, n); got != want {
			t.Errorf("after try %d: a wait of %s, want %s", n, got, want)
		}
		d.due()
	}
}

func TestF22RetryAfter(t *testing.T) {
	after := func(d time.Duration) time.Duration {
		desk := begin(t, "a idempotent undo initial=10s")
		desk.outcome(program.Outcome{Class: saga.Unsent, Error: "429", RetryAfter: d})
		return desk.tail().Wait
	}
	if got := after(time.Minute); got != time.Minute {
		t.Errorf("Retry-After of a minute: a wait of %s", got)
	}
	if got := after(time.Second); got < 5*time.Second {
		t.Errorf("Retry-After of a second shortened the wait to %s", got)
	}
	if got := after(1000 * time.Hour); got != program.MaxRetryAfter {
		t.Errorf("Retry-After of 1000 hours is believed: %s", got)
	}
	// a lookup may ask for it too
	d := begin(t, "a find undo").fail(saga.Unknown).due()
	d.feed(Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerUnclear, RetryAfter: time.Hour}})
	if got := d.tail().Wait; got != time.Hour {
		t.Errorf("a lookup's Retry-After: %s", got)
	}
}

// "F22": the wait is kept from a time that is surely not too early, and the chain says the same
// afterwards.
func TestF22WaitIsKept(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.lag = time.Second
	d.fail(saga.Unsent)
	until := d.last.Do.Until
	d.now = until.Add(d.lag - 2*time.Millisecond)
	d.tick().wants("wait", saga.Retrying)
	if d.st.Due.Before(until) || d.st.Step("a").Forward.BackoffUntil != d.st.Due {
		t.Errorf("due %s, not before %s, want %s", d.st.Due, d.st.Step("a").Forward.BackoffUntil, until)
	}
}

// "F23: a step whose policy is used up goes to review. It turns the saga only where it says
// Compensate, and never behind the pivot".
func TestF23Exhausted(t *testing.T) {
	const a = "a idempotent undo\n"
	t.Run("a person is asked", func(t *testing.T) {
		d := begin(t, a+"b idempotent undo attempts=2").succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted)
		if len(d.undone()) > 0 || d.st.Compensating {
			t.Errorf("it turned by itself: %v", d.undone())
		}
	})
	t.Run("compensates, and what may have happened is undone", func(t *testing.T) {
		begin(t, a+"b idempotent undo attempts=2 compensate").succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).wants("wait", saga.Compensating).
			due().wants("act b undo", saga.Compensating)
	})
	t.Run("compensates, and nothing had happened", func(t *testing.T) {
		begin(t, a+"b idempotent undo compensate").succeed("1").fail(saga.Unsent).wait(longest).fail(saga.Unsent).wants("act a undo", saga.Compensating)
	})
	t.Run("behind the pivot", func(t *testing.T) {
		begin(t, "a idempotent undo pivot\nb idempotent attempts=2").succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted)
	})
	t.Run("a pivot that compensates and provably did not happen", func(t *testing.T) {
		begin(t, a+"b idempotent pivot compensate").succeed("1").fail(saga.Unsent).wait(longest).fail(saga.Unsent).wants("act a undo", saga.Compensating)
	})
	t.Run("a pivot that compensates and may have happened", func(t *testing.T) {
		begin(t, a+"b idempotent undo pivot attempts=2 compensate").succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).wants("wait", saga.Compensating).
			due().wants("act b undo", saga.Compensating)
	})
	t.Run("in review a resolution gives a fresh policy", func(t *testing.T) {
		d := begin(t, a+"b idempotent undo attempts=2").succeed("1").fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted)
		d.resolution("").due().wants("act b forward", saga.Running).fail(saga.Unknown).due().wants("act b forward", saga.Running)
	})
}

// longest is longer than any policy of the tests.
const longest = 100 * time.Hour

// "F4: ... spends nothing of the policy": however often, and whatever the step says about
// repeating.
func TestF4UnsentSpendsNothing(t *testing.T) {
	for _, class := range []string{"idempotent", "keyed=1h", "find", "at-most-once"} {
		d := begin(t, "a "+class+" attempts=2")
		for range 40 {
			d.fail(saga.Unsent).due().wants("act a forward", saga.Running)
		}
		if e := d.st.Step("a").Forward; e.CountedAttempts != 1 || e.Failures != 40 || e.Reissue != 0 {
			t.Errorf("%s: %+v", class, e)
		}
	}
}

// "F23: ... The policy is asked when something failed, and not by the clock": a weekend
// on which nobody runs gives up nothing.
func TestF23TimeAloneGivesUpNothing(t *testing.T) {
	for _, c := range []saga.Class{saga.Unsent, saga.Unknown} {
		d := begin(t, "a idempotent undo\nb idempotent undo within=1h").succeed("1").fail(c)
		d.wait(longest).wants("act b forward", saga.Running)
		if e := d.fail(c).review(saga.ReasonExhausted).st.Step("b").Forward; e.Attempts != 2 {
			t.Errorf("%+v", e)
		}
	}
	d := begin(t, "a idempotent undo\nb idempotent undo within=1h").succeed("1").fail(saga.Unknown) // an undo, too
	d.cancel().due().fail(saga.Unknown).wait(longest).wants("act b undo", saga.Compensating).fail(saga.Unknown).review(saga.ReasonUndoFailed)
	d = begin(t, "a idempotent undo\nb idempotent undo within=1h compensate").succeed("1").fail(saga.Unsent).wait(longest).fail(saga.Unsent)
	if d.turning().Error == "" {
		t.Error("the chain does not say why it turned")
	}
}

// "F28: what failed while the destination served no other work spends no attempt and no lookup.
// Within ends it".
func TestF28Outage(t *testing.T) {
	out := program.Outcome{Class: saga.Unknown, Error: "503", Outage: true}
	t.Run("an attempt", func(t *testing.T) {
		d := begin(t, "a idempotent undo attempts=2")
		for range 30 {
			d.outcome(out).wants("wait", saga.Retrying)
			if d.tail().Kind != KindUnknown || d.tail().ErrorClass != program.Outage {
				t.Fatalf("%+v", d.tail())
			}
			d.due().wants("act a forward", saga.Running)
		}
		if e := d.st.Step("a").Forward; e.CountedAttempts != 1 || e.Failures != 30 || e.OutcomeUnknownUntil.IsZero() {
			t.Errorf("%+v", e)
		}
		d.fail(saga.Unknown).due().fail(saga.Unknown).review(saga.ReasonExhausted) // others are served again
	})
	t.Run("its time ends it", func(t *testing.T) {
		d := begin(t, "a idempotent undo")
		for d.now.Before(noon.Add(program.DefaultWithin)) {
			d.outcome(out).wants("wait", saga.Retrying).due().wants("act a forward", saga.Running)
		}
		d.outcome(out).review(saga.ReasonExhausted)
	})
	t.Run("what may have been sent stays in doubt", func(t *testing.T) {
		begin(t, "a at-most-once\n").outcome(out).review(saga.ReasonInDoubt)
	})
	t.Run("a lookup", func(t *testing.T) {
		d := begin(t, "a find undo").fail(saga.Unknown).due()
		away := Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerUnclear, Error: "503", Outage: true}}
		for range 3 * maxLookups {
			d.feed(away).wants("wait", saga.Retrying).due().wants("look a forward", saga.Running)
		}
		d.wait(longest).feed(away).review(saga.ReasonInDoubt)
	})
	t.Run("a lookup for an undo", func(t *testing.T) {
		d := begin(t, "a find undo\nb find undo").fail(saga.Unknown).due().found(KindSeveral, "1", "2").review(saga.ReasonInDoubt).resolution("inv_9").fail(saga.Refused)
		d.wants("look a undo", saga.Compensating)
		away := Event{Evidence: &program.Evidence{Step: "a", Answer: program.AnswerUnclear, Error: "503", Outage: true}}
		for range 3 * maxLookups {
			d.feed(away).wants("wait", saga.Compensating).due().wants("look a undo", saga.Compensating)
		}
		d.wait(longest).feed(away).review(saga.ReasonUndoFailed)
	})
}

// "F29: a panic ... spends an attempt even where nothing was sent". Nothing being sent stays known.
func TestF29Panic(t *testing.T) {
	for _, class := range []saga.Class{saga.Unsent, saga.Unknown} {
		d := begin(t, "a idempotent undo attempts=2")
		panicked := program.Outcome{Class: class, Error: "panic: nil map", Stack: "goroutine 1"}
		d.outcome(panicked).due().outcome(panicked).review(saga.ReasonExhausted)
		if e := d.st.Step("a").Forward; e.CountedAttempts != 2 || e.OutcomeUnknownUntil.IsZero() != (class == saga.Unsent) {
			t.Errorf("%s: %+v", class, e)
		}
	}
}

// "F30: what an outage failed, or was not sent, waits no longer for its next try than the destination
// is away, unless that said for how long; when a person has the destination tried, neither does what
// failed otherwise. What may be what takes processes down waits all the same".
func TestF30TheOutageIsOver(t *testing.T) {
	away := program.Outcome{Class: saga.Unknown, Error: "503", Outage: true}
	own := program.Outcome{Class: saga.Unknown, Error: "500"}
	asked := program.Outcome{Class: saga.Unknown, Error: "503", Outage: true, RetryAfter: time.Hour}
	for _, c := range []struct {
		name      string
		out       program.Outcome
		recovered bool // what is fed
		goes      bool
	}{
		{"an outage is over", away, true, true},
		{"nothing was sent, and others are served", program.Outcome{Class: saga.Unsent, Error: "refused"}, true, true},
		{"its own failure", own, true, false},
		{"it said for how long", asked, true, false},
		{"a person has it tried after an outage", away, false, true},
		{"a person has it tried after its own failure", own, false, true},
		{"a person has it tried that said for how long", asked, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := begin(t, "a idempotent undo attempts=20")
			for range 5 { // the waits are long by then
				d.outcome(c.out).wants("wait", saga.Retrying).due().wants("act a forward", saga.Running)
			}
			d.outcome(c.out).tick().wants("wait", saga.Retrying)
			if d.feed(Event{Recovered: c.recovered, Probed: !c.recovered}); c.goes {
				d.wants("act a forward", saga.Running)
			} else {
				d.wants("wait", saga.Retrying)
			}
		})
	}
	d := begin(t, "a idempotent undo").fail(saga.Unknown).due().crash().crash()
	d.wants("wait", saga.Retrying).feed(Event{Recovered: true, Probed: true}).wants("wait", saga.Retrying)
}

// "F23": that the saga turned is on record before anything is done about it, so that nothing goes
// forward again (C10) when the evidence comes.
func TestF23TurningIsRecorded(t *testing.T) {
	d := begin(t, "a idempotent undo\nb keyed=9h lookup undo attempts=1 compensate settle=2h").succeed("1").fail(saga.Unknown)
	d.wants("wait", saga.Compensating)
	if !d.st.Compensating {
		t.Fatal("the saga turned without a record")
	}
	d.due().wants("look b forward", saga.Compensating).found(KindFound, "2").wants("act b undo", saga.Compensating)
}

// "F24: a key derives from saga, work, revision, step, direction and reissue. Never from time,
// attempt or the definition's version".
func TestF24KeyIsStable(t *testing.T) {
	keys := map[string]bool{}
	for version := 1; version < 4; version++ {
		spec, err := define(order.Saga, version, orderToInvoice)
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{t: t, spec: spec, st: &State{ID: order}, now: noon.Add(time.Duration(version) * 1000 * time.Hour)}
		d.start()
		keys[d.key()] = true
		for range 3 {
			d.fail(saga.Unknown).due()
			keys[d.key()] = true
		}
	}
	if len(keys) != 1 {
		t.Errorf("one step has %d keys: %v", len(keys), keys)
	}
}

// "F25: a key is replaced (reissued) only when nothing happened under the old one: a person said
// so, or its window is over and a lookup, or the attempts themselves, showed it".
func TestF25Reissue(t *testing.T) {
	t.Run("not sent, inside the window", func(t *testing.T) {
		if a := begin(t, "a keyed=1h undo").fail(saga.Unsent).due().armed(); a.Reissue != 0 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("not sent, past the window: the key was never used, and its window begins when it is", func(t *testing.T) {
		d := begin(t, "a keyed=1h lookup undo within=1000h").fail(saga.Unsent).wait(longest)
		if a := d.armed(); a.Reissue != 0 || d.st.Step("a").Forward.KeyFirstUsed != d.now {
			t.Errorf("armed %+v", a)
		}
		d.fail(saga.Unknown).due().wants("act a forward", saga.Running).fail(saga.Unknown).wait(time.Hour).wants("look a forward", saga.Running)
	})
	t.Run("a key that may have been used keeps its window", func(t *testing.T) {
		d := begin(t, "a keyed=1h lookup undo").fail(saga.Unknown).due().fail(saga.Unsent)
		if e := d.st.Step("a").Forward; e.KeyFirstUsed != noon || !e.MayHaveReached {
			t.Errorf("%+v", e)
		}
		d.wait(time.Hour).wants("look a forward", saga.Running).found(KindNotFound)
		if a := d.armed(); a.Reissue != 1 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("a person said so", func(t *testing.T) {
		d := begin(t, "a at-most-once undo")
		key := d.key()
		d.fail(saga.Unknown).resolution("").due()
		if a := d.armed(); a.Reissue != 1 || a.Key == key || a.Attempt != 2 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("never for Find", func(t *testing.T) {
		if a := begin(t, "a find undo").fail(saga.Unknown).wait(longest).found(KindNotFound).armed(); a.Reissue != 0 {
			t.Errorf("armed %+v", a)
		}
		if a := begin(t, "a find undo").fail(saga.Unknown).due().found(KindNotFound).armed(); a.Reissue != 0 {
			t.Errorf("armed %+v", a)
		}
	})
}
