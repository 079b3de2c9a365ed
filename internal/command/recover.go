package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	stores "github.com/amends-dev/amends/store"
)

func (a *app) recovery() *cobra.Command {
	var r ledger.Recovery
	var restored bool
	cmd := &cobra.Command{
		Use: "recover {--restored | --nothing-lost} --reason WHY [flags]", Args: noArguments,
		Short: "Say what became of the database: restored from a backup, or moved with everything",
		Long: `Say, while no process runs, what became of the ledger's database.

--restored: it was put back from a backup, or from a standby that had not received everything, and has forgotten what was
done since. Each step that is not done then counts as in doubt, also of works that slept, waited or were in review: what
can be looked up or sent again under the same key is, and of what is AtMostOnce a person is asked. What was
started since is not in it at all: let "amends reconcile rebuild JOB" take over what stands, before anything else runs.

--nothing-lost: it is another server, or another database, and has everything: a planned move, a major upgrade, a
switch-over. All works go on as they stand. It is refused where a witness on this host knows more than the database.`,
		Example: `  amends recover --restored --dry-run
  amends recover --restored --reason "INC-77: last night's dump"
  amends recover --nothing-lost --reason "moved to db2, everything stopped"`,
	}
	fl := cmd.Flags()
	fl.BoolVar(&restored, "restored", false, "it has forgotten what was done since a backup")
	fl.BoolVar(&r.NothingLost, "nothing-lost", false, "it has everything")
	fl.BoolVar(&r.DryRun, "dry-run", false, "say what follows, and change nothing")
	byFlags(cmd, &r.By, "why; required, and kept on record")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if r.DryRun {
			r.By.Reason = cmp.Or(r.By.Reason, "a dry run")
		}
		wrong := byFaults(&r.By)
		if restored == r.NothingLost {
			wrong = append(wrong, "say --restored, or --nothing-lost")
		}
		if len(wrong) > 0 {
			return usage("try: amends recover --help", wrong...)
		}
		return a.database(cmd.Context(), func(db stores.DB) error { return a.recover(cmd.Context(), db, &r) })
	}
	return cmd
}

// recoveredJSON is what a recovery is about.
type recoveredJSON struct {
	Act       string         `json:"act"` // restored, or nothing-lost
	DryRun    bool           `json:"dryRun"`
	LastAlive *time.Time     `json:"lastAliveAt"` // of a process, as far as the ledger knows
	Sessions  int64          `json:"sessions"`    // opened on another database
	Works     []recoversJSON `json:"works"`
}

// recoversJSON are the works of one definition that have not ended.
type recoversJSON struct {
	definitionJSON
	Works int64      `json:"works"`
	Steps []stepJSON `json:"steps"` // of a restored ledger: what becomes of each that is not done
}

type stepJSON struct {
	Step    string `json:"step"`
	Follows string `json:"follows"` // looked-up, sent-again, or asked: a person is
}

func (a *app) recover(ctx context.Context, db stores.DB, r *ledger.Recovery) error {
	done, err := db.Recover(ctx, *r)
	if err != nil {
		return err
	}
	specs, err := db.Definitions(ctx)
	if err != nil {
		return err
	}
	out := recoveredJSON{Act: "restored", DryRun: r.DryRun, LastAlive: utc(done.Heard), Sessions: done.Moved, Works: []recoversJSON{}}
	if r.NothingLost {
		out.Act = "nothing-lost"
	}
	for _, w := range done.Works {
		j := recoversJSON{definitionJSON{w.Saga, w.Version}, w.Works, []stepJSON{}}
		for i := range specs {
			if s := &specs[i].Spec; !r.NothingLost && s.Saga == w.Saga && s.Version == w.Version {
				j.Steps = inDoubt(s)
			}
		}
		out.Works = append(out.Works, j)
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printRecovered(&out)
	return nil
}

// inDoubt are the steps that have effects, with what a doubt about each leads to (F11 to F19).
func inDoubt(spec *program.Spec) []stepJSON {
	steps := []stepJSON{}
	for i := range spec.Steps {
		s := &spec.Steps[i]
		switch {
		case s.Waits():
		case s.Repeat == program.RepeatAtMostOnce:
			steps = append(steps, stepJSON{s.Name, "asked"})
		case s.Repeat == program.RepeatFind:
			steps = append(steps, stepJSON{s.Name, "looked-up"})
		default:
			steps = append(steps, stepJSON{s.Name, "sent-again"})
		}
	}
	return steps
}

var followWords = map[string]string{
	"asked": "a person is asked", "looked-up": "looked up", "sent-again": "sent again under the same key, for as long as that is known",
}

func (a *app) printRecovered(out *recoveredJSON) {
	tense := map[bool]string{true: "would count", false: "count"}[out.DryRun]
	switch {
	case out.LastAlive == nil:
		a.paragraph("", "No process ever ran on it, as far as it knows.")
	default:
		a.paragraph("", "A process was alive at "+iso(*out.LastAlive)+" the last time, as far as it knows.")
	}
	if out.Act == "nothing-lost" {
		a.paragraph("", fmt.Sprintf("%s of another database %s as opened on this one, and all works go on as they stand.", count(int(out.Sessions), "session"), tense))
	}
	for _, w := range out.Works {
		var does []string
		for _, s := range w.Steps {
			does = append(does, s.Step+": "+followWords[s.Follows])
		}
		line := fmt.Sprintf("%s: %s", definition(w.Saga, w.Version, false), count(int(w.Works), "work"))
		if len(does) > 0 {
			line += " whose steps " + tense + " as in doubt where they are not done: " + strings.Join(does, "; ")
		}
		a.paragraph("", line)
	}
	if out.Act == "restored" {
		a.paragraph("", "What was started later is not in it. Before a process runs: amends reconcile rebuild JOB, for each job that compares.")
	}
	if out.DryRun {
		a.sayf("nothing was changed")
	}
}
