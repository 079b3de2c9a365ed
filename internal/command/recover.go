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
switch-over. All works go on as they stand. It is refused where a witness
that this command sees, that of its user on this host, knows more than the database.`,
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
	Works     []recoversJSON `json:"works"`       // that have not ended, by definition
}

type recoversJSON struct {
	definitionJSON
	Works int64    `json:"works"`
	Asked []string `json:"asked"` // the steps of which a person is asked, where they are not done
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
	asked := map[definitionJSON][]string{}
	for i := range specs {
		for _, s := range specs[i].Spec.Steps {
			if d := (definitionJSON{specs[i].Spec.Saga, specs[i].Spec.Version}); s.Repeat == program.RepeatAtMostOnce && !r.NothingLost {
				asked[d] = append(asked[d], s.Name)
			}
		}
	}
	out := recoveredJSON{Act: "restored", DryRun: r.DryRun, LastAlive: utc(done.Heard), Sessions: done.Moved, Works: []recoversJSON{}}
	if r.NothingLost {
		out.Act = "nothing-lost"
	}
	for _, w := range done.Works {
		d := definitionJSON{w.Saga, w.Version}
		out.Works = append(out.Works, recoversJSON{d, w.Works, append([]string{}, asked[d]...)})
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printRecovered(&out)
	return nil
}

func (a *app) printRecovered(out *recoveredJSON) {
	if out.LastAlive != nil {
		a.paragraph("", "A process was alive at "+iso(*out.LastAlive)+" the last time, as far as the ledger knows.")
	}
	for _, w := range out.Works {
		line := fmt.Sprintf("%s: %s", definition(w.Saga, w.Version, false), count(int(w.Works), "work"))
		if len(w.Asked) > 0 {
			line += "; where it is not done a person is asked about " + strings.Join(w.Asked, ", ")
		}
		a.paragraph("", line)
	}
	if out.Act == "nothing-lost" {
		a.paragraph("", "They go on as they stand.")
	} else {
		a.paragraph("", "Other steps that are not done are looked up, or sent again under the same key. What was started later is not in the ledger: "+
			"before a process runs, amends reconcile rebuild JOB, for each job that compares.")
	}
	if out.DryRun {
		a.sayf("nothing was changed")
	}
}
