package schedule_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/memory"
)

// idle does nothing.
func idle(context.Context, *schedule.Run) (schedule.Outcome, error) { return schedule.Outcome{}, nil }

func parse(t testing.TB, text, zone string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What the parser of cron expressions takes silently, or panics on, is refused with the reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, says string }{
		{"", "", "it is empty"},
		{"TZ=", "", "it holds a zone"},
		{"TZ=Europe/Vienna 0 3 * * *", "", "it holds a zone"},
		{"CRON_TZ=UTC 0 3 * * *", "", "it holds a zone"},
		{"@every 0s", "", "at least 10s"},
		{"@every -5m", "", "at least 10s"},
		{"@every 500ms", "", "at least 10s"},
		{"@every 10.5s", "", "whole seconds"},
		{"@every", "", "needs a duration"},
		{"@every soon", "", "needs a duration"},
		{"0 0 30 2 *", "", "never comes"},
		{"@reboot", "", "unrecognized"},
		{"0 0 0 * * *", "", "expected"}, // six fields
		{"0 0 * * 7", "", "above maximum"},
		{"0 0 L * *", "", "failed to parse"},
		{"0 3 * * *", "Europe/Vien", "is not known"},
		{"0 3 * * *", "Local", "is not known"},
	} {
		_, err := schedule.Parse(c.text, c.zone)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q in %q: %v, want it to say %q", c.text, c.zone, err, c.says)
		}
	}
	_, err := schedule.Parse("@every 1s", "Nowhere")
	if err == nil || !strings.Contains(err.Error(), "at least") || !strings.Contains(err.Error(), "Nowhere") {
		t.Errorf("not everything that is wrong is said: %v", err)
	}
}

// A step that leads out of its field is refused: the parser would take the first value for all of it.
// The error says which field, what it can hold, and what to write.
func TestStepsThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, says := range map[string][]string{
		"*/90 * * * *":                  {`minute is "*/90"`, "from 0 to 59", "only 0 would", "@every 90m"},
		"0 */36 * * *":                  {`hour is "*/36"`, "from 0 to 23", "Write 0 ", "@every 36h"},
		"0 0 */40 * *":                  {`day of the month is "*/40"`, "from 1 to 31", "Write 1 ", "@every 960h"},
		"0/90 * * * *":                  {`minute is "0/90"`, "from 0 to 59", "@every 90m"},
		"0 0 */31 * *":                  {"day of the month", "from 1 to 31", "only 1 would"}, // no month is followed by its 32nd
		"0 0 1 */18 *":                  {`month is "*/18"`, "from JAN to DEC", "Write JAN "},
		"0 0 1 feb/11 *":                {"month", "from FEB to DEC", "Write FEB "},
		"0 0 * * MON/9":                 {"day of the week", "from MON to SAT", "Write MON ", "@every 216h"},
		"0 12/12 * * *":                 {"hour", "from 12 to 23", "Write 12 "},
		"10-20/15 * * * *":              {"minute", "from 10 to 20", "Write 10 "},
		"5,30,?/61 * * * *":             {`minute is "?/61"`, "from 0 to 59"},
		"30/45 * * * *":                 {"minute", "from 30 to 59", "only 30 would"},
		"45/15 * * * *":                 {"minute", "from 45 to 59", "only 45 would"},
		"0 0 1 */13 *":                  {"month", "from JAN to DEC"},
		"5,*/61 */25 * * *":             {"minute", "hour"},
		"*/90 */36 * * *":               {"minute", "hour"},
		"*/9223372036854775807 * * * *": {"minute", "only 0 would"},
	} {
		_, err := schedule.Parse(text, "Europe/Vienna")
		for _, words := range says {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v, want it to say %q", text, err, words)
			}
		}
		jobs := []schedule.Job{{Name: "sweep", Schedule: text, Work: idle}}
		if _, err := schedule.New(memory.New(nil), jobs, nil); err == nil || !strings.Contains(err.Error(), says[0]) {
			t.Errorf("%q: a runner says %v", text, err)
		}
	}
}

