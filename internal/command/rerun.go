package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (a *app) rerun() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "rerun WORK... --reason WHY [flags]", Args: someWorks,
		Short: "Run a work again that was undone, given up or completed",
		Long: `Run a work again, at the version of the source that it has, under a revision of its own (17+1): one that was undone
and that its source still wants; one in review because its retry policy is used up, where nothing is in doubt; one that
is completed, when what it made was changed at a destination by hand. Every step gets a new key and does what it says of
later runs: it changes what is there (Update), makes another one (EachRun), or stays as it is (Once, AtMostOnce). About one of
those that may have happened a person is asked first, one that was skipped is done, and people are asked again. --dry-run says it of
each step.

It is refused where the source cancelled the work (a newer version of it runs it again), and where a step in review may have
happened (retry it).

Asking twice is asking once, for each run: --run says which one is to be done again, and where another has followed it, nothing is
stored and the answer says what became of that. --request names what is asked for: the same request does a work once, whatever
has followed. A work that is named on the command line alone is run again at the run it is at; from standard input and by HTTP a
run, a request or (by HTTP) an Idempotency-Key has to be said, because such requests are repeated.

` + severalHelp,
		Example: `  amends rerun shop:order:10492 --reason "the books know the customer now" --wait 30s
  amends rerun shop:order:10492 --reason "the books know the customer now" --dry-run
  amends list --status compensated --prefix shop:order:104 -o ids | amends rerun - --request INC-77 --reason "INC-77 turned them back"`,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.run, "run", "", "the run that is to be done again: its revision, as list -o ids prints it")
	cmd.Flags().StringVar(&o.request, "request", "", "a name for what is asked, such as a ticket: the same one again changes nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := o.faults()
		if strings.HasPrefix(o.request, coordinator.OfRun("")) {
			wrong = append(wrong, "--request does not begin with "+coordinator.OfRun("")+": to name a run say --run")
		}
		if o.run != "" && (len(args) > 1 || isStdin(cmd, args, 0)) {
			wrong = append(wrong, "--run is of one work; standard input has a run for each")
		}
		if len(wrong) > 0 {
			return usage("try: amends rerun --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterRerun, run: func(op *coordinator.Operator, work saga.ID, request string) error {
			_, err := op.Rerun(cmd.Context(), work, request, o.by)
			return err
		}})
	}
	return cmd
}

// runMissing is why a rerun that may come twice is refused; console says the same.
const runMissing = "is to be done again (--run), or name the request (--request): what comes twice would be done twice"

// isRerun reports whether a signal asks for a run of the version that the work has.
func isRerun(s machine.Signal) bool {
	return s.Kind == machine.SignalRevise && strings.HasPrefix(s.Key, "rerun:")
}

// rerunAlready is the signal that answers a request that came before: the one of that request, or the first that began another run
// behind the one that it names.
func rerunAlready(signals []machine.Signal, request string) int {
	if i := slices.IndexFunc(signals, func(s machine.Signal) bool { return s.Key == "rerun:"+request }); i >= 0 {
		return i
	}
	run := strings.TrimPrefix(request, coordinator.OfRun(""))
	return slices.IndexFunc(signals, func(s machine.Signal) bool {
		return s.Kind == machine.SignalRevise && saga.CompareRevisions(s.Revision, run) > 0
	})
}

// afterRerun lists what a run does with each step.
func (v *view) afterRerun() []string {
	if v.spec == nil {
		return []string{"every step is done again under a new key, as its definition says; this ledger does not know the definition"}
	}
	var plan []string
	kept := machine.Kept(v.spec, v.state)
	for i := range v.spec.Steps {
		s := &v.spec.Steps[i]
		plan = append(plan, v.inRerun(s, slices.Contains(kept, s.Name)))
		if s.When && !slices.Contains(kept, s.Name) {
			plan[i] += ", if its condition says so"
		}
	}
	return plan
}

// inRerun says what a run does with a step, which it may keep as it is.
func (v *view) inRerun(spec *program.StepSpec, kept bool) string {
	ss, name := v.state.Step(spec.Name), spec.Name
	there := ss != nil && mayBeThere(ss)
	if there && ss.ExternalID != "" {
		name += " (" + ss.ExternalID + ")"
	}
	switch {
	case kept && (spec.Waits() || spec.OncePerInstance()):
		return fmt.Sprintf("leave %s as it is: it is done once", name)
	case kept:
		return fmt.Sprintf("leave %s as it is: it cannot be told whether it was done", name)
	case spec.Approval != nil:
		return "ask people at " + spec.Name + " again, if it needs a decision: votes are for one run"
	case spec.Asks != nil:
		return spec.Name + ": people are asked by it, if they are"
	case spec.WaitsForAnswer() && ss != nil && spec.Once && spec.Answer.Callback == "" && ss.Forward.Phase == machine.Done && !v.state.Turned:
		return fmt.Sprintf("leave %s as it is, if it waits for the same message: it is answered", name)
	case spec.WaitsForAnswer() && ss != nil:
		return fmt.Sprintf("wait at %s for another answer", name)
	case spec.Waits():
		return "wait at " + name
	case spec.OncePerInstance() && there:
		return fmt.Sprintf("%s may have happened: its destination or a person is asked first", name)
	case there && spec.Later == program.LaterUpdate:
		return fmt.Sprintf("change %s, under a new key", name)
	case there && spec.Later == program.LaterAnother:
		return fmt.Sprintf("do %s once more, under a new key: what is there stays beside it", name)
	case there:
		return fmt.Sprintf("do %s again, under a new key: it is idempotent", name)
	case ss != nil && ss.Forward.Phase == machine.Skipped:
		return fmt.Sprintf("do %s, which was skipped, under a new key", name)
	}
	return fmt.Sprintf("do %s, under a new key", name)
}
