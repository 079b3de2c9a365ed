package ledger_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// What is hashed of an act is a format: chains are verified for ever.
func TestTheHashOfAnAct(t *testing.T) {
	t.Parallel()
	a := ledger.Act{Number: 2, Control: ledger.Control{
		Kind: ledger.ControlPause, Name: "all", Version: 7, Body: json.RawMessage(`{"a":1}`), Actor: "anna", Reason: "a fire",
		Session: 5, Nonce: -3, At: time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.FixedZone("", 3600)),
	}}
	const want = "41113c51e21971211f638627a169695360323225820c8cc08a97deec6c805a2d"
	sum := hex.EncodeToString(a.Sum([]byte{1, 2}))
	if sum != want {
		t.Errorf("the hash is %s, want %s", sum, want)
	}
	for what, change := range map[string]func(a *ledger.Act){
		"number": func(a *ledger.Act) { a.Number++ }, "kind": func(a *ledger.Act) { a.Kind = ledger.DeedLooked }, "version": func(a *ledger.Act) { a.Version++ },
		"actor": func(a *ledger.Act) { a.Actor = "ben" }, "reason": func(a *ledger.Act) { a.Reason = "" }, "body": func(a *ledger.Act) { a.Body = nil },
		"session": func(a *ledger.Act) { a.Session = 0 }, "nonce": func(a *ledger.Act) { a.Nonce = 0 }, "time": func(a *ledger.Act) { a.At = a.At.Add(time.Microsecond) },
		"name and body": func(a *ledger.Act) { a.Name, a.Body = "all{", json.RawMessage(`"a":1}`) },
	} {
		changed := a
		if change(&changed); hex.EncodeToString(changed.Sum([]byte{1, 2})) == sum {
			t.Errorf("the hash does not cover: %s", what)
		}
	}
	first, whole, was := a, a, sum
	whole.Name, whole.Body, whole.Reason = "orders order:7", json.RawMessage(`{"of":"orders/order:7"}`), "asked by (order:7)"
	sum = hex.EncodeToString(whole.Sum(nil))
	for id, changes := range map[saga.ID]bool{
		{Saga: "orders", Work: "order:7"}: true, {Saga: "other", Work: "order:7"}: true, {Saga: "orders", Work: "order:"}: false, {Saga: "asked", Work: "by"}: true,
		{Saga: "other", Work: "by"}: false, {Saga: "orders", Work: "order:77"}: false,
	} {
		if a = whole; a.Erase(id) != changes || hex.EncodeToString(a.Sum(nil)) != sum {
			t.Errorf("without %s it is %q, %s, %q", id, a.Name, a.Body, a.Reason)
		}
		if again := a; again.Erase(id) {
			t.Errorf("without %s it has it still: %+v", id, a)
		}
	}
	a, sum = first, was
	a.At = a.At.Truncate(time.Microsecond).UTC() // as a database gives it back
	if got := hex.EncodeToString(a.Sum([]byte{1, 2})); got != sum {
		t.Errorf("read again the hash is %s, and was %s", got, sum)
	}
}

// An act that was edited is found, one that was deleted, a tail that was cut, and one that was put behind. All else about
// the acts is sound, and they are read where the whole ledger is.
func TestCheckFindsActs(t *testing.T) {
	t.Parallel()
	const n = 2500 // some pages
	for _, c := range []struct {
		name   string
		damage func(b *book)
		act    int64
		says   string
	}{
		{"an actor edited", func(b *book) { b.acts[6].Actor = "ben" }, 7, "look by ben"},
		{"the first of a page edited", func(b *book) { b.acts[1000].Reason = "none" }, 1001, "it was edited"},
		{"edited with its hash", func(b *book) { b.acts[6].Hash = b.resum(6) }, 8, "it was edited"},
		{"the first deleted", func(b *book) { b.acts = b.acts[1:] }, 1, "after act 0 comes act 2"},
		{"some deleted", func(b *book) { b.acts = slices.Delete(b.acts, 10, 20) }, 11, "after act 10 comes act 21"},
		{"the last page but one deleted", func(b *book) { b.acts = slices.Delete(b.acts, 999, 2000) }, 1000, "after act 999 comes act 2001"},
		{"the last deleted", func(b *book) { b.acts = b.acts[:n-1] }, n, "The last acts are missing: the ledger counts 2500, and none is behind number 2499"},
		{"all deleted", func(b *book) { b.acts = nil }, 1, "none is behind number 0"},
		{"the last edited with its hash", func(b *book) { b.acts[n-1].Hash = b.resum(n - 1) }, n, "the last act has"},
		{"one put behind", func(b *book) { head := b.actsHead; b.act(1); b.actsHead = head }, n + 1, "number 2501 is there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := soundBook(t)
			b.act(n)
			report, err := ledger.Check(t.Context(), b, nil)
			if err != nil || len(report.Findings) > 0 || report.Acts != n {
				t.Fatalf("before the damage: %+v, %v", report, err)
			}
			c.damage(b)
			report, err = ledger.Check(t.Context(), b, nil)
			if err != nil || len(report.Findings) != 1 {
				t.Fatalf("findings %v and error %v, want one", report.Findings, err)
			}
			if f := report.Findings[0]; f.Act != c.act || !strings.HasPrefix(f.String(), "act ") || !strings.Contains(f.What, c.says) {
				t.Errorf("%s: %s, want act %d and %q", f.Where(), f.What, c.act, c.says)
			}
			report, err = ledger.Check(t.Context(), b, &ledger.CheckOptions{Filter: ledger.Filter{Saga: done.Saga}})
			if err != nil || len(report.Findings) > 0 || report.Acts != 0 {
				t.Errorf("one saga alone: %+v, %v", report, err)
			}
		})
	}
}

// resum is the hash of act i once ben stands there.
func (b *book) resum(i int) []byte {
	b.acts[i].Actor = "ben"
	return b.acts[i].Sum(b.acts[i-1].Hash)
}
