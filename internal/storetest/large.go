package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// Pages of any size show every row once, in order; without a limit they have a hundred. One call may
// bring thousands.
func pages(b *bench) {
	const n = 3130
	b.many(b.session(), 130, hold)
	var keys []string
	for i := range n {
		keys = append(keys, order(i))
	}
	if got := len(b.list(ledger.Filter{})); got != 100 {
		b.Errorf("a listing without a limit gave %d heads", got)
	}
	for _, limit := range []int{7, 100, 1000} {
		var got []string
		for f := (ledger.Filter{Limit: limit, Status: saga.Running}); ; {
			page := of(b.List(b.Context(), f))
			for _, h := range page.Instances {
				got = append(got, h.ID.Work)
			}
			if f.After = page.Next; f.After == "" || len(page.Instances) > limit {
				break
			}
		}
		if !slices.Equal(got, keys[:130]) {
			b.Errorf("pages of %d list %q", limit, got)
		}
	}
	fs := missing(keys...)
	ref := b.plan("books", "aa", fs...)
	var got []string
	for r, err := range plan.Each(b.Context(), b, plan.FindingQuery{Plan: ref}) {
		ok(err)
		got = append(got, r.Key)
	}
	if first := of(b.Findings(b.Context(), plan.FindingQuery{Plan: ref})); !slices.Equal(got, keys) || len(first) != 100 {
		b.Errorf("page by page there are %d findings, want %d, and %d without a limit", len(got), n, len(first))
	}
	ok(b.Remember(b.Context(), plan.Ref{Job: "books", Number: 1}, plan.Part{}, fs))
	ok(b.Remember(b.Context(), plan.Ref{Job: "books", Number: 2}, plan.Part{}, fs[1500:]))
	if ds := of(b.Drifts(b.Context(), plan.DriftQuery{Times: 2, Limit: 10_000})); len(ds) != n-1500 {
		b.Errorf("%d last, want %d", len(ds), n-1500)
	}
	ok(b.Accept(b.Context(), events(40)))
	of(b.Judge(b.Context(), 100, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome = intake.Stale
		}
		return nil
	}))
	b.until(b.calendar, b.calendar().Add(2*time.Millisecond))
	for _, want := range []int{25, 15, 0} { // "at most limit rows of each kind"
		if n := of(b.Purge(b.Context(), intake.Retention{Bodies: time.Millisecond}, 25)); n != want {
			b.Errorf("purged %d, want %d", n, want)
		}
	}
}

// However many works in hand have an unread signal, Claim names each: those that are read late hide no
// other. One renewal names at most [ledger.MaxStray] works that are not in hand, and the next ones the
// others, once those are given back.
func manyHeld(b *bench) {
	const n = ledger.MaxStray + 10
	t := b.session()
	for _, e := range b.many(t, n, hold) {
		(&chain{b: b, id: e.ID}).post(b, "hello")
	}
	if got := b.claim(t, 1); len(got) != n {
		b.Errorf("named %d works, want all %d that have an unread signal", len(got), n)
	}
	for seen := 0; seen < n; {
		stray := of(b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})).Stray
		if len(stray) == 0 || len(stray) > ledger.MaxStray {
			b.Fatalf("%d stray works; %d of %d were given back", len(stray), seen, n)
		}
		seen += len(stray)
		var back []ledger.Return
		for _, h := range stray {
			back = append(back, ledger.Return{Number: h.Number})
		}
		ok(b.GiveBack(b.Context(), t, back))
	}
	if got := b.claim(b.session(), 2*n); len(got) != n {
		b.Errorf("claimed %d works, want all %d that were given back", len(got), n)
	}
}

// "Of the job's finished plans the newest Kept stay", with their findings and approvals; of the
// others nothing does.
func plansKept(b *bench) {
	other, first := b.plan("tax", "ff"), b.plan("books", "00", missing("1")...)
	ok(b.Approve(b.Context(), "00", saga.Actor{Name: "anna"}))
	second := b.plan("books", "01", missing("1")...)
	for i := range plan.Kept - 1 {
		b.plan("books", fmt.Sprintf("1%02d", i))
	}
	if p, tax := of(b.Plan(b.Context(), "01")), of(b.Plan(b.Context(), "ff")); p.Ref() != second || tax.Ref() != other {
		b.Errorf("the oldest of the %d newest is %s, the other job's %s", plan.Kept, p.Ref(), tax.Ref())
	}
	_, err := b.Plan(b.Context(), "00")
	b.wantError("the plan before the newest", err, plan.ErrNotFound)
	b.plan("shop", "00") // an equal plan of another job, later
	of(b.Draft(b.Context(), "books"))
	if p := of(b.Plan(b.Context(), "00")); p.Approved != (saga.Actor{}) || len(of(b.Findings(b.Context(), plan.FindingQuery{Plan: first}))) != 0 {
		b.Errorf("the approval outlived its plan, or its findings: %+v", p)
	}
}
