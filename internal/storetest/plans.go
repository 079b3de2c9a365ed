package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

var planCases = []testCase{
	{name: "findings come back whole", run: plansFindings, breaks: broken{"finding-order": func(s Store) Store { return backward{s} }}},
	{name: "the same key again replaces", run: plansReplace, breaks: broken{
		"finding-class":  misfinds(func(q *plan.FindingQuery) { q.Class = "" }),
		"finding-acting": misfinds(func(q *plan.FindingQuery) { q.Acting = false }),
	}},
	{name: "in sync takes a key out", run: plansInSync, breaks: broken{"in-sync-out": func(s Store) Store { return clinging{s} }}},
	{name: "pages", run: plansPages, breaks: broken{
		"finding-repeats": func(s Store) Store { return turned{s, -1} },
		"finding-skips":   func(s Store) Store { return turned{s, 1} },
	}},
	{name: "a draft is no plan", run: plansDraft},
	{name: "a draft dies with the next", run: plansDraftDies, breaks: broken{"draft-dies": func(s Store) Store { return undying{s} }}},
	{name: "finished is final", run: plansFinal},
	{name: "by id", run: plansByID},
	{name: "the newest stay", run: plansKept},
	{name: "approval", run: plansApproval},
	{name: "what became of actions", run: plansOutcomes, breaks: broken{
		"finding-outcome": misfinds(func(q *plan.FindingQuery) { q.Outcome = "" }),
	}},
	{name: "values", run: plansValues},
	{name: "drafts race", run: plansRace},
	{name: "numbered within their job", run: plansNumbered},
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

// far is a plan of the same job that was never made.
func far(ref plan.Ref) plan.Ref { return plan.Ref{Job: ref.Job, Number: ref.Number + 1000} }

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

// Findings are returned "in the order of the bytes of their keys", with everything they say.
func plansFindings(b *bench) {
	f := plan.Finding{
		Key: "shop:order:2", Class: plan.Diverged, Do: plan.Ask, Why: `<"why"> & more`, Revision: "7", Applied: "6",
		Changes: []plan.Change{{Field: "total", Is: "4100", Want: "4200"}}, Documents: []string{"inv_1", "inv_2"}, Propose: "look",
	}
	ref := b.draft("books", missing("shop:order:ä", "shop:order:a", "shop:order:Z", "shop:order:10")...)
	b.find(ref, f)
	if got, want := b.keys(plan.FindingQuery{Plan: ref}), "[shop:order:10 shop:order:2 shop:order:Z shop:order:a shop:order:ä]"; got != want {
		b.Errorf("got %s, want %s", got, want)
	}
	rows, err := b.Findings(b.Context(), plan.FindingQuery{Plan: ref, Class: plan.Diverged})
	if err != nil || len(rows) != 1 || !reflect.DeepEqual(rows[0], plan.Row{Finding: f}) {
		b.Errorf("got %+v, %v; want %+v", rows, err, f)
	}
	if got := b.keys(plan.FindingQuery{Plan: far(ref)}); got != "[]" {
		b.Errorf("a plan that is not there has %s", got)
	}
}

// "The same key again replaces what was found", in one call, too.
func plansReplace(b *bench) {
	ref := b.draft("books", finding("1", plan.Missing, plan.Look), finding("1", plan.Stale, plan.Revise))
	b.find(ref, finding("2", plan.Missing, plan.Start), finding("1", plan.Orphan, plan.Ask))
	if got := b.keys(plan.FindingQuery{Plan: ref, Class: plan.Orphan}); got != "[1]" {
		b.Errorf("orphans: %s, want [1]", got)
	}
	if got := b.keys(plan.FindingQuery{Plan: ref, Acting: true}); got != "[2]" {
		b.Errorf("acting: %s, want [2]", got)
	}
	if got := b.keys(plan.FindingQuery{Plan: ref}); got != "[1 2]" {
		b.Errorf("all: %s, want [1 2]", got)
	}
}

// "one that is in sync takes its key out".
func plansInSync(b *bench) {
	ref := b.draft("books", missing("1", "2", "3")...)
	b.find(ref, finding("2", plan.InSync, plan.Nothing), finding("4", plan.InSync, plan.Nothing))
	if got := b.keys(plan.FindingQuery{Plan: ref}); got != "[1 3]" {
		b.Errorf("got %s, want [1 3]", got)
	}
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

// Latest does not return a draft, and Done does not know it: a draft is no plan.
func plansDraft(b *bench) {
	ref := b.draft("books", missing("1")...)
	if _, err := b.Latest(b.Context(), "books"); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("the latest plan is a draft: %v", err)
	}
	if err := b.Done(b.Context(), ref, nil); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("something became of a draft: %v", err)
	}
}

