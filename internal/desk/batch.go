package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is said to many instances at once.

// Many selects instances that an act is said to, and how fast.
type Many struct {
	Filter    Filter `json:"filter,omitempty" doc:"instead of WORK: all that match KEY=VALUE, a flag of amends list; several narrow it (also batch=BATCH)"`
	Rate      int    `json:"rate,omitempty" doc:"with --filter: to so many a second"`
	Max       int    `json:"max,omitempty" doc:"with --filter: refuse to begin where more match"`
	StopAfter int    `json:"stop-after,omitempty" doc:"with --filter: stop when so many fail for one cause: they come to review again, or are undone"`
}

// Filter narrows a list, each by KEY=VALUE. By HTTP it is one such text, or several in a JSON array.
type Filter []string

// UnmarshalText reads it.
func (f *Filter) UnmarshalText(text []byte) error {
	if all := []string{}; json.Unmarshal(text, &all) == nil {
		*f = all
		return nil
	}
	*f = Filter{string(text)}
	return nil
}

// Defaults are what is meant where nothing is said.
func (m *Many) Defaults() {
	m.Rate, m.Max, m.StopAfter = cmp.Or(m.Rate, 20), cmp.Or(m.Max, 500), cmp.Or(m.StopAfter, 20)
}

// mostItems is how many works a batch has at most.
const mostItems = 2000

// BatchIn begins a batch: an act, and what it says, for all instances that a filter selects.
type BatchIn struct {
	By
	Many
	Act               string `json:"act" flag:"-"`
	Saga              string `json:"saga,omitempty" flag:"-"` // of this saga only: for who has a role for that alone
	Step              string `json:"step,omitempty" flag:"-"`
	DidNotHappen      bool   `json:"did-not-happen,omitempty" flag:"-"`
	HappenedWithoutID bool   `json:"happened-without-id,omitempty" flag:"-"`
	NoResult          bool   `json:"no-result,omitempty" flag:"-"`
	BehindPivot       bool   `json:"behind-pivot,omitempty" flag:"-"`
	DryRun            bool   `json:"dry-run,omitempty" flag:"-"`
}

// BatchOf is the batch of an act that was said on a command line.
func BatchOf(verb string, a Act, m Many) (*BatchIn, error) {
	o := About(a)
	in := &BatchIn{By: o.By, Many: m, DryRun: o.DryRun, Act: verb}
	var wrong Wrong
	wrong.If(o.Wait > 0 || o.Seen != 0, "--wait and --seen are for works that are named")
	switch a := a.(type) {
	case *Resolve:
		in.Step, in.DidNotHappen, in.HappenedWithoutID = a.Step, a.DidNotHappen, a.HappenedWithoutID
		wrong.If(a.Happened != nil || a.Keep || a.Result != "", "--happened ID, --result and --keep are for one work")
	case *Skip:
		in.NoResult = a.NoResult
		wrong.If(a.found() != nil || a.Step != "", "--result, --external-id and --step are for one work")
	case *Undo:
		in.BehindPivot = a.BehindPivot
		wrong.If(a.From != "", "--from is for one work")
	case *Rerun:
		wrong.If(a.Run != "" || a.Request != "", "--run and --request are for one work")
	}
	in.Saga = o.Saga
	return in, Usage("", wrong...)
}

// act is what is said to each.
func (in *BatchIn) act() Act {
	var a Act
	switch in.Act {
	case machine.VerbResolve:
		a = &Resolve{Step: in.Step, DidNotHappen: in.DidNotHappen, HappenedWithoutID: in.HappenedWithoutID}
	case machine.VerbSkip:
		a = &Skip{NoResult: in.NoResult}
	case machine.VerbUndo:
		a = &Undo{BehindPivot: in.BehindPivot}
	default:
		a = KindOf(in.Act).New()
	}
	About(a).By = in.By
	return a
}

