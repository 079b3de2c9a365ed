package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

func (a *app) deeds() *cobra.Command {
	var limit int
	var before string
	cmd := &cobra.Command{
		Use: "acts [flags]", Args: noArguments,
		Short: "List what people did, latest first",
		Long: `List what people did, latest first: what they said to a work, what they paused, resumed and probed, the withdrawals
they released and dropped, the runs of jobs they asked for, and whose inputs and results they looked at in the console. What becomes of it is in the history of each work.`,
		Example: `  amends acts
  amends acts --before 2026-11-20 --limit 200
  amends acts -o json | jq -r '.items[] | [.at, .actor, .act, .workId] | @tsv'`,
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "at most this many")
	cmd.Flags().StringVar(&before, "before", "", "only what was done before this time, or so long ago: the next page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		until, err := pointInTime(before, a.now())
		switch {
		case err != nil:
			return usage("", "--before "+err.Error())
		case limit < 1:
			return usage("", "--limit is at least 1")
		}
		return a.with(cmd.Context(), func(s store) error {
			all, err := s.Deeds(cmd.Context(), until, limit+1)
			if err != nil {
				return err
			}
			all, more := page(all, limit)
			if a.json {
				return a.printJSON(listed(all, more, deedToJSON, func(d *ledger.Deed) string { return d.At.UTC().Format(time.RFC3339Nano) }))
			}
			if len(all) == 0 {
				a.sayf("no person did anything")
				return nil
			}
			g := grid{header: []string{"at", "who", "act", "what", "why"}}
			for i := range all {
				d := deedToJSON(&all[i])
				g.add(a.when(all[i].At), d.Actor, d.Act, strings.Join(slices.DeleteFunc([]string{d.Saga, d.WorkID, d.What}, func(s string) bool { return s == "" }), " "), d.Reason)
			}
			a.print(&g)
			if more {
				a.sayf("there are more; the next page: %s --before %s", again(cmd), all[len(all)-1].At.UTC().Format(time.RFC3339Nano))
			}
			return nil
		})
	}
	return cmd
}

// deedJSON is something that a person did.
type deedJSON struct {
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Act    string     `json:"act"` // a kind of signal; pause, resume or probe; release or drop; run, look, or recover
	Saga   string     `json:"saga"`
	WorkID string     `json:"workId"` // "": it was about no work alone
	What   string     `json:"what"`   // then: all, saga:NAME, destination:NAME, source:NAME, job:NAME, or what was looked at; of a work: what was said of which step
	Reason string     `json:"reason"`
}

func deedToJSON(d *ledger.Deed) deedJSON {
	j := deedJSON{At: utc(d.At), Actor: d.Actor, Act: d.Kind, Saga: d.ID.Saga, WorkID: d.ID.Work, What: d.Name, Reason: d.Reason}
	if d.ID.Work != "" {
		if j.Act == "revise" {
			j.Act = "rerun"
		}
		if r := d.Resolution; r.Step != "" {
			j.What = effect(r.Step, r.Direction, r.Attempt)
			if d.Kind == string(machine.SignalResolve) {
				j.What += ": " + happened(r.Happened, r.ExternalID)
			}
		}
		return j
	}
	switch ledger.ControlKind(d.Kind) {
	case ledger.ControlPause:
		if d.Body == "" {
			j.Act = "resume"
		}
	case ledger.ControlDestination:
		j.What = "destination:" + d.Name
		var h struct {
			PausedBy string    `json:"pausedBy"`
			ProbedAt time.Time `json:"probedAt"`
		}
		_ = json.Unmarshal([]byte(d.Body), &h) // what cannot be read is neither
		switch {
		case h.PausedBy != "":
			j.Act = "pause"
		case !h.ProbedAt.IsZero():
			j.Act = "probe"
		default:
			j.Act = "resume"
		}
	case ledger.ControlShare:
	default:
		switch d.Kind {
		case ledger.DeedRun:
			j.What = "job:" + strings.TrimSpace(fmt.Sprintf("%s %s", d.Name, d.Body))
		case intake.ActRelease, intake.ActDrop:
			j.What = "source:" + d.Name
		}
	}
	return j
}
