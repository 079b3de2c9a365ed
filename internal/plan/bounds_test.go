package plan_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
)

func acts(do plan.Verb, r plan.Risk, n int64) plan.Tally {
	return plan.Tally{Class: plan.Missing, Action: do, Risk: r, Count: n}
}

// A kind of action that is more than its count, or more than its percentage, is withheld,
// with words for a person; the other kinds are not. What is few is never too many of a percentage.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bounds  plan.Bounds
		keys    int64
		tallies []plan.Tally
		want    string // of all that is withheld
	}{
		"nothing":         {keys: 1000, tallies: []plan.Tally{{Class: plan.InSync, Action: plan.Nothing, Count: 1000}}},
		"at the bound":    {keys: 1000, tallies: []plan.Tally{acts(plan.Start, plan.Create, 200), acts(plan.Revise, plan.Update, 200), acts(plan.Withdraw, plan.Destroy, 10)}},
		"over a share":    {keys: 1000, tallies: []plan.Tally{acts(plan.Start, plan.Create, 312)}, want: "withheld: 312 creates are 31.2 % of 1,000 objects; at most 20 %. Approve plan 5f3a0000 or raise the bound"},
		"just over":       {keys: 1_000_000, bounds: plan.Bounds{Update: plan.Bound{Count: 1e6}}, tallies: []plan.Tally{acts(plan.Revise, plan.Update, 200_001)}, want: "withheld: 200,001 updates are 20.01 % of 1,000,000 objects; at most 20 %. Approve plan 5f3a0000 or raise the bound"},
		"over a count":    {keys: 1e6, tallies: []plan.Tally{acts(plan.Start, plan.Create, 1001), acts(plan.Revise, plan.Update, 900)}, want: "withheld: 1,001 creates; at most 1,000. Approve plan 5f3a0000 or raise the bound"},
		"few":             {keys: 12, tallies: []plan.Tally{acts(plan.Start, plan.Create, 10), acts(plan.Withdraw, plan.Destroy, 10)}},
		"few of no keys":  {keys: 0, tallies: []plan.Tally{acts(plan.Start, plan.Create, 10)}},
		"many of no keys": {keys: 0, tallies: []plan.Tally{acts(plan.Start, plan.Create, 11)}, want: "withheld: 11 creates are all of 0 objects; at most 20 %. Approve plan 5f3a0000 or raise the bound"},
		"few by option":   {bounds: plan.Bounds{Few: 2}, keys: 10, tallies: []plan.Tally{acts(plan.Start, plan.Create, 3)}, want: "withheld: 3 creates are 30 % of 10 objects; at most 20 %. Approve plan 5f3a0000 or raise the bound"},
		"destroy":         {keys: 1e6, tallies: []plan.Tally{acts(plan.Withdraw, plan.Destroy, 11)}, want: "withheld: 11 withdrawals; at most 10. Approve plan 5f3a0000 or raise the bound"},
		"two verbs":       {keys: 1000, tallies: []plan.Tally{acts(plan.Start, plan.Create, 150), acts(plan.Again, plan.Create, 60)}, want: "withheld: 210 creates are 21 % of 1,000 objects; at most 20 %. Approve plan 5f3a0000 or raise the bound"},
		"ask":             {bounds: plan.Bounds{Destroy: plan.Bound{Ask: true}}, keys: 1000, tallies: []plan.Tally{acts(plan.Withdraw, plan.Destroy, 1)}, want: "withheld: 1 withdrawal; none is done without an approval. Approve plan 5f3a0000 or raise the bound"},
		"for a person":    {keys: 10, tallies: []plan.Tally{acts(plan.Ask, plan.Harmless, 10), acts(plan.Adopt, plan.Harmless, 10)}},
	} {
		p := plan.Plan{ID: "5f3a000011112222", Counts: plan.Census{Source: c.keys, Keys: c.keys}, Classes: c.tallies}
		c.bounds.Check(&p)
		if got := strings.Join(p.Words(), "\n"); got != c.want {
			t.Errorf("%s: %s\nwant: %s", name, got, c.want)
		}
	}
}