// narrowed reads a filter. Of errors it may have several texts.
func (in *BatchIn) narrowed() (l *ListIn, texts []string, batch string, wrong Wrong) {
	l = new(ListIn)
	fields, said := reflect.ValueOf(l).Elem(), map[string]bool{"saga": in.Saga != ""}
	l.Saga = in.Saga
	for _, one := range in.Filter {
		key, value, ok := strings.Cut(one, "=")
		wrong.If(said[key] && key != "error", fmt.Sprintf("%s is said twice", key))
		said[key] = true
		i := slices.IndexFunc(reflect.VisibleFields(fields.Type()), func(f reflect.StructField) bool { return f.Tag.Get("query") == key && key != "" })
		switch {
		case !ok || value == "":
			wrong = append(wrong, fmt.Sprintf("--filter takes KEY=VALUE, not %q", one))
		case key == "batch":
			batch = value
		case key == "error":
			texts = append(texts, value)
		case i < 0 || slices.Contains([]string{"newest", "limit", "after"}, key):
			wrong = append(wrong, fmt.Sprintf("--filter knows no %q: it is a flag of amends list that narrows it, or batch=BATCH", key))
		default:
			if f := fields.FieldByIndex(reflect.VisibleFields(fields.Type())[i].Index); f.Kind() == reflect.Bool {
				f.SetBool(value == "true")
				wrong.If(value != "true", fmt.Sprintf("--filter %s=true, or leave it out", key))
			} else {
				f.SetString(value)
			}
		}
	}
	wrong.If(l.Saga == coordinator.BatchSaga, "a batch says nothing to batches: pause, resume and cancel take their names")
	wrong.If(len(texts) > 0 && l.Status == "" && l.Reason == "" && !l.Review, "error=TEXT is of works in a status: say status=review, too")
	wrong.If(len(in.Filter) == 0, "an empty filter would say it to everything there is: narrow it, as in --filter reason=exhausted")
	return l, texts, batch, wrong
}

// BatchPlan is what a batch is about to do, or does.
type BatchPlan struct {
	Batch   string       `json:"batch"` // its work id; "" where nothing was stored
	Act     string       `json:"act"`
	Matched int          `json:"matched"`
	Takes   int          `json:"takes"`  // so many take it: it is said to these
	Groups  []BatchGroup `json:"groups"` // what follows, the most first
	DryRun  bool         `json:"dryRun"`
}

// BatchGroup are the works for which the same follows.
type BatchGroup struct {
	Count  int      `json:"count"`
	Takes  bool     `json:"takes"`
	Then   string   `json:"then"`   // what follows, or why they do not take it
	Sample []string `json:"sample"` // a few of their work ids
}

// ofOne is what the words of one work alone say.
var ofOne = regexp.MustCompile(` \([^()]*\)`)

// Batch selects instances, and has an act said to all that take it, each as it stands now.
func (d *Desk) Batch(ctx context.Context, in *BatchIn) (*BatchPlan, error) {
	if !slices.Contains(coordinator.BatchVerbs, in.Act) {
		return nil, Usage("", fmt.Sprintf("%q is not said to many: it is one of %s", in.Act, strings.Join(coordinator.BatchVerbs, ", ")))
	}
	act := in.act()
	l, texts, batch, wrong := in.narrowed()
	wrong = append(wrong, Faults(act)...)
	wrong.If(in.Rate < 1 || in.Rate > 1000, "--rate is from 1 to 1000 a second")
	wrong.If(in.Max < 1 || in.Max > mostItems, fmt.Sprintf("--max is from 1 to %d: say more than that in several", mostItems))
	wrong.If(in.StopAfter < 1, "--stop-after is at least 1")
	wrong.If(in.Act == machine.VerbSkip && !in.NoResult, "say --no-result: what later steps find is said to one work")
	l.N = 500
	f, err := l.filter(d.now())
	wrong.Err("", err)
	if err := Usage("try: amends "+in.Act+" --help", wrong...); err != nil {
		return nil, err
	}
	works, damaged, err := d.matching(ctx, f, batch, texts, in.Max)
	if err != nil {
		return nil, err
	}
	p := &BatchPlan{Act: in.Act, Matched: len(works) + len(damaged), DryRun: in.DryRun, Groups: []BatchGroup{}}
	for _, work := range damaged {
		p.group(work, "it cannot be read, see amends check", false)
	}
	b := &coordinator.Batch{Verb: in.Act, Step: in.Step, Happened: in.HappenedWithoutID, By: in.actor(), PerSecond: float64(in.Rate), StopAfter: in.StopAfter}
	for _, v := range works {
		then, takes, err := d.followsFor(ctx, act, v)
		if err != nil {
			return nil, err
		}
		p.group(v.head.ID.Work, then, takes)
		if takes {
			b.Items = append(b.Items, coordinator.BatchItem{Saga: v.head.ID.Saga, Work: v.head.ID.Work, Seq: v.state.Seq, Run: When(in.Act == machine.VerbRerun, v.state.Revision),
				Back: v.state.Compensating && in.Act != machine.VerbRerun || slices.Contains([]string{machine.VerbCancel, machine.VerbUndo, machine.VerbResolve}, in.Act)})
		}
	}
	if size, err := json.Marshal(b); err != nil || len(size) > program.MaxInput {
		return nil, errors.Join(err, &Failure{Code: Conflict, What: fmt.Sprintf("%d works are more than one batch has room for, for their ids are long", len(b.Items)), Next: "narrow the filter"})
	}
	slices.SortStableFunc(p.Groups, func(a, b BatchGroup) int { return b.Count - a.Count })
	if p.Takes = len(b.Items); in.DryRun || p.Takes == 0 {
		return p, nil
	}
	p.Batch, err = d.begin(ctx, b)
	return p, err
}

