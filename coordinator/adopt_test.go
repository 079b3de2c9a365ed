package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// remains is a work whose ledger was lost: what stands of it, what is told of it, and where it ends
// when a coordinator runs.
type remains struct {
	work    string
	stands  []string // steps
	tell    func(*coordinator.Adoption)
	at, end saga.Status
	reason  saga.Reason
	made    map[string]int // effects in the end; what is not named: none
}

// ruins are the ways in which a work can be left.
func ruins() []remains {
	effects := func(es map[string]coordinator.Effect) func(*coordinator.Adoption) {
		return func(a *coordinator.Adoption) { a.Effects = es }
	}
	stands := func(a *coordinator.Adoption) {
		a.Effects = map[string]coordinator.Effect{
			"customer": {Output: thing{ID: "customer-of-" + a.Work}},
			"invoice":  {Output: thing{ID: "invoice-of-" + a.Work}},
		}
	}
	all := []string{"customer", "invoice", "mark", "receipt"}
	return []remains{
		{
			work: "ended", stands: all, tell: func(a *coordinator.Adoption) {
				stands(a)
				a.Effects["mark"], a.Effects["receipt"] = coordinator.Effect{}, coordinator.Effect{ExternalID: "mail of " + a.Work}
			}, at: saga.Completed, end: saga.Completed, made: map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
		},
		{work: "unconfirmed", stands: all, tell: stands, at: saga.Completed, end: saga.Completed, made: map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1}},
		{work: "nobody looked", stands: all, at: saga.Running, end: saga.Completed, made: map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1}},
		{
			work: "nothing stands", tell: effects(map[string]coordinator.Effect{"invoice": {NotDone: true}, "mark": {NotDone: true}, "receipt": {NotDone: true}}),
			at: saga.Running, end: saga.Completed, made: map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
		},
		{
			work: "half", stands: []string{"customer", "invoice"}, tell: func(a *coordinator.Adoption) {
				stands(a)
				a.Effects["mark"], a.Effects["receipt"] = coordinator.Effect{NotDone: true}, coordinator.Effect{NotDone: true}
			}, at: saga.Running, end: saga.Completed, made: map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1},
		},
		{work: "cancelled", tell: func(a *coordinator.Adoption) { a.Cancelled = true }, at: saga.Compensated, end: saga.Compensated, made: map[string]int{}},
		{
			work: "cancelled, and it stands", stands: []string{"customer", "invoice"}, tell: func(a *coordinator.Adoption) {
				stands(a)
				a.Effects["mark"], a.Effects["receipt"], a.Cancelled = coordinator.Effect{NotDone: true}, coordinator.Effect{NotDone: true}, true
			}, at: saga.Compensating, end: saga.Compensated, made: map[string]int{"customer": 1},
		},
		{
			work: "cancelled behind the pivot", stands: all, tell: func(a *coordinator.Adoption) { stands(a); a.Cancelled = true },
			at: saga.Compensating, end: saga.Compensated, made: map[string]int{"customer": 1, "receipt": 1},
		},
		{
			work: "another's invoice", stands: []string{"invoice"}, tell: func(a *coordinator.Adoption) {
				a.Effects = map[string]coordinator.Effect{"invoice": {ExternalID: "invoice-of-x", Foreign: true}}
				a.Quarantine = "the invoice is over 90, the order over 100"
			}, at: saga.Review, end: saga.Review, reason: saga.ReasonInDoubt, made: map[string]int{"invoice": 1},
		},
	}
}

func (r *remains) adoption() coordinator.Adoption {
	a := coordinator.Adoption{Saga: orderSaga, Work: r.work, Input: order{Customer: "c-" + r.work, Total: 100}, Revision: "17", By: anna}
	if r.tell != nil {
		r.tell(&a)
	}
	return a
}

// left is a world in which works have left what stands of them.
func left(rs []remains) *world {
	w := &world{}
	for _, r := range rs {
		for _, step := range r.stands {
			e := &outcome{step: step, work: r.work, key: "lost", id: step + "-of-" + r.work}
			if step == "customer" {
				e.work = "c-" + r.work
			}
			w.effects = append(w.effects, e)
		}
	}
	return w
}

