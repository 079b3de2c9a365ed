package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// Every planned run is a row, unique on (job, instant), before it runs: three processes run
// every instant once.
func TestThreeProcessesRunEachInstantOnce(t *testing.T) {
	bubble(t, "2026-06-15T10:00:30Z", func(s *stage) {
		s.poll = time.Minute
		for range 3 {
			s.run(s.job("*/5 * * * *", "", time.Minute))
		}
		s.until("2026-06-16T10:00:40Z")
		seen := map[string]int{}
		for _, c := range s.called() {
			seen[c.Instant]++
			if late := c.at.Sub(c.At); late < 0 || late > time.Second {
				t.Errorf("%s ran at %s", c.Instant, c.at)
			}
		}
		if len(seen) != 288 {
			t.Errorf("%d instants of a day were run, want 288", len(seen))
		}
		for instant, n := range seen {
			if n != 1 {
				t.Errorf("%s was run %d times", instant, n)
			}
		}
	})
}

// The time of the database decides, whatever the clocks of the processes say: those of the
// bubble are in the year 2000.
func TestTheDatabaseSaysWhen(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		s.run(s.job("*/5 * * * *", "", 0))
		s.until("2026-06-15T10:10:01Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z ok")
	})
}

// Clocks that change, from the text to the rows: a time that the clocks leap over runs at the leap,
// one that comes twice runs the first time, and a day has one daily run.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, zone, from, until string
		want                          []string
	}{
		{"spring in New York", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z", []string{
			"2026-03-08T07:00:00Z 2026-03-08T03:00:00 America/New_York", "2026-03-09T06:30:00Z 2026-03-09T02:30:00 America/New_York",
		}},
		{"autumn in New York", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z", []string{
			"2026-11-01T05:30:00Z 2026-11-01T01:30:00 America/New_York", "2026-11-02T06:30:00Z 2026-11-02T01:30:00 America/New_York",
		}},
		{"midnight that does not come", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-25T12:00:00Z", []string{
			"2026-04-23T22:00:00Z 2026-04-24T01:00:00 Africa/Cairo", "2026-04-24T21:00:00Z 2026-04-25T00:00:00 Africa/Cairo",
		}},
		{"every two hours over the leap", "0 */2 * * *", "America/New_York", "2026-03-08T04:30:00Z", "2026-03-08T09:00:00Z", []string{
			"2026-03-08T05:00:00Z 2026-03-08T00:00:00 America/New_York", "2026-03-08T07:00:00Z 2026-03-08T03:00:00 America/New_York",
			"2026-03-08T08:00:00Z 2026-03-08T04:00:00 America/New_York",
		}},
		{"half an hour, Lord Howe", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", "2026-04-06T00:00:00Z", []string{
			"2026-04-04T14:45:00Z 2026-04-05T01:45:00 Australia/Lord_Howe", "2026-04-05T15:15:00Z 2026-04-06T01:45:00 Australia/Lord_Howe",
		}},
		{"the hour that comes twice rests once", "*/30 * * * *", "Europe/Vienna", "2026-10-24T23:50:00Z", "2026-10-25T02:10:00Z", []string{
			"2026-10-25T00:00:00Z 2026-10-25T02:00:00 Europe/Vienna", "2026-10-25T00:30:00Z 2026-10-25T02:30:00 Europe/Vienna",
			"2026-10-25T02:00:00Z 2026-10-25T03:00:00 Europe/Vienna",
		}},
		{"UTC has neither", "30 2 * * *", "", "2026-03-07T12:00:00Z", "2026-03-08T12:00:00Z", []string{"2026-03-08T02:30:00Z 2026-03-08T02:30:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.from, func(s *stage) {
				s.poll = 20 * time.Minute // an instant wakes it all the same
				s.run(s.job(c.text, c.zone, time.Minute))
				s.run(s.job(c.text, c.zone, time.Minute))
				s.until(c.until)
				var got []string
				for _, run := range s.called() {
					got = append(got, run.At.Format(time.RFC3339)+" "+run.Instant)
					if !run.At.Equal(run.at.Truncate(time.Second)) {
						t.Errorf("%s ran at %s", run.Instant, run.at)
					}
				}
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("the runs are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			})
		})
	}
}

// S3: two runs of a job are never at work at once. Instants that come during one are skipped,
// and that is recorded with the reason.
func TestOverlapIsSkipped(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		for range 2 {
			s.run(s.job("*/5 * * * *", "", 12*time.Minute))
		}
		s.until("2026-06-15T10:21:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z skipped", "2026-06-15T10:15:00Z skipped", "2026-06-15T10:20:00Z running")
		rs, err := s.Runs(s.Context(), schedule.RunFilter{Result: schedule.Skipped})
		if err != nil || !strings.Contains(rs[0].Note, "the run of 2026-06-15T10:05:00Z goes on") {
			t.Errorf("it was skipped because %q, %v", rs[0].Note, err)
		}
	})
}

