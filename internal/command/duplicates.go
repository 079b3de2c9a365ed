package command

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

func (a *app) duplicates() *cobra.Command {
	var f ledger.Filter
	cmd := &cobra.Command{
		Use: "duplicates [WORK] [flags]", Args: atMostOneWork,
		Short: "Count the duplicates that were blocked, most recent first",
		Long: `Count the duplicates that were blocked, wherever that was: starts of a work that was known already and got its
recorded result instead of a second run (start), copies of a webhook that had come before (receiver), and webhooks of a
version that was known or older (version). They are counted by work and by who sent them; starts are written about once
a second. Of webhooks the newest 100,000 are looked at, or those of the work, and none with --saga: they are of no saga.`,
		Example: `  amends duplicates                              # who sends things twice?
  amends duplicates shop:order:10492
  amends duplicates --prefix shop: -o json | jq '[.items[].count] | add'`,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Saga, "saga", "", "works of this saga only")
	fl.StringVar(&f.Prefix, "prefix", "", "work ids that begin with this")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Limit < 1 {
			return usage("", "--limit is at least 1")
		}
		f.Work = strings.Join(args, "")
		return a.runDuplicates(cmd, f)
	}
	return cmd
}

// duplicateJSON is a counter as JSON.
type duplicateJSON struct {
	Saga   string     `json:"saga"` // "": it was stopped before it was a work
	WorkID string     `json:"workId"`
	Source string     `json:"source"`
	By     string     `json:"by"` // start, receiver, version: what stopped it
	Count  int64      `json:"count"`
	First  *time.Time `json:"firstAt"`
	Last   *time.Time `json:"lastAt"`
}

// duplicatesJSON are counters, and what was blocked by day.
type duplicatesJSON struct {
	Items []duplicateJSON `json:"items"`
	More  bool            `json:"more"`
	Days  []dayJSON       `json:"days"` // whatever narrows the items
}

// blockedFor is how far back days are told.
const blockedFor = 90 * 24 * time.Hour

// dayJSON is how many duplicates one layer blocked on a day.
type dayJSON struct {
	Day   string `json:"day"` // UTC
	By    string `json:"by"`
	Count int64  `json:"count"`
}

func duplicateToJSON(d *ledger.Duplicate) duplicateJSON {
	return duplicateJSON{Saga: d.ID.Saga, WorkID: d.ID.Work, Source: d.Source, By: "start", Count: d.Count, First: utc(d.First), Last: utc(d.Last)}
}

// stoppedToJSON are the counters of an object's deliveries.
func stoppedToJSON(s *intake.Stopped) []duplicateJSON {
	var js []duplicateJSON
	for _, c := range []struct {
		by    string
		count int64
	}{{"receiver", s.Copies}, {"version", s.Known}} {
		if c.count > 0 {
			js = append(js, duplicateJSON{WorkID: s.Object.String(), Source: s.Object.Source, By: c.by, Count: c.count, First: utc(s.First), Last: utc(s.Last)})
		}
	}
	return js
}

// blocked reads the counters of starts, and those of the inbox, the most recent first.
func (a *app) blocked(ctx context.Context, f ledger.Filter) ([]duplicateJSON, error) {
	var all []duplicateJSON
	err := a.with(ctx, func(s store) error {
		ds, err := s.Duplicates(ctx, f)
		for i := range ds {
			all = append(all, duplicateToJSON(&ds[i]))
		}
		return err
	})
	of := intake.StoppedFilter{Prefix: f.Prefix, Limit: f.Limit}
	named := f.Work == ""
	if o, ok := intake.ParseObject(f.Work); ok {
		of.Object, named = o, true
	}
	if err != nil || f.Saga != "" || !named { // a work that no object names has no deliveries
		return all, err
	}
	err = a.listening(ctx, func(e ear) error {
		stopped, err := e.Stopped(ctx, of)
		for i := range stopped {
			if f.Work == "" || stopped[i].Object == of.Object {
				all = append(all, stoppedToJSON(&stopped[i])...)
			}
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b duplicateJSON) int { return timeOf(b.Last).Compare(timeOf(a.Last)) })
	return all, err
}

func (a *app) runDuplicates(cmd *cobra.Command, f ledger.Filter) error {
	limit := f.Limit
	f.Limit++
	ds, err := a.blocked(cmd.Context(), f)
	if err != nil {
		return err
	}
	ds, more := page(ds, limit)
	if a.json {
		out := duplicatesJSON{append([]duplicateJSON{}, ds...), more, []dayJSON{}}
		err := a.with(cmd.Context(), func(s store) error {
			days, err := s.BlockedDays(cmd.Context(), a.now().Add(-blockedFor))
			for _, d := range days {
				out.Days = append(out.Days, dayJSON{d.Day.Format(time.DateOnly), d.By, d.Count})
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.printJSON(out)
	}
	if len(ds) == 0 {
		a.sayf("no duplicate was blocked")
		return nil
	}
	g := grid{header: []string{"saga", "work", "source", "by", "blocked", "first", "last"}}
	for i := range ds {
		d := &ds[i]
		g.add(d.Saga, d.WorkID, d.Source, d.By, strconv.FormatInt(d.Count, 10), a.when(timeOf(d.First)), a.when(timeOf(d.Last)))
	}
	a.print(&g)
	if more {
		a.sayf("there are older ones: say --limit %d", 10*limit)
	}
	return nil
}

// source returns the name of the source of a duplicate, or a phrase for a source that the caller of
// Start did not name.
func source(s string) string {
	if s == "" {
		return "starts without a source"
	}
	return s
}