// "What was drafted for that job earlier and never finished is erased, with its findings; who still
// works on it gets ErrNotFound", "and nothing is stored". Another job's draft stays.
func plansDraftDies(b *bench) {
	other := b.draft("tax", missing("1")...)
	old := b.draft("books", missing("1", "2")...)
	b.draft("books")
	if err := b.Find(b.Context(), old, missing("3")); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("found for an erased draft: %v", err)
	}
	if _, err := b.Finish(b.Context(), old, &plan.Plan{ID: "aa", Job: "books"}); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("finished an erased draft: %v", err)
	}
	if got := b.keys(plan.FindingQuery{Plan: old}); got != "[]" {
		b.Errorf("the erased draft has %s", got)
	}
	b.find(other, missing("2")...)
	if got := b.keys(plan.FindingQuery{Plan: other}); got != "[1 2]" {
		b.Errorf("the other job's draft has %s", got)
	}
}

// "A draft that is finished [...]: ErrNotFound, and nothing is stored"; "Finishing again with the
// same plan changes nothing".
func plansFinal(b *bench) {
	ref := b.draft("books", missing("1")...)
	p := &plan.Plan{ID: "abcd", Job: "books", Mapping: "3", Generation: 9, Census: plan.Census{Source: 4, Keys: 5}, Tallies: []plan.Tally{{Class: plan.Missing, Do: plan.Start, Risk: plan.Create, Count: 1}}}
	before := b.calendar()
	at, err := b.Finish(b.Context(), ref, p)
	if err != nil || at.Before(before.Add(-1)) {
		b.Fatalf("finished at %v, %v; the clock was at %v", at, err, before)
	}
	if err := b.Find(b.Context(), ref, missing("2")); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("found for a finished plan: %v", err)
	}
	if again, err := b.Finish(b.Context(), ref, p); err != nil || !again.Equal(at) {
		b.Errorf("finished again at %v, %v; want %v", again, err, at)
	}
	if _, err := b.Finish(b.Context(), ref, &plan.Plan{ID: "beef", Job: "books"}); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("finished as another plan: %v", err)
	}
	got, err := b.Plan(b.Context(), "abcd")
	if want := (plan.Stored{Plan: *p, Number: ref.Number, Made: at}); err != nil || !reflect.DeepEqual(got, want) {
		b.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got := b.keys(plan.FindingQuery{Plan: ref}); got != "[1]" {
		b.Errorf("it has %s, want [1]", got)
	}
}

