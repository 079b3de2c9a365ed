package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What a person decides. Who has the database votes as an admin, and the history says so.

func (a *app) approve() *cobra.Command {
	return a.deciding("approve", true, "Look at what a work wants approved, and approve of it")
}

func (a *app) reject() *cobra.Command {
	return a.deciding("reject", false, "Look at what a work wants approved, and reject it")
}

func (a *app) deciding(verb string, approve bool, short string) *cobra.Command {
	var o order
	var step, shown string
	var roles []string
	cmd := &cobra.Command{
		Use: verb + " WORK [--shown DIGEST --reason WHY] [flags]", Args: oneWork,
		Short: short,
		Long: `Without --shown it shows what is to be decided, and the votes so far, and stores nothing. The last line is the command that
votes on just that: when it has changed by then, the vote does not count, and the command says so.

You vote with the role "admin", which may vote on everything, for you have the database, or with those that --role says; the history says
so. Your vote counts once, and not where you started the work and the approval is not the starter's.

` + orderHelp,
		Example: "  amends approvals\n  amends " + verb + " shop:order:10492",
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&step, "step", "", "the approval; without it the one that the work waits at")
	cmd.Flags().StringVar(&shown, "shown", "", "the digest of what you were shown")
	cmd.Flags().StringArrayVar(&roles, "role", []string{saga.Admin}, "the roles you vote with")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		o.work = args[0]
		if shown == "" {
			return a.with(ctx, func(s store) error { return a.showApproval(cmd, s, &o, verb, step) })
		}
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends "+verb+" --help", wrong...)
		}
		plan := func(*view) []string {
			return []string{fmt.Sprintf("%s votes to %s, with the role %s", o.by.Name, verb, strings.Join(roles, ", "))}
		}
		same := func(all []machine.Signal) int {
			return slices.IndexFunc(all, func(s machine.Signal) bool {
				v := s.Vote
				return v != nil && v.Approve == approve && v.Shown == shown && machine.Person(s.Actor) == machine.Person(o.by.Name)
			})
		}
		vote := func(op *coordinator.Operator, id saga.ID) error {
			err := op.Vote(ctx, id, step, approve, shown, coordinator.Voter{Actor: o.by, Roles: roles})
			switch {
			case errors.Is(err, coordinator.ErrVoted): // it is answered as the first was
				return nil
			case err == nil || exitOf(err) != exitConflict:
				return err
			}
			if errors.Is(err, coordinator.ErrNotOpen) {
				return &failure{exit: exitConflict, err: err, next: "it does not count; look again: " + showCommand(id, "")}
			}
			return &failure{exit: exitConflict, err: err, next: "the vote is on record, and does not count; look again: amends " + verb + " " + quote(id.Work)}
		}
		return a.with(ctx, func(s store) error { return a.speakTo(ctx, s, &o, &words{plan: plan, post: vote, same: same}) })
	}
	return cmd
}

// approvalJSON is what people decide at a step of a work.
type approvalJSON struct {
	WorkID  string          `json:"workId"`
	Saga    string          `json:"saga"`
	Step    string          `json:"step"`
	Digest  string          `json:"digest"` // a vote says it
	Shown   json.RawMessage `json:"shown"`  // what is decided about
	Roles   []string        `json:"roles"`  // who may vote now
	Needed  int             `json:"votesNeeded"`
	Votes   []saga.Vote     `json:"votes"`
	Since   *time.Time      `json:"since"`
	Until   *time.Time      `json:"until"`   // without a decision by then it is rejected
	Outcome string          `json:"outcome"` // "": it is to be decided
}

func approvalToJSON(p *coordinator.Approval) approvalJSON {
	return approvalJSON{
		WorkID: p.ID.Work, Saga: p.ID.Saga, Step: p.Step, Digest: p.Digest, Shown: p.Shown, Roles: p.Roles, Needed: p.Needed,
		Votes: append([]saga.Vote{}, p.Votes...), Since: utc(p.Since), Until: utc(p.Until), Outcome: p.Outcome,
	}
}