// From a source that is empty or has shrunk nothing is concluded about what it does not list,
// and nothing is withdrawn.
func TestShrunk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		census plan.Census
		want   string
	}{
		"as before":      {plan.Census{Source: 1000, PreviousSource: 1000}, ""},
		"at the bound":   {plan.Census{Source: 800, PreviousSource: 1000}, ""},
		"under it":       {plan.Census{Source: 799, PreviousSource: 1000}, "the source lists 799 objects, 79.9 % of the 1,000 of its last complete listing; under 80 % nothing is concluded"},
		"just under":     {plan.Census{Source: 799_999, PreviousSource: 1_000_000}, "79.99 %"},
		"empty":          {plan.Census{PreviousSource: 1000}, "the source lists nothing, and there are 1,000 objects of it"},
		"empty of few":   {plan.Census{PreviousSource: 1}, "the source lists nothing, and there is 1 object of it"},
		"never listed":   {plan.Census{Source: 3, Destination: 1000}, ""},
		"empty at first": {plan.Census{Destination: 12}, "the source lists nothing, and there are 12 objects of it"},
		"nothing at all": {plan.Census{}, ""},
		"few missing":    {plan.Census{Source: 2, PreviousSource: 12}, ""},
	} {
		got := plan.Bounds{}.Shrunk(&c.census)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		c.census.Keys = 1e6
		p := plan.Plan{Counts: c.census, Classes: []plan.Tally{acts(plan.Withdraw, plan.Destroy, 1), acts(plan.Start, plan.Create, 1)}}
		(plan.Bounds{}).Check(&p)
		if p.Withholds(plan.Destroy) != (c.want != "") || p.Withholds(plan.Create) {
			t.Errorf("%s: withheld %+v", name, p.OverLimit)
		}
	}
}

// When more than half of what can be compared differs in one same field, it is the mapping, and
// the words say which field, how many, and which mappings.
func TestSameField(t *testing.T) {
	t.Parallel()
	shares := func(compared int64, s ...plan.Share) plan.Spread {
		return plan.Spread{Compared: compared, Fields: s}
	}
	for name, c := range map[string]struct {
		spread plan.Spread
		before string
		want   []string
	}{
		"none":                            {spread: shares(1000)},
		"half":                            {spread: shares(1000, plan.Share{Field: "total", Count: 500})},
		"spread":                          {spread: shares(1000, plan.Share{Field: "a", Count: 400}, plan.Share{Field: "b", Count: 400})},
		"over half":                       {spread: shares(1000, plan.Share{Field: "total", Count: 3}, plan.Share{Field: "tax", Count: 501}), before: "2", want: []string{"50.1 % of 1,000 documents", `"tax"`, `the mapping was "2" and is "3"`}},
		"same mapping":                    {spread: shares(20, plan.Share{Field: "tax", Count: 20}), before: "3", want: []string{"100 %", `the mapping is "3" as before`}},
		"news":                            {spread: shares(20, plan.Share{Field: "tax", Count: 1, NewerAtSource: 19}), before: "3"},
		"no news, as the mapping changed": {spread: shares(20, plan.Share{Field: "tax", Count: 1, NewerAtSource: 19}), before: "2", want: []string{"100 %", `the mapping was "2"`}},
		"few":                             {spread: shares(10, plan.Share{Field: "tax", Count: 10})},
		"impossible":                      {spread: shares(0, plan.Share{Field: "tax", Count: 11}), want: []string{"all of 0 documents"}},
	} {
		p := plan.Plan{MappingVersion: "3", PreviousMappingVersion: c.before, Differences: c.spread}
		(plan.Bounds{}).Check(&p)
		if (p.RefusedReason == "") != (len(c.want) == 0) {
			t.Errorf("%s: %q", name, p.RefusedReason)
		}
		for _, w := range c.want {
			if !strings.Contains(p.RefusedReason, w) {
				t.Errorf("%s: %q does not say %q", name, p.RefusedReason, w)
			}
		}
	}
}

