package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What people say to works.

const orderHelp = `It is stored as a signal, with who said it and why, and applied by the coordinator that holds or takes up the
work: within about a second when one runs, otherwise when one is started. With --wait the command waits for
that, prints where the work stands then, and ends with 7 if the time runs out; the signal stays queued.`

const severalHelp = orderHelp + `

Several works can be named; "-" reads them from standard input, a line each, as "amends list -o ids" prints them: with the run that
was listed, and nothing is said to a work that is at another run by then. Then each
has a line of its own, what is refused has it on stderr and keeps no other from being done, and the command ends with the
status of the first that was refused, or with 0. With -o json it is "items", one for each work.`

// order is a verb that says something to works: the act of its name.
type order struct{ use, short, long, example string }

func (o order) on(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: o.use, Short: o.short, Long: o.long + "\n\n" + severalHelp, Example: o.example, Args: someWorks}
	kind := desk.KindOf(cmd.Name())
	act := kind.New()
	if kind.One {
		cmd.Long, cmd.Args = o.long+"\n\n"+orderHelp, oneWork
	}
	bind(cmd.Flags(), act)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.order(cmd, act, args, kind.One, "try: "+cmd.CommandPath()+" --help")
	}
	return cmd
}

// order says an act to the works that are named.
func (a *app) order(cmd *cobra.Command, act desk.Act, args []string, one bool, hint string) error {
	a.prepare(cmd, act)
	wrong := desk.Faults(act)
	if r, is := act.(*desk.Rerun); is && r.Run != "" && (len(args) > 1 || isStdin(cmd, args, 0)) {
		wrong = append(wrong, "--run is of one work; standard input has a run for each")
	}
	if _, is := act.(*desk.Resolve); is && len(args) == 1 {
		hint = program.Command("show", args[0], "") + " prints the commands to choose from"
	}
	if len(wrong) > 0 {
		return usage(hint, wrong...)
	}
	if one {
		desk.About(act).Work = args[0]
		return a.at(cmd.Context(), func(d *desk.Desk) error { return a.sayTo(cmd.Context(), d, act) })
	}
	works, err := worksOf(cmd, desk.About(act).Saga, args)
	if err != nil {
		return err
	}
	if r, is := act.(*desk.Rerun); is && r.Request == "" {
		for i := range works {
			if w := &works[i]; w.run == "" && w.listed {
				return usage("amends list -o ids prints the run", "say which run of "+quote(w.Work)+" is to be done again (--run), or name the request (--request): what comes twice would be done twice")
			}
		}
	}
	return a.at(cmd.Context(), func(d *desk.Desk) error {
		if len(args) == 1 && !isStdin(cmd, args, 0) && !a.json {
			works[0].of(act)
			return a.sayTo(cmd.Context(), d, act)
		}
		return a.sayToAll(cmd.Context(), d, act, works)
	})
}

// sayTo says an act to one work, and tells what comes of it.
func (a *app) sayTo(ctx context.Context, d *desk.Desk, act desk.Act) error {
	wait := desk.About(act).Wait
	until := time.Now().Add(time.Duration(wait))
	out, err := d.Say(ctx, act)
	if err != nil {
		return err
	}
	if !a.json {
		a.printOrder(out)
	}
	end := d.Learn(ctx, out, wait, until)
	switch {
	case a.json:
		return errors.Join(a.printJSON(out), end)
	case end == nil:
		a.printOutcome(out)
	}
	return end
}

func (a *app) printOrder(out *desk.Outcome) {
	s := &out.Signal
	what, said := s.Said()
	a.fields("work", out.WorkID, "saga", out.Saga, "stands at", out.Stood, what, said, "said by", s.Actor+": "+s.Reason)
	for i, p := range out.Plan {
		a.fields([]string{"then", ""}[min(i, 1)], p)
	}
	for _, first := range out.First {
		a.fields("beware", "posted before and not yet read, so it comes first: "+first)
	}
}

func (a *app) printOutcome(out *desk.Outcome) {
	fmt.Fprintln(a.out)
	switch words := out.Words(); {
	case out.DryRun:
		a.paragraph("", words)
	case out.Applied:
		a.paragraphs("", words, out.Next)
	default:
		a.paragraph("", words+" To see what came of it:")
		a.paragraph("  ", out.Show)
	}
}

