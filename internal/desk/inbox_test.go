package desk

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// A moment is read as people write it, in UTC; what cannot be read is refused, not guessed.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"2026-03-14T10:00:00Z":      now.Add(-2 * time.Hour),
		"2026-03-14T11:00:00+01:00": now.Add(-2 * time.Hour),
		"2026-03-14T10:00:00":       now.Add(-2 * time.Hour),
		"2026-03-14 10:00":          now.Add(-2 * time.Hour),
		"2026-03-14":                now.Add(-12 * time.Hour),
		"2h":                        now.Add(-2 * time.Hour),
		"1h30m":                     now.Add(-90 * time.Minute),
		"7d":                        now.AddDate(0, 0, -7),
		"0d":                        now,
	} {
		if got, err := PointInTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "-1d", "d", "1w", "10:00", "99999999d", "14.3.2026", "1773482400"} {
		if got, err := PointInTime(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

// An object is read as it is written in a work id, and a tenant may be said beside it.
func TestObjectOf(t *testing.T) {
	t.Parallel()
	eu := intake.Object{Source: "outlet", Tenant: "eu", Type: "order", ID: "1"}
	urn := intake.Object{Source: "shop", Type: "order", ID: "gid://shop/Order/1"}
	for _, tc := range []struct {
		text, tenant string
		want         intake.Object
	}{
		{eu.String(), "", eu},
		{eu.String(), "eu", eu},
		{"outlet:order:1", "eu", eu},
		{"shop:order:gid%3A//shop/Order/1", "", urn},
		{"shop:order:1", "", intake.Object{Source: "shop", Type: "order", ID: "1"}},
	} {
		if got, err := objectOf(tc.text, tc.tenant); err != nil || got != tc.want {
			t.Errorf("%q of tenant %q is %+v, %v; want %+v", tc.text, tc.tenant, got, err, tc.want)
		}
	}
	for _, text := range []string{"", "shop", "shop:order", "shop::1", ":order:1", "shop:order:", "shop:eu:order:1:2", "shop:us:order:1"} {
		if got, err := objectOf(text, "eu"); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

// Every disposition of the gate has its words.
func TestDispositionMeanings(t *testing.T) {
	t.Parallel()
	all := []intake.Disposition{
		intake.Applied, intake.Stale, intake.Duplicate, intake.Tie, intake.Hint, intake.Parked, intake.Tombstoned,
		intake.Conflict, intake.Echo, intake.Malformed, intake.Unknown, intake.Ignored,
	}
	for _, v := range all {
		if meaningOf(v) == "" {
			t.Errorf("%s has no meaning", v)
		}
	}
	if len(meanings) != len(all) {
		t.Errorf("%d dispositions are listed, the gate has %d", len(meanings), len(all))
	}
}

// What is owed is said to be done by itself only while it can be: not when it is long overdue, nor
// by a lease that is over.
func TestSoon(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	const nothing, overdue = "Nothing to do.", "that is overdue since"
	for name, tc := range map[string]struct {
		e    intake.Entry
		want string
	}{
		"later":             {intake.Entry{FetchRequested: 1, Due: now.Add(time.Hour)}, nothing},
		"now":               {intake.Entry{FetchRequested: 1, Due: now.Add(-time.Second)}, nothing},
		"an hour ago":       {intake.Entry{Accepted: 1, Due: now.Add(-time.Hour)}, overdue},
		"in hand":           {intake.Entry{FetchRequested: 1, Due: now.Add(-time.Hour), Holder: "x", Until: now.Add(time.Minute)}, "being worked on"},
		"in nobody's hands": {intake.Entry{FetchRequested: 1, Due: now.Add(-time.Hour), Holder: "x", Until: now.Add(-time.Minute)}, overdue},
		"parked":            {intake.Entry{Parked: make([]intake.Event, 1), Due: now.Add(time.Hour)}, "wait for one that has not come"},
	} {
		if got := soon(&tc.e, now); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s; want %q in it", name, got, tc.want)
		}
	}
}

// An object that a process works on says until when, because that process may be dead.
func TestBecause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		e    intake.Entry
		want string
	}{
		"in hand":           {intake.Entry{FetchRequested: 1, Holder: "x", Until: now.Add(time.Minute)}, "another one does after 2026-03-14T12:01:00Z"},
		"in hand again":     {intake.Entry{FetchRequested: 1, Holder: "x", Until: now.Add(time.Minute), LastError: "503"}, "503"},
		"in nobody's hands": {intake.Entry{FetchRequested: 1, Holder: "x", Until: now.Add(-time.Minute)}, ""},
		"nothing is owed":   {intake.Entry{Holder: "x", Until: now.Add(time.Minute)}, ""},
	} {
		if got := because(&tc.e, now); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q; want %q in it", name, got, tc.want)
		}
	}
}

// The most urgent thing is said first: a block before a review, a review before nothing.
func TestHearingNext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	judged := intake.Delivery{Number: 7, Judged: now, Outcome: intake.Applied}
	review := []ledger.Instance{{ID: saga.ID{Saga: "s", Work: "shop:order:1"}, Status: saga.Review, Reason: saga.ReasonInDoubt}}
	blocked := &intake.Entry{Accepted: 1, Blocked: "no such customer"}
	for name, tc := range map[string]struct {
		d              intake.Delivery
		entry          *intake.Entry
		works          []ledger.Instance
		words, command string
	}{
		"not judged": {intake.Delivery{Number: 7}, blocked, nil, "as soon as a process that hears runs", ""},
		"blocked":    {judged, blocked, review, "Mend the cause", `amends inbox replay 7 --reason "what was mended"`},
		"held":       {judged, &intake.Entry{Accepted: 1, Held: 1}, nil, "withdrawal is held", "amends inbox release '' --reason WHY --dry-run"},
		"owed":       {judged, &intake.Entry{FetchRequested: 1, Due: now}, review, "done by itself", ""},
		"in review":  {judged, nil, review, "in review (in-doubt)", "amends show shop:order:1 --saga s"},
		"at rest":    {judged, nil, nil, "Nothing:", ""},
	} {
		if words, command := (&Desk{now: func() time.Time { return now }}).next(&tc.d, tc.entry, tc.works); !strings.Contains(words, tc.words) || command != tc.command {
			t.Errorf("%s: %s %s", name, words, command)
		}
	}
}
