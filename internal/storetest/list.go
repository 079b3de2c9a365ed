package storetest

import (
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

var listCases = []testCase{
	{name: "prefixes are literal", run: listPrefix},
	{name: "pages", run: listPages},
}

// lists wants the works that a filter does not narrow away, in the order of their ids or of
// starting, and the first of them where there is a limit.
func (b *bench) lists(f ledger.Filter, want ...string) {
	b.Helper()
	if f.Limit > 0 {
		want = want[:min(f.Limit, len(want))]
	}
	if got := works(b.list(f)); !slices.Equal(got, want) {
		b.Errorf("list %+v: got %q, want %q", f, got, want)
	}
}

// A prefix is text, not a pattern, and case counts.
func listPrefix(b *bench) {
	t := b.session()
	all := []string{"a%b", "a_b", "axb", `a\b`, "A_B", "ä", "Ä", "*", "[a]", "\U0010ffff", "\U0010ffff\U0010ffffz", "z"}
	for _, w := range all {
		b.start(t, w, started(), hold)
	}
	for prefix, want := range map[string][]string{
		"a%":         {"a%b"},
		"a_":         {"a_b"},
		`a\`:         {`a\b`},
		"a":          {"a%b", `a\b`, "a_b", "axb"}, // by bytes
		"A":          {"A_B"},
		"ä":          {"ä"},
		"%":          nil,
		"*":          {"*"},
		"[":          {"[a]"},
		"\U0010ffff": {"\U0010ffff", "\U0010ffff\U0010ffffz"},
		"a_b":        {"a_b"},
		"a_bc":       nil,
	} {
		b.lists(ledger.Filter{Prefix: prefix}, want...)
	}
}

// "List returns a page of the heads that f selects, at most f.Limit of them, behind the page that
// told f.After", in the order of starting. Without a limit it is 100.
func listPages(b *bench) {
	t := b.session()
	const n = 130
	var batch []ledger.Entry
	var want []string
	for i := range n {
		batch, want = append(batch, b.fresh(t, order(i)).entry(started(), hold)), append(want, order(i))
	}
	b.append(t, batch...)
	if got := b.list(ledger.Filter{}); len(got) != 100 {
		b.Errorf("a listing without a limit gave %d heads, want 100", len(got))
	}
	for _, limit := range []int{1, 7, 100, 1000} {
		var got []string
		for f := (ledger.Filter{Limit: limit, Status: saga.Running}); ; {
			page := b.page(f)
			if len(page.Instances) > limit {
				b.Fatalf("a page of %d has %d heads", limit, len(page.Instances))
			}
			got = append(got, works(page.Instances)...)
			if f.After = page.Next; f.After == "" || len(got) > n {
				break
			}
		}
		if !slices.Equal(got, want) {
			b.Errorf("pages of %d list %q, want %q", limit, got, want)
		}
	}
}
