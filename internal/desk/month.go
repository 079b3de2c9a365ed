package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// MonthIn says which month is reported.
type MonthIn struct {
	Month    string             `query:"month" doc:"the month, in UTC: 2006-01 (default: the one before this)"`
	Saga     string             `query:"saga" doc:"works of this saga only"`
	Progress func(chains int64) `flag:"-"` // is told how many were read; nil: nothing is
}

// Month is what became of works in a month.
type Month struct {
	Since      *time.Time       `json:"since"`
	Until      *time.Time       `json:"until"`
	Items      []SagaMonth      `json:"items"`      // by saga
	Duplicates map[string]int64 `json:"duplicates"` // that were blocked, of all sagas: by start, receiver, version, answer, vote, request, lookup
}

// SagaMonth is a month of a saga. What stands is as it stood when the month ended.
type SagaMonth struct {
	Saga           string   `json:"saga"`
	Started        int64    `json:"started"`        // works that are new, or were taken over
	Completed      int64    `json:"completed"`      // works that came to this end, and stand there
	Undone         int64    `json:"undone"`         // the same: compensated
	Live           int64    `json:"live"`           // works that are not at their end
	ReviewsOpened  int64    `json:"reviewsOpened"`  // how often a work came to be in review
	ReviewsSettled int64    `json:"reviewsSettled"` // how often one left it
	ReviewsOpen    int64    `json:"reviewsOpen"`    // works that are in review
	MedianWait     Duration `json:"medianWait"`     // of the reviews that were settled
	LongestWait    Duration `json:"longestWait"`

	waits []time.Duration
}

// Month reports a month. It reads the chain of each work that moved since the month began; of others the head says where they stood.
func (d *Desk) Month(ctx context.Context, in *MonthIn) (*Month, error) {
	since, until, err := in.span(d.now().UTC())
	if err != nil {
		return nil, err
	}
	sagas, chains, seen := map[string]*SagaMonth{}, int64(0), map[saga.ID]bool{}
	filters := []ledger.Filter{} // what rests comes first: it may move meanwhile, and is counted once
	for _, status := range live {
		filters = append(filters, ledger.Filter{Saga: in.Saga, Status: status, UpdatedUntil: since})
	}
	filters = append(filters, ledger.Filter{Saga: in.Saga, UpdatedSince: since, CreatedUntil: until})
	for len(filters) > 0 {
		page, err := d.db.List(ctx, filters[0])
		if err != nil {
			return nil, err
		}
		for i := range page.Instances {
			h := &page.Instances[i]
			m := cmp.Or(sagas[h.ID.Saga], &SagaMonth{Saga: h.ID.Saga})
			if sagas[h.ID.Saga] = m; seen[h.ID] {
				continue
			}
			if h.Updated.Before(since) {
				seen[h.ID] = true
				m.rests(h.Status)
				continue
			}
			records, err := d.db.History(ctx, h.ID)
			if errors.Is(err, ledger.ErrNotFound) { // it has gone meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			m.tell(records, since, until)
			if chains++; in.Progress != nil {
				in.Progress(chains)
			}
		}
		if filters[0].After = page.Next; page.Next == "" {
			filters = filters[1:]
		}
	}
	out := &Month{utc(since), utc(until), []SagaMonth{}, map[string]int64{}}
	for _, name := range slices.Sorted(maps.Keys(sagas)) {
		out.Items = append(out.Items, *sagas[name].waited())
	}
	for _, by := range ledger.Layers {
		out.Duplicates[by] = 0
	}
	days, _, err := d.blockedDays(ctx, since)
	for _, day := range days {
		out.Duplicates[day.By] += Either(day.Day.Before(until), day.Count, 0)
	}
	return answer(*out, err)
}

// span is from when until when the month is.
func (in *MonthIn) span(now time.Time) (since, until time.Time, err error) {
	since = time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	if in.Month != "" {
		since, err = time.Parse("2006-01", in.Month)
	}
	var wrong Wrong
	wrong.If(err != nil, fmt.Sprintf("%q is no month: write 2006-01", in.Month))
	wrong.If(since.After(now), in.Month+" has not begun")
	return since, since.AddDate(0, 1, 0), Usage("", wrong...)
}

// tell counts what a chain says.
func (m *SagaMonth) tell(records []machine.Record, since, until time.Time) {
	if r := &records[0]; r.Kind == machine.KindRemembered { // of one whose records have gone is known when it began, and when it ended
		records = []machine.Record{{At: r.Until, Status: saga.Running}, {At: r.At, Status: r.Status}}
	}
	var last *machine.Record // that came to where the work stands
	for i := range records {
		r := &records[i]
		if !r.At.Before(until) {
			break
		}
		if last != nil && last.Status == r.Status {
			continue
		}
		within := !r.At.Before(since)
		switch {
		case within && last == nil:
			m.Started++
		case within && last.Status == saga.Review:
			m.ReviewsSettled++
			m.waits = append(m.waits, r.At.Sub(last.At))
		}
		if last = r; within && r.Status == saga.Review {
			m.ReviewsOpened++
		}
	}
	if last == nil { // it was started later
		return
	}
	m.rests(last.Status)
	switch within := !last.At.Before(since); {
	case within && last.Status == saga.Completed:
		m.Completed++
	case within && last.Status == saga.Compensated:
		m.Undone++
	}
}

// rests counts where a work stood when the month ended.
func (m *SagaMonth) rests(status saga.Status) {
	m.Live += Either[int64](status.Terminal(), 0, 1)
	m.ReviewsOpen += Either[int64](status == saga.Review, 1, 0)
}

// waited says how long the reviews did that were settled: of two in the middle, the shorter.
func (m *SagaMonth) waited() *SagaMonth {
	if slices.Sort(m.waits); len(m.waits) > 0 {
		m.MedianWait, m.LongestWait = Duration(m.waits[(len(m.waits)-1)/2]), Duration(m.waits[len(m.waits)-1])
	}
	return m
}
