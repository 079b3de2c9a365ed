package saga

import (
	"testing"
	"time"
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
			d.wants("act a forward", Running)
		}
		d.crash().review(ReasonPoison)
	}
	d := begin(t, "a find undo")
	for range defaultMaxCrashes - 1 {
		d.crash().due().found(KindNotFound)
	}
	d.tick().due().review(ReasonPoison)
}

// "F20": the first crash is the process's fault and costs no wait; from the second on the step waits.
func TestF20FirstCrashDoesNotWait(t *testing.T) {
	d := begin(t, "a idempotent undo").crash().wants("act a forward", Running)
	d.crash().wants("wait", Retrying)
}

// "An announced shutdown is no crash, and does not count as a try".
func TestF20Shutdown(t *testing.T) {
	d := begin(t, "a idempotent undo attempts=2")
	for n := 2; n < 20; n++ {
		class := Unknown
		if n%2 == 0 {
			class = Unsent
		}
		d.outcome(Outcome{Class: class, Error: "stopped", Shutdown: true}).wants("act a forward", Running)
		if e := d.st.Step("a").Forward; e.Attempts != n || e.Tries != 1 || e.Crashes != 0 {
			t.Fatalf("after %d shutdowns: %+v", n-1, e)
		}
	}
	d.fail(Unsent).due().wants("act a forward", Running) // the second and last try
	d.fail(Unsent).wants("wait", Compensating)           // an unanswered attempt of old still settles
}

// A shutdown during an answer does not change the answer.
func TestF20ShutdownWithAnswer(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.outcome(Outcome{Class: succeeded, ExternalID: "1", Shutdown: true}).wants("rest", Completed)
	d = begin(t, "a idempotent undo")
	d.outcome(Outcome{Class: Refused, Error: "no", Shutdown: true}).wants("rest", Compensated)
	if d.tail().Class != Refused {
		t.Errorf("class %s", d.tail().Class)
	}
}

// "F21: an action or definition at fault has sent nothing: review".
func TestF21Fault(t *testing.T) {
	d := begin(t, "a idempotent undo\nb find undo").succeed("1").fail(Fault).review(ReasonPoison)
	if e := d.st.Step("b").Forward; e.Phase != Ready || !e.Unanswered.IsZero() {
		t.Errorf("nothing was sent, but the step is %+v", e)
	}
	d.wait(time.Hour).review(ReasonPoison)
	d.cancel().wants("act a undo", Compensating) // b is owed nothing
}

// "F22: when the next try comes is the Retry policy's: exponential, capped. A Retry-After lengthens a wait and
// never shortens it".
func TestF22Backoff(t *testing.T) {
	d := begin(t, "a idempotent undo initial=10s max=1m attempts=9")
	key := d.key()
	policy := d.spec.Steps[0].Retry
	for n := 1; n < 6; n++ {
		d.fail(Unsent)
		if got, want := d.tail().Wait, policy.Backoff(key, n); got != want {
			t.Errorf("after try %d: a wait of %s, want %s", n, got, want)
		}
		d.due()
	}
}

func TestF22RetryAfter(t *testing.T) {
	after := func(d time.Duration) time.Duration {
		desk := begin(t, "a idempotent undo initial=10s")
		desk.outcome(Outcome{Class: Unsent, Error: "429", RetryAfter: d})
		return desk.tail().Wait
	}
	if got := after(time.Minute); got != time.Minute {
		t.Errorf("Retry-After of a minute: a wait of %s", got)
	}
	if got := after(time.Second); got < 5*time.Second {
		t.Errorf("Retry-After of a second shortened the wait to %s", got)
	}
	if got := after(1000 * time.Hour); got != maxRetryAfter {
		t.Errorf("Retry-After of 1000 hours is believed: %s", got)
	}
	// a lookup may ask for it too
	d := begin(t, "a find undo").fail(Unknown).due()
	d.feed(Event{Evidence: &Evidence{Step: "a", Kind: KindUnclear, RetryAfter: time.Hour}})
	if got := d.tail().Wait; got != time.Hour {
		t.Errorf("a lookup's Retry-After: %s", got)
	}
}

// "F22": the wait is kept from a time that is surely not too early, and the chain says the same afterwards.
func TestF22WaitIsKept(t *testing.T) {
	d := begin(t, "a idempotent undo")
	d.lag = time.Second
	d.fail(Unsent)
	until := d.last.Do.Until
	d.now = until.Add(d.lag - 2*time.Millisecond)
	d.tick().wants("wait", Retrying)
	if d.st.Due.Before(until) || d.st.Step("a").Forward.NotBefore != d.st.Due {
		t.Errorf("due %s, not before %s, want %s", d.st.Due, d.st.Step("a").Forward.NotBefore, until)
	}
}

