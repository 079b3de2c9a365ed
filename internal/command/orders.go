package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What people say to works.

// order is a verb that says something to works: the act of its name.
type order string

func (o order) on(a *app) *cobra.Command {
	kind := desk.KindOf(string(o))
	cmd, act := &cobra.Command{Use: kind.Verb, Args: theWorks.named(1, many)}, kind.New()
	if kind.One {
		cmd.Args = theWork.named(1, 1)
	}
	bind(cmd.Flags(), act)
	var all desk.Many
	if slices.Contains(coordinator.BatchVerbs, kind.Verb) {
		bind(cmd.Flags(), &all)
		cmd.Args = orFilter(cmd.Args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.prepare(cmd, act)
		if len(all.Filter) > 0 {
			return a.at(cmd.Context(), func(d *desk.Desk) error { return a.sayToMany(cmd.Context(), d, kind.Verb, act, all) })
		}
		works, err := a.meant(act, kind.One)
		if err != nil {
			return err
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error { return a.say(cmd.Context(), d, act, works, kind.One) })
	}
	return cmd
}

// orFilter takes no works where a filter selects them.
func orFilter(works cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch filtered := cmd.Flags().Changed("filter"); {
		case filtered && len(args) > 0:
			return usage("try: "+cmd.CommandPath()+" --help", "name works, or say --filter")
		case filtered:
			return nil
		}
		for _, name := range []string{"rate", "max", "stop-after"} {
			if cmd.Flags().Changed(name) {
				return usage("try: "+cmd.CommandPath()+" --help", "--"+name+" goes with --filter")
			}
		}
		return works(cmd, args)
	}
}

// sayToMany says an act to all that a filter selects, and tells what follows.
func (a *app) sayToMany(ctx context.Context, d *desk.Desk, verb string, act desk.Act, many desk.Many) error {
	in, err := desk.BatchOf(verb, act, many)
	if err != nil {
		return err
	}
	p, err := d.Batch(ctx, in)
	if err != nil {
		return err
	}
	return a.tell(p, func() { a.printBatchPlan(in, p) })
}

func (a *app) printBatchPlan(in *desk.BatchIn, p *desk.BatchPlan) {
	a.fields("order", in.Act, "said by", in.Actor+": "+in.Reason, "matched", desk.Counted(p.Matched, "work", "works"), "takes it", desk.Counted(p.Takes, "work", "works"))
	for i := range p.Groups {
		g := &p.Groups[i]
		a.fields(desk.Either(g.Takes, "then", "left"), fmt.Sprintf("%d: %s (such as %s)", g.Count, g.Then, strings.Join(g.Sample, ", ")))
	}
	switch {
	case p.DryRun:
		a.then("Dry run: nothing was stored.")
	case p.Batch == "":
		a.then("Nothing was stored: none takes it.")
	default:
		a.then(fmt.Sprintf("Stored as %s, and said to at most %d a second by a process that runs sagas here. What becomes of it:", p.Batch, in.Rate))
		a.paragraph("  ", "amends batch "+p.Batch+dbFlag(a.db))
	}
}

var batchVerb = plain("batch", thing{kind: "batch", written: "BATCH", empty: "the batch"}.named(1, 1), (*desk.Desk).ShowBatch, (*app).printBatch)

func (a *app) printBatch(_ *desk.WhichBatch, b *desk.BatchShown) {
	a.fields("batch", b.Batch, "order", b.Act, "said by", b.Actor+": "+b.Reason, "status", string(b.Status))
	for _, outcome := range slices.Sorted(maps.Keys(b.Outcome)) {
		a.fields(outcome, desk.Counted(b.Outcome[outcome], "work", "works"))
	}
	if b.Result != nil && b.Result.Stopped != "" {
		a.fields("stopped", b.Result.Stopped)
	}
	for i := range b.Items {
		it := &b.Items[i]
		a.fields("work", fmt.Sprintf("%s (%s): %s; it is %s%s", it.WorkID, it.Saga, it.Outcome, it.Status, desk.With(": ", string(it.ReviewReason)))+desk.With("; ", it.Answer))
	}
}

