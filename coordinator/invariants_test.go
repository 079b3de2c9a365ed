package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// watch makes the world ask the ledger about every request that arrives. "Nothing arrives at a
// destination that was not armed before (or adopted)"; saga/A1: "a request's first byte leaves before
// its recorded deadline or never".
func (w *world) watch(l ledger.Catalogue) {
	w.judge = func(a arrival) string {
		rs, err := l.History(context.Background(), idOf(a.work))
		if err != nil {
			return fmt.Sprintf("%s arrived and the ledger says %v", a, err)
		}
		for i := range rs {
			arm := rs[i].Dispatch
			if arm == nil || arm.Step != a.step || arm.Direction != a.dir || arm.Attempt != a.attempt {
				continue
			}
			if arm.Key != a.key {
				return fmt.Sprintf("%s arrived, armed under key %s", a, arm.Key)
			}
			if a.at.Before(rs[i].At) {
				return fmt.Sprintf("%s arrived %s before it was armed", a, rs[i].At.Sub(a.at))
			}
			if a.at.After(rs[i].Deadline()) {
				return fmt.Sprintf("%s arrived at %s, after its deadline %s", a, a.at, rs[i].Deadline())
			}
			return ""
		}
		return fmt.Sprintf("%s arrived and was never armed", a)
	}
}

// verify checks what must hold of every work once all is quiet.
func verify(t testing.TB, l ledger.Ledger, w *world, works ...string) {
	t.Helper()
	w.pending.Wait() // "stays 0 after the network drains"
	for _, why := range w.illegal {
		t.Errorf("%s", why)
	}
	for _, work := range works {
		verifyWork(t, l, w, work)
	}
	ledgertest.MustCheck(t, l)
}

func verifyWork(t testing.TB, l ledger.Catalogue, w *world, work string) {
	t.Helper()
	rs, err := l.History(t.Context(), idOf(work))
	if err != nil {
		t.Errorf("%s: %v", work, err)
		return
	}
	st, err := machine.Fold(idOf(work), rs) // it refuses a record behind a terminal one
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if n := len(w.made("customer", "c-"+work)); n > 1 {
		t.Errorf("%d customers of %s", n, work)
	}
	if n := len(w.made("mark", work)); n > 1 {
		t.Errorf("%d marks of %s: the key changed between attempts", n, work)
	}
	if made := w.made("invoice", work); len(made) > 1 {
		t.Errorf("%d invoices of %s, undone ones included\n%s", len(made), work, timing(t, l, rs, made))
	}
	if mails, licensed := len(w.made("receipt", work)), 1+licences(rs, "receipt"); mails > licensed {
		t.Errorf("%d mails for %s; %d were licensed", mails, work, licensed)
	}
	waited(t, rs)
	agrees(t, w, st, work, func(step, ref string) string { return timing(t, l, rs, w.made(step, ref)) })
}

// waited checks what waits of a chain: machine/W1 to W3. Each is begun once and over once, and not before its time, unless
// a person ended it. What a fail-over forgot is not in the chain.
func waited(t testing.TB, rs []machine.Record) {
	t.Helper()
	until, over := map[string]time.Time{}, map[string]bool{}
	for i := range rs {
		switch r := &rs[i]; r.Kind { //nolint:exhaustive // only these
		case machine.KindWaiting:
			if !until[r.Step].IsZero() {
				t.Errorf("machine/W3: the wait of %s begins a second time, by record %d", r.Step, r.Seq)
			}
			until[r.Step] = r.Until
		case machine.KindOver:
			if over[r.Step] || until[r.Step].IsZero() || r.At.Before(until[r.Step]) && r.Actor == "" {
				t.Errorf("machine/W2: the wait of %s, until %s, is over at %s, by record %d", r.Step, until[r.Step], r.At, r.Seq)
			}
			over[r.Step] = true
		}
	}
}

