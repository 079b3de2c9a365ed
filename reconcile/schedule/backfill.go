package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Instant is one time of a schedule.
type Instant struct {
	Key string // [Schedule.Instant] of At
	At  time.Time
}

// Instants are those that the run stands for, the first one first: several where some were missed. A run that was asked for by hand stands for
// the latest one. An error says that the schedule has changed since they were missed, or that they are more than 10,000: which they were is not known
// any more, so the run is to fail.
func (r *Run) Instants() ([]Instant, error) {
	if strings.HasPrefix(r.Instant, byHand) {
		for back := time.Hour; back < 10*365*day; back *= 2 {
			if latest, ok := r.text.stretch(r.At.Add(-back), r.At); ok {
				return []Instant{{latest.key, latest.last}}, nil
			}
		}
		return nil, errors.New("the schedule has no instant before now")
	}
	key, _, _ := strings.Cut(r.Instant, again)
	if !r.From.Before(r.At) || r.From.IsZero() {
		return []Instant{{key, r.At}}, nil
	}
	all := r.text.between(r.From, r.At)
	if n := len(all); n == 0 || n == countMost || int64(n) != r.instants || all[n-1].Key != key {
		return nil, fmt.Errorf("which instants were missed from %s to %s is not known: there are more than %d, or the schedule has changed since; ask for them with amends schedule backfill", r.From.Format(time.RFC3339), r.At.Format(time.RFC3339), countMost-1)
	}
	return all, nil
}

// between are the instants from one time to another, both included, up to [countMost].
func (s Schedule) between(from, to time.Time) (all []Instant) {
	for at := s.Next(from.Add(-time.Nanosecond)); !at.IsZero() && !at.After(to) && len(all) < countMost; at = s.Next(at) {
		all = append(all, Instant{s.Instant(at), at.UTC()})
	}
	return all
}

// mostBackfilled is how many instants are asked for again at once.
const mostBackfilled = 1000

// ErrTooMany matches the error of [Backfill] where more instants are missing than are asked for at once.
var ErrTooMany = errors.New("too many")

// Backfill asks for a run of each instant of a job between two times, both included, of which no run ended well and none is open: what was
// skipped, what failed, and what was before the job was first described. With dry it only tells. The runs come one by one, behind what is due by
// then, and say nothing of whether the job is late. What ended well is not run again, as long as its run is kept ([Options.Keep]) and the
// schedule names the same instants. A job that is paused is not run by hand either.
func Backfill(ctx context.Context, s interface {
	Store
	Reader
}, job string, from, to time.Time, by saga.Actor, dry bool,
) (asked []RunRow, err error) {
	if err := by.Validate(); err != nil {
		return nil, fmt.Errorf("backfill job %q: %w", job, err)
	}
	known, err := since(ctx, s, job, from)
	if err != nil {
		return nil, fmt.Errorf("backfill job %q: %w", job, err)
	}
	err = change(ctx, s, "backfill", job, func(now time.Time, a *Agenda) error {
		if p := a.pause(); p.Is() {
			return fmt.Errorf("%w: %s, %s. Unpause it first", ErrPaused, p.By, p.Why)
		}
		text, err := Parse(a.State.Schedule, a.State.Zone)
		if err != nil {
			return err
		}
		if to.After(a.State.Planned) {
			to = a.State.Planned // what comes after that is planned by itself
		}
		instants := text.between(from, to)
		asked = missing(now, job, instants, append(known, a.Open...), by)
		if len(asked) > mostBackfilled || len(instants) == countMost {
			return fmt.Errorf("%w: more than %d instants are missing between %s and %s", ErrTooMany, mostBackfilled, from.Format(time.RFC3339), to.Format(time.RFC3339))
		}
		if !dry {
			a.New = append(a.New, asked...)
		}
		return nil
	})
	return asked, err
}

// since are the runs of a job that were recorded at a time or later.
func since(ctx context.Context, s Reader, job string, from time.Time) (all []RunRow, err error) {
	for f := (RunFilter{Job: job, Limit: 500}); ; {
		page, err := s.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < f.Limit || page[len(page)-1].Created.Before(from) {
			return all, nil
		}
		f.Before = &page[len(page)-1]
	}
}

// missing are runs of the instants that no run has done or is about to do. The key of one that has a row already is numbered behind it: rows before
// that may have gone.
func missing(now time.Time, job string, instants []Instant, known []RunRow, by saga.Actor) (rows []RunRow) {
	done, times := map[time.Time]bool{}, map[string]int{}
	for i := range known {
		r := &known[i]
		key, n, _ := strings.Cut(r.Instant, again)
		number, _ := strconv.Atoi(n) // the first has none
		if times[key] = max(times[key], number, 1); r.manual() || !r.Open() && r.Result != OK {
			continue
		}
		from, _ := slices.BinarySearchFunc(instants, r.From, func(one Instant, t time.Time) int { return one.At.Compare(t) })
		for ; from < len(instants) && !instants[from].At.After(r.At); from++ {
			done[instants[from].At] = true
		}
	}
	for _, one := range instants {
		key := one.Key
		if n := times[key]; n > 0 {
			key = fmt.Sprintf("%s%s%d", key, again, n+1)
		}
		if !done[one.At] {
			rows = append(rows, RunRow{Job: job, Instant: key, At: one.At, From: one.At, Instants: 1, Due: now, Created: now, By: by.Name, Why: by.Reason})
		}
	}
	return slices.Clip(rows)
}

// What the keys of runs have that are not the first of an instant, and that are of none.
const again, byHand = " again:", "manual:"