// followsFor says what follows for one, or why it does not take it.
func (d *Desk) followsFor(ctx context.Context, act Act, v *view) (then string, takes bool, err error) {
	About(act).Is(Which{Work: v.head.ID.Work, Saga: v.head.ID.Saga}, "")
	if slices.ContainsFunc(v.pending, func(s machine.Signal) bool { return s.ByHand }) {
		return "what another person said waits to be read", false, nil
	}
	if err := act.check(v); err != nil {
		return FailureOf(ctx, err).What, false, nil // without the command, which names one work
	}
	switch _, err := act.post(ctx, coordinator.NewOperator(&mailbox{DB: d.db, dryRun: true}), v); { // as it would be said
	case err != nil && codeOf(err) != Conflict:
		return "", false, err
	case err != nil:
		return "it does not take that: it is " + standing(v.state.Status, v.state.Reason), false, nil
	}
	return ofOne.ReplaceAllString(strings.Join(act.after(v), "; "), ""), true, nil
}

func (p *BatchPlan) group(work, then string, takes bool) {
	g := First(p.Groups, func(g *BatchGroup) bool { return g.Then == then && g.Takes == takes })
	if g == nil {
		p.Groups = append(p.Groups, BatchGroup{Then: then, Takes: takes})
		g = &p.Groups[len(p.Groups)-1]
	}
	if g.Count++; g.Count <= 3 {
		g.Sample = append(g.Sample, work)
	}
}

// matching are the instances that a filter selects, and of a batch those of it, at most so many, and those of them that cannot be read. Batches
// themselves are none.
func (d *Desk) matching(ctx context.Context, f ledger.Filter, batch string, texts []string, most int) (works []*view, lost []string, err error) {
	if _, _, err := d.heads(ctx, f); err != nil { // nothing can wait under that name
		return nil, nil, err
	}
	var of map[saga.ID]bool
	if batch != "" {
		b, err := d.batch(ctx, batch)
		if err != nil {
			return nil, nil, err
		}
		of = map[saga.ID]bool{}
		for i := range b.Items {
			of[b.Items[i].ID()] = true
		}
	}
	for more := true; more; {
		page, err := d.some(ctx, f, of)
		if err != nil {
			return nil, nil, err
		}
		for i := range page.Instances {
			h := &page.Instances[i]
			if h.ID.Saga == coordinator.BatchSaga {
				continue
			}
			v, err := d.look(ctx, h.ID)
			if errors.Is(err, ledger.ErrNotFound) { // it has gone meanwhile
				continue
			}
			if _, damaged := unread(err); damaged { // what it failed with is not known
				if len(texts) == 0 {
					lost = append(lost, h.ID.Work)
				}
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			moved := v.head.Status != h.Status || v.head.Reason != h.Reason || v.head.Step != h.Step
			failed := errorOf(v.knowledge, v.state)
			if moved || slices.ContainsFunc(texts, func(text string) bool { return !failed.have(text) }) {
				continue
			}
			if works = append(works, v); len(works) > most {
				return nil, nil, &Failure{Code: Conflict, What: fmt.Sprintf("more than %d match", most), Next: "narrow the filter, or say --max"}
			}
		}
		f.After, more = page.Next, page.Next != "" && of == nil
	}
	return works, lost, nil
}

// some is a page of what a filter selects, or all of those works of that it does.
func (d *Desk) some(ctx context.Context, f ledger.Filter, of map[saga.ID]bool) (page ledger.Page, err error) {
	if of == nil {
		return d.db.List(ctx, f)
	}
	for id := range of {
		if f.Saga != "" && f.Saga != id.Saga {
			continue
		}
		one := f
		one.Saga, one.Work, one.Limit = id.Saga, id.Work, 1
		p, err := d.db.List(ctx, one)
		if err != nil {
			return page, err
		}
		page.Instances = append(page.Instances, p.Instances...)
	}
	return page, nil
}

// begin makes a batch durable. A process that runs sagas over the ledger says it.
func (d *Desk) begin(ctx context.Context, b *coordinator.Batch) (work string, err error) {
	c, err := silent(d)
	if err != nil {
		return "", err
	}
	work = "batch:" + d.now().UTC().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:6])
	_, err = c.StartBatch(ctx, work, b)
	return work, err
}

// batch reads what a batch says to whom.
func (d *Desk) batch(ctx context.Context, work string) (*coordinator.Batch, error) {
	v, err := d.look(ctx, saga.ID{Saga: coordinator.BatchSaga, Work: work})
	if err != nil {
		return nil, err
	}
	return batchOf(v)
}

