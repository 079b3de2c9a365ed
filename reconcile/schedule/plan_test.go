package schedule

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// table is a store with one job: what a database does, and no more.
type table struct {
	now   time.Time
	state JobState
	halt  Mark
	rows  []RunRow
}

func (tb *table) Turn(_ context.Context, job string, decide func(time.Time, *Agenda) error) error {
	a := Agenda{State: tb.state, Halt: tb.halt}
	a.State.Name = job
	if job == Everything {
		a.State = JobState{Paused: tb.halt}
	}
	var open []int
	for i, r := range tb.rows {
		if r.Open() && job != Everything {
			a.Open, open = append(a.Open, r), append(open, i)
		}
	}
	if err := decide(tb.now, &a); err != nil {
		return err
	}
	if job == Everything {
		tb.halt = a.State.Paused
		return nil
	}
	tb.state = a.State
	for n, i := range open {
		tb.rows[i] = a.Open[n]
	}
	for _, r := range a.New {
		r.Number = int64(len(tb.rows) + 1)
		tb.rows = append(tb.rows, r)
	}
	return nil
}

func (tb *table) Paused(context.Context, string) (Mark, error) {
	if tb.state.Paused.Is() {
		return tb.state.Paused, nil
	}
	return tb.halt, nil
}

// However many instants were missed, they are found in bounded time: counted up to a bound, and the
// last is right.
func TestStretch(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 6, 15, 10, 0, 5, 0, time.UTC)
	for _, c := range []struct {
		text, zone  string
		d           time.Duration
		first, last string // "" when there is none
		count       int64
	}{
		{"@every 10s", "", 4 * time.Second, "", "", 0},
		{"@every 10s", "", -time.Hour, "", "", 0},
		{"@every 10s", "", 5 * time.Second, "2026-06-15T10:00:10Z", "2026-06-15T10:00:10Z", 1},
		{"@every 10s", "", 99_999 * time.Second, "2026-06-15T10:00:10Z", "2026-06-16T13:46:40Z", countMost},
		{"@every 10s", "", 366 * day, "2026-06-15T10:00:10Z", "2027-06-16T10:00:00Z", countMost},
		{"*/2 * * * *", "Europe/Vienna", 200 * day, "2026-06-15T10:02:00Z", "2027-01-01T10:00:00Z", countMost},
		{"30 2 * * *", "America/New_York", 365 * day, "2026-06-16T06:30:00Z", "2027-06-15T06:30:00Z", 365},
		{"0 9 15 6 *", "", 4 * 366 * day, "2027-06-15T09:00:00Z", "2030-06-15T09:00:00Z", 4},
	} {
		text, err := Parse(c.text, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := text.stretch(from, from.Add(c.d))
		if ok != (c.first != "") {
			t.Errorf("%s for %s: %+v, %t", c.text, c.d, got, ok)
		}
		if !ok {
			continue
		}
		if first, last := got.first.Format(time.RFC3339), got.last.Format(time.RFC3339); first != c.first || last != c.last || got.count != c.count || got.key != text.Instant(got.last) {
			t.Errorf("%s for %s: %s to %s, %d, %q; want %s to %s, %d", c.text, c.d, first, last, got.count, got.key, c.first, c.last, c.count)
		}
	}
}

// What an earlier attempt writes matches nothing, not even an attempt of the same process at
// the same run.
func TestLateWriteMatchesNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)
	tb := &table{now: now, state: JobState{Name: "sweep"}, rows: []RunRow{{Number: 1, Job: "sweep", Instant: "1", Due: now}}}
	claimed := func() (r RunRow) {
		if err := tb.Turn(t.Context(), "sweep", func(now time.Time, a *Agenda) error {
			r = *claim(now, a, "one", time.Minute)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := claimed()
	tb.now = now.Add(time.Hour)
	second := claimed()
	held := func(instant, holder string, fence int64) error {
		return tb.Turn(t.Context(), "sweep", func(_ time.Time, a *Agenda) error {
			_, err := a.held(instant, holder, fence)
			return err
		})
	}
	if err := held("1", "one", second.Fence); err != nil {
		t.Errorf("the newest attempt: %v", err)
	}
	for what, err := range map[string]error{
		"an earlier attempt": held("1", "one", first.Fence), "another process": held("1", "two", second.Fence), "another run": held("2", "one", second.Fence),
	} {
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s writes: %v", what, err)
		}
	}
}

// What is asked for again is numbered behind the newest row of its instant, also where the first have gone.
func TestBackfillIsNumberedBehindWhatIsKept(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 15, 10, 0, 0, 0, time.UTC)
	known := []RunRow{{Instant: "k again:2", At: at, From: at}}
	known[0].Result = Failed
	if rows := missing(at, "sweep", []Instant{{"k", at}}, known, saga.Actor{Name: "ann", Reason: "x"}); len(rows) != 1 || rows[0].Instant != "k again:3" {
		t.Errorf("%+v", rows)
	}
}

// Instants that a run stands for are not known where another schedule names the last of them, too.
func TestInstantsOfAScheduleThatChanged(t *testing.T) {
	t.Parallel()
	text, err := Parse("0 * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 6, 15, 6, 0, 0, 0, time.UTC)
	r := Run{Instant: text.Instant(from.AddDate(0, 0, 2)), From: from, At: from.AddDate(0, 0, 2), text: text, instants: 3}
	if all, err := r.Instants(); err == nil {
		t.Errorf("three days are %d hours", len(all))
	}
	r.instants = 49
	if all, err := r.Instants(); err != nil || len(all) != 49 {
		t.Errorf("two days are %d hours, %v", len(all), err)
	}
}