func adoptions(rs []remains) (as []coordinator.Adoption) {
	for i := range rs {
		as = append(as, rs[i].adoption())
	}
	return as
}

// takesOver adopts rs and holds the answers against what is wanted.
func (p *process) takesOver(rs []remains) {
	p.t.Helper()
	got, err := p.Adopt(context.Background(), adoptions(rs))
	if err != nil {
		p.t.Fatal(err)
	}
	for i, r := range rs {
		if a := got[i]; a.Err != nil || a.Status != r.at || a.Reason != r.reason || a.Revision != "17" {
			p.t.Errorf("%s: %+v, want %s %s", r.work, a, r.at, r.reason)
		}
	}
}

// ends waits until every work is where it should be, and counts what there is.
func (p *process) ends(rs []remains) {
	p.t.Helper()
	for _, r := range rs {
		p.want(r.work, r.end, r.reason)
		for _, step := range []string{"customer", "invoice", "mark", "receipt"} {
			work := r.work
			if step == "customer" {
				work = "c-" + work
			}
			made := slices.DeleteFunc(p.world.made(step, work), func(o outcome) bool { return o.undone })
			if len(made) != r.made[step] {
				p.t.Errorf("%s: there are %d of %s, want %d", r.work, len(made), step, r.made[step])
			}
		}
	}
}

// Adopting makes and sends nothing, and needs no running coordinator. What is left to do is done
// when one runs, and nothing that stands is made again.
func TestAdopt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rs := ruins()
		l, w := memory.New(nil), left(rs)
		rebuild := boot(t, l, w, config{idle: true})
		rebuild.takesOver(rs)
		if n := len(w.arrivals); n > 0 {
			t.Errorf("adopting sent %d requests", n)
		}
		for _, r := range rs {
			s, err := rebuild.Show(t.Context(), idOf(r.work))
			if err != nil || s.Status != r.at {
				t.Errorf("%s is %s, want %s (%v)", r.work, s.Status, r.at, err)
			}
		}
		ledgertest.MustCheck(t, l)
		p := boot(t, l, w, config{})
		pass(time.Minute)
		p.ends(rs)
		ledgertest.MustCheck(t, l)
	})
}

// Which steps count as done because nobody can tell is answered, and shown.
func TestAdoptSaysWhatIsUnconfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rs := ruins()
		p := boot(t, memory.New(nil), left(rs), config{idle: true})
		got, err := p.Adopt(t.Context(), adoptions(rs))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "mark receipt", "mark receipt", "", "", "mark receipt"} {
			if names := strings.Join(got[i].Unconfirmed, " "); names != want {
				t.Errorf("%s: %q is unconfirmed, want %q", rs[i].work, names, want)
			}
		}
		s, err := p.Show(t.Context(), idOf("unconfirmed"))
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Steps["receipt"]; !r.Done || !r.Unconfirmed || r.Evidence != string(machine.KindAdopted) || r.Attempts != 0 {
			t.Errorf("the receipt nobody can tell of: %+v", r)
		}
		if r := s.Steps["invoice"]; !r.Done || r.Unconfirmed || r.ExternalID != "invoice-of-unconfirmed" {
			t.Errorf("the invoice that stands: %+v", r)
		}
	})
}

// An adoption may be cut off at any call, before or behind its effect, while other coordinators run
// and people and the source speak to the works. Nothing is sent for a work that is not at the end
// of its adoption. Adopting again gives the chains that an adoption without a crash gives, byte by
// byte, but for their salt.
func TestAdoptionThatIsCutOff(t *testing.T) {
	t.Parallel()
	whole, calls := memory.New(nil), 0
	synctest.Test(t, func(t *testing.T) {
		p := boot(t, whole, &world{}, config{idle: true})
		p.takesOver(ruins())
		calls = p.calls()
	})
	for n := 1; n <= calls; n++ {
		for name, fault := range map[string]ledgertest.Fault{"before": ledgertest.CrashBefore(n), "during": ledgertest.CrashDuring(n)} {
			t.Run(fmt.Sprintf("%s call %d", name, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { cutOff(t, fault, whole) })
			})
		}
	}
}

