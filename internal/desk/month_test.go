package desk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What chains say of November: each is where it stood on which day of October (-10), November (10) or December (40).
func TestWhatAMonthCounts(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return since.Add(time.Duration(n-1) * 24 * time.Hour) }
	const zero = "started 0, completed 0, undone 0, live 0, reviews 0, settled 0, open 0, median 0, longest 0"
	for _, c := range []struct{ chain, want string }{
		{"running 1, completed 1", "started 1, completed 1"},
		{"running -3, completed 3", "completed 1"},
		{"running -3, completed -2", ""},
		{"running -3, retrying -2, compensating 4, compensated 5", "undone 1"},
		{"running 30, running 40, completed 41", "started 1, live 1"},
		{"running 31, completed 40", ""},
		{"running 1, completed 2, running 3, completed 4", "started 1, completed 1"},
		{"running 1, completed 2, running 3", "started 1, live 1"},
		{"running -3, completed -2, running 31, completed 32", ""},
		{"running -3, review -2, review 3, running 4, completed 5", "completed 1, settled 1, median 6, longest 6"},
		{"running 1, review 2, running 4, review 5, compensating 10, compensated 11", "started 1, undone 1, reviews 2, settled 2, median 2, longest 5"},
		{"review 3, running 31", "started 1, live 1, reviews 1, open 1"},
		{"running -9, review -8, running 40", "live 1, open 1"},
	} {
		var records []machine.Record
		for one := range strings.SplitSeq(c.chain, ", ") {
			var r machine.Record
			var at int
			if _, err := fmt.Sscan(one, &r.Status, &at); err != nil {
				t.Fatal(err)
			}
			r.At = day(at)
			records = append(records, r)
		}
		m := new(SagaMonth)
		m.tell(records, since, since.AddDate(0, 1, 0))
		m.waited()
		days := func(d Duration) int { return int(time.Duration(d) / (24 * time.Hour)) }
		got := fmt.Sprintf("started %d, completed %d, undone %d, live %d, reviews %d, settled %d, open %d, median %d, longest %d",
			m.Started, m.Completed, m.Undone, m.Live, m.ReviewsOpened, m.ReviewsSettled, m.ReviewsOpen, days(m.MedianWait), days(m.LongestWait))
		want := zero
		for one := range strings.SplitSeq(c.want, ", ") {
			if name, n, said := strings.Cut(one, " "); said {
				want = strings.Replace(want, name+" 0", name+" "+n, 1)
			}
		}
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", c.chain, got, want)
		}
	}
	gone := []machine.Record{{Kind: machine.KindRemembered, Until: day(-9), At: day(5), Status: saga.Completed}} // it began in October
	in, before := new(SagaMonth), new(SagaMonth)
	in.tell(gone, since, since.AddDate(0, 1, 0))
	before.tell(gone, since.AddDate(0, -1, 0), since)
	if in.Started != 0 || in.Completed != 1 || before.Started != 1 || before.Live != 1 || before.Completed != 0 {
		t.Errorf("of one whose records have gone November says %+v, and October %+v", in, before)
	}
	rested := new(SagaMonth)
	for _, status := range []saga.Status{saga.Review, saga.Waiting, saga.Completed} {
		rested.rests(status)
	}
	if rested.Live != 2 || rested.ReviewsOpen != 1 {
		t.Errorf("%d live and %d open", rested.Live, rested.ReviewsOpen)
	}
}

// The month is the one before this, where none is said, in January too.
func TestWhichMonth(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 31, 23, 0, 0, 0, time.UTC)
	for month, want := range map[string]string{"": "2026-12-01 2027-01-01", "2027-01": "2027-01-01 2027-02-01", "2026-02": "2026-02-01 2026-03-01"} {
		since, until, err := (&MonthIn{Month: month}).span(now)
		if got := since.Format(time.DateOnly) + " " + until.Format(time.DateOnly); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", month, got, err, want)
		}
	}
	for month, want := range map[string]string{"2027-02": "has not begun", "11": "is no month", "2026-13": "is no month"} {
		if _, _, err := (&MonthIn{Month: month}).span(now); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "; ") {
			t.Errorf("%q: %v, want %s", month, err, want)
		}
	}
}