// sayToAll says an act to every work that is named, and tells what comes of each.
func (a *app) sayToAll(ctx context.Context, d *desk.Desk, act desk.Act, works []listed) error {
	if len(works) == 0 {
		a.sayf("no work is named: standard input is empty, and nothing was stored")
	}
	all := make([]desk.Of, len(works))
	for i := range works {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		works[i].of(act)
		out, err := d.Say(ctx, act)
		if all[i] = (desk.Of{WorkID: works[i].Work, Outcome: out}); out == nil || !out.Awaited(act) {
			a.line(ctx, &all[i], err)
		}
	}
	wait := desk.About(act).Wait
	for until, i := time.Now().Add(time.Duration(wait)), 0; i < len(all); i++ { // together they wait for as long as one
		if out := all[i].Outcome; out != nil && out.Awaited(act) {
			a.line(ctx, &all[i], d.Learn(ctx, out, wait, until))
		}
	}
	return a.ends(all)
}

// line tells what became of one of several works.
func (a *app) line(ctx context.Context, one *desk.Of, err error) {
	if err != nil {
		one.Error = a.classify(ctx, err).Told()
	}
	switch {
	case a.json:
	case err != nil:
		fmt.Fprintf(a.err, "amends: %s: %s\n", visible(one.WorkID), oneLine(one.Error.Message))
	default:
		words := one.Outcome.Words()
		if one.DryRun {
			words += " What would follow: " + strings.Join(one.Plan, "; ")
		}
		fmt.Fprintln(a.out, visible(fmt.Sprintf("%s (%s): %s", one.WorkID, one.Saga, words)))
	}
}

// ends sums up what became of several works.
func (a *app) ends(all []desk.Of) error {
	if a.json {
		if err := a.printJSON(desk.All[desk.Of]{Items: all}); err != nil {
			return err
		}
	}
	wrong := slices.DeleteFunc(slices.Clone(all), func(one desk.Of) bool { return one.Error == nil })
	if len(wrong) == 0 {
		return nil
	}
	return &desk.Failure{Code: wrong[0].Error.Code, What: fmt.Sprintf("%d of %s not done", len(wrong), finding.Count(len(all), "work")), Next: "each says why"}
}

// someWorks are the arguments of a verb that takes several works.
func someWorks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("try: "+cmd.CommandPath()+" --help", "name the work: "+cmd.CommandPath()+" WORK…, or - to read ids from standard input")
	}
	return worksSaid(cmd, args)
}

// listed is a work as it is named on a command line, or by a list.
type listed struct {
	desk.Which

	run    string // that was listed; "": it is not said
	listed bool   // on standard input
}

func (l *listed) of(act desk.Act) {
	if r, is := act.(*desk.Rerun); is && r.Run != "" {
		l.run = r.Run
	}
	desk.About(act).Is(l.Which, l.run)
}

// isStdin reports whether an argument stands for standard input: behind "--" it is a name.
func isStdin(cmd *cobra.Command, args []string, i int) bool {
	dash := cmd.Flags().ArgsLenAtDash()
	return args[i] == "-" && (dash < 0 || i < dash)
}

// worksOf are the works that the arguments and the lines of standard input name, each once.
func worksOf(cmd *cobra.Command, sagaName string, args []string) (works []listed, err error) {
	for i, arg := range args {
		texts, isList := []string{arg}, isStdin(cmd, args, i)
		if isList {
			if texts, err = linesOf(cmd.InOrStdin()); err != nil {
				return nil, errors.Join(errors.New("read the works from standard input"), err)
			}
		}
		for _, text := range texts {
			one, err := workOf(text, sagaName)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(works, func(w listed) bool { return w.Which == one.Which && w.run == one.run }) {
				one.listed = isList
				works = append(works, one)
			}
		}
	}
	return works, nil
}

// workOf reads a work as "amends list -o ids" prints it, with its saga and its run behind tabs, or with the saga or nothing alone.
func workOf(text, sagaName string) (listed, error) {
	one := listed{Which: desk.Which{Saga: sagaName}}
	parts := strings.Split(text, "\t")
	n := len(parts)
	if n > 2 { // an id may have tabs, too
		parts = []string{strings.Join(parts[:n-2], "\t"), parts[n-2], parts[n-1]}
		one.run = parts[2]
	}
	if one.Work = parts[0]; n == 1 {
		return one, said("the work id", one.Work)
	}
	one.Saga = parts[1]
	return one, errors.Join(said(fmt.Sprintf("the work id of %q", text), one.Work), said(fmt.Sprintf("the saga of %q", text), parts[1]), said(fmt.Sprintf("the run of %q", text), parts[2:]...))
}