// Options that mean nothing are said all at once.
func TestFaults(t *testing.T) {
	t.Parallel()
	if err := (plan.Bounds{}).Faults(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if err := (plan.Bounds{}).OrDefaults().Faults(); err != nil {
		t.Errorf("the defaults, spelled out: %v", err)
	}
	err := plan.Bounds{
		Create: plan.Bound{Count: -1, Percent: math.NaN()}, Update: plan.Bound{Percent: 101}, Destroy: plan.Bound{Percent: math.Inf(1)},
		Few: -1, Shrink: -0.1, SameField: math.NaN(), Row: -1, Rate: 2, Window: -1,
	}.Faults()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, name := range []string{"Create.Count", "Create.Percent", "Update.Percent", "Destroy.Percent", "Few", "Shrink", "SameField", "Row", "Rate", "Window"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v\ndoes not speak of %s", err, name)
		}
	}
}

// Whatever is counted: what is within its count and percentage, or few, passes; everything else of
// that kind is withheld, with words; and no bound that is wider withholds more.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.Int64Range(0, 2000)
		p := plan.Plan{ID: "5f3a", Counts: plan.Census{Keys: number.Draw(r, "keys"), Source: number.Draw(r, "source"), PreviousSource: number.Draw(r, "before"), Destination: number.Draw(r, "destination")}}
		for _, risk := range plan.Risks {
			p.Classes = append(p.Classes, acts(plan.Withdraw, risk, number.Draw(r, string(risk))))
		}
		bound := rapid.Custom(func(r *rapid.T) plan.Bound {
			return plan.Bound{Count: number.Draw(r, "count"), Percent: rapid.Float64Range(0, 100).Draw(r, "percent"), Ask: rapid.IntRange(0, 9).Draw(r, "ask") == 0}
		})
		b := plan.Bounds{Create: bound.Draw(r, "create"), Update: bound.Draw(r, "update"), Destroy: bound.Draw(r, "destroy"), Few: rapid.Int64Range(0, 30).Draw(r, "few")}
		b.Check(&p)
		b = b.OrDefaults()
		for i, bound := range []plan.Bound{b.Destroy, b.Create, b.Update} {
			risk, n := plan.Risks[i], p.Classes[i].Count
			fits := n <= bound.Count && (n <= b.Few || float64(n) <= bound.Percent*float64(p.Counts.Keys)/100)
			if risk == plan.Destroy {
				fits = fits && b.Shrunk(&p.Counts) == ""
			}
			if fits = n == 0 || fits && !bound.Ask; p.Withholds(risk) == fits {
				r.Fatalf("%d of %d for %s, bound %+v, few %d: withheld %+v", n, p.Counts.Keys, risk, bound, b.Few, p.OverLimit)
			}
		}
		for _, e := range p.OverLimit {
			if e.Reason == "" || strings.Contains(e.Reason, "NaN") || strings.Contains(e.Reason, "Inf") || e.Limit < 0 || e.Limit > e.Count {
				r.Fatalf("%+v", e)
			}
		}
		wider := p
		b.Create.Count, b.Update.Percent, b.Destroy.Count = b.Create.Count*2, 100, b.Destroy.Count*2
		b.Check(&wider)
		for _, e := range wider.OverLimit {
			if !p.Withholds(e.Risk) {
				r.Fatalf("a wider bound withholds %+v", e)
			}
		}
	})
}

// I-9: whatever destination and ledger hold, from an empty source nothing is withdrawn and nothing
// made.
func TestEmptySourceDestroysNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r)
		w.source, w.how.Complete = nil, true
		found, counts := w.compare(r)
		p := plan.NewPlanner(&plan.Plan{Job: "books", Counts: counts.Census, Differences: counts.Spread}, counts.Tallies)
		for i := range found {
			if f := &found[i]; f.Risk() != plan.Harmless {
				r.Fatalf("it would %s %s", f.Action, f.Key)
			}
			if err := p.Add(&found[i]); err != nil {
				r.Fatal(err)
			}
		}
		made, err := p.Plan(&plan.Bounds{})
		if err != nil || made.Acts(plan.Destroy)+made.Acts(plan.Create)+made.Acts(plan.Update) > 0 {
			r.Fatalf("%+v, %v", made, err)
		}
		if c := made.Counts; c.Destination > 0 && (plan.Bounds{}).Shrunk(&c) == "" {
			r.Fatalf("an empty source is believed: %+v", c)
		}
	})
}