// S3, buffer-one: one instant waits for the end of the run, those after it are skipped.
func TestOverlapIsBuffered(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 12*time.Minute)
		j.Overlap = schedule.BufferOne
		s.run(j)
		s.until("2026-06-15T10:18:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z running", "2026-06-15T10:15:00Z skipped")
		if c := s.called(); len(c) != 2 || c[1].at.Before(at(t, "2026-06-15T10:17:00Z")) || c[1].at.After(at(t, "2026-06-15T10:17:01Z")) {
			t.Errorf("the calls are %+v", c)
		}
	})
}

// S3, buffer-all: the instants that come meanwhile wait for the end of the run, also where its process stops in the middle, and are one run.
func TestOverlapIsBufferedWhole(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 17*time.Minute)
		j.Overlap = schedule.BufferAll
		stop := s.run(j)
		s.until("2026-06-15T10:16:00Z")
		s.want("2026-06-15T10:05:00Z running")
		stop()
		s.run(j)
		s.until("2026-06-15T10:34:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:30:00Z running for 5")
		if c := s.called(); len(c) != 3 || !c[2].From.Equal(at(t, "2026-06-15T10:10:00Z")) {
			t.Errorf("the calls are %+v", c)
		}
	})
}

// S5, buffer-all: a run that a pause stops goes on behind it, for the same instants.
func TestAPauseLosesNoInstantThatIsBuffered(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 12*time.Minute)
		j.Overlap = schedule.BufferAll
		s.run(j)
		s.until("2026-06-15T10:16:00Z")
		if err := schedule.Pause(s.Context(), s, "sweep", ann); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T10:40:00Z")
		s.want("2026-06-15T10:05:00Z waiting")
		if err := schedule.Unpause(s.Context(), s, "sweep"); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T10:54:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:50:00Z running for 9")
	})
}

// S2: after three days down there is exactly one run, for all that was missed within the
// window; what is older is recorded as skipped.
func TestThreeDaysDown(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		stop := s.run(s.job("*/5 * * * *", "", time.Second))
		s.until("2026-06-15T10:06:00Z")
		stop()
		s.until("2026-06-18T10:06:00Z")
		s.run(s.job("*/5 * * * *", "", time.Second))
		s.run(s.job("*/5 * * * *", "", time.Second))
		s.until("2026-06-18T10:11:00Z")
		s.want("2026-06-15T10:05:00Z ok",
			"2026-06-17T10:05:00Z skipped for 576", // two days
			"2026-06-18T10:05:00Z ok for 288",      // one
			"2026-06-18T10:10:00Z ok")
		if c := s.called()[1]; !c.From.Equal(at(t, "2026-06-17T10:10:00Z")) || !c.At.Equal(at(t, "2026-06-18T10:05:00Z")) {
			t.Errorf("it makes up for %s to %s", c.From, c.At)
		}
	})
}

// S4: what was planned and not begun within the window is skipped like what was never planned.
func TestTooLateToBegin(t *testing.T) {
	bubble(t, "2026-06-14T23:58:00Z", func(s *stage) {
		j := s.job("0 0 * * *", "", 10*time.Minute)
		j.Overlap, j.CatchUp = schedule.BufferOne, time.Hour
		stop := s.run(j)
		if _, err := schedule.Request(s.Context(), s, "sweep", "", saga.Actor{Name: "ann", Reason: "an incident"}); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T00:00:30Z")
		s.want("manual:1 running", "2026-06-15T00:00:00Z waiting")
		stop()
		s.until("2026-06-15T12:00:00Z")
		s.run(j)
		s.want("manual:1 running", "2026-06-15T00:00:00Z skipped")
		if r := s.last(); !strings.Contains(r.Note, "no process began it within the 1h0m0s") {
			t.Errorf("it was skipped because %q", r.Note)
		}
		s.until("2026-06-16T12:00:00Z")
		s.want("manual:1 ok", "2026-06-15T00:00:00Z skipped", "2026-06-16T00:00:00Z ok")
	})
}

// S1: another schedule goes on behind the last instant of the one before it. None from before
// that is run again, and none is lost that came before the new one was deployed.
func TestAnotherSchedule(t *testing.T) {
	bubble(t, "2026-06-15T09:00:00Z", func(s *stage) {
		stop := s.run(s.job("0 10 * * *", "", 0))
		s.until("2026-06-15T10:01:00Z")
		stop()
		s.until("2026-06-15T14:30:00Z")
		s.run(s.job("0 */4 * * *", "", 0))
		s.until("2026-06-15T16:01:00Z")
		s.want("2026-06-15T10:00:00Z ok", "2026-06-15T12:00:00Z ok", "2026-06-15T16:00:00Z ok")
	})
}
