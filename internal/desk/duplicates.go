package desk

import (
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

// DuplicatesIn narrows what was blocked.
type DuplicatesIn struct {
	Work   string `path:"work"`
	Saga   string `query:"saga" doc:"works of this saga only"`
	Prefix string `query:"prefix" doc:"work ids that begin with this"`
	Limit
}

// Duplicate is a counter.
type Duplicate struct {
	Saga   string     `json:"saga"` // "": it was stopped before it was a work
	WorkID string     `json:"workId"`
	Source string     `json:"source"`
	By     string     `json:"by"` // what stopped it: start, receiver, version
	Count  int64      `json:"count"`
	First  *time.Time `json:"firstAt"`
	Last   *time.Time `json:"lastAt"`
}

// Of is the source, or a phrase for one that the caller of Start did not name.
func (d *Duplicate) Of() string {
	if d.Source == "" {
		return "starts without a source"
	}
	return d.Source
}

// Duplicates are counters, and what was blocked by day.
type Duplicates struct {
	Items []Duplicate `json:"items"`
	More  bool        `json:"more"` // whether --limit left some out
	Days  []Day       `json:"days"` // all that was blocked in the last 90 days, whatever narrows the items
}

// blockedFor is how far back days are told.
const blockedFor = 90 * 24 * time.Hour

// Day is how many duplicates one layer blocked on a day.
type Day struct {
	Day   string `json:"day"` // UTC
	By    string `json:"by"`
	Count int64  `json:"count"`
}

func duplicateOf(d *ledger.Duplicate) Duplicate {
	return Duplicate{Saga: d.ID.Saga, WorkID: d.ID.Work, Source: d.Source, By: "start", Count: d.Count, First: utc(d.First), Last: utc(d.Last)}
}

// Duplicates counts the duplicates that were blocked, most recent first.
func (d *Desk) Duplicates(ctx context.Context, in *DuplicatesIn) (*Duplicates, error) {
	if err := usage("", in.Limit.faults()); err != nil {
		return nil, err
	}
	all, err := d.blocked(ctx, ledger.Filter{Work: in.Work, Saga: in.Saga, Prefix: in.Prefix, Limit: in.Limit.N + 1})
	if err != nil {
		return nil, err
	}
	days, err := d.db.BlockedDays(ctx, d.now().Add(-blockedFor))
	if err != nil {
		return nil, err
	}
	n := min(len(all), in.Limit.N)
	return &Duplicates{append([]Duplicate{}, all[:n]...), n < len(all), docs(days, func(d *ledger.BlockedDay) Day {
		return Day{d.Day.Format(time.DateOnly), d.By, d.Count}
	})}, nil
}

// blocked reads the counters of starts, and those of the inbox, the most recent first.
func (d *Desk) blocked(ctx context.Context, f ledger.Filter) ([]Duplicate, error) {
	ds, err := d.db.Duplicates(ctx, f)
	all := docs(ds, duplicateOf)
	of := intake.StoppedFilter{Prefix: f.Prefix, Limit: f.Limit}
	named := f.Work == ""
	if o, ok := intake.ParseObject(f.Work); ok {
		of.Object, named = o, true
	}
	if err != nil || f.Saga != "" || !named { // an instance that no object names has no deliveries
		return all, err
	}
	stopped, err := d.db.Stopped(ctx, of)
	for i := range stopped {
		if s := &stopped[i]; f.Work == "" || s.Object == of.Object {
			for i, n := range []int64{s.Copies, s.Known} {
				if n > 0 {
					by := []string{"receiver", "version"}[i]
					all = append(all, Duplicate{WorkID: s.Object.String(), Source: s.Object.Source, By: by, Count: n, First: utc(s.First), Last: utc(s.Last)})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Duplicate) int { return At(b.Last).Compare(At(a.Last)) })
	return all, err
}
