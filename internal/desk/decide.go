package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
)

// What people decide on what a job found.

// mostDecided is how many decisions are stored at once: meanwhile no other act is. mostFound is how many findings are read at once.
const (
	mostDecided = 50
	mostFound   = 1000
)

// DecideIn decides on findings of a job: on that about one key, or on all of a class.
type DecideIn struct {
	Verdict string `path:"verdict" flag:"-"`
	RequestIn
	Key      string `json:"key,omitempty" flag:"-" doc:"the finding about this key"`
	Class    string `json:"class,omitempty" doc:"without KEY: all findings of this class that nothing is decided on"`
	Finding  string `json:"finding,omitempty" doc:"only if it is still the finding that you saw, as --dry-run and drift list -o json name it"`
	Document string `json:"document,omitempty" doc:"of keep: the document that stays"`
	Until    string `json:"until,omitempty" doc:"of ignore and accept: until this time, such as 2026-12-24 or 7d"`
	DryRun   bool   `json:"dry-run,omitempty" doc:"say what would happen and store nothing"`

	until time.Time
}

func (in *DecideIn) faults(now time.Time) Wrong {
	v := plan.Verdict(in.Verdict)
	wrong := append(in.RequestIn.faults(), oneOf("verdict", in.Verdict, names(plan.Verdicts))...)
	wrong = append(wrong, aClass(in.Class)...)
	switch {
	case in.Key == "" && in.Class == "":
		wrong = append(wrong, "say on what: KEY, or --class for all findings of one")
	case in.Key != "" && in.Class != "":
		wrong = append(wrong, "say KEY or --class, not both")
	case in.Key == "" && (in.Finding != "" || v == plan.Keep || v == plan.Reopen):
		wrong = append(wrong, "--finding, keep and reopen are for one KEY")
	}
	wrong.If((v == plan.Keep) != (in.Document != ""), "--document says which one stays, and goes with keep alone")
	wrong.If(in.Until != "" && v != plan.Accept && v != plan.Hide || v == plan.Hide && in.Until == "", "--until is said with ignore, and may be with accept")
	until, err := PointInTime(in.Until, now)
	if err != nil {
		wrong = append(wrong, "--until: "+err.Error())
	} else if strings.ContainsAny(in.Until[max(len(in.Until)-1, 0):], "dhms") { // from now on, and not ago
		until = now.Add(now.Sub(until))
	}
	wrong.If(err == nil && in.Until != "" && !until.After(now), "--until lies in the past")
	in.until = until
	return wrong
}

// Decided is what was decided, and what became of it.
type Decided struct {
	Verdict string      `json:"verdict"`
	Items   []DecidedOn `json:"items"`
	Left    int         `json:"left"` // findings of the class that take no such decision
	DryRun  bool        `json:"dryRun"`
	Run     *Run        `json:"run"` // that carries it out; null: nothing is carried out
}

// DecidedOn is a decision on one finding.
type DecidedOn struct {
	Key       string       `json:"key"`
	Verdict   string       `json:"verdict"`
	Class     plan.Class   `json:"class"`
	Finding   string       `json:"finding"` // a digest of what it rests on
	Documents []string     `json:"documents"`
	Then      string       `json:"then"`      // what follows
	Until     *time.Time   `json:"until"`     // null: until what it is on changes
	Actor     string       `json:"actor"`     //
	Reason    string       `json:"reason"`    //
	At        *time.Time   `json:"at"`        // null: in a dry run
	Outcome   plan.Outcome `json:"outcome"`   // "": nothing yet, or nothing is carried out
	Error     string       `json:"error"`     // why it was not carried out
	OutcomeAt *time.Time   `json:"outcomeAt"` // of the outcome
}

func decidedOn(d *plan.Decision) DecidedOn {
	f := &d.Finding
	return DecidedOn{
		Key: f.Key, Verdict: string(d.Verdict), Class: f.Class, Finding: f.Mark(), Documents: append([]string{}, f.Documents...), Then: thenOf(d), Until: utc(d.Until),
		Actor: d.By.Name, Reason: d.By.Reason, At: utc(d.At), Outcome: d.Outcome, Error: d.Error, OutcomeAt: utc(d.Ended),
	}
}

