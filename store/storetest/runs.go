package storetest

import (
	"errors"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

var runCases = []testCase{
	{name: "by filter, the newest first", run: runsFilter},
	{name: "an unknown run", run: runsUnknown},
	{name: "jobs in the order of their names", run: runsJobs},
}

// Each field of a filter narrows.
func runsFilter(b *bench) {
	now := b.calendar()
	add := func(job string, rs ...schedule.RunRow) {
		b.Helper()
		err := b.Turn(b.Context(), job, func(_ time.Time, a *schedule.Agenda) error {
			a.New = rs
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	skipped := planned(now, "2")
	skipped.Verdict, skipped.Ended = schedule.Skipped, now
	add("a", planned(now, "1"), skipped)
	add("b", planned(now, "3"))
	add("a", planned(now, "4"))
	all, err := b.Runs(b.Context(), schedule.Filter{})
	if err != nil || len(all) != 4 {
		b.Fatalf("%d runs, %v", len(all), err)
	}
	for name, c := range map[string]struct {
		f    schedule.Filter
		want string
	}{
		"none":    {schedule.Filter{}, "4 3 2 1"},
		"job":     {schedule.Filter{Job: "a"}, "4 2 1"},
		"verdict": {schedule.Filter{Verdict: schedule.Skipped}, "2"},
		"open":    {schedule.Filter{Open: true}, "4 3 1"},
		"before":  {schedule.Filter{Before: all[1].Number}, "2 1"},
		"limit":   {schedule.Filter{Limit: 3}, "4 3 2"},
		"several": {schedule.Filter{Job: "a", Open: true, Before: all[0].Number}, "1"},
	} {
		if rs, err := b.Runs(b.Context(), c.f); err != nil || instants(rs) != c.want {
			b.Errorf("%s: %s, %v; want %s", name, instants(rs), err, c.want)
		}
	}
	if r, err := b.Store.Run(b.Context(), all[2].Number); err != nil || r != all[2] {
		b.Errorf("by its number it is %+v, %v; want %+v", r, err, all[2])
	}
}

// "an unknown number matches ErrNotFound".
func runsUnknown(b *bench) {
	if _, err := b.Store.Run(b.Context(), 17); !errors.Is(err, schedule.ErrNotFound) {
		b.Errorf("got %v", err)
	}
}

// "Jobs returns all jobs in the order of their names": those that a process has described.
func runsJobs(b *bench) {
	want := fullState(b.calendar())
	for _, name := range []string{"b", "a", "nobody described it"} {
		want.Name = name
		err := b.Turn(b.Context(), name, func(_ time.Time, a *schedule.Agenda) error {
			if a.State = want; name == "nobody described it" {
				a.State.First = time.Time{}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	board, err := b.Jobs(b.Context())
	want.Name = "a"
	if err != nil || len(board.Jobs) != 2 || board.Jobs[0] != want || board.Jobs[1].Name != "b" {
		b.Errorf("the jobs are %+v, %v", board.Jobs, err)
	}
}