// meant are the works that a command line says an act to, which may be one alone.
func (a *app) meant(act desk.Act, one bool) ([]listed, error) {
	args, about, wrong := a.cmd.Flags().Args(), desk.About(act), desk.Faults(act)
	rerun, _ := act.(*desk.Rerun)
	wrong.If(rerun != nil && rerun.Run != "" && (len(args) > 1 || isStdin(a.cmd, args, 0)), "--run is of one work; standard input has a run for each")
	hint := "try: " + a.cmd.CommandPath() + " --help"
	if _, is := act.(*desk.Resolve); is {
		hint = program.Command("show", args[0], "") + " prints the commands to choose from"
	}
	switch {
	case len(wrong) > 0:
		return nil, usage(hint, wrong...)
	case one:
		return []listed{{Which: desk.Which{Work: args[0], Saga: about.Saga}}}, nil
	}
	works, err := worksOf(a.cmd, about.Saga, args)
	for i := range works {
		if w := &works[i]; rerun != nil && rerun.Request == "" && w.run == "" && w.listed {
			return nil, usage("amends list -o ids prints the run", "say which run of "+quote(w.Work)+" is to be done again (--run), or name the request (--request): what comes twice would be done twice")
		}
	}
	return works, err
}

// say says an act to works, and tells what comes of it: of one in full, of several in a line each.
func (a *app) say(ctx context.Context, d *desk.Desk, act desk.Act, works []listed, one bool) error {
	if args := a.cmd.Flags().Args(); one || len(args) == 1 && !isStdin(a.cmd, args, 0) && !a.json {
		works[0].of(act)
		return a.sayTo(ctx, d, act)
	}
	return a.sayToAll(ctx, d, act, works)
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
	switch words := out.Words(); {
	case out.DryRun:
		a.then(words)
	case out.Applied:
		a.then(words, out.Next)
	default:
		a.then(words + " To see what came of it:")
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
		words := one.Outcome.Words() + desk.When(one.DryRun, " What would follow: "+strings.Join(one.Plan, "; "))
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

// heldIn is an act on works, or on a scope.
type heldIn struct {
	desk.Order
	Destination string `flag:"destination" doc:"instead of WORK: all that wants this destination"`
	All         bool   `flag:"all" doc:"instead of WORK: everything"`

	act   desk.Act // on these works; nil: on the scope
	works []listed
	many  desk.Many // or on all that match
}

func (in *heldIn) scope() *desk.ScopeIn {
	return &desk.ScopeIn{By: in.By, Scope: desk.Scope{Destination: in.Destination, Saga: in.Saga, All: in.All}, DryRun: in.DryRun}
}

// scoped is a verb that takes works, or a scope, and what it does to that.
func scoped(name string, do func(*desk.Desk, context.Context, *desk.ScopeIn) (*desk.Scoped, error)) maker {
	v := verb[heldIn, desk.Scoped]{name: name, args: theWork.named(0, many), print: (*app).printScoped}
	v.usage = map[string]string{"saga": "the saga, where several know the work id; without WORK all its works"}
	if slices.Contains(coordinator.BatchVerbs, name) {
		v.args = orFilter(v.args)
		v.flags = func(fl *pflag.FlagSet, in *heldIn) { bind(fl, &in.many) }
	}
	v.check = func(a *app, in *heldIn) (err error) {
		if len(in.many.Filter) > 0 {
			var wrong desk.Wrong
			wrong.If(in.All || in.Destination != "", "--all and --destination are scopes: say them, or --filter")
			return usage("try: "+a.cmd.CommandPath()+" --help", wrong...)
		}
		act := desk.KindOf(name).New()
		*desk.About(act) = in.Order
		wrong := append(desk.Faults(act), named(a.cmd, &in.scope().Scope, "WORK… (or - to read ids from standard input)")...)
		if len(wrong) == 0 && a.cmd.Flags().NArg() > 0 {
			in.act = act
			in.works, err = a.meant(act, false)
			return err
		}
		if len(wrong) == 0 {
			wrong.If(in.Wait > 0, "--wait is for works: what is paused or resumed as a whole is obeyed within about a second")
			wrong.If(in.Seen != 0, "--seen is for works")
		}
		return usage("try: "+a.cmd.CommandPath()+" --help", wrong...)
	}
	v.by = func(a *app, d *desk.Desk, ctx context.Context, in *heldIn) (*desk.Scoped, error) {
		if len(in.many.Filter) > 0 {
			act := desk.KindOf(name).New()
			*desk.About(act) = in.Order
			return nil, a.sayToMany(ctx, d, name, act, in.many)
		}
		if in.act != nil {
			return nil, a.say(ctx, d, in.act, in.works, false)
		}
		return do(d, ctx, in.scope())
	}
	return v
}

func (a *app) printScoped(in *heldIn, out *desk.Scoped) {
	verb := desk.Either(out.Pause, machine.VerbPause, machine.VerbResume)
	then := desk.Either(out.Pause, "nothing of it is sent and nothing undone until it is resumed; an attempt that is under way is answered",
		"it goes on where it was, but for what another pause holds")
	a.fields("scope", out.Scope, "stands at", out.Before.Words(), "waiting", desk.When(out.Waiting > 0, finding.Works(out.Waiting)+" in the ledger"), "order", verb, "said by", in.Actor+": "+in.Reason, "then", then)
	for _, words := range out.Beware {
		a.fields("beware", words)
	}
	switch {
	case out.DryRun:
		a.then("Dry run: nothing was stored.")
	case out.Pause:
		a.then("Stored. Every process obeys it within about a second. It ends with:")
		a.paragraph("  ", out.Ends)
	default:
		a.then("Stored. Every process obeys it within about a second.")
	}
}

// What a person decides. Who has the database votes as an admin, and the history says so.

// deciding is a verb that votes.
func deciding(name string) maker {
	return verb[desk.Vote, desk.Approval]{
		name: name, args: theWork.named(1, 1),
		check: func(_ *app, in *desk.Vote) error {
			if in.Approve = name == machine.VerbApprove; in.Shown == "" {
				return nil
			}
			return usage("try: amends "+name+" --help", desk.Faults(in)...)
		},
		by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.Vote) (*desk.Approval, error) {
			if in.Shown != "" {
				return nil, a.sayTo(ctx, d, in)
			}
			return d.Approval(ctx, &desk.ApprovalIn{Which: in.Which, Step: in.Step})
		},
		print: (*app).printApproval,
	}
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

func (a *app) printApproval(in *desk.Vote, p *desk.Approval) {
	a.printAbout(p.About)
	a.fields("work", p.WorkID, "saga", p.Saga, "step", p.Step,
		"by", fmt.Sprintf("%d of %s; one who rejects decides", p.VotesNeeded, strings.Join(p.Roles, ", ")),
		"since", a.both(desk.At(p.Since)), "until", a.both(desk.At(p.Until))+"; without a decision it is rejected")
	for i := range p.Votes {
		v := &p.Votes[i]
		a.fields("vote", fmt.Sprintf("%s (%s) %s: %s", v.By, strings.Join(v.Roles, ", "), desk.Either(v.Approve, "approves", "rejects"), v.Reason))
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
		in.Verb(), in.Verb(), quote(p.WorkID), quote(p.Saga), quote(p.Step), dbFlag(a.db), p.Digest)
}

var approvalsVerb = verb[desk.Nothing, desk.All[desk.Approval]]{
	name: "approvals", args: noWork, do: (*desk.Desk).Approvals, print: (*app).printApprovals,
	none: "nothing waits for a decision", columns: "saga=Saga, work=WorkID, step=Step, by=Roles, approved=Stands, since=Since, until=Until",
}

func (a *app) printApprovals(_ *desk.Nothing, all *desk.All[desk.Approval]) {
	if len(all.Items) > 0 && a.output != "ids" {
		a.sayf("to look at one, and decide: amends approve WORK, or amends reject WORK")
	}
}

// messageSaid refuses what does not name a message.
func messageSaid(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usage("try: amends deliver --help", "say the name of the message and its key: amends deliver NAME KEY --id ID")
	}
	return cmp.Or(said("the name of the message", args[0]), said("the key of the message", args[1]))
}

func (a *app) printDelivered(_ *desk.DeliverIn, out *desk.Delivered) {
	if len(out.Works) == 0 {
		a.sayf("received %s; nothing that waits has it now: it is kept for what does later, or was delivered before", finding.ISO(desk.At(out.At)))
	}
	for _, id := range out.Works {
		fmt.Fprintf(a.out, "delivered to %s %s\n", id.Saga, id.WorkID)
	}
}
