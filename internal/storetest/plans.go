package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

var planCases = []testCase{
	{name: "pages", run: plansPages},
	{name: "the newest stay", run: plansKept},
	{name: "values", run: plansValues},
	{name: "drafts race", run: plansRace},
}

// finding is a finding about a key.
func finding(key string, c plan.Class, do plan.Verb) plan.Finding {
	return plan.Finding{Key: key, Class: c, Do: do, Why: "the test says so"}
}

func missing(keys ...string) []plan.Finding {
	fs := make([]plan.Finding, len(keys))
	for i, key := range keys {
		fs[i] = finding(key, plan.Missing, plan.Start)
	}
	return fs
}

func (b *bench) draft(job string, fs ...plan.Finding) plan.Ref {
	b.Helper()
	plan, err := b.Draft(b.Context(), job)
	if err != nil {
		b.Fatalf("draft: %v", err)
	}
	b.find(plan, fs...)
	return plan
}

func (b *bench) find(plan plan.Ref, fs ...plan.Finding) {
	b.Helper()
	if err := b.Find(b.Context(), plan, fs); err != nil {
		b.Fatalf("find: %v", err)
	}
}

// plan makes a plan with an id.
func (b *bench) plan(job, id string, fs ...plan.Finding) plan.Ref {
	b.Helper()
	plan := b.draft(job, fs...)
	b.finish(plan, job, id)
	return plan
}

func (b *bench) finish(ref plan.Ref, job, id string) {
	b.Helper()
	if _, err := b.Finish(b.Context(), ref, &plan.Plan{ID: id, Job: job}); err != nil {
		b.Fatalf("finish: %v", err)
	}
}

// keys are the keys of what a query finds.
func (b *bench) keys(q plan.FindingQuery) string {
	b.Helper()
	rows, err := b.Findings(b.Context(), q)
	if err != nil {
		b.Fatalf("findings: %v", err)
	}
	var keys []string
	for i := range rows {
		keys = append(keys, rows[i].Key)
	}
	return fmt.Sprint(keys)
}

// "After: keys behind this one"; "Limit 0: 100". One call may bring thousands.
func plansPages(b *bench) {
	const n = 4500
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("shop:order:%05d", i))
	}
	ref := b.draft("books", missing(keys...)...)
	var got []string
	pages := 0
	for r, err := range plan.Each(b.Context(), b, plan.FindingQuery{Plan: ref, Limit: 1000}) {
		if err != nil {
			b.Fatal(err)
		}
		got = append(got, r.Key)
	}
	if !slices.Equal(got, keys) {
		b.Errorf("page by page there are %d, want %d", len(got), n)
	}
	for q := (plan.FindingQuery{Plan: ref, Class: plan.Missing, After: keys[n-250]}); ; pages++ {
		rows, err := b.Findings(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		if want := []int{100, 100, 49, 0}[pages]; len(rows) != want {
			b.Fatalf("page %d has %d, want %d", pages, len(rows), want)
		}
		if len(rows) == 0 {
			return
		}
		q.After = rows[len(rows)-1].Key
	}
}

// "Of the job's finished plans the newest Kept stay", with their findings and approvals; of the
// others nothing does.
func plansKept(b *bench) {
	other := b.plan("tax", "ff")
	first := b.plan("books", "00", missing("1")...)
	if err := b.Approve(b.Context(), "00", saga.Actor{Name: "anna"}); err != nil {
		b.Fatal(err)
	}
	second := b.plan("books", "01", missing("1")...)
	for i := range plan.Kept - 1 {
		b.plan("books", fmt.Sprintf("1%02d", i))
	}
	if _, err := b.Plan(b.Context(), "00"); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("the plan before the %d newest: %v", plan.Kept, err)
	}
	if p, err := b.Plan(b.Context(), "01"); err != nil || p.Ref() != second {
		b.Errorf("the oldest of the %d newest: %v", plan.Kept, err)
	}
	if p, err := b.Plan(b.Context(), "ff"); err != nil || p.Ref() != other {
		b.Errorf("the other job's plan: %v", err)
	}
	b.plan("shop", "00") // an equal plan of another job, later
	if p, err := b.Plan(b.Context(), "00"); err != nil || p.Approved != (saga.Actor{}) {
		b.Errorf("the approval outlived its plan: %+v, %v", p.Approved, err)
	}
	b.draft("books")
	if got := b.keys(plan.FindingQuery{Plan: first}); got != "[]" {
		b.Errorf("findings outlived their plan: %s", got)
	}
	if got := b.keys(plan.FindingQuery{Plan: second}); got != "[1]" {
		b.Errorf("of a plan that stays there are %s", got)
	}
}

// One bad value does not fail the batch it is in.
func plansValues(b *bench) {
	bad := plan.Finding{
		Key: "shop:order:\x00\xff", Class: plan.Diverged, Do: plan.Ask, Why: "it says \x00\xff", Propose: "x\x00",
		Changes: []plan.Change{{Field: "note\xff", Is: "\x00", Want: strings.Repeat("ä", 5000)}},
	}
	long := finding(strings.Repeat("k", 5000), plan.Missing, plan.Start)
	ref := b.draft(`b"o\oks?`, append(missing("1"), bad, long)...)
	b.finish(ref, `b"o\oks?`, "a1")
	rows, err := b.Findings(b.Context(), plan.FindingQuery{Plan: ref})
	if err != nil || len(rows) != 3 {
		b.Fatalf("got %d findings, %v", len(rows), err)
	}
	for _, r := range rows {
		if err := b.Done(b.Context(), ref, []plan.Row{{Finding: r.Finding, Outcome: plan.Applied}}); err != nil {
			b.Error(err)
		}
	}
	if rows, err := b.Findings(b.Context(), plan.FindingQuery{Plan: ref, Outcome: plan.Applied}); err != nil || len(rows) != 3 {
		b.Errorf("by its own key nothing can be noted: %d of 3, %v", len(rows), err)
	}
}