// linesOf are the lines of r that are not empty.
func linesOf(r io.Reader) (texts []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if text := strings.TrimRight(lines.Text(), "\r"); text != "" {
			texts = append(texts, text)
		}
	}
	return texts, lines.Err()
}

var retryVerb = order{
	use:   "retry WORK... --reason WHY [flags]",
	short: "Try the step at issue again, under the key it has",
	long: `Try the step at issue again, or its undo: now, under the idempotency key it has, with a fresh retry policy.
Mend first what made it fail. While its destination is paused or fails it waits all the same. It is safe: what may
have happened is asked for, or sent under the key by which its destination knows it. It is refused for a step that cannot
be asked for (a mail) and may have happened: look, and say so with resolve or skip.`,
	example: `  amends retry shop:order:10492 --reason "the mailbox exists now" --wait 30s
  amends retry shop:order:10492 --reason "the mailbox exists now" --dry-run
  amends list --reason exhausted -o ids | amends retry - --reason "the books are back"`,
}

var resolveVerb = order{
	use:   "resolve WORK (--step STEP (--happened ID | --happened-without-id | --did-not-happen) | --keep) --reason WHY [flags]",
	short: "Decide on a step in review: it happened, or it did not",
	long: `Decide on the step a review is about. Look at its destination first, by the step's key or the work id ("amends
show" prints both): "it did not happen" lets it be done again, under a new key, and if it had happened after
all there are two.

A step that is "unconfirmed" (after a rebuild it counts as done because it could not be told) can be decided on at any
time, also when the work is completed.

--result says what later steps find of what happened. It can be given later, too, to a step that is done and whose result was too large to be
kept: then retry the step that asked for it.

When the review is about the undo of a step, the resolution is about the undo: it happened means it is undone.

A work is in review for a conflict when its source cancelled it and nothing says how a step that stands is
undone. Make that step good by hand and say so (--happened-without-id): the other steps are then undone. Or
leave everything as it is: --keep.`,
	example: `  amends resolve shop:order:10492 --step receipt --happened mail_77 --reason "it is in the outbox" --wait 30s
  amends resolve shop:order:10492 --step receipt --did-not-happen --reason "the mail server's log is empty"
  amends resolve shop:order:10492 --step invoice --happened-without-id --reason "voided by hand" --dry-run
  amends resolve shop:order:10492 --keep --reason "the customer wants it after all"`,
}

var skipVerb = order{
	use:   "skip WORK... --reason WHY [--result JSON] [--external-id ID] [--no-result] [flags]",
	short: "Say that the step at issue did not happen and will not, and go on without it",
	long: `Say that the step at issue did not happen and will not, and let the work go on without it. The work is in review, or
paused. Look at the destination first, by the step's key or the work id. Nothing of the step is undone later, but
for what may still arrive of it; a newer version of the source does it again.

Where steps come behind it, say what they find of it: --result (what the action would have returned) or
--external-id, or both; or --no-result. A later step that asks for what is not there goes to review, and the result can be
given then: skip the step once more, with --step, and retry the later one.

Of an undo that was refused it says that what the step made cannot be undone, and stands: the way back goes on without it.

Where people said no behind the pivot it leaves it at that: nothing behind the decision is done, nothing is undone, and the work ends.`,
	example: `  amends skip shop:order:10492 --reason "the customer has no mailbox" --wait 30s
  amends skip shop:order:10492 --step invoice --external-id inv_77 --reason "the old system made it"
  amends skip shop:order:10492 --no-result --reason "nothing later reads it" --dry-run`,
}

var wakeVerb = order{
	use:   "wake WORK... --reason WHY [flags]",
	short: "End the wait of a work for a time: it goes on now",
	long: `End the wait that a work is in, for a delay, for a day that its saga says, or for the time of its start: it goes on now.
Who did so, and why, is in its history. What is paused goes on first: resume.`,
	example: `  amends list --status waiting                   # what waits, and until when
  amends wake booking:4711 --reason "the customer does not want to wait" --wait 30s`,
}