// timing says whose fault it is that a lookup missed an effect. saga/A2: "a request not answered by its
// deadline takes effect within settle of it, or never". On a machine that is too busy the world
// itself may break that; then nothing is shown about the coordinator. The chain and the times of
// all requests are there to judge by.
func timing(t testing.TB, l ledger.Catalogue, rs []machine.Record, made []outcome) string {
	t.Helper()
	var b strings.Builder
	inTime := true
	for _, e := range made {
		deadline := deadlineOf(rs, e.cause)
		last := deadline.Add(settleOf(t, l, rs[0].Version, e.step))
		fmt.Fprintf(&b, "  %s: attempt %d arrived %s, took effect %s, deadline %s, settled %s\n", e.id, e.cause.attempt,
			clock(e.cause.at), clock(e.at), clock(deadline), clock(last))
		switch {
		case deadline.IsZero():
			fmt.Fprintf(&b, "  %s was never armed\n", e.id)
		case e.at.After(last):
			inTime = false
			fmt.Fprintf(&b, "  A2 DOES NOT HOLD: %s took effect %s after it had settled; the machine is too busy for the times of this test\n", e.id, e.at.Sub(last))
		}
	}
	if inTime {
		b.WriteString("  every effect was in time (A2 holds): this is the coordinator's fault\n")
	}
	for i := range rs {
		r := &rs[i]
		fmt.Fprintf(&b, "  %s %3d %s %s %s %d %s %q", clock(r.At), r.Seq, r.Session, r.Kind, r.Step, r.Attempt, r.ExternalID, r.Said())
		if r.Dispatch != nil {
			fmt.Fprintf(&b, ", arms %s %s %d until %s", r.Dispatch.Step, r.Dispatch.Direction, r.Dispatch.Attempt, clock(r.Deadline()))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// deadlineOf returns the recorded deadline of the attempt a request belongs to.
func deadlineOf(rs []machine.Record, a arrival) time.Time {
	for i := range rs {
		if arm := rs[i].Dispatch; arm != nil && arm.Step == a.step && arm.Direction == a.dir && arm.Attempt == a.attempt {
			return rs[i].Deadline()
		}
	}
	return time.Time{}
}

// settleOf returns how long an effect of a step may take to show.
func settleOf(t testing.TB, l ledger.Catalogue, version int, step string) time.Duration {
	t.Helper()
	ds, err := l.Definitions(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, d := range ds {
		for _, s := range d.Spec.Steps {
			if d.Spec.Saga == orderSaga && d.Spec.Version == version && s.Name == step {
				return s.Settle
			}
		}
	}
	return 0
}

// licences counts a person's resolutions that a step did not happen.
func licences(rs []machine.Record, step string) (n int) {
	for _, r := range rs {
		if r.Kind == machine.KindResolved && r.Step == step && r.ErrorClass == saga.Unsent {
			n++
		}
	}
	return n
}

// agrees holds "compensated ⇒ every compensable step's net effect is 0" and "ledger and
// destination agree both ways". whose says whose fault it is that an effect was missed.
func agrees(t testing.TB, w *world, st *machine.State, work string, whose func(step, ref string) string) {
	t.Helper()
	for _, step := range []string{"customer", "invoice", "mark", "receipt"} {
		ref := work
		if step == "customer" {
			ref = "c-" + work
		}
		live := map[string]bool{}
		for _, e := range w.made(step, ref) {
			live[e.id] = !e.undone
		}
		recorded := ""
		if ss := st.Step(step); ss != nil && ss.Forward.Phase == machine.Done && ss.Undo.Phase != machine.Done {
			recorded = ss.ExternalID
		}
		switch st.Status {
		case saga.Compensated:
			for id, alive := range live {
				if alive && step != "customer" {
					t.Errorf("%s is compensated and %s is alive\n%s", work, id, whose(step, ref))
				}
			}
		case saga.Completed:
			if recorded == "" || !live[recorded] {
				t.Errorf("%s is completed with %s %q, which is not there: %v", work, step, recorded, live)
			}
			for id, alive := range live {
				if alive && id != recorded {
					t.Errorf("%s of %s is at its destination and not in the ledger\n%s", id, work, whose(step, ref))
				}
			}
		default: // whatever is not at its end may be half done
		}
	}
}
