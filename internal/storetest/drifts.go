package storetest

import (
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/plan"
)

var driftCases = []testCase{
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
