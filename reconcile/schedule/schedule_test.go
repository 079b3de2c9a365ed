package schedule_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/reconcile/schedule"
)

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
		{"*/90 * * * *", "", "a step of 90 does not fit into the minute"},
		{"0/90 * * * *", "", "a step of 90 does not fit into the minute"},
		{"30/45 * * * *", "", "30 to 59 are left, so it would come at 30 alone"},
		{"10-20/15 * * * *", "", "10 to 20 are left"},
		{"0 */36 * * *", "", "a step of 36 does not fit into the hour"},
		{"0 0 */40 * *", "", "a step of 40 does not fit into the day of month"},
		{"0 0 1 */13 *", "", "a step of 13 does not fit into the month"},
		{"0 0 * * MON/7", "", "1 to 6 are left"},
		{"5,*/61 */25 * * *", "", "a step of 25 does not fit into the hour"},
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
	for _, s := range []string{"TZ=", "TZ=UTC", "@every 5m", "0 0 30 2 *", "*/5 * * * *", "0 3 * * MON", "@daily", "1-5/0 * * * *"} {
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

// A step that does not divide its field is taken, and what it really does is said; one that does,
// or that stands within a range, needs no words.
func TestUnevenSteps(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"*/45 * * * *": "comes at 0, 45, and then at 0 again", "0/25 * * * *": "comes at 0, 25, 50, and then at 0 again", "0 */5 * * *": "comes at 0, 5, 10, 15, 20, and then at 0 again",
		"0 0 */10 * *": "comes at 1, 11, 21, 31, and then at 1 again", "0 0 1 jan/5 *": "comes at 1, 6, 11, and then at 1 again", "0 0 * * */2": "comes at 0, 2, 4, 6, and then at 0 again",
		"0 0 */31 * *": "comes at 1, and then at 1 again",
		"*/15 * * * *": "", "*/60 * * * *": "", "0 */6 * * *": "", "0 */24 * * *": "", "0 0 1 */3 *": "", "9-17/3 * * * *": "", "0 9-17/2 * * *": "", "0 0 * * MON-FRI/2": "", "@hourly": "", "@every 7m": "", "*/1 * */1 * *": "",
	} {
		warns := strings.Join(parse(t, text, "").Warnings(), "; ")
		if says == "" && warns != "" || !strings.Contains(warns, says) {
			t.Errorf("%q warns %q, want %q", text, warns, says)
		}
	}
}