// Became says what became of it.
func (d *DecidedOn) Became() string {
	switch {
	case d.Outcome == plan.Applied:
		return "done"
	case d.Outcome != plan.Pending:
		return joined("not done", d.Error)
	}
	return ""
}

// thenOf says what follows from a decision.
func thenOf(d *plan.Decision) string {
	docs := strings.Join(d.Finding.Documents, ", ")
	until := "until it or its object changes" + When(!d.Until.IsZero(), ", or until "+iso(d.Until))
	switch d.Verdict {
	case plan.Accept:
		if d.Acts() {
			return fmt.Sprintf("%s is adopted as it is, so that it is not made again, and stays so %s", docs, until)
		}
		return "it stays as it is " + until
	case plan.Hide:
		return "it is not shown until " + finding.ISO(d.Until) + ", or until it changes"
	case plan.Remake:
		return "its instance runs once more, and makes it again"
	case plan.Ours:
		return "its instance writes what it should say over " + docs
	case plan.Keep:
		others := slices.DeleteFunc(slices.Clone(d.Finding.Documents), func(id string) bool { return id == d.Keep })
		return fmt.Sprintf("%s stays, and %s is voided", d.Keep, strings.Join(others, ", "))
	case plan.Void:
		return docs + " is undone by its instance, behind its pivot, too, or voided where no instance made it"
	default:
		return "what was decided does not hold any more: the next comparison finds it again"
	}
}

