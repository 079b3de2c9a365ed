package schedule

import (
	"fmt"
	"time"
)

// Stale says why a person should look at a job: no run of it ended well for more periods than it
// allows. It is "" when all is well. A paused job gets stale as any other: an operator may have
// forgotten it.
func Stale(now time.Time, s *JobState) string {
	if !s.Known() || s.Fresh <= 0 {
		return ""
	}
	if limit := s.freshUntil(); !limit.IsZero() && now.After(limit) {
		return s.neglected()
	}
	return ""
}

// freshUntil is as long after the end of the last good run as the schedule takes for so many
// periods.
func (s *JobState) freshUntil() time.Time {
	text, err := Parse(s.Schedule, s.Zone)
	if err != nil {
		return time.Time{}
	}
	good := s.Good
	if good.Ended.IsZero() {
		good = Good{At: s.First, Ended: s.First}
	}
	periods := text.Upcoming(good.At, s.Fresh)
	if len(periods) < s.Fresh {
		return time.Time{} // the schedule is over
	}
	return good.Ended.Add(periods[s.Fresh-1].Sub(good.At))
}

func (s *JobState) neglected() string {
	text := "no run ended well yet, since " + stamp(s.First)
	if s.Good.Instant != "" {
		text = "no run ended well since " + stamp(s.Good.Ended)
	}
	if s.Failures > 0 {
		text += fmt.Sprintf(", %d did otherwise", s.Failures)
	}
	if s.Paused.Is() {
		text += fmt.Sprintf("; %s paused it on %s: %s", s.Paused.By, stamp(s.Paused.At), s.Paused.Why)
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
