package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/ledger"
)

func (a *app) duplicates() *cobra.Command {
	var f ledger.Filter
	cmd := &cobra.Command{
		Use: "duplicates [WORK] [flags]", Args: atMostOneWork,
		Short: "Count the duplicates that were blocked, most recent first",
		Long: `Count the duplicates that were blocked: starts of a work that was known already and got its recorded result
instead of a second run. They are counted by work and by who sent them, and are written about once a second.`,
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
	Saga   string     `json:"saga"`
	WorkID string     `json:"workId"`
	Source string     `json:"source"`
	Count  int64      `json:"count"`
	First  *time.Time `json:"firstAt"`
	Last   *time.Time `json:"lastAt"`
}

func duplicateToJSON(d *ledger.Duplicate) duplicateJSON {
	return duplicateJSON{Saga: d.ID.Saga, WorkID: d.ID.Work, Source: d.Source, Count: d.Count, First: utc(d.First), Last: utc(d.Last)}
}

func (a *app) runDuplicates(cmd *cobra.Command, f ledger.Filter) error {
	limit := f.Limit
	f.Limit++
	var ds []ledger.Duplicate
	err := a.with(cmd.Context(), func(s store) (err error) {
		ds, err = s.Duplicates(cmd.Context(), f)
		return err
	})
	if err != nil {
		return err
	}
	ds, more := page(ds, limit)
	if a.json {
		out := struct {
			Items []duplicateJSON `json:"items"`
			More  bool            `json:"more"`
		}{make([]duplicateJSON, len(ds)), more}
		for i := range ds {
			out.Items[i] = duplicateToJSON(&ds[i])
		}
		return a.printJSON(out)
	}
	if len(ds) == 0 {
		a.sayf("no duplicate was blocked")
		return nil
	}
	g := grid{header: []string{"saga", "work", "source", "blocked", "first", "last"}}
	for i := range ds {
		d := &ds[i]
		g.add(d.ID.Saga, d.ID.Work, d.Source, strconv.FormatInt(d.Count, 10), a.when(d.First), a.when(d.Last))
	}
	a.print(&g)
	if more {
		a.sayf("there are older ones: say --limit %d", 10*limit)
	}
	return nil
}

// source is who sent a duplicate, or a word for nobody.
func source(s string) string {
	if s == "" {
		return "a source that was not named"
	}
	return s
}