// Decide decides on findings. What is to be carried out a run of the job does, at once.
func (d *Desk) Decide(ctx context.Context, in *DecideIn) (*Decided, error) {
	if err := Usage("try: amends drift "+in.Verdict+" --help", in.faults(d.now())...); err != nil {
		return nil, err
	}
	j, err := d.jobOf(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	ds, left, err := d.toDecide(ctx, in)
	if err != nil {
		return nil, err
	}
	acts := number(ds, (*plan.Decision).Acts) > 0
	if acts && !in.DryRun {
		if _, err := d.runnable(ctx, j.Name); err != nil { // before anything is stored
			return nil, err
		}
	}
	out := &Decided{Verdict: in.Verdict, Items: docs(ds, decidedOn), Left: left, DryRun: in.DryRun}
	if in.DryRun || len(ds) == 0 {
		return out, nil
	}
	for some := range slices.Chunk(ds, mostDecided) {
		if err := d.db.Decide(ctx, j.Name, some); err != nil {
			return nil, err
		}
	}
	if acts {
		if out.Run, err = d.ask(ctx, j.Name, askDecided, &in.RequestIn); out.Run == nil && err != nil {
			return nil, err
		}
	}
	return out, errors.Join(d.became(ctx, in, out), err)
}

// toDecide are the decisions that are meant, and the findings of the class that take none of them.
func (d *Desk) toDecide(ctx context.Context, in *DecideIn) (ds []plan.Decision, left int, err error) {
	if plan.Verdict(in.Verdict) == plan.Reopen {
		ds, err = d.toReopen(ctx, in)
		return ds, 0, err
	}
	found := 0
	q := plan.DriftQuery{Job: in.Job, Key: in.Key, Class: plan.Class(in.Class), Open: in.Key == "", Limit: mostFound}
	for {
		rows, err := d.db.Drifts(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		found += len(rows)
		for i := range rows {
			f := &rows[i].Finding
			switch err := d.decidable(in, f); {
			case err == nil:
				ds = append(ds, plan.Decision{Finding: *f, Verdict: plan.Verdict(in.Verdict), Keep: in.Document, Until: in.until, By: in.actor()})
			case in.Key == "":
				left++
			default:
				return nil, 0, err
			}
		}
		if len(rows) < mostFound {
			break
		}
		q.After = &rows[len(rows)-1]
	}
	if found == 0 {
		err = notFound("job "+in.Job+" has found nothing of that", "what has gone since, or was decided on, is not listed", "amends drift list --job "+quote(in.Job)+d.flag)
	}
	slices.SortFunc(ds, func(a, b plan.Decision) int { return cmp.Compare(a.Finding.Key, b.Finding.Key) }) // all lock in one order
	return ds, left, err
}

// toReopen is the end of what was decided before.
func (d *Desk) toReopen(ctx context.Context, in *DecideIn) ([]plan.Decision, error) {
	ds, err := d.db.Decisions(ctx, plan.DecisionQuery{Job: in.Job, Keys: []string{in.Key}})
	if err == nil && len(ds) == 0 {
		err = notFound("nothing was decided on "+in.Key, "", "amends drift decided "+quote(in.Job)+d.flag)
	}
	for i := range ds {
		ds[i] = plan.Decision{Finding: ds[i].Finding, Verdict: plan.Reopen, By: in.actor()}
	}
	return ds, err
}

// decidable says why a finding takes no such decision, and what it takes.
func (d *Desk) decidable(in *DecideIn, f *plan.Finding) error {
	v, takes := plan.Verdict(in.Verdict), f.Verdicts()
	fail := &Failure{Code: Conflict, What: fmt.Sprintf("%s is no answer to what is %s: %s", v, f.Class, f.Reason), Stands: "nothing was stored"}
	switch {
	case in.Finding != "" && in.Finding != f.Mark():
		fail.What = fmt.Sprintf("it is not what you saw any more: %s was shown, and it is %s by now: %s, %s", in.Finding, f.Mark(), f.Class, f.Reason)
		fail.Next = fmt.Sprintf("look again: amends drift list --key %s%s", quote(f.Key), d.flag)
	case f.Action.Acts():
		fail.Next = "the next run of the job does what is to be done: " + string(f.Action)
	case len(takes) == 0 && f.Action == plan.Nothing:
		fail.Next = "nothing is for a person yet; a later comparison says more"
	case len(takes) == 0:
		fail.Next = "look at its instance: " + program.Command("show", f.Key, d.flag)
	case !slices.Contains(takes, v):
		fail.Next = "it takes: " + strings.Join(names(takes), ", ")
	case v == plan.Keep && !slices.Contains(f.Documents, in.Document):
		fail.What, fail.Next = "there is no document "+in.Document+" of it", "--document is one of "+strings.Join(f.Documents, ", ")
	default:
		return nil
	}
	return fail
}

// became reads what became of what was decided, and is the failure of what was not carried out.
func (d *Desk) became(ctx context.Context, in *DecideIn, out *Decided) error {
	keys := docs(out.Items, func(i *DecidedOn) string { return i.Key })
	ds, err := d.db.Decisions(ctx, plan.DecisionQuery{Job: in.Job, Keys: keys, Limit: len(keys)})
	if err != nil {
		return err
	}
	if out.Items = docs(ds, decidedOn); out.Run == nil || out.Run.Open() {
		return nil
	}
	n := number(ds, func(d *plan.Decision) bool { return d.Acts() && d.Outcome != plan.Applied })
	if n == 0 {
		return nil
	}
	f := &Failure{Code: Conflict, What: fmt.Sprintf("%d of %d were not carried out", n, len(ds)), Done: true}
	if len(ds) == 1 {
		f.What = "it was not carried out: " + cmp.Or(ds[0].Error, "it could not be looked at, or its instance is at work; the next run of the job does it")
	}
	f.Next = "the next comparison shows what is so; look at why: amends drift decided " + quote(in.Job) + d.flag
	return f
}

// DecisionsIn lists what was decided on findings of a job.
type DecisionsIn struct {
	Job string `path:"job"`
	Key string `query:"key" doc:"on the finding about this key"`
	Limit
	After string `query:"after" doc:"only keys behind this one: the next page"`
}

// Decisions lists what was decided on findings of a job, the latest decision on each key.
func (d *Desk) Decisions(ctx context.Context, in *DecisionsIn) (*List[DecidedOn], error) {
	q := plan.DecisionQuery{Job: in.Job, After: in.After, Limit: in.Limit.N + 1}
	if in.Key != "" {
		q.Keys = []string{in.Key}
	}
	return page(in.Limit.faults(), &in.Limit, func() ([]plan.Decision, error) {
		if _, err := d.jobOf(ctx, in.Job); err != nil {
			return nil, err
		}
		return d.db.Decisions(ctx, q)
	}, decidedOn, func(d *plan.Decision) string { return d.Finding.Key })
}