var completeVerb = order{
	use:   "complete WORK... --body TEXT --reason WHY [flags]",
	short: "Answer by hand what a work waits for",
	long: `Answer by hand what a work waits for, as if the body had come from outside. The program that has the saga reads it: what it
declines is in the history, and the work waits on.`,
	example: `  amends complete job:4711 --body '{"id":"film_9"}' --reason "the partner's console shows it finished" --wait 30s`,
}

var failedVerb = order{
	use:   "fail WORK... --reason WHY [flags]",
	short: "Say by hand that what a work waits for has failed",
	long: `Say by hand that what a work waits for has failed, and that nothing of it stands. Before its pivot the work is undone then;
behind it a person is asked.`,
	example: `  amends fail job:4711 --reason "the partner has no such job" --wait 30s`,
}

var extendVerb = order{
	use:   "extend WORK... --by DURATION --reason WHY [flags]",
	short: "Have works wait longer for their answers, or for a decision",
	long: `Have works wait for their answers until so long from now, also those that are in review because none came: for when the other side
is down.`,
	example: `  amends list --waiting -o ids | amends extend - --by 24h --reason "the partner is down until tomorrow"`,
}

var cancelVerb = order{
	use:   "cancel WORK --reason WHY [flags]",
	short: "Give a work up: undo what it has done",
	long: `Give a work up. Nothing more is done forward, and what it has done is undone, newest step first. Once the pivot
may have happened there is no way back, and the order is refused; while a request is under way it is stored, and
refused on record if that was the pivot's. --dry-run lists what would be undone.`,
	example: `  amends cancel shop:order:10492 --reason "the customer called" --dry-run
  amends cancel shop:order:10492 --reason "the customer called" --wait 30s`,
}

var undoVerb = order{
	use:   "undo WORK --reason WHY [flags]",
	short: "Undo what a work has done that is completed",
	long: `Undo what a completed work has done, newest step first, as its definition says of each step: an undo, or the reason why it
needs none. Behind the pivot it needs --behind-pivot, because that was to stay. --dry-run lists what would be undone.

It can be run again then (rerun), and a newer version of its source runs it as ever. What has not ended is given up: cancel.`,
	example: `  amends undo shop:order:10492 --reason "the customer never ordered it" --dry-run
  amends undo shop:order:10492 --reason "the customer never ordered it" --wait 30s`,
}

var rerunVerb = order{
	use:   "rerun WORK... --reason WHY [flags]",
	short: "Run a work again that was undone, given up or completed",
	long: `Run a work again, at the version of the source that it has, under a revision of its own (17+1): one that was undone
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
run, a request or (by HTTP) an Idempotency-Key has to be said, because such requests are repeated.`,
	example: `  amends rerun shop:order:10492 --reason "the books know the customer now" --wait 30s
  amends rerun shop:order:10492 --reason "the books know the customer now" --dry-run
  amends list --status compensated --prefix shop:order:104 -o ids | amends rerun - --request INC-77 --reason "INC-77 turned them back"`,
}

const scopeHelp = `Without a WORK it speaks of more at once: --destination NAME of what wants one, --saga NAME of a saga's works, --all of
everything. That is kept in the ledger, and every process obeys it at its send gate within about a second. What waits there
takes every word of a person all the same.`

// heldIn is an act on works, or on a scope.
type heldIn struct {
	desk.Order
	Destination string `flag:"destination" doc:"instead of WORK: all that wants this destination"`
	All         bool   `flag:"all" doc:"instead of WORK: everything"`
}

var pauseVerb = scoped{
	use:   "pause (WORK... | --destination NAME | --saga NAME | --all) --reason WHY [flags]",
	short: "Hold a work where it is, or a destination, a saga or everything, until it is resumed",
	long: `Hold a work where it is, going forward or back: nothing is sent and nothing undone. An attempt that is under way is
answered first, and a late answer lands. What its source says meanwhile is heard, and waits. "amends list --status
paused" names what is held, and show says who holds it and why. It ends with resume, and with every word that a review
takes: retry, skip, resolve, cancel.`,
	example: `  amends pause --destination books --reason "they are being moved"
  amends pause shop:order:10492 --reason "the customer disputes it" --wait 30s
  amends list --prefix shop:order:104 --status retrying -o ids | amends pause - --reason "INC-77"`,
	do: (*desk.Desk).Hold,
}