func (a *app) showApproval(cmd *cobra.Command, s store, o *order, verb, step string) error {
	head, err := o.find(cmd.Context(), s)
	if err != nil {
		return err
	}
	p, err := coordinator.NewOperator(s).Approval(cmd.Context(), head.ID, step)
	if err != nil {
		return refused(err, head.ID)
	}
	if a.json {
		return a.printJSON(approvalToJSON(&p))
	}
	a.field("work", p.ID.Work)
	a.field("saga", p.ID.Saga)
	a.field("step", p.Step)
	a.field("by", fmt.Sprintf("%d of %s; one who rejects decides", p.Needed, strings.Join(p.Roles, ", ")))
	a.field("since", a.both(p.Since))
	a.field("until", a.both(p.Until)+"; without a decision it is rejected")
	for i := range p.Votes {
		v, says := &p.Votes[i], "rejects"
		if v.Approve {
			says = "approves"
		}
		a.field("vote", fmt.Sprintf("%s (%s) %s: %s", v.By, strings.Join(v.Roles, ", "), says, v.Reason))
	}
	var doc bytes.Buffer
	if err := json.Indent(&doc, p.Shown, "", "  "); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "\nto be decided:")
	for line := range strings.Lines(doc.String()) {
		fmt.Fprintln(a.out, "  "+visible(strings.TrimRight(line, "\n")))
	}
	if p.Outcome != "" {
		a.sayf("it is decided: %s", p.Outcome)
		return nil
	}
	fmt.Fprintf(a.out, "\nnothing was stored. To %s just this, as an admin:\n  amends %s %s --saga %s --step %s%s --shown %s --reason \"why\"\n",
		verb, verb, quote(p.ID.Work), quote(p.ID.Saga), quote(p.Step), dbFlag(a.db), p.Digest)
	return nil
}

func (a *app) approvals() *cobra.Command {
	return &cobra.Command{
		Use: "approvals [flags]", Args: noWork,
		Short: "List what waits for people to decide, oldest first",
		Long: `List what waits for people to decide, oldest first: who may vote by now, how many have approved, and until when. What is in review or
paused is decided all the same: amends approve WORK shows it.`,
		Example: "  amends approvals\n  amends list --waiting approval                 # the same",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listApprovals(cmd)
		},
	}
}

// noWorkOrApproval are the arguments of list: none, or approval behind --waiting.
func noWorkOrApproval(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("waiting") && slices.Equal(args, []string{"approval"}) {
		return nil
	}
	return noWork(cmd, args)
}

func (a *app) listApprovals(cmd *cobra.Command) error {
	return a.with(cmd.Context(), func(s store) error {
		items := []approvalJSON{}
		var all []coordinator.Approval
		g := grid{header: []string{"saga", "work", "step", "by", "approved", "since", "until"}}
		for p, err := range coordinator.NewOperator(s).Approvals(cmd.Context()) {
			if err != nil {
				return err
			}
			j := approvalToJSON(&p)
			items, all = append(items, j), append(all, p)
			approved := 0
			for _, v := range p.Votes {
				if v.Approve {
					approved++
				}
			}
			g.add(j.Saga, j.WorkID, j.Step, strings.Join(j.Roles, ", "), fmt.Sprintf("%d of %d", approved, j.Needed), a.when(p.Since), a.when(p.Until))
		}
		switch {
		case a.json:
			return a.printJSON(listOf[approvalJSON]{items})
		case len(items) == 0:
			a.sayf("nothing waits for a decision")
		case a.output == "ids":
			for i := range all {
				a.printID(all[i].ID, all[i].Run)
			}
		default:
			a.print(&g)
			a.sayf("to look at one, and decide: amends approve WORK, or amends reject WORK")
		}
		return nil
	})
}