// A step that does not go evenly around its field is taken, and a runner says once in the log when it
// really runs.
func TestUnevenSteps(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{ // "": it is even, or says itself where it ends
		"*/45 * * * *":           `minute is "\*/45": it runs at 0, 45, and begins again at 0 in the next hour, .*@every 45m`,
		"0-59/45 * * * *":        "0, 45, and",
		"20/15 * * * *":          "20, 35, 50, and begins again at 20 in the next hour",
		"0 */5 * * *":            "0, 5, 10, 15, 20, and begins again at 0 on the next day, .*@every 5h",
		"0 0 */10 * *":           "1, 11, 21, 31, and begins again at 1 in the next month, .*@every 240h",
		"0 0 1 */5 *":            "JAN, JUN, NOV, and begins again at JAN in the next year",
		"0 0 * * */3":            "SUN, WED, SAT, and begins again at SUN in the next week",
		"0/25 * * * *":           "0, 25, 50, and begins again at 0",
		"0 0 1 jan/5 *":          "JAN, JUN, NOV, and begins again at JAN",
		"0 0 * * */2":            "SUN, TUE, THU, SAT, and begins again at SUN",
		"*/45,10 * * * *":        `minute is "\*/45,10": it runs at 0, 10, 45`,
		"*/45,15,30 * * * *":     "",
		"*/15 * * * *":           "",
		"5/15 * * * *":           "",
		"*/60 * * * *":           "",
		"0 */24 * * *":           "",
		"0 0 1 */12 *":           "",
		"0 0 1 feb/12 *":         "",
		"0 0 * * */7":            "",
		"0 0 * * MON/7":          "",
		"0 9-17/3 * * MON-FRI/2": "",
		"0-20/7,40-50/3 * * * *": "",
		"0 */6 * * *":            "",
		"0 0 1 */3 *":            "",
		"9-17/3 * * * *":         "",
		"0 0 * * MON-FRI/2":      "",
		"@every 7m":              "",
		"0 0 */1 * MON":          "",
		"0,7,11 3 1 jan,MAR *":   "",
		"? 3 * * *":              "",
		"@every 45m":             "",
		"@hourly":                "",
	} {
		var log bytes.Buffer
		logger := logrus.New()
		logger.SetOutput(&log)
		job := schedule.Job{Name: "sweep", Schedule: text, Work: idle}
		r, err := schedule.New(memory.New(nil), []schedule.Job{job}, &schedule.Options{Log: logger})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := r.Run(ended); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		lines := strings.Count(log.String(), "level=warning")
		all := strings.Join(parse(t, text, "").Warnings(), "\n")
		switch {
		case says == "" && (lines > 0 || strings.Contains(all, "begins again")):
			t.Errorf("%q: the log has %s; it warns of %s", text, &log, all)
		case says != "" && (lines != 1 || !regexp.MustCompile(says).MatchString(all) || !strings.Contains(log.String(), "job=sweep")):
			t.Errorf("%q: the log has %s; it warns of %s; want one line that says %q", text, &log, all, says)
		}
	}
}

// A time that the clocks leap over runs at the leap, one that comes twice runs the first time: a
// daily job runs once on every day.
func TestClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, zone, after string
		want                    []string
	}{
		{"spring in New York", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00",
		}},
		{"autumn in New York", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00",
		}},
		{"between the two, nothing is left to run", "30 1 * * *", "America/New_York", "2026-11-01T05:45:00Z", []string{"2026-11-02T01:30:00-05:00"}},
		{"within the second", "30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", []string{"2026-11-02T01:30:00-05:00"}},
		{"midnight that does not come", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{
			"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00",
		}},
		{"every two hours over the leap", "0 */2 * * *", "America/New_York", "2026-03-08T04:30:00Z", []string{
			"2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00",
		}},
		{"UTC has neither", "30 2 * * *", "", "2026-03-07T12:00:00Z", []string{"2026-03-08T02:30:00Z", "2026-03-09T02:30:00Z"}},
		{"half an hour, Lord Howe", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", []string{
			"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
		}},
	} {
		s := parse(t, c.text, c.zone)
		got := s.Upcoming(at(t, c.after), len(c.want))
		for i, want := range c.want {
			if !got[i].Equal(at(t, want)) {
				t.Errorf("%s: run %d at %s, want %s", c.name, i, got[i].Format(time.RFC3339), want)
			}
		}
	}
}

