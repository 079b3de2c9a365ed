package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// What a person says for the other side, when an answer is waited for.

func (a *app) complete() *cobra.Command {
	var o order
	var step, body string
	cmd := &cobra.Command{
		Use: "complete WORK... --body TEXT --reason WHY [flags]", Args: someWorks,
		Short: "Answer by hand what a work waits for",
		Long: `Answer by hand what a work waits for, as if the body had come from outside. The program that has the saga reads it: what it
declines is in the history, and the work waits on.

` + severalHelp,
		Example: `  amends complete job:4711 --body '{"id":"film_9"}' --reason "the partner's console shows it finished" --wait 30s`,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&step, "step", "", "the step that waits; without it the one that the work is at")
	cmd.Flags().StringVar(&body, "body", "", "the answer, as the other side would send it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := o.faults()
		if !cmd.Flags().Changed("body") {
			wrong = append(wrong, "say what the answer is: --body TEXT")
		}
		if len(wrong) > 0 {
			return usage("try: amends complete --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterAnswer, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.CompleteStep(cmd.Context(), work, step, []byte(body), o.by)
		}})
	}
	return cmd
}

func (a *app) failed() *cobra.Command {
	var o order
	var step string
	cmd := &cobra.Command{
		Use: "fail WORK... --reason WHY [flags]", Args: someWorks,
		Short: "Say by hand that what a work waits for has failed",
		Long: `Say by hand that what a work waits for has failed, and that nothing of it stands. Before its pivot the work is undone then;
behind it a person is asked.

` + severalHelp,
		Example: `  amends fail job:4711 --reason "the partner has no such job" --wait 30s`,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&step, "step", "", "the step that waits; without it the one that the work is at")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends fail --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterAnswer, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.FailStep(cmd.Context(), work, step, o.by)
		}})
	}
	return cmd
}

func (a *app) extend() *cobra.Command {
	var o order
	var step string
	var by time.Duration
	cmd := &cobra.Command{
		Use: "extend WORK... --by DURATION --reason WHY [flags]", Args: someWorks,
		Short: "Have works wait longer for their answers, or for a decision",
		Long: `Have works wait for their answers until so long from now, also those that are in review because none came: for when the other side
is down.

` + severalHelp,
		Example: `  amends list --waiting -o ids | amends extend - --by 24h --reason "the partner is down until tomorrow"`,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&step, "step", "", "the step that waits; without it the one that the work is at")
	cmd.Flags().DurationVar(&by, "by", 0, "how long from now: 24h")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wrong := o.faults()
		if by <= 0 {
			wrong = append(wrong, "say how long from now it may take: --by 24h")
		}
		if len(wrong) > 0 {
			return usage("try: amends extend --help", wrong...)
		}
		until := time.Now().Add(by)
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterAnswer, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Extend(cmd.Context(), work, step, until, o.by)
		}})
	}
	return cmd
}

// afterAnswer says what the order is about.
func (v *view) afterAnswer() []string {
	for i := range v.state.Steps {
		if ss := &v.state.Steps[i]; v.asks(ss) || votesAt(ss) {
			return []string{fmt.Sprintf("step %q waits until %s", ss.Name, ss.Until.UTC().Format(time.RFC3339))}
		}
	}
	return nil
}

func (a *app) deliver() *cobra.Command {
	m := saga.Message{}
	var body string
	cmd := &cobra.Command{
		Use: "deliver NAME KEY --id ID [--body TEXT]", Args: messageSaid,
		Short: "Bring a message to the works that wait for it",
		Long: `Bring a message to the works that wait for its name and key. One that nothing waits for yet is kept for 30 days. A message that comes
again, by its id, is one.`,
		Example: `  amends deliver render.done 10492 --id evt_7 --body '{"id":"film_9"}'`,
	}
	cmd.Flags().StringVar(&m.ID, "id", "", "the sender's id of the message")
	cmd.Flags().StringVar(&body, "body", "", "what it says")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if m.ID == "" {
			return usage("try: amends deliver --help", "say which message it is, so that one that comes again is known: --id ID")
		}
		m.Name, m.Key, m.Body = args[0], args[1], []byte(body)
		return a.with(cmd.Context(), func(s store) error {
			ack, err := coordinator.NewOperator(s).Deliver(cmd.Context(), m)
			if err != nil {
				return err
			}
			return a.printAck(&ack)
		})
	}
	return cmd
}

// messageSaid refuses what does not name a message.
func messageSaid(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usage("try: amends deliver --help", "say the name of the message and its key: amends deliver NAME KEY --id ID")
	}
	if err := said("the name of the message", args[0]); err != nil {
		return err
	}
	return said("the key of the message", args[1])
}

// ackJSON is what became of a message.
type ackJSON struct {
	At    *time.Time `json:"at"`    // when it came first
	Works []idJSON   `json:"works"` // that it was brought to now; none: it is kept, or it was delivered before
}

type idJSON struct {
	Saga string `json:"saga"`
	Work string `json:"workId"`
}

func (a *app) printAck(ack *coordinator.Ack) error {
	if a.json {
		j := ackJSON{At: utc(ack.At), Works: []idJSON{}}
		for _, id := range ack.IDs {
			j.Works = append(j.Works, idJSON{id.Saga, id.Work})
		}
		return a.printJSON(j)
	}
	if len(ack.IDs) == 0 {
		a.sayf("received %s; nothing that waits has it now: it is kept for what does later, or was delivered before", iso(ack.At))
		return nil
	}
	for _, id := range ack.IDs {
		fmt.Fprintf(a.out, "delivered to %s %s\n", id.Saga, id.Work)
	}
	return nil
}
