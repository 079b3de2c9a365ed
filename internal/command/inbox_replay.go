package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

func (a *app) inboxReplay() *cobra.Command {
	var s selection
	var by saga.Actor
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "replay (NUMBER… | --object OBJECT | --source NAME | --since TIME | …) --reason WHY [flags]",
		Short: "Let deliveries go through the gate again",
		Long: `Let deliveries go through the gate again: after a source was set up, after what blocked an object was mended, or
when what became of a delivery is in doubt. Those are replayed that every flag and the list of numbers selects.

What named no object is read again, as its source is set up now; what it names then is a delivery of its own.

It is safe. The gate judges a replayed delivery against what is known by now, so an old one changes nothing that is
newer; at most the source is asked. Works are started by object and version, so none runs twice. A blocked object
is tried again. It is done as soon as a process that hears runs.`,
		Example: `  amends inbox replay 4711 4712 --reason "the source is set up now"
  amends inbox replay --object shop:order:10492 --reason "the books know the customer now"
  amends inbox replay --source shop --since 2026-11-20T10:00:00Z --until 2026-11-20T12:00:00Z --reason "INC-77" --dry-run`,
	}
	s.flags(cmd)
	byFlags(cmd, &by, "why; required, and kept with the deliveries")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be replayed and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := append(s.faults(a.now()), byFaults(&by)...)
		numbers, faults := numbersOf(args)
		s.filter.Numbers = numbers
		if wrong = append(wrong, faults...); s.empty() {
			wrong = append(wrong, "say which: numbers of deliveries, --object, --source, --disposition, --since or --until")
		}
		if len(wrong) > 0 {
			return usage("try: amends inbox replay --help", wrong...)
		}
		return a.runReplay(cmd.Context(), &s, by, dryRun)
	}
	return cmd
}

// empty reports whether everything is selected.
func (s *selection) empty() bool {
	f := &s.filter
	return len(f.Numbers) == 0 && s.object == "" && f.Source == "" && s.tenant == "" && s.kind == "" && s.disposition == "" && f.From.IsZero() && f.Until.IsZero()
}

// replayJSON is what became of a replay.
type replayJSON struct {
	Deliveries   int                        `json:"deliveries"`   // selected
	Objects      int                        `json:"objects"`      // they are about
	Dispositions map[intake.Disposition]int `json:"dispositions"` // they have; "": none yet
	Actor        string                     `json:"actor"`
	Reason       string                     `json:"reason"`
	DryRun       bool                       `json:"dryRun"`
	Replayed     int                        `json:"replayed"`
}

func (a *app) runReplay(ctx context.Context, s *selection, by saga.Actor, dryRun bool) error {
	out := replayJSON{Actor: by.Name, Reason: by.Reason, DryRun: dryRun}
	err := a.listening(ctx, func(e ear) error {
		if err := s.census(ctx, e, &out); err != nil || dryRun {
			return err
		}
		n, err := e.Replay(ctx, s.filter, fmt.Sprintf("replayed by %s: %s", by.Name, by.Reason))
		out.Replayed = n
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printReplay(&out)
	return nil
}

// census counts what is selected. A number that is not there is a mistake: nothing is replayed
// then.
func (s *selection) census(ctx context.Context, r intake.Reader, out *replayJSON) error {
	const many = 200 // they come with their bodies
	f := s.filter
	f.Limit = many
	objects, found := map[intake.Object]bool{}, map[int64]bool{}
	out.Dispositions = map[intake.Disposition]int{}
	for {
		ds, err := r.Deliveries(ctx, f)
		if err != nil {
			return err
		}
		for i := range ds {
			d := &ds[i]
			objects[d.Object] = true
			if len(s.filter.Numbers) > 0 {
				found[d.Number] = true
			}
			out.Dispositions[d.Outcome]++
		}
		out.Deliveries += len(ds)
		if len(ds) < many {
			break
		}
		f.Before = ds[many-1].Number
	}
	out.Objects = len(objects)
	return s.missing(found)
}

// missing says which of the numbers were not found.
func (s *selection) missing(found map[int64]bool) error {
	var names []string
	for _, n := range s.filter.Numbers {
		if name := strconv.FormatInt(n, 10); !found[n] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &failure{
		exit: exitNotFound, what: fmt.Sprintf("there is no such delivery: %s", strings.Join(names, ", ")),
		next: "nothing was replayed; it never was, is older than what is kept, or another flag leaves it out; look with: amends inbox list",
	}
}

func (a *app) printReplay(out *replayJSON) {
	if out.Deliveries == 0 {
		a.sayf("no deliveries match; nothing was replayed")
		return
	}
	a.field("selected", fmt.Sprintf("%s of %s", counted(out.Deliveries, "delivery", "deliveries"), count(out.Objects, "object")))
	a.field("judged", countsOf(out.Dispositions))
	a.field("said by", out.Actor+": "+out.Reason)
	fmt.Fprintln(a.out)
	if out.DryRun {
		a.paragraph("", "Dry run: nothing was changed.")
		return
	}
	a.paragraph("", fmt.Sprintf("Replayed: %s through the gate again as soon as a process that hears runs. What waits for it:",
		counted(out.Replayed, "delivery goes", "deliveries go")))
	a.paragraph("  ", "amends inbox list --pending"+dbFlag(a.db))
}

// countsOf lists dispositions with their number, the most frequent first.
func countsOf(dispositions map[intake.Disposition]int) string {
	names := make([]intake.Disposition, 0, len(dispositions))
	for v := range dispositions {
		names = append(names, v)
	}
	slices.SortFunc(names, func(x, y intake.Disposition) int {
		if d := dispositions[y] - dispositions[x]; d != 0 {
			return d
		}
		return strings.Compare(string(x), string(y))
	})
	words := make([]string, len(names))
	for i, v := range names {
		name := string(v)
		if v == "" {
			name = "not yet judged"
		}
		words[i] = fmt.Sprintf("%d %s", dispositions[v], name)
	}
	return strings.Join(words, ", ")
}

// counted is a number of things whose plural is a word of its own.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