// "F23: a step whose policy is used up turns the saga, or goes to review when it says so. Behind the pivot it
// goes to review".
func TestF23Exhausted(t *testing.T) {
	const a = "a idempotent undo\n"
	exhaust := func(d *desk, c Class) *desk {
		d.succeed("1").fail(c).due()
		return d.fail(c)
	}
	t.Run("turns", func(t *testing.T) {
		exhaust(begin(t, a+"b idempotent undo attempts=2"), Unsent).wants("act a undo", Compensating)
	})
	t.Run("turns, and what may have happened is undone", func(t *testing.T) {
		exhaust(begin(t, a+"b idempotent undo attempts=2"), Unknown).wants("wait", Compensating).due().
			wants("act b undo", Compensating)
	})
	t.Run("says review", func(t *testing.T) {
		exhaust(begin(t, a+"b idempotent undo attempts=2 give-up=review"), Unsent).review(ReasonExhausted)
	})
	t.Run("behind the pivot", func(t *testing.T) {
		exhaust(begin(t, a[:len(a)-1]+" pivot\nb idempotent attempts=2"), Unsent).review(ReasonExhausted)
	})
	t.Run("a pivot that provably did not happen", func(t *testing.T) {
		exhaust(begin(t, a+"b idempotent pivot attempts=2"), Unsent).wants("act a undo", Compensating)
	})
	t.Run("a pivot that may have happened", func(t *testing.T) {
		exhaust(begin(t, a+"b idempotent undo pivot attempts=2"), Unknown).wants("wait", Compensating).due().
			wants("act b undo", Compensating)
	})
	t.Run("in review a verdict gives a fresh policy", func(t *testing.T) {
		d := exhaust(begin(t, a+"b idempotent undo attempts=2 give-up=review"), Unsent)
		d.verdict("").wants("act b forward", Running).fail(Unsent).due().wants("act b forward", Running)
	})
}

// "F23": the elapsed time is used up, too. It is asked of the latest time it may be.
func TestF23ExhaustedByTime(t *testing.T) {
	d := begin(t, "a idempotent undo\nb idempotent undo within=1h").succeed("1").fail(Unsent)
	d.wait(time.Hour).wants("act b forward", Running)
	d = begin(t, "a idempotent undo\nb idempotent undo within=1h").succeed("1").fail(Unsent)
	d.lag = time.Second
	d.wait(time.Hour).wants("act a undo", Compensating)
	if d.turning().Error == "" {
		t.Error("the chain does not say why it turned")
	}
}

// "F23": that the saga turned is on record before anything is done about it, so that nothing goes forward
// again (C10) when the evidence comes.
func TestF23TurningIsRecorded(t *testing.T) {
	d := begin(t, "a idempotent undo\nb keyed=9h lookup undo within=1h settle=2h").succeed("1").fail(Unknown)
	d.wait(61*time.Minute).wants("wait", Compensating)
	if !d.st.Turned {
		t.Fatal("the saga turned without a record")
	}
	d.due().wants("look b forward", Compensating).found(KindFound, "2").wants("act b undo", Compensating)
}

// "F24: a key derives from saga, work, revision, step, direction and reissue. Never from time, attempt or the
// definition's version".
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
			d.fail(Unknown).due()
			keys[d.key()] = true
		}
	}
	if len(keys) != 1 {
		t.Errorf("one step has %d keys: %v", len(keys), keys)
	}
}

// "F25: a key is replaced (reissued) only when nothing happened under the old one: a person said so, or its
// window is over and a lookup, or the attempts themselves, showed it".
func TestF25Reissue(t *testing.T) {
	t.Run("not sent, inside the window", func(t *testing.T) {
		if a := begin(t, "a keyed=1h undo").fail(Unsent).due().armed(); a.Reissue != 0 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("not sent, past the window", func(t *testing.T) {
		if a := begin(t, "a keyed=1h undo").fail(Unsent).wait(time.Hour).armed(); a.Reissue != 1 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("a person said so", func(t *testing.T) {
		d := begin(t, "a at-most-once undo")
		key := d.key()
		d.fail(Unknown).verdict("").due()
		if a := d.armed(); a.Reissue != 1 || a.Key == key || a.Attempt != 2 {
			t.Errorf("armed %+v", a)
		}
	})
	t.Run("never for Find", func(t *testing.T) {
		if a := begin(t, "a find undo").fail(Unknown).wait(100 * time.Hour).found(KindNotFound); a.last.Record.Arm != nil {
			t.Errorf("armed %+v after its policy was used up", a.last.Record.Arm)
		}
		if a := begin(t, "a find undo").fail(Unknown).due().found(KindNotFound).armed(); a.Reissue != 0 {
			t.Errorf("armed %+v", a)
		}
	})
}
