package storetest

import (
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
)

var driftCases = []testCase{
	{name: "what lasts keeps its first", run: driftsLast, breaks: broken{"drift-lasts": func(s Store) Store { return oblivious{s} }}},
	{name: "a plan counts once", run: driftsOnce},
	{name: "another class starts over", run: driftsAnew},
	{name: "what is not found is gone", run: driftsGone},
	{name: "parts", run: driftsParts},
	{name: "list", run: driftsList, breaks: unmoored},
	{name: "large", run: driftsLarge},
}

// remember tells the drift of a whole job, and returns when that was.
func (b *bench) remember(job string, number int64, fs ...plan.Finding) {
	b.Helper()
	b.rememberPart(job, number, plan.Part{}, fs...)
}

func (b *bench) rememberPart(job string, number int64, part plan.Part, fs ...plan.Finding) {
	b.Helper()
	if err := b.Remember(b.Context(), plan.Ref{Job: job, Number: number}, part, fs); err != nil {
		b.Fatalf("remember: %v", err)
	}
	b.until(b.calendar, b.calendar()) // what comes next comes later
}

// drifts is what a query finds, each as key×times.
func (b *bench) drifts(q plan.DriftQuery) (string, []plan.Drift) {
	b.Helper()
	ds, err := b.Drifts(b.Context(), q)
	if err != nil {
		b.Fatalf("list drift: %v", err)
	}
	var words []string
	for _, d := range ds {
		words = append(words, fmt.Sprintf("%s×%d", d.Key, d.Times))
	}
	return strings.Join(words, " "), ds
}

func (b *bench) wantDrift(want string) []plan.Drift {
	b.Helper()
	got, ds := b.drifts(plan.DriftQuery{})
	if got != want {
		b.Fatalf("drift is %s, want %s", got, want)
	}
	return ds
}

// "what was there before under the same class keeps its First and counts one run more".
func driftsLast(b *bench) {
	b.remember("books", 1, missing("1")...)
	before := b.wantDrift("1×1")[0]
	f := missing("1")[0]
	f.Why = "in other words"
	b.remember("books", 2, f)
	after := b.wantDrift("1×2")[0]
	if !after.First.Equal(before.First) || !after.Last.After(before.Last) || after.Why != f.Why || after.Job != "books" || after.Class != plan.Missing {
		b.Errorf("it was %+v and is %+v", before, after)
	}
}

// "telling the same part of the same plan twice counts once", and the second word holds.
func driftsOnce(b *bench) {
	b.remember("books", 1, missing("1", "2")...)
	b.remember("books", 2, missing("1", "2")...)
	b.remember("books", 2, missing("1", "3")...)
	b.wantDrift("1×2 3×1")
}

// "another class starts over".
func driftsAnew(b *bench) {
	b.remember("books", 1, missing("1")...)
	before := b.wantDrift("1×1")[0]
	b.remember("books", 2, finding("1", plan.Orphan, plan.Ask))
	after := b.wantDrift("1×1")[0]
	if after.Class != plan.Orphan || !after.First.After(before.First) || !after.First.Equal(after.Last) {
		b.Errorf("it was %+v and is %+v", before, after)
	}
}

// "what is not among fs is gone"; so is what is in sync. Of another job nothing is touched.
func driftsGone(b *bench) {
	b.remember("books", 1, missing("1", "2", "3")...)
	b.remember("tax", 2, missing("1")...)
	b.remember("books", 3, missing("2")[0], finding("3", plan.InSync, plan.Nothing))
	b.wantDrift("2×2 1×1")
	b.remember("books", 4)
	b.wantDrift("1×1")
}

// A part is "behind From, up to and with Until. An empty Until is the end." What lies outside of it
// is refused, and nothing is stored.
func driftsParts(b *bench) {
	b.remember("books", 1, missing("1", "2", "3", "4")...)
	b.rememberPart("books", 2, plan.Part{From: "1", Until: "3"}, missing("2")...)
	b.wantDrift("1×1 2×2 4×1")
	b.rememberPart("books", 2, plan.Part{From: "3"}, missing("5")...)
	b.wantDrift("1×1 2×2 5×1")
	b.rememberPart("books", 2, plan.Part{Until: "1"})
	b.wantDrift("2×2 5×1")
	for _, key := range []string{"1", "4", ""} {
		if err := b.Remember(b.Context(), plan.Ref{Job: "books", Number: 3}, plan.Part{From: "1", Until: "3"}, missing("2", key)); err == nil {
			b.Errorf("%q lies behind 1, up to 3", key)
		}
	}
	b.wantDrift("2×2 5×1")
}

// Drifts returns drift, "that which was found first at first; then by job and key".
func driftsList(b *bench) {
	b.remember("tax", 1, missing("9")...)
	b.remember("books", 2, missing("2", "1")...)
	b.remember("books", 3, append(missing("1", "2"), finding("0", plan.Orphan, plan.Ask))...)
	all := b.wantDrift("9×1 1×2 2×2 0×1")
	for name, c := range map[string]struct {
		q    plan.DriftQuery
		want string
	}{
		"job":   {plan.DriftQuery{Job: "books"}, "1×2 2×2 0×1"},
		"key":   {plan.DriftQuery{Key: "9"}, "9×1"},
		"class": {plan.DriftQuery{Class: plan.Orphan}, "0×1"},
		"times": {plan.DriftQuery{Times: 2}, "1×2 2×2"},
		"limit": {plan.DriftQuery{Limit: 2}, "9×1 1×2"},
		"after": {plan.DriftQuery{After: &all[1]}, "2×2 0×1"},
		"both":  {plan.DriftQuery{Job: "books", After: &all[0], Limit: 1}, "1×2"},
		"none":  {plan.DriftQuery{Job: "shop"}, ""},
	} {
		if got, _ := b.drifts(c.q); got != c.want {
			b.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A part may be large, and its values bad.
func driftsLarge(b *bench) {
	var keys []string
	for i := range 3000 {
		keys = append(keys, fmt.Sprintf("shop:order:%05d", i))
	}
	fs := missing(keys...)
	fs[7].Why = "\x00\xff"
	b.remember("books", 1, fs...)
	b.remember("books", 2, fs[1500:]...)
	_, ds := b.drifts(plan.DriftQuery{Times: 2, Limit: 10_000})
	_, all := b.drifts(plan.DriftQuery{Limit: 10_000})
	if len(ds) != 1500 || len(all) != 1500 {
		b.Errorf("%d last, of %d; want 1500 of 1500", len(ds), len(all))
	}
}
