package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/ledger"
)

func (a *app) check() *cobra.Command {
	var f ledger.Filter
	cmd := &cobra.Command{
		Use: "check [WORK] [flags]", Args: atMostOneWork,
		Short: "Verify every chain and every head of the ledger",
		Long: `Verify the ledger: every chain is read from its first record, every hash is computed again, every record must be
one the rules allow where it stands, and every head must show what its chain says. No two works may claim to have
made the same thing, and nothing may be later than the ledger's clock. It changes nothing and may run beside
coordinators.

Findings end the command with 6, always: a damaged ledger is never a success. One thing it cannot find: a
record that was rewritten together with all later hashes of its chain.`,
		Example: `  amends check
  amends check shop:order:10492
  amends check --saga order-to-invoice -o json | jq '.findings[].workId'`,
	}
	cmd.Flags().StringVar(&f.Saga, "saga", "", "works of this saga only")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "work ids that begin with this")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Work = strings.Join(args, "")
		var report ledger.Report
		err := a.with(cmd.Context(), func(s store) (err error) {
			p := a.progress("works checked")
			defer p.done()
			report, err = ledger.Check(cmd.Context(), s, &ledger.CheckOptions{Filter: f, Progress: func(r ledger.Report) {
				p.at(r.Works, func() string {
					return fmt.Sprintf("%d works checked, %d records, %d findings so far", r.Works, r.Records, len(r.Findings))
				})
			}})
			return err
		})
		if err != nil {
			return err
		}
		if report.Works == 0 && f.Work != "" {
			return (&which{work: f.Work, saga: f.Saga}).unknown()
		}
		return a.report(&report)
	}
	return cmd
}

// reportJSON is what a check found.
type reportJSON struct {
	Sound    bool          `json:"sound"`
	Works    int64         `json:"works"`
	Records  int64         `json:"records"`
	Moving   int64         `json:"moving"` // works that moved all the while, whose head was not compared
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Saga   string `json:"saga"`
	WorkID string `json:"workId"`
	Number int64  `json:"number,string"`
	Seq    int64  `json:"seq"` // 0: about the head, or the work as a whole
	What   string `json:"what"`
	Do     string `json:"do"`
}

func (a *app) report(r *ledger.Report) error {
	var end error
	if n := len(r.Findings); n > 0 {
		end = &failure{
			exit: exitFindings, what: fmt.Sprintf("the ledger is not sound: %s in %s", count(n, "finding"), count(int(r.Works), "work")),
			next: "keep a copy of the database before anything else is done to it",
		}
	}
	if a.json {
		out := reportJSON{
			Sound: end == nil, Works: r.Works, Records: r.Records, Moving: r.Moving, Findings: make([]findingJSON, len(r.Findings)),
		}
		for i, f := range r.Findings {
			out.Findings[i] = findingJSON{f.ID.Saga, f.ID.Work, f.Number, f.Seq, f.What, f.Do}
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
		return end
	}
	for _, f := range r.Findings {
		a.paragraph("", f.Where())
		a.paragraph("  ", f.What)
		a.paragraph("  ", f.Do)
	}
	resolution := "sound"
	if end != nil {
		resolution = count(len(r.Findings), "finding")
	}
	a.paragraph("", fmt.Sprintf("%s, %s: %s", count(int(r.Works), "work"), count(int(r.Records), "record"), resolution))
	if r.Moving > 0 {
		a.paragraph("", fmt.Sprintf("%s moved all the while; only the chain was verified, not the head. Run it again for those.", count(int(r.Moving), "work")))
	}
	return end
}
