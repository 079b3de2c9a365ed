package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var listCases = []testCase{
	{name: "filters", run: listFilters, breaks: unfiltered},
	{name: "prefixes are literal", run: listPrefix},
	{name: "pages", run: listPages, breaks: misplaced},
	{name: "cursors", run: listCursors, breaks: broken{"cursor-own": func(s Store) Store { return obliging{s} }}},
	{name: "the newest first", run: listNewest, breaks: broken{"list-newest": mistakes(func(f *ledger.Filter) { f.Newest = false })}},
	{name: "by time", run: listTimes, breaks: timeless},
	{name: "by work", run: listByWork, breaks: broken{
		"list-by-work":    mistakes(func(f *ledger.Filter) { f.ByWork = false }),
		"list-after-work": mistakes(func(f *ledger.Filter) { f.AfterWork = "" }),
	}},
	{name: "external ids", run: listExternalID, breaks: broken{"list-external-id": mistakes(func(f *ledger.Filter) { f.ExternalID = "" })}},
	{name: "unconfirmed", run: listUnconfirmed, breaks: broken{"list-unconfirmed": mistakes(func(f *ledger.Filter) { f.Unconfirmed = false })}},
}

// "Filter narrows a listing. Zero fields do not narrow", and several narrow together.
func listFilters(b *bench) {
	t := b.session()
	b.start(t, "shop:1", started(), hold)
	b.start(t, "shop:2", started(), hold).add(reviewed(), release)
	poison := reviewed()
	poison.Reason, poison.Step = saga.ReasonPoison, "mail"
	b.start(t, "shop:3", started(), hold).add(poison, release)
	b.start(t, "web:1", started(), hold).add(doing(machine.KindDone, saga.Completed), release)
	other := b.fresh(t, "shop:1")
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	b.giveBack(t, ledger.Return{Number: b.start(t, "web:2", started(), hold).head, WaitsFor: books},
		ledger.Return{Number: b.start(t, "web:3", started(), hold).head, WaitsFor: mail},
		ledger.Return{Number: b.start(t, "shop:4", started(), hold).head, WaitsFor: books})
	for _, c := range []struct {
		f    ledger.Filter
		want []string
	}{
		{ledger.Filter{WaitsFor: books}, []string{"web:2", "shop:4"}},
		{ledger.Filter{WaitsFor: books, Prefix: "shop", Status: saga.Running}, []string{"shop:4"}},
		{ledger.Filter{WaitsFor: "book"}, nil},
		{ledger.Filter{Step: "mail"}, []string{"shop:3"}},
		{ledger.Filter{Step: "mail", Status: saga.Review, Newest: true}, []string{"shop:3"}},
		{ledger.Filter{Step: "mail", Status: saga.Paused}, nil},
		{ledger.Filter{Step: "no such"}, nil},
		{ledger.Filter{}, []string{"shop:1", "shop:2", "shop:3", "web:1", "shop:1", "web:2", "web:3", "shop:4"}},
		{ledger.Filter{Saga: theSaga}, []string{"shop:1", "shop:2", "shop:3", "web:1", "web:2", "web:3", "shop:4"}},
		{ledger.Filter{Work: "shop:1"}, []string{"shop:1", "shop:1"}},
		{ledger.Filter{Saga: "order-to-crm", Work: "shop:1"}, []string{"shop:1"}},
		{ledger.Filter{Saga: "order-to-crm", Work: "shop:2"}, nil},
		{ledger.Filter{Prefix: "shop:"}, []string{"shop:1", "shop:1", "shop:2", "shop:3", "shop:4"}},
		{ledger.Filter{Status: saga.Running}, []string{"shop:1", "shop:1", "web:2", "web:3", "shop:4"}},
		{ledger.Filter{Status: saga.Completed}, []string{"web:1"}},
		{ledger.Filter{Status: saga.Paused}, nil},
		{ledger.Filter{Status: saga.Adopting}, nil},
		{ledger.Filter{Status: saga.Review}, []string{"shop:2", "shop:3"}},
		{ledger.Filter{Reason: saga.ReasonPoison}, []string{"shop:3"}},
		{ledger.Filter{Status: saga.Review, Reason: saga.ReasonInDoubt, Prefix: "shop:"}, []string{"shop:2"}},
		{ledger.Filter{Status: saga.Running, Saga: theSaga, Prefix: "web:1"}, nil},
		{ledger.Filter{Limit: 2}, []string{"shop:1", "shop:2", "shop:3", "web:1", "shop:1", "web:2", "web:3", "shop:4"}},
		{ledger.Filter{Limit: 1, Prefix: "web"}, []string{"web:1", "web:2", "web:3"}},
	} {
		b.lists(c.f, c.want...)
	}
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

// Unconfirmed lists works that adopted a step as done because its outcome was unknown. The status
// that a work has now does not matter.
func listUnconfirmed(b *bench) {
	t := b.session()
	adopted := doing(machine.KindAdopted, saga.Running)
	unknown := adopted
	unknown.Class = saga.Unknown
	timeout := doing(machine.KindUnknown, saga.Running)
	timeout.Class = saga.Unknown
	b.start(t, "stands", started(), hold).add(adopted, keep)
	b.start(t, "timed out", started(), hold).add(timeout, keep)
	b.start(t, "a mail", started(), hold).add(unknown, keep)
	ended := b.start(t, "two mails, ended", started(), hold)
	ended.add(unknown, keep)
	ended.add(unknown, keep)
	ended.add(doing(machine.KindNoted, saga.Completed), release)
	b.lists(ledger.Filter{Unconfirmed: true}, "a mail", "two mails, ended")
	f := ledger.Filter{Unconfirmed: true, Status: saga.Completed}
	if got, want := works(b.list(f)), []string{"two mails, ended"}; !slices.Equal(got, want) {
		b.Errorf("completed and unconfirmed are %q, want %q", got, want)
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

// "Newest lists those first that were started last", page by page.
func listNewest(b *bench) {
	t := b.session()
	var want []string
	for i := range 7 {
		c := b.start(t, order(i), started(), hold)
		if i != 3 {
			c.add(reviewed(), release)
			want = append(want, order(i))
		}
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 2, 3, 100} {
		var got []string
		for f := (ledger.Filter{Status: saga.Review, Newest: true, Limit: limit}); ; {
			page := b.page(f)
			got = append(got, works(page.Instances)...)
			if f.After = page.Next; f.After == "" || len(got) > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			b.Errorf("pages of %d, the newest first: got %q, want %q", limit, got, want)
		}
	}
}

// "When a work was started, and when something was recorded that changed where it stands: from
// since on, and before until".
func listTimes(b *bench) {
	t := b.session()
	var c []*chain
	var at []time.Time
	for i := range 3 {
		c = append(c, b.start(t, order(i), started(), hold))
		at = append(at, c[i].now().Created)
		b.until(b.clock, at[i])
	}
	c[0].add(reviewed(), release)
	updated := c[0].now().Updated
	for _, l := range []struct {
		f    ledger.Filter
		want []string
	}{
		{ledger.Filter{CreatedSince: at[1]}, []string{order(1), order(2)}},
		{ledger.Filter{CreatedUntil: at[1]}, []string{order(0)}},
		{ledger.Filter{CreatedSince: at[0].Add(time.Microsecond), CreatedUntil: at[2]}, []string{order(1)}},
		{ledger.Filter{CreatedSince: at[1], Newest: true}, []string{order(2), order(1)}},
		{ledger.Filter{UpdatedSince: updated}, []string{order(0)}},
		{ledger.Filter{UpdatedUntil: updated}, []string{order(1), order(2)}},
		{ledger.Filter{UpdatedSince: at[1], Status: saga.Review}, []string{order(0)}},
		{ledger.Filter{UpdatedSince: at[1], Status: saga.Running, CreatedUntil: at[2]}, []string{order(1)}},
	} {
		if got := works(b.list(l.f)); !slices.Equal(got, l.want) {
			b.Errorf("list %+v: got %q, want %q", l.f, got, l.want)
		}
	}
}

// "ByWork lists the works of one Saga in the order of their ids, by bytes, behind AfterWork": a
// caller that merges the ledger with another listing needs the same order in every database, and
// pages that neither skip nor repeat a work.
func listByWork(b *bench) {
	t := b.session()
	want := []string{"A", "Z", "a", "a b", "a:1", "a:10", "a:2", "aa", "b_", "z", "ä", "\U0010ffff"} // by bytes
	for _, i := range []int{7, 2, 11, 0, 5, 9, 1, 4, 10, 3, 8, 6} {
		b.start(t, want[i], started(), hold)
	}
	other := b.fresh(t, "aaa")
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	for _, limit := range []int{1, 5, 12, 100} {
		var got []string
		for f := (ledger.Filter{Saga: theSaga, ByWork: true, Limit: limit}); ; f.AfterWork = got[len(got)-1] {
			page := b.list(f)
			if len(page) == 0 {
				break
			}
			got = append(got, works(page)...)
			if len(page) > limit || len(got) > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			b.Errorf("pages of %d by work: got %q, want %q", limit, got, want)
		}
	}
	page := b.list(ledger.Filter{Saga: theSaga, ByWork: true, AfterWork: "a:1", Prefix: "a", Limit: 2})
	if got := works(page); !slices.Equal(got, []string{"a:10", "a:2"}) {
		b.Errorf("behind a:1, with a prefix: got %q", got)
	}
}

// "Works that recorded this external id": who made inv_5530?
func listExternalID(b *bench) {
	t := b.session()
	made := func(c *chain, ext string) {
		r := doing(machine.KindDone, saga.Running)
		r.ExternalID = ext
		c.add(r, hold)
	}
	one, two, three := b.start(t, "1", started(), hold), b.start(t, "2", started(), hold), b.start(t, "3", started(), hold)
	other := b.fresh(t, "4")
	other.id.Saga = "order-to-crm"
	other.add(due(started(), time.Hour), release)
	made(one, "inv_5530")
	made(one, "cus_1")
	made(two, "inv_5531")
	made(two, "cus_1")
	made(two, "cus_1") // named twice, listed once
	made(three, "Rechnung №7 \"ü\"")
	made(other, "inv_5530")
	for _, c := range []struct {
		f    ledger.Filter
		want []string
	}{
		{ledger.Filter{ExternalID: "inv_5530"}, []string{"1", "4"}},
		{ledger.Filter{ExternalID: "inv_5530", Saga: theSaga}, []string{"1"}},
		{ledger.Filter{ExternalID: "cus_1"}, []string{"1", "2"}},
		{ledger.Filter{ExternalID: "cus_1", Limit: 1}, []string{"1", "2"}},
		{ledger.Filter{ExternalID: "Rechnung №7 \"ü\""}, []string{"3"}},
		{ledger.Filter{ExternalID: "inv_553"}, nil},
		{ledger.Filter{ExternalID: "INV_5530"}, nil},
	} {
		b.lists(c.f, c.want...)
	}
}
