package ledger

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/saga"
)

// Report is what [Check] saw.
type Report struct {
	Works    int64
	Records  int64
	Moving   int64     // works whose head never stood still long enough to be compared with its chain
	Findings []Finding // empty: the ledger is sound
}

// Finding is one thing that must not be. It names the place and what a person can do about it.
type Finding struct {
	ID   saga.ID
	Head int64  // the ledger's number of the work
	Seq  int64  // the record it is about; 0 when it is about the head or the work as a whole
	What string // a sentence: what is wrong
	Do   string // a sentence: what to do
}

// String returns the finding as one line: where, what, and what to do.
func (f Finding) String() string {
	where := f.ID.String()
	if f.Seq > 0 {
		where = fmt.Sprintf("%s, record %d", where, f.Seq)
	}
	return where + ": " + f.What + " " + f.Do
}

// CheckOptions narrows a check or follows it. Nil means everything, silently.
type CheckOptions struct {
	// Filter narrows the works that are checked. Limit is the size of a page.
	Filter Filter

	// ChainsOnly leaves out what needs the machine: whether each record was allowed where it stands.
	ChainsOnly bool

	// Progress is called after every page of works.
	Progress func(Report)
}

// Check reads every chain from its first record and reports whatever is not as the rules want it: a chain
// with a gap, a fork or a record that does not follow from its predecessor, a record that the machine could not
// have written there, a snapshot that is not the fold of what is before it, and a head that does not show what
// the chain says. It changes nothing, and may run beside coordinators: what moves while it is read is read
// again. The error tells that the ledger could not be read, never that something was found.
//
// The hashes show accidents (a half restore, a row edited by hand). Somebody who rewrites a chain together
// with all its later hashes is shown only by comparing with an anchor kept elsewhere.
func Check(ctx context.Context, r Reader, o *CheckOptions) (Report, error) {
	if o == nil {
		o = &CheckOptions{}
	}
	c := checker{Reader: r, machine: !o.ChainsOnly}
	f := o.Filter
	for {
		heads, err := r.List(ctx, f)
		if err != nil {
			return c.report, fmt.Errorf("check: list works behind number %d: %w", f.After, err)
		}
		for i := range heads {
			if err := c.work(ctx, heads[i]); err != nil {
				return c.report, fmt.Errorf("check %s: %w", heads[i].ID, err)
			}
		}
		if o.Progress != nil {
			o.Progress(c.report)
		}
		if len(heads) == 0 {
			return c.report, nil
		}
		last := heads[len(heads)-1].Number
		if last <= f.After {
			return c.report, fmt.Errorf("check: listing works behind number %d answered number %d again", f.After, last)
		}
		f.After = last
	}
}

// checker walks the works of a ledger.
type checker struct {
	Reader
	machine bool // fold the chains as well
	report  Report
}

// rereads is how often a work that changes under the reader is read again.
const rereads = 20

// work checks one work. A chain only grows, so what is wrong with it is reported at once. Head, records and
// signals are read one after the other, so a difference between them counts only when the head is the same
// behind them as before.
func (c *checker) work(ctx context.Context, head Head) error {
	c.report.Works++
	for try := 0; ; try++ {
		w, err := c.read(ctx, head)
		if err != nil {
			return err
		}
		stable := w.check(c.machine)
		if len(w.found) > stable {
			now, err := c.again(ctx, head)
			switch {
			case err != nil:
				return err
			case !sameHead(now, head) && try < rereads:
				head = now
				continue
			case !sameHead(now, head):
				c.report.Moving++
				w.found = w.found[:stable]
			}
		}
		c.report.Records += int64(len(w.records))
		c.report.Findings = append(c.report.Findings, w.found...)
		return nil
	}
}

// again reads a head once more.
func (c *checker) again(ctx context.Context, head Head) (Head, error) {
	now, err := c.List(ctx, Filter{Saga: head.ID.Saga, Work: head.ID.Work, Limit: 1})
	switch {
	case err != nil:
		return head, fmt.Errorf("read the head again: %w", err)
	case len(now) == 0: // gone meanwhile: what was read of it is all there is
		return head, nil
	default:
		return now[0], nil
	}
}

func (c *checker) read(ctx context.Context, head Head) (*checked, error) {
	records, err := c.History(ctx, head.ID)
	if err != nil {
		return nil, fmt.Errorf("read its records: %w", err)
	}
	w := &checked{head: head, records: records}
	if head.Posted == 0 && head.Consumed == 0 {
		return w, nil
	}
	if w.signals, err = c.Signals(ctx, head.ID); err != nil {
		return nil, fmt.Errorf("read its signals: %w", err)
	}
	return w, nil
}

// sameHead compares what an append, a claim or a post changes.
func sameHead(a, b Head) bool {
	return a.Status == b.Status && a.Session == b.Session && a.Due.Equal(b.Due) && a.Updated.Equal(b.Updated) &&
		a.Base == b.Base && a.Posted == b.Posted && a.Consumed == b.Consumed
}
