package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

var runCases = []testCase{
	{name: "by filter, the newest first", run: runsFilter},
	{name: "an unknown run", run: runsUnknown},
	{name: "numbered within their job", run: runsNumbered},
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
	recorded := func(r schedule.RunRow, after time.Duration) schedule.RunRow {
		r.Created = now.Add(after)
		return r
	}
	skipped := recorded(planned(now, "2"), 0)
	skipped.Result, skipped.Ended = schedule.Skipped, now
	add("a", planned(now, "1"), skipped)
	add("b", recorded(planned(now, "3"), time.Second))
	add("a", recorded(planned(now, "4"), time.Minute))
	all, err := b.Runs(b.Context(), schedule.RunFilter{})
	if err != nil || len(all) != 4 {
		b.Fatalf("%d runs, %v", len(all), err)
	}
	for name, c := range map[string]struct {
		f    schedule.RunFilter
		want string
	}{
		"none":    {schedule.RunFilter{}, "4 3 2 1"},
		"job":     {schedule.RunFilter{Job: "a"}, "4 2 1"},
		"result":  {schedule.RunFilter{Result: schedule.Skipped}, "2"},
		"open":    {schedule.RunFilter{Open: true}, "4 3 1"},
		"before":  {schedule.RunFilter{Before: &all[1]}, "2 1"},
		"limit":   {schedule.RunFilter{Limit: 3}, "4 3 2"},
		"several": {schedule.RunFilter{Job: "a", Open: true, Before: &all[0]}, "1"},
	} {
		if rs, err := b.Runs(b.Context(), c.f); err != nil || instants(rs) != c.want {
			b.Errorf("%s: %s, %v; want %s", name, instants(rs), err, c.want)
		}
	}
	if got, want := numbers(all), "a3 b1 a2 a1"; got != want {
		b.Errorf("they are numbered %s, want %s", got, want)
	}
	if r, err := b.Run(b.Context(), "a", all[2].Number); err != nil || r != all[2] {
		b.Errorf("by its number it is %+v, %v; want %+v", r, err, all[2])
	}
}

// "an unknown one matches ErrNotFound".
func runsUnknown(b *bench) {
	now := b.calendar()
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.New = []schedule.RunRow{planned(now, "1")} })
	for _, r := range []schedule.RunRow{{Job: sweepJob, Number: 2}, {Job: "another", Number: 1}} {
		if _, err := b.Run(b.Context(), r.Job, r.Number); !errors.Is(err, schedule.ErrNotFound) {
			b.Errorf("run %d of %s: got %v", r.Number, r.Job, err)
		}
	}
}

// "Jobs returns all jobs in the order of their names": those that a process has described.
func runsJobs(b *bench) {
	want := fullState(b.calendar())
	for _, name := range []string{"b", "a", "undescribed"} {
		want.Name = name
		err := b.Turn(b.Context(), name, func(_ time.Time, a *schedule.Agenda) error {
			if a.State = want; name == "undescribed" {
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

// numbers are the names of runs.
func numbers(rs []schedule.RunRow) string {
	names := make([]string, len(rs))
	for i := range rs {
		names[i] = fmt.Sprintf("%s%d", rs[i].Job, rs[i].Number)
	}
	return strings.Join(names, " ")
}

// Runs are numbered within their job (K18), and no number is given twice, though its run is
// forgotten.
func runsNumbered(b *bench) {
	now := b.calendar()
	for i := range 3 {
		b.turn(func(_ time.Time, a *schedule.Agenda) {
			done := planned(now, fmt.Sprint(i))
			done.Result, done.Ended = schedule.Skipped, now
			a.New = []schedule.RunRow{done}
		})
		b.turn(func(_ time.Time, a *schedule.Agenda) { a.Forget = now.Add(time.Second) })
	}
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		a.New = []schedule.RunRow{planned(now, "last"), planned(now, "last"), planned(now, "very last")}
	})
	rs, err := b.Runs(b.Context(), schedule.RunFilter{})
	if got, want := numbers(rs), sweepJob+"5 "+sweepJob+"4"; err != nil || got != want {
		b.Errorf("they are numbered %s, %v; want %s", got, err, want)
	}
}
