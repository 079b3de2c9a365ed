package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const rebuildHelp = `The job lists its source and its destination whole, and writes into the ledger what stands already:

  - what matches the source exactly is adopted, so that it is never made again; mails count as sent, unless the program knows better;
  - what does not match, or stands twice, is recorded in review, so that nothing is started for it;
  - what the ledger knows already is left as it is.

It makes nothing at the destination, and sends nothing. Its incremental listings start from the beginning afterwards.
Until it has ended the program that has the job must hear no webhook and run no work, and no other may run:
what is heard over an empty ledger is started, whatever stands.`

func (a *app) reconcileRebuild() *cobra.Command {
	var r request
	var yes bool
	cmd := &cobra.Command{
		Use: "rebuild JOB --reason WHY [flags]", Args: oneJob,
		Short: "Let a job rebuild a lost ledger from what stands",
		Long: `Let a job rebuild a ledger that was lost, or restored from an old backup, before anything else runs on it.
` + rebuildHelp + `

It asks for the name of the job before it begins; without a terminal to ask on, --yes is needed. To be on the safe
side, look afterwards with: amends reconcile plan JOB.

` + requestHelp,
		Example: `  amends reconcile rebuild orders --reason "INC-77: the database was lost"
  amends reconcile rebuild orders --reason "INC-77" --yes --no-wait`,
	}
	r.flags(cmd, "why; required, and kept with the run")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := r.faults(cmd); len(wrong) > 0 {
			return usage("try: amends reconcile rebuild --help", wrong...)
		}
		return a.atDesk(cmd.Context(), func(d desk) error {
			j, err := jobOf(cmd.Context(), d, args[0])
			if err != nil {
				return err
			}
			if err := j.runnable(); err != nil {
				return err
			}
			if !yes {
				if err := a.confirm(cmd.Context(), cmd.InOrStdin(), j.Name); err != nil {
					return err
				}
			}
			run, err := a.ask(cmd.Context(), d, j.Name, askRebuild, &r)
			if err != nil {
				return err
			}
			return a.printEnd(&run)
		})
	}
	return cmd
}

// confirm prints what a rebuild does and reads the name of the job as the confirmation. It refuses
// where in is no terminal, because no person can answer there.
func (a *app) confirm(ctx context.Context, in io.Reader, name string) error {
	if !answers(in) {
		return usage("read: amends reconcile rebuild --help; then, to go on without being asked: --yes", "there is no terminal to ask for a confirmation on")
	}
	fmt.Fprintf(a.err, "%s\n\nType the name of the job to go on: ", rebuildHelp)
	line, err := readLine(ctx, in)
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != name {
		return usage("", "that is not the name of the job; nothing was asked for")
	}
	return nil
}

// answers reports whether a person can answer: only on a terminal.
func answers(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readLine reads what a person types. A person who breaks it off need not type a line for that.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) { // the line is what was typed before
			err = nil
		}
		typed <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case t := <-typed:
		return t.line, t.err
	}
}