// @every counts from 1970: every process and every deploy has the same instants.
func TestEvery(t *testing.T) {
	t.Parallel()
	s := parse(t, "@every 5m", "")
	for after, want := range map[string]string{
		"2026-11-20T10:00:00Z": "2026-11-20T10:05:00Z",
		"2026-11-20T10:04:59Z": "2026-11-20T10:05:00Z",
		"2026-11-20T10:02:13Z": "2026-11-20T10:05:00Z",
	} {
		if got := s.Next(at(t, after)); !got.Equal(at(t, want)) {
			t.Errorf("after %s comes %s, want %s", after, got, want)
		}
	}
}

// What a person may not have meant is said.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, zone string
		warnings   int
	}{
		{"0 3 * * *", "Europe/Vienna", 0},
		{"*/10 * * * *", "Europe/Vienna", 1},
		{"*/10 * * * *", "Asia/Tokyo", 0},
		{"*/10 * * * *", "", 0},
		{"0 3 1 * 1", "", 1},
		{"0 * 1 * 1", "Europe/Vienna", 2},
		{"@daily", "Europe/Vienna", 0},
	} {
		if got := parse(t, c.text, c.zone).Warnings(); len(got) != c.warnings {
			t.Errorf("%q in %q: %q, want %d warnings", c.text, c.zone, got, c.warnings)
		}
	}
}

// In every zone and at every moment: the next instant comes later, is what asking from just before
// it gives, and has an instant's name that no other run within two days has.
func TestInstantsAreRunOnce(t *testing.T) {
	t.Parallel()
	zones := []string{"", "Europe/Vienna", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia"}
	texts := []string{"30 2 * * *", "0 0 * * *", "*/20 * * * *", "15 1 * * 0", "@hourly", "@every 7m", "59 23 31 12 *"}
	rapid.Check(t, func(r *rapid.T) {
		s, err := schedule.Parse(rapid.SampledFrom(texts).Draw(r, "text"), rapid.SampledFrom(zones).Draw(r, "zone"))
		if err != nil {
			r.Fatal(err)
		}
		start := time.Unix(rapid.Int64Range(1_000_000_000, 2_000_000_000).Draw(r, "start"), 0)
		seen := map[string]bool{}
		for t := start; t.Before(start.Add(48 * time.Hour)); {
			next := s.Next(t)
			if !next.After(t) {
				r.Fatalf("after %s comes %s", t, next)
			}
			if again := s.Next(next.Add(-time.Nanosecond)); !again.Equal(next) {
				r.Fatalf("after %s comes %s, and just before that comes %s", t, next, again)
			}
			if name := s.Instant(next); seen[name] {
				r.Fatalf("two runs are called %s", name)
			} else {
				seen[name] = true
			}
			t = next
		}
	})
}

// No text makes it panic, and what is accepted has a future.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"TZ=", "TZ=UTC", "@every 5m", "0 0 30 2 *", "*/5 * * * *", "0 3 * * MON", "@daily", "1-5/0 * * * *", "*/90 * * * *", "20/15 * * jan-MAR/2 ?/3", ",/5 */9223372036854775807 * * *"} {
		f.Add(s, "")
	}
	f.Add("30 2 * * *", "America/New_York")
	f.Fuzz(func(t *testing.T, text, zone string) {
		s, err := schedule.Parse(text, zone)
		if err == nil && s.Next(time.Unix(1_700_000_000, 0)).IsZero() {
			t.Errorf("%q in %q was accepted and never runs", text, zone)
		}
	})
}
