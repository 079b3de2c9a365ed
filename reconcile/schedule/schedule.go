package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // slim images have no zones

	"github.com/robfig/cron/v3"
)

// Schedule is when a job runs. The zero value never does.
type Schedule struct {
	text  string
	zone  *time.Location
	every time.Duration // @every; else 0
	civil cron.Schedule // the fields, read on a clock that never changes
	warns []string
	steps []string // of warns, those about steps that are not equal
}

// shortest is the least time between two instants of @every: what is to run more often is no job
// but a loop. It is a variable for the tests of this package alone.
var shortest = 10 * time.Second

// parser takes five fields or a descriptor. Its zone is UTC: the fields are read on civil time,
// which has no zone.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads an expression and the name of a zone like Europe/Vienna; "" is UTC. A step that leads
// out of its field, as */90 in minutes, is refused: it would not be a step. The error says everything
// that is wrong with both.
func Parse(text, zone string) (Schedule, error) {
	s := Schedule{text: strings.TrimSpace(text)}
	var errZone, errText error
	s.zone, errZone = location(zone)
	switch {
	case s.text == "":
		errText = errors.New("it is empty; five fields are needed, like 15 3 * * *, or @daily")
	case strings.HasPrefix(s.text, "TZ=") || strings.HasPrefix(s.text, "CRON_TZ="):
		errText = errors.New("it holds a zone; the zone is said beside the schedule")
	case strings.HasPrefix(s.text, "@every"):
		s.every, errText = interval(s.text)
	default:
		if s.civil, errText = fields(s.text); errText == nil {
			s.steps, errText = steps(s.text)
		}
	}
	if err := errors.Join(errText, errZone); err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", text, err)
	}
	s.warns = append(slices.Clone(s.steps), s.lint()...)
	return s, nil
}

func location(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	l, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("the zone %q is not known; it is a name like Europe/Vienna, or empty for UTC", zone)
	}
	return l, nil
}

func interval(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	switch {
	case err != nil:
		return 0, errors.New("@every needs a duration, like @every 5m")
	case d < shortest || d%time.Second != 0:
		return 0, fmt.Errorf("@every %s: it must be whole seconds, at least %s", d, shortest)
	}
	return d, nil
}

// fields reads an expression without trusting the parser: some texts make it panic, and dates that
// never come are taken.
func fields(text string) (s cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	if s, err = parser.Parse(text); err != nil {
		return nil, err
	}
	if s.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, errors.New("it names a date that never comes")
	}
	return s, nil
}

// String returns the expression as it was given.
func (s Schedule) String() string { return s.text }

// Zone is the zone whose clock the schedule reads.
func (s Schedule) Zone() *time.Location { return s.zone }

// Next returns the first instant after t, zero when there is none.
func (s Schedule) Next(t time.Time) time.Time {
	switch {
	case s.every > 0:
		step := int64(s.every / time.Second)
		return time.Unix((t.Unix()/step+1)*step, 0).In(s.zone)
	case s.civil == nil:
		return time.Time{}
	}
	clock := civil(t.In(s.zone))
	if changed(t.In(s.zone)) {
		clock = clock.Add(-repeat) // it may have been here before
	}
	for {
		if clock = s.civil.Next(clock); clock.IsZero() {
			return time.Time{}
		}
		if at := s.moment(clock); at.After(t) {
			return at
		}
	}
}

// repeat is more than any zone's clocks are ever set back.
const repeat = 3 * time.Hour

// civil is what the clocks show at t, as a time without a zone.
func civil(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// moment is when the clocks of the zone show a civil time: the first time if they show it twice,
// and the moment of the leap if they never do.
func (s Schedule) moment(clock time.Time) time.Time {
	t := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, s.zone)
	if !civil(t).Equal(clock) {
		return s.leap(clock)
	}
	if !changed(t) {
		return t
	}
	for back := 15 * time.Minute; back <= repeat; back += 15 * time.Minute {
		if earlier := t.Add(-back); civil(earlier).Equal(clock) {
			return earlier
		}
	}
	return t
}

// changed reports whether the clocks were changed shortly before t.
func changed(t time.Time) bool {
	_, now := t.Zone()
	_, before := t.Add(-repeat).Zone()
	return now != before
}

// leap is the moment at which the clocks leap over a civil time: the first one at which they show a
// later one.
func (s Schedule) leap(clock time.Time) time.Time {
	_, offset := clock.In(s.zone).Add(-24 * time.Hour).Zone() // before the leap, near enough
	before := clock.Add(-time.Duration(offset)*time.Second - repeat)
	after := before.Add(2 * repeat)
	for after.Sub(before) > time.Second {
		middle := before.Add(after.Sub(before) / 2)
		if civil(middle.In(s.zone)).After(clock) {
			after = middle
		} else {
			before = middle
		}
	}
	return after.Truncate(time.Second).In(s.zone)
}

// Instant names the civil time of t, as the key under which a run at t is recorded. It is the same
// for both occurrences of an hour that comes twice.
func (s Schedule) Instant(t time.Time) string {
	if s.every > 0 || s.zone == time.UTC {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.In(s.zone).Format("2006-01-02T15:04:05") + " " + s.zone.String()
}

// Upcoming returns the next n instants after t, for people.
func (s Schedule) Upcoming(t time.Time, n int) []time.Time {
	var runs []time.Time
	for range n {
		if t = s.Next(t); t.IsZero() {
			break
		}
		runs = append(runs, t)
	}
	return runs
}

// Warnings says what a person may not have meant.
func (s Schedule) Warnings() []string { return s.warns }

func (s Schedule) lint() (warns []string) {
	f := strings.Fields(s.text)
	if len(f) != 5 {
		return nil
	}
	if f[2] != "*" && f[2] != "?" && f[4] != "*" && f[4] != "?" {
		warns = append(warns, "day of month and day of week are both given: it runs on days that match either of them")
	}
	if s.changes() && strings.ContainsAny(f[1], "*/-,") {
		warns = append(warns, fmt.Sprintf("the clocks of %s change: in the hour that comes twice it rests once, and what they leap over runs at the leap; UTC or @every does not have that", s.zone))
	}
	return warns
}

// changes reports whether the clocks of the zone change within a year.
func (s Schedule) changes() bool {
	winter := time.Date(2026, 1, 1, 0, 0, 0, 0, s.zone)
	_, first := winter.Zone()
	for month := range 12 {
		if _, offset := winter.AddDate(0, month, 0).Zone(); offset != first {
			return true
		}
	}
	return false
}
