package command

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
)

func (a *app) inboxCounts() *cobra.Command {
	return &cobra.Command{
		Use: "counts [flags]", Args: noArguments,
		Short: "Count deliveries by source and disposition",
		Long: `Count the deliveries that are kept, by source and by what the gate made of them. Copies of one event are counted
once.`,
		Example: `  amends inbox counts
  amends inbox counts -o json | jq '[.items[] | select(.disposition == "malformed") | .count] | add'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var counts []intake.Count
			err := a.listening(cmd.Context(), func(e ear) (err error) {
				counts, err = e.Counts(cmd.Context())
				return err
			})
			if err != nil {
				return err
			}
			return a.printCounts(counts)
		},
	}
}

// countJSON is a count as JSON.
type countJSON struct {
	Source      string             `json:"source"`
	Disposition intake.Disposition `json:"disposition"` // "": to be judged
	Count       int64              `json:"count"`
	Last        *time.Time         `json:"lastAt"`
}

func (a *app) printCounts(counts []intake.Count) error {
	if a.json {
		out := listOf[countJSON]{make([]countJSON, len(counts))}
		for i, c := range counts {
			out.Items[i] = countJSON{c.Source, c.Disposition, c.Count, utc(c.Last)}
		}
		return a.printJSON(out)
	}
	if len(counts) == 0 {
		a.sayf("nothing was heard")
		return nil
	}
	g := grid{header: []string{"source", "disposition", "count", "last", "meaning"}}
	for _, c := range counts {
		name, words := string(c.Disposition), meaningOf(c.Disposition)
		if c.Disposition == "" {
			name, words = "to be judged", "the gate has not judged it yet"
		}
		g.add(c.Source, name, strconv.FormatInt(c.Count, 10), a.when(c.Last), words)
	}
	a.print(&g)
	return nil
}