// SagaOf is the saga of all works of a batch; "": they are of several, or there is no such batch.
func (d *Desk) SagaOf(ctx context.Context, batch string) string {
	if batch == "" {
		return ""
	}
	b, err := d.batch(ctx, batch)
	if err != nil || len(b.Items) == 0 || slices.ContainsFunc(b.Items, func(it coordinator.BatchItem) bool { return it.Saga != b.Items[0].Saga }) {
		return ""
	}
	return b.Items[0].Saga
}

// batchOf is what a batch says to whom, as long as that is kept.
func batchOf(v *view) (*coordinator.Batch, error) {
	b := new(coordinator.Batch)
	if json.Unmarshal(v.state.Input, b) != nil {
		return nil, &Failure{Code: Conflict, What: "which works this batch was about is not known: its bodies have gone, or are sealed", Next: "look at the works: amends list"}
	}
	return b, nil
}

// WhichBatch names one.
type WhichBatch struct {
	Batch string `path:"batch"`
	Open  bool   `query:"open" doc:"only the works that it was not said to, or that are not at their end"`
}

// BatchShown is a batch, and what became of each of its works.
type BatchShown struct {
	Batch   string                   `json:"batch"`
	Act     string                   `json:"act"`
	Actor   string                   `json:"actor"`
	Reason  string                   `json:"reason"`
	Status  saga.Status              `json:"status"` // of the batch: completed when it was said to all, or has stopped
	Result  *coordinator.BatchResult `json:"result"` // null before its end
	Items   []BatchItem              `json:"items"`
	Outcome map[string]int           `json:"outcomes"` // how many works came to what
}

// BatchItem is what became of one work.
type BatchItem struct {
	WorkID       string      `json:"workId"`
	Saga         string      `json:"saga"`
	Outcome      string      `json:"outcome"` // said, moved-on, refused, not-said, to-be-said
	Status       saga.Status `json:"status"`  // where it stands now
	ReviewReason saga.Reason `json:"reviewReason"`
	Answer       string      `json:"answer"` // of its coordinator, where it read it and changed nothing
}

// ShowBatch says what became of a batch, work by work.
func (d *Desk) ShowBatch(ctx context.Context, in *WhichBatch) (*BatchShown, error) {
	v, err := d.look(ctx, saga.ID{Saga: coordinator.BatchSaga, Work: in.Batch})
	if err != nil {
		return nil, err
	}
	b, err := batchOf(v)
	if err != nil {
		return nil, err
	}
	out := &BatchShown{Batch: in.Batch, Act: b.Verb, Actor: b.By.Name, Reason: b.By.Reason, Status: v.state.Status, Items: []BatchItem{}, Outcome: map[string]int{}}
	if step := v.summary.Steps["say"]; step.Done {
		out.Result = new(coordinator.BatchResult)
		_ = json.Unmarshal(step.Output, out.Result) // written by us
	}
	for i := range b.Items {
		one, err := d.item(ctx, out, &b.Items[i], i)
		if err != nil {
			return nil, err
		}
		out.Outcome[one.Outcome]++
		if good := one.Outcome == "said" && one.Status.Terminal() && one.Answer == ""; !in.Open || !good {
			out.Items = append(out.Items, *one)
		}
	}
	return out, nil
}

// batchOutcomes are the outcomes of works, by the letters of [coordinator.BatchResult].
var batchOutcomes = map[byte]string{'s': "said", 'm': "moved-on", 'r': "refused", 'n': "not-said"}

// item is what became of saying it to one work, the i-th: as the batch says at its end, and before by where the work stands.
func (d *Desk) item(ctx context.Context, b *BatchShown, it *coordinator.BatchItem, i int) (*BatchItem, error) {
	one := &BatchItem{WorkID: it.Work, Saga: it.Saga, Outcome: Either(b.Status.Terminal(), "not-said", "to-be-said")}
	ended := b.Result != nil && i < len(b.Result.Each)
	if ended {
		one.Outcome = batchOutcomes[b.Result.Each[i]]
	}
	v, err := d.look(ctx, it.ID())
	why, damaged := unread(err)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		one.Outcome, one.Answer = Either(ended, one.Outcome, "moved-on"), "its records have gone"
		return one, nil
	case damaged:
		one.Answer = why
		return one, nil
	case err != nil:
		return nil, err
	}
	one.Status, one.ReviewReason = v.state.Status, v.state.Reason
	said, err := d.db.Signals(ctx, it.ID())
	if err != nil {
		return nil, err
	}
	ours := First(said, func(s *machine.Signal) bool { return coordinator.OfBatch(s, b.Batch) })
	switch {
	case ours == nil && v.state.Seq != it.Seq && !ended:
		one.Outcome = "moved-on"
	case ours != nil:
		one.Outcome = "said"
		records, err := d.db.History(ctx, it.ID())
		if err != nil {
			return nil, err
		}
		if r := consumer(records, ours.ID); r != nil && r.Kind == machine.KindNoted {
			one.Answer = r.Said()
		}
	}
	return one, nil
}