func cutOff(t *testing.T, fault ledgertest.Fault, whole ledger.Catalogue) {
	t.Helper()
	rs := ruins()
	l, w := memory.New(nil), left(rs)
	p := boot(t, l, w, config{})
	ctx, cancel := context.WithCancel(t.Context())
	first := boot(t, l, w, config{idle: true, faults: []ledgertest.Fault{fault}})
	go func() { // the process is dead: nobody waits for it
		pass(time.Minute)
		cancel()
	}()
	if _, err := first.Adopt(ctx, adoptions(rs)); err == nil && !first.isDead() {
		t.Error("nothing struck the adoption")
	}
	cancel()
	early := map[string]bool{} // not at its end
	for _, r := range rs {
		st, err := p.Show(t.Context(), idOf(r.work))
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Fatal(err)
		}
		if early[r.work] = err != nil || st.Status == saga.Adopting; early[r.work] && err == nil {
			if err := p.Cancel(t.Context(), idOf(r.work), anna); err != nil {
				t.Error(err)
			}
		}
	}
	pass(time.Minute)
	for _, a := range w.arrivals {
		if early[a.work] {
			t.Errorf("before its adoption was at its end: %s", a)
		}
	}
	if _, err := boot(t, l, w, config{idle: true}).Adopt(t.Context(), adoptions(rs)); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		same(t, l, whole, idOf(r.work))
	}
	pass(time.Minute)
	for _, r := range rs {
		for _, step := range []string{"invoice", "receipt"} {
			if n := len(w.made(step, r.work)); n > 1 {
				t.Errorf("%s: %d of %s were made", r.work, n, step)
			}
		}
	}
	ledgertest.MustCheck(t, l)
}

// same compares the records of an adoption in two memory.
func same(t *testing.T, l, whole ledger.Catalogue, id saga.ID) {
	t.Helper()
	got, err := l.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var prev machine.Hash
	for i := range want { // each ledger has drawn a salt of its own
		sum := want[i].Sum(id, machine.Salt{}, prev)
		if i >= len(got) || got[i].Sum(id, machine.Salt{}, prev) != sum {
			t.Errorf("%s: record %d is not the one of an adoption that was not cut off", id, i+1)
			return
		}
		prev = sum
	}
}

// A work that the ledger knows is left as it is, and the answer says so. The same adoption once
// more is such a one.
func TestAdoptWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rs := ruins()
		l, w := memory.New(nil), left(rs[:1])
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("known")
		p.want("known", saga.Completed, "")
		as := []coordinator.Adoption{(&remains{work: "known"}).adoption(), rs[0].adoption()}
		for round := range 2 {
			got, err := p.Adopt(t.Context(), as)
			if err != nil {
				t.Fatal(err)
			}
			if a := got[0]; !a.Known || a.Status != saga.Completed || a.Revision != "" {
				t.Errorf("a work that ran: %+v", a)
			}
			if a := got[1]; a.Known != (round > 0) || a.Status != saga.Completed {
				t.Errorf("a work that was adopted, round %d: %+v", round, a)
			}
		}
		history, err := l.History(t.Context(), idOf("known"))
		if err != nil || slices.ContainsFunc(history, func(r machine.Record) bool { return r.Kind == machine.KindAdopted }) {
			t.Errorf("a known work was touched: %+v, %v", history, err)
		}
		ledgertest.MustCheck(t, l)
	})
}

