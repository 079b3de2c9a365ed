package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/amends-dev/amends/saga"
)

// ErrNotFound is matched by the error about a plan or draft that the store does not have.
var ErrNotFound = errors.New("there is no such plan")

// Kept is how many finished plans of one job a store keeps; older ones go with their findings.
const Kept = 20

// Drafts is where a plan is written while it is made. A draft is no plan: Plan, Latest, Approve and
// Done of [Plans] do not find it.
type Drafts interface {
	// Draft begins a plan of a job. What was drafted for that job earlier and never finished is
	// erased, with its findings; who still works on it gets [ErrNotFound].
	Draft(ctx context.Context, job string) (Ref, error)

	// Find adds findings to a draft. The same key again replaces what was found; one that is in
	// sync takes its key out. A draft that is finished or erased: [ErrNotFound], and nothing is
	// stored.
	Find(ctx context.Context, draft Ref, fs []Finding) error

	// Finish makes the draft a plan. at is the database's clock. Of the job's finished plans the
	// newest [Kept] stay. A draft that is erased: [ErrNotFound]. Finishing again with the same plan
	// changes nothing.
	Finish(ctx context.Context, draft Ref, p *Plan) (at time.Time, err error)
}

// Ref names a plan or draft. Plans are numbered within their job, from 1; a number is never given
// twice.
type Ref struct {
	Job    string
	Number int64
}

func (r Ref) String() string { return fmt.Sprintf("%d of %s", r.Number, r.Job) }

// Plans keeps plans and what became of their actions.
type Plans interface {
	Drafts

	// Plan returns the newest finished plan with that id, or whose id begins so when no plan with
	// another id does.
	Plan(ctx context.Context, id string) (Stored, error)

	// Latest returns the newest finished plan of a job.
	Latest(ctx context.Context, job string) (Stored, error)

	// Findings returns findings of a plan or a draft in the order of the bytes of their keys.
	Findings(ctx context.Context, q FindingQuery) ([]Row, error)

	// Approve notes who wants a plan to be applied although it is over its bounds. id is whole;
	// every plan with that id says the same, so it holds for all of them. The first approval
	// stands.
	Approve(ctx context.Context, id string, by saga.Actor) error

	// Done notes what became of actions of a finished plan: Outcome and Error of rows, by Key. The
	// rest of a row is not looked at, and At is the database's clock. A key that the plan does not
	// have is left out.
	Done(ctx context.Context, plan Ref, rows []Row) error
}

// Drifts keeps drift: what was found, since when, and what people decided about it.
type Drifts interface {
	// Remember makes the drift of the plan's job what fs says for the keys of part, in one
	// transaction: what was there before under the same class keeps its First and counts one run
	// more, another class starts over, and what is not among fs is gone. Telling the same part of
	// the same plan twice counts once. A key holds ([Finding.Hold]) from the first plan on that said so, until one lets it.
	Remember(ctx context.Context, plan Ref, part Part, fs []Finding) error

	// Drifts returns drift, that which was found first at first; then by job and key.
	Drifts(ctx context.Context, q DriftQuery) ([]Drift, error)

	// Decide stores decisions, each in place of an earlier one on its key, and puts each on record as
	// an act, in one transaction. At is the database's clock.
	Decide(ctx context.Context, job string, ds []Decision) error

	// Decisions returns decisions of a job in the order of the bytes of their keys.
	Decisions(ctx context.Context, q DecisionQuery) ([]Decision, error)

	// Settled notes what became of decisions: Outcome and Error, by key and At. One that was replaced
	// since is left alone.
	Settled(ctx context.Context, job string, ds []Decision) error
}

// Stored is a plan as a store has it.
type Stored struct {
	Plan
	Number   int64
	Made     time.Time
	Approved saga.Actor // zero: the plan is not approved
	When     time.Time  // it was approved
}

// Ref names the plan.
func (s *Stored) Ref() Ref { return Ref{s.Job, s.Number} }

// Outcome is what became of one action.
type Outcome string

// The outcomes.
const (
	Pending    Outcome = ""             // nothing yet
	Applied    Outcome = "applied"      //
	Superseded Outcome = "superseded"   // it was not so any more right before the action; nothing was done
	Failed     Outcome = "failed"       // see Row.Error; it is planned again by the next run
	Withheld   Outcome = "over-limit"   // over a bound
	ForPerson  Outcome = "needs-review" // a person decides
)

// Row is a finding with what became of it.
type Row struct {
	Finding
	Outcome Outcome
	Error   string
	At      time.Time // of the outcome
}

// Acting reports whether something is still to be done about the row by itself: its verb acts, and
// nothing came of it yet, or it was withheld.
func (r *Row) Acting() bool {
	return r.Action.Acts() && (r.Outcome == Pending || r.Outcome == Withheld)
}

// FindingQuery selects findings.
type FindingQuery struct {
	Plan    Ref    // or a draft
	After   string // keys behind this one
	Acting  bool   // only those of which [Row.Acting] is true
	Class   Class
	Outcome Outcome // not Pending; empty: any
	Limit   int     // 0: 100
}

// Part is a range of keys: behind From, up to and with Until. An empty Until is the end.
type Part struct{ From, Until string }

// Has reports whether the part has a key.
func (p Part) Has(key string) bool { return key > p.From && (p.Until == "" || key <= p.Until) }

// Hold refuses findings that lie outside of the part, or have no key.
func (p Part) Hold(fs []Finding) error {
	for i := range fs {
		if !p.Has(fs[i].Key) {
			return fmt.Errorf("%q does not lie behind %q, up to %q", fs[i].Key, p.From, p.Until)
		}
	}
	return nil
}

// Each reads the findings that q selects, page by page. It needs nothing but Findings of a [Plans].
func Each(ctx context.Context, p Plans, q FindingQuery) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		q.Limit = cmp.Or(max(q.Limit, 0), 1000)
		for {
			rows, err := p.Findings(ctx, q)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			if len(rows) < q.Limit {
				return
			}
			q.After = rows[len(rows)-1].Key
		}
	}
}

// Drift is one difference that was found, and since when.
type Drift struct {
	Job string
	Finding
	First, Last time.Time
	Times       int // how many runs in a row found it
}

// DriftQuery selects drift. What is empty selects all.
type DriftQuery struct {
	Job   string
	Key   string
	Class Class
	Times int // found at least so often in a row
	// Open leaves out what a person has decided on, as it was found last.
	Open  bool
	After *Drift // the last one of the page before
	Limit int    // 0: 100
}
