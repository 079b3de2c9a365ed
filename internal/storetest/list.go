package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

var listCases = []testCase{
	{name: "prefixes are literal", run: listPrefix},
	{name: "pages", run: listPages, breaks: misplaced},
	{name: "cursors", run: listCursors, breaks: broken{"cursor-own": func(s Store) Store { return obliging{s} }}},
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

// A cursor goes on with its own listing and with no other: the filter and the order count, the size
// of a page does not.
func listCursors(b *bench) {
	t := b.session()
	for i := range 9 {
		c := b.start(t, order(i), started(), hold)
		if i%3 == 0 {
			c.add(reviewed(), release)
		}
	}
	filters := []ledger.Filter{
		{}, {Newest: true}, {ByWork: true}, {Prefix: "o"}, {Saga: theSaga}, {Saga: "another"}, {Status: saga.Review}, {Status: saga.Running},
		{Reason: saga.ReasonInDoubt}, {WaitsFor: books}, {Step: books}, {ExternalID: "x"}, {Unconfirmed: true},
		{CreatedSince: time.Unix(1, 0)}, {CreatedUntil: time.Unix(1<<40, 0)}, {UpdatedSince: time.Unix(1, 0)}, {UpdatedUntil: time.Unix(1<<40, 0)},
		{Work: order(1)}, {ByWork: true, AfterWork: "a"},
	}
	for i, f := range filters {
		f.Limit = 2
		cursor := f.Behind(ledger.Position{Number: 2, ID: saga.ID{Saga: theSaga, Work: order(1)}})
		if page := b.page(f); page.Next != "" {
			cursor = page.Next
		}
		for k, g := range filters {
			g.After, g.Limit = cursor, 5
			_, err := b.List(b.Context(), g)
			if k == i && err != nil {
				b.Errorf("%+v does not go on: %v", f, err)
			} else if k != i {
				b.wantError(fmt.Sprintf("the cursor of %+v for %+v", f, g), err, ledger.ErrCursor)
			}
		}
	}
	for _, broken := range []string{"7", "x", "1", "1AAAA", "2" + ledger.Filter{}.Behind(ledger.Position{Number: 7})[1:], ledger.Filter{}.Behind(ledger.Position{Number: 7}) + "AAAA"} {
		_, err := ledger.First(b.Context(), b, ledger.Filter{After: broken})
		b.wantError(fmt.Sprintf("the cursor %q", broken), err, ledger.ErrCursor)
	}
}