var resumeVerb = scoped{
	use:   "resume (WORK... | --destination NAME | --saga NAME | --all) --reason WHY [flags]",
	short: "Let what was paused go on where it was",
	long: `Let a paused work go on where it was, forward or back, or one that is in review because its deadline has passed: it goes
on without one.`,
	example: `  amends resume --destination books --reason "they are back"
  amends resume shop:order:10492 --reason "the dispute is settled" --wait 30s
  amends list --status paused -o ids | amends resume - --reason "INC-77 is over"`,
	do: (*desk.Desk).Release,
}

// scoped is a verb that takes works, or a scope.
type scoped struct {
	use, short, long, example string

	do func(*desk.Desk, context.Context, *desk.ScopeIn) (*desk.Scoped, error)
}

func (s scoped) on(a *app) *cobra.Command {
	in := new(heldIn)
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long + "\n\n" + scopeHelp + "\n\n" + severalHelp, Example: s.example, Args: worksSaid}
	bind(cmd.Flags(), in)
	cmd.Flags().Lookup("saga").Usage = "the saga, where several know the work id; without WORK all its works"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.prepare(cmd, in)
		scope := desk.Scope{Destination: in.Destination, Saga: in.Saga, All: in.All}
		act := desk.KindOf(cmd.Name()).New()
		*desk.About(act) = in.Order
		wrong := append(desk.Faults(act), named(cmd, &scope, args, "WORK… (or - to read ids from standard input)")...)
		if len(args) == 0 && len(wrong) == 0 {
			if in.Wait > 0 {
				wrong = append(wrong, "--wait is for works: what is paused or resumed as a whole is obeyed within about a second")
			}
			if in.Seen != 0 {
				wrong = append(wrong, "--seen is for works")
			}
		}
		hint := "try: " + cmd.CommandPath() + " --help"
		if len(wrong) > 0 {
			return usage(hint, wrong...)
		}
		if len(args) > 0 {
			return a.order(cmd, act, args, false, hint)
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error {
			of := &desk.ScopeIn{By: in.By, Scope: scope, DryRun: in.DryRun}
			out, err := s.do(d, cmd.Context(), of)
			if err != nil {
				return err
			}
			return a.tell(out, func() { a.printScoped(of, out) })
		})
	}
	return cmd
}

func (a *app) printScoped(in *desk.ScopeIn, out *desk.Scoped) {
	verb, then := machine.VerbResume, "it goes on where it was, but for what another pause holds"
	if out.Pause {
		verb, then = machine.VerbPause, "nothing of it is sent and nothing undone until it is resumed; an attempt that is under way is answered"
	}
	stood := "not paused"
	if out.Before != nil {
		stood = out.Before.Words()
	}
	waiting := ""
	if out.Waiting > 0 {
		waiting = finding.Works(out.Waiting) + " in the ledger"
	}
	a.fields("scope", out.Scope, "stands at", stood, "waiting", waiting, "order", verb, "said by", in.Actor+": "+in.Reason, "then", then)
	for _, words := range out.Beware {
		a.fields("beware", words)
	}
	fmt.Fprintln(a.out)
	switch {
	case out.DryRun:
		a.paragraph("", "Dry run: nothing was stored.")
	case out.Pause:
		a.paragraph("", "Stored. Every process obeys it within about a second. It ends with:")
		a.paragraph("  ", out.Ends)
	default:
		a.paragraph("", "Stored. Every process obeys it within about a second.")
	}
}

// What a person decides. Who has the database votes as an admin, and the history says so.

var (
	approveVerb = deciding{true, "Look at what a work wants approved, and approve of it"}
	rejectVerb  = deciding{false, "Look at what a work wants approved, and reject it"}
)

// deciding is a verb that votes.
type deciding struct {
	approve bool
	short   string
}