// What is wrong with one adoption is said of it alone; the others are taken over.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(t, memory.New(nil), &world{}, config{idle: true})
		good := func(change func(*coordinator.Adoption)) coordinator.Adoption {
			a := (&remains{work: "w"}).adoption()
			change(&a)
			return a
		}
		as := []coordinator.Adoption{
			good(func(a *coordinator.Adoption) { a.Work = "good" }),
			good(func(a *coordinator.Adoption) { a.Saga = "none" }),
			good(func(a *coordinator.Adoption) { a.Work = "" }),
			good(func(a *coordinator.Adoption) { a.By.Name = "" }),
			good(func(a *coordinator.Adoption) { a.Input = 7 }),
			good(func(a *coordinator.Adoption) { a.Revision = "x" }),
			good(func(a *coordinator.Adoption) { a.Effects = map[string]coordinator.Effect{"nobody": {}} }),
			good(func(a *coordinator.Adoption) { a.Effects = map[string]coordinator.Effect{"invoice": {Revision: "18"}} }),
			good(func(a *coordinator.Adoption) {
				a.Effects = map[string]coordinator.Effect{"invoice": {Unknown: true, NotDone: true}}
			}),
			good(func(a *coordinator.Adoption) { a.Effects = map[string]coordinator.Effect{"invoice": {Foreign: true}} }),
			good(func(a *coordinator.Adoption) {
				a.Effects = map[string]coordinator.Effect{"invoice": {Output: func() {}}}
			}),
			good(func(a *coordinator.Adoption) { a.Work = "good" }),
		}
		got, err := p.Adopt(t.Context(), as)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if (a.Err == nil) != (i == 0) {
				t.Errorf("adoption %d: %+v", i, a)
			}
		}
		if _, err := p.Show(t.Context(), idOf("w")); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("a wrong adoption is on record: %v", err)
		}
	})
}

// A person decides about what is in quarantine, with the verbs there are for any other doubt.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say    func(ctx context.Context, p *process, id saga.ID) error
		status saga.Status
		made   int // invoices
	}{
		"it is ours": {func(ctx context.Context, p *process, id saga.ID) error {
			return p.Resolve(ctx, id, "invoice", coordinator.Happened("invoice-of-x"), anna)
		}, saga.Completed, 1},
		"it is not": {func(ctx context.Context, p *process, id saga.ID) error {
			return p.Resolve(ctx, id, "invoice", coordinator.DidNotHappen(), anna)
		}, saga.Completed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rs := ruins()
				rs = rs[len(rs)-1:]
				l, w := memory.New(nil), left(rs)
				p := boot(t, l, w, config{})
				synctest.Wait()
				p.takesOver(rs)
				s := p.want(rs[0].work, saga.Review, saga.ReasonInDoubt)
				if s.Note != "the invoice is over 90, the order over 100" || !strings.Contains(s.Next, `step "invoice"`) {
					t.Errorf("the review says %q, and next %q", s.Note, s.Next)
				}
				if err := c.say(t.Context(), p, idOf(rs[0].work)); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				p.want(rs[0].work, c.status, "")
				if n := len(w.made("invoice", rs[0].work)); n != c.made {
					t.Errorf("there are %d invoices, want %d", n, c.made)
				}
				if n := w.count(rs[0].work, "receipt", saga.Forward); n != 0 {
					t.Errorf("%d receipts were sent, which nobody can tell of", n)
				}
				ledgertest.MustCheck(t, l)
			})
		})
	}
}

// A result that is a text is its own external id, also where it is adopted: later steps ask for it by that.
func TestAnAdoptedTextIsItsOwnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(t, memory.New(nil), &world{}, config{opts: quick(), program: func(*process) saga.Program {
			d, err := saga.Define(orderSaga, 1,
				saga.Do("post", func(context.Context, saga.Call[order]) (string, error) { return "", errors.New("it was posted") }).Idempotent().NoUndo("it stays"),
				saga.Do("mail", func(_ context.Context, c saga.Call[order]) (string, error) {
					return "mail about " + c.ExternalID("post"), nil
				}).Idempotent().NoUndo("it is read"))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}})
		got, err := p.Adopt(t.Context(), []coordinator.Adoption{{
			Saga: orderSaga, Work: "o1", Input: order{}, Revision: "1", By: anna,
			Effects: map[string]coordinator.Effect{"post": {Output: "2026-00016"}, "mail": {NotDone: true}},
		}})
		if err != nil || got[0].Err != nil {
			t.Fatal(err, got)
		}
		if s := p.want("o1", saga.Completed, ""); s.Steps["mail"].ExternalID != "mail about 2026-00016" {
			t.Errorf("%+v", s.Steps)
		}
	})
}