// "Plan returns the newest finished plan with that id, or whose id begins so when no plan with
// another id does. Latest returns the newest finished plan of a job".
func plansByID(b *bench) {
	b.plan("books", "a1b2")
	again := b.plan("books", "a1b2")
	tax := b.plan("tax", "a1c3")
	b.draft("books")
	for id, want := range map[string]plan.Ref{"a1b2": again, "a1b": again, "a1c": tax} {
		if p, err := b.Plan(b.Context(), id); err != nil || p.Ref() != want {
			b.Errorf("plan %q is number %s, %v; want %s", id, p.Ref(), err, want)
		}
	}
	for _, id := range []string{"", "b", "a1b2c", "%", "A1B2"} {
		if _, err := b.Plan(b.Context(), id); !errors.Is(err, plan.ErrNotFound) {
			b.Errorf("plan %q: %v", id, err)
		}
	}
	if _, err := b.Plan(b.Context(), "a1"); err == nil || errors.Is(err, plan.ErrNotFound) {
		b.Errorf("two plans begin with a1, and the answer is: %v", err)
	}
	for job, want := range map[string]plan.Ref{"books": again, "tax": tax} {
		if p, err := b.Latest(b.Context(), job); err != nil || p.Ref() != want {
			b.Errorf("the latest of %s is number %s, %v; want %s", job, p.Ref(), err, want)
		}
	}
	if _, err := b.Latest(b.Context(), "shop"); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("the latest of a job without plans: %v", err)
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

// "every plan with that id says the same, so it holds for all of them. The first approval stands".
func plansApproval(b *bench) {
	b.plan("books", "a1b2")
	anna, ben := saga.Actor{Name: "anna", Reason: "the move\x00 to the new shop"}, saga.Actor{Name: "ben"}
	for _, id := range []string{"", "a1", "ffff"} {
		if err := b.Approve(b.Context(), id, anna); !errors.Is(err, plan.ErrNotFound) {
			b.Errorf("approved plan %q: %v", id, err)
		}
	}
	if err := b.Approve(b.Context(), "a1b2", saga.Actor{Reason: "?"}); err == nil {
		b.Error("an approval without a name was stored")
	}
	before := b.calendar()
	for _, by := range []saga.Actor{anna, ben} {
		if err := b.Approve(b.Context(), "a1b2", by); err != nil {
			b.Fatal(err)
		}
	}
	b.plan("books", "a1b2")
	b.plan("books", "cccc")
	p, err := b.Plan(b.Context(), "a1b2")
	if err != nil || p.Approved.Name != "anna" || !strings.HasSuffix(p.Approved.Reason, "to the new shop") || p.When.Before(before) {
		b.Errorf("approved by %+v at %v, %v", p.Approved, p.When, err)
	}
	if p, err := b.Latest(b.Context(), "books"); err != nil || p.Approved != (saga.Actor{}) || !p.When.IsZero() {
		b.Errorf("a plan without an approval: %+v at %v, %v", p.Approved, p.When, err)
	}
}

// "Done notes what became of actions of a finished plan: Outcome and Error of rows, by Key. [...]
// At is the database's clock. A key that the plan does not have is left out." What was withheld is
// still to be done.
func plansOutcomes(b *bench) {
	stored := b.plan("books", "a1", append(missing("1", "2", "3", "4", "5"), finding("6", plan.Orphan, plan.Ask))...)
	before := b.calendar()
	err := b.Done(b.Context(), stored, []plan.Row{
		{Finding: missing("1")[0], Outcome: plan.Failed}, {Finding: plan.Finding{Key: "1"}, Outcome: plan.Applied},
		{Finding: plan.Finding{Key: "2"}, Outcome: plan.Failed, Error: "no\x00 route"},
		{Finding: plan.Finding{Key: "3"}, Outcome: plan.Withheld}, {Finding: plan.Finding{Key: "6"}, Outcome: plan.ForPerson},
		{Finding: plan.Finding{Key: "unknown"}, Outcome: plan.Applied},
	})
	if err != nil {
		b.Fatal(err)
	}
	for want, q := range map[string]plan.FindingQuery{
		"[3 4 5]":       {Acting: true},
		"[4 5]":         {Acting: true, After: "3"},
		"[1]":           {Outcome: plan.Applied},
		"[2]":           {Outcome: plan.Failed, Class: plan.Missing},
		"[6]":           {Class: plan.Orphan},
		"[1 2 3 4 5 6]": {},
	} {
		q.Plan = stored
		if got := b.keys(q); got != want {
			b.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	rows, err := b.Findings(b.Context(), plan.FindingQuery{Plan: stored, Outcome: plan.Failed})
	if err != nil || len(rows) != 1 || rows[0].At.Before(before) || !strings.HasSuffix(rows[0].Error, " route") || rows[0].Do != plan.Start {
		b.Errorf("what failed: %+v, %v", rows, err)
	}
	if err := b.Done(b.Context(), stored, []plan.Row{{Finding: plan.Finding{Key: "3"}}}); err != nil {
		b.Fatal(err)
	}
	if err := b.Done(b.Context(), far(stored), nil); !errors.Is(err, plan.ErrNotFound) {
		b.Errorf("something became of an unknown plan: %v", err)
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

// "Plans are numbered within their job, from 1; a number is never given twice" (K18): not when the
// draft that had it is erased, and not by two processes.
func plansNumbered(b *bench) {
	other := b.again()
	for i := range int64(3) {
		books := b.draft("books", missing("1")...)
		tax, err := other.Draft(b.Context(), "tax")
		if err != nil {
			b.Fatal(err)
		}
		if want := (plan.Ref{Job: "books", Number: 2*i + 1}); books != want {
			b.Errorf("draft %s, want %s", books, want)
		}
		if want := (plan.Ref{Job: "tax", Number: i + 1}); tax != want {
			b.Errorf("draft %s, want %s", tax, want)
		}
		if again, err := other.Draft(b.Context(), "books"); err != nil || again.Number != 2*i+2 {
			b.Errorf("draft %s, %v", again, err)
		}
	}
	b.plan("tax", "aa", missing("of tax")...) // its fourth, as that of books is
	if got := b.keys(plan.FindingQuery{Plan: plan.Ref{Job: "books", Number: 4}}); got != "[]" {
		b.Errorf("the plan of another job has %s", got)
	}
}