func (v deciding) on(a *app) *cobra.Command {
	vote := &desk.Vote{Approve: v.approve}
	verb := vote.Verb()
	cmd := &cobra.Command{
		Use: verb + " WORK [--shown DIGEST --reason WHY] [flags]", Args: oneWork,
		Short: v.short,
		Long: `Without --shown it shows what is to be decided, and the votes so far, and stores nothing. The last line is the command that
votes on just that: when it has changed by then, the vote does not count, and the command says so.

You vote with the role "admin", which may vote on everything, for you have the database, or with those that --role says; the history says
so. Your vote counts once, and not where you started the work and the approval is not the starter's.

` + orderHelp,
		Example: "  amends approvals\n  amends " + verb + " shop:order:10492",
	}
	bind(cmd.Flags(), vote)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if vote.Shown != "" {
			return a.order(cmd, vote, args, true, "try: amends "+verb+" --help")
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error {
			in := &desk.ApprovalIn{Which: desk.Which{Work: args[0], Saga: vote.Saga}, Step: vote.Step}
			return read(a, d.Approval, cmd.Context(), in, func(p *desk.Approval) { a.printApproval(p, verb) })
		})
	}
	return cmd
}

// printAbout writes what an approval says about itself.
func (a *app) printAbout(p *saga.About) {
	if p == nil {
		return
	}
	a.fields("title", p.Title, "amount", p.Amount, "link", p.Link)
	for _, f := range p.Fields {
		a.fields("field", f.Name+": "+f.Value)
	}
}

func (a *app) printApproval(p *desk.Approval, verb string) {
	a.printAbout(p.About)
	a.fields("work", p.WorkID, "saga", p.Saga, "step", p.Step,
		"by", fmt.Sprintf("%d of %s; one who rejects decides", p.Needed, strings.Join(p.Roles, ", ")),
		"since", a.both(desk.At(p.Since)), "until", a.both(desk.At(p.Until))+"; without a decision it is rejected")
	for i := range p.Votes {
		v, says := &p.Votes[i], "rejects"
		if v.Approve {
			says = "approves"
		}
		a.fields("vote", fmt.Sprintf("%s (%s) %s: %s", v.By, strings.Join(v.Roles, ", "), says, v.Reason))
	}
	var doc bytes.Buffer
	_ = json.Indent(&doc, p.Shown, "", "  ") // it is JSON
	fmt.Fprintln(a.out, "\nto be decided:")
	for line := range strings.Lines(doc.String()) {
		fmt.Fprintln(a.out, "  "+visible(strings.TrimRight(line, "\n")))
	}
	if p.Outcome != "" {
		a.sayf("it is decided: %s", p.Outcome)
		return
	}
	fmt.Fprintf(a.out, "\nnothing was stored. To %s just this, as an admin:\n  amends %s %s --saga %s --step %s%s --shown %s --reason \"why\"\n",
		verb, verb, quote(p.WorkID), quote(p.Saga), quote(p.Step), dbFlag(a.db), p.Digest)
}

var approvalsVerb = verb[desk.Nothing, desk.All[desk.Approval]]{
	use: "approvals [flags]", args: noWork,
	short: "List what waits for people to decide, oldest first",
	long: `List what waits for people to decide, oldest first: who may vote by now, how many have approved, and until when. What is in review or
paused is decided all the same: amends approve WORK shows it.`,
	example: "  amends approvals\n  amends list --waiting approval                 # the same",
	do:      (*desk.Desk).Approvals, print: (*app).printApprovals,
	none: "nothing waits for a decision", columns: "saga=Saga, work=WorkID, step=Step, by=Roles, approved=Stands, since=Since, until=Until",
}

func (a *app) printApprovals(_ *desk.Nothing, all *desk.All[desk.Approval]) {
	if len(all.Items) > 0 && a.output != "ids" {
		a.sayf("to look at one, and decide: amends approve WORK, or amends reject WORK")
	}
}

var deliverVerb = verb[desk.DeliverIn, desk.Delivered]{
	use: "deliver NAME KEY --id ID [--body TEXT]", args: messageSaid,
	short: "Bring a message to the works that wait for it",
	long: `Bring a message to the works that wait for its name and key. One that nothing waits for yet is kept for 30 days. A message that comes
again, by its id, is one.`,
	example: `  amends deliver render.done 10492 --id evt_7 --body '{"id":"film_9"}'`,
	do:      (*desk.Desk).Deliver, print: (*app).printDelivered,
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

func (a *app) printDelivered(_ *desk.DeliverIn, out *desk.Delivered) {
	if len(out.Works) == 0 {
		a.sayf("received %s; nothing that waits has it now: it is kept for what does later, or was delivered before", finding.ISO(desk.At(out.At)))
	}
	for _, id := range out.Works {
		fmt.Fprintf(a.out, "delivered to %s %s\n", id.Saga, id.Work)
	}
}
