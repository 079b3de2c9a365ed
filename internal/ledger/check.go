package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Report is what [Check] saw.
type Report struct {
	Works    int64
	Records  int64
	Acts     int64     // of people, see [Catalogue.ActChain]; they are read where all works are
	Moving   int64     // works whose head never stood still long enough to be compared with its chain
	Findings []Finding // empty: the ledger is sound
}

// Finding is one thing that must not be. It names the place and what a person can do about it.
type Finding struct {
	ID     saga.ID // zero: it is about no work but an act, or the ledger as a whole
	Number int64   // the ledger's number of the work
	Seq    int64   // the record it is about; 0 when it is about the head or the work as a whole
	Act    int64   // the number of the act of a person that it is about; 0: of none
	What   string  // a sentence: what is wrong
	Do     string  // a sentence: what to do
}

// String returns the finding as one line: where, what, and what to do.
func (f Finding) String() string { return f.Where() + ": " + f.What + " " + f.Do }

// Where names the place.
func (f Finding) Where() string {
	switch {
	case f.Act > 0:
		return fmt.Sprintf("act %d", f.Act)
	case f.ID == saga.ID{}:
		return "the ledger"
	case f.Seq > 0:
		return fmt.Sprintf("%s, record %d", f.ID, f.Seq)
	default:
		return f.ID.String()
	}
}

// CheckOptions narrows a check or follows it. Nil means everything, silently.
type CheckOptions struct {
	// Filter narrows the works that are checked. Limit is the size of a page.
	Filter Filter

	// ChainsOnly leaves out what needs the machine: whether each record was allowed where it
	// stands.
	ChainsOnly bool

	// Progress is called after every page of works.
	Progress func(Report)

	// Acts and Work are given what was read, as it was checked: an export writes it down. Nil: they
	// are not called. Acts gets pages, the last of them empty, each with the head of the chain. The
	// head of a work shows what its chain says, unless it moved all the while, or that is a finding.
	Acts func(page []Act, head *Act) error
	Work func(head *Instance, records []machine.Record, moving bool) error
}

// Check reads every chain from its first record and reports whatever is not as the rules want it: a
// chain with a gap, a fork or a record that does not follow from its predecessor, a record that the
// machine could not have written there, a snapshot that is not the fold of what is before it, a
// head that does not show what the chain says, signals whose numbers have a gap, an external id
// that two works claim to have made, and what the clock cannot explain. Where no filter narrows the
// works it reads the chain of acts, too. It changes nothing, and may run beside coordinators: what
// moves while it is read is read again. The error tells that the ledger could not be read, never
// that something was found.
//
// The hashes show accidents (a half restore, a row edited by hand). A chain that was rewritten
// together with all its later hashes is found only by comparison with an anchor kept elsewhere.
func Check(ctx context.Context, r Catalogue, o *CheckOptions) (Report, error) {
	if o == nil {
		o = &CheckOptions{}
	}
	c := checker{Catalogue: r, machine: !o.ChainsOnly, CheckOptions: o, specs: make(map[Version]*program.Spec), made: make(map[uint64]int64)}
	if err := c.begin(ctx); err != nil {
		return c.report, fmt.Errorf("check: %w", err)
	}
	f := o.Filter
	if f == (Filter{Limit: f.Limit}) {
		if err := c.acts(ctx); err != nil {
			return c.report, fmt.Errorf("check: %w", err)
		}
	}
	for {
		page, err := r.List(ctx, f)
		if err != nil {
			return c.report, fmt.Errorf("check: list works behind the first %d: %w", c.report.Works, err)
		}
		if page.Next != "" && page.Next == f.After {
			return c.report, fmt.Errorf("check: the listing answered the same page again; that is a fault of the store, and what it did not list is not checked: %d works were", c.report.Works)
		}
		for i := range page.Instances {
			h := &page.Instances[i]
			if err := c.work(ctx, *h); err != nil {
				return c.report, fmt.Errorf("check %s: %w", h.ID, err)
			}
		}
		if o.Progress != nil {
			o.Progress(c.report)
		}
		if page.Next == "" {
			return c.report, nil
		}
		f.After = page.Next
	}
}

// checker walks the works of a ledger.
type checker struct {
	Catalogue
	*CheckOptions
	machine bool // fold the chains as well
	report  Report

	specs map[Version]*program.Spec
	made  map[uint64]int64 // digest of saga, step and external id → the number of the first work that claims it
	at    time.Time        // the ledger's clock when asked was, zero when it has none
	asked time.Time
}

// begin reads what all works are compared with.
func (c *checker) begin(ctx context.Context) error {
	ds, err := c.Definitions(ctx)
	if err != nil {
		return fmt.Errorf("read the definitions: %w", err)
	}
	for i := range ds {
		c.specs[Version{Saga: ds[i].Spec.Saga, Version: ds[i].Spec.Version}] = &ds[i].Spec
	}
	c.asked = time.Now()
	o, err := c.Overview(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	c.at = o.At
	for _, s := range o.Ahead.Sessions {
		c.report.Findings = append(c.report.Findings, Finding{
			What: fmt.Sprintf("Session %s of %s was renewed at %s, later than the ledger's clock says: the clock has gone back.", s.Token, s.Label, stamp(s.Renewed)),
			Do:   doCatchUp,
		})
	}
	return nil
}

// ahead reports whether the clock cannot explain when a work is due. The clock is taken to be as
// late as it can be.
func (c *checker) ahead(h *Instance) bool {
	now := c.at.Add(time.Since(c.asked))
	return !c.at.IsZero() && h.Due.After(now) && h.Updated.After(now)
}

// rereads is how often a work that changes under the reader is read again.
const rereads = 20

// work checks one work. A chain only grows, so what is wrong with it is reported at once. Head,
// records and signals are read one after the other, so a difference between them counts only when
// the head is the same behind them as before.
func (c *checker) work(ctx context.Context, head Instance) error {
	c.report.Works++
	for try := 0; ; try++ {
		w, err := c.read(ctx, head)
		if errors.Is(err, ErrNotFound) { // it has gone by retention meanwhile
			c.report.Works--
			return nil
		}
		if err != nil {
			return err
		}
		stable, moving := w.check(c.machine), false
		if len(w.found) > 0 { // also where it was forgotten and started again, under another salt
			now, err := c.again(ctx, head)
			switch {
			case err != nil:
				return err
			case !sameHead(now, head) && try < rereads:
				head = now
				continue
			case !sameHead(now, head):
				c.report.Moving++
				w.found, moving = w.found[:stable], true
			}
		}
		if c.Work != nil {
			if err := c.Work(&head, w.records, moving); err != nil {
				return err
			}
		}
		if c.ahead(&head) {
			w.addf(0, doCatchUp, "It is due at %s and was written at %s, later than the ledger's clock says: the clock has gone back.", stamp(head.Due), stamp(head.Updated))
		}
		if err := c.claims(ctx, w); err != nil {
			return err
		}
		c.report.Records += int64(len(w.records))
		c.report.Findings = append(c.report.Findings, w.found...)
		return nil
	}
}

// again reads a head once more.
func (c *checker) again(ctx context.Context, head Instance) (Instance, error) {
	now, err := First(ctx, c, Filter{Saga: head.ID.Saga, Work: head.ID.Work, Limit: 1})
	switch {
	case err != nil:
		return head, fmt.Errorf("read the head again: %w", err)
	case len(now) == 0: // gone meanwhile: what was read of it is all there is
		return head, nil
	default:
		return now[0], nil
	}
}

func (c *checker) read(ctx context.Context, head Instance) (*checked, error) {
	records, err := c.History(ctx, head.ID)
	if errors.Is(err, ErrDamaged) {
		w := &checked{head: head}
		w.addf(0, doCompare, "It cannot be read: %v.", err)
		w.damaged = true
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read its records: %w", err)
	}
	w := &checked{head: head, records: records}
	if head.Posted == 0 && head.Consumed == 0 {
		return w, nil
	}
	switch w.signals, err = c.Signals(ctx, head.ID); {
	case errors.Is(err, ErrDamaged):
		w.addf(0, doCompare, "Its signals cannot be read: %v.", err)
		w.damaged = true
	case err != nil:
		return nil, fmt.Errorf("read its signals: %w", err)
	}
	return w, nil
}

// sameHead compares what an append, a claim or a post changes.
func sameHead(a, b Instance) bool {
	return a.Number == b.Number && a.Status == b.Status && a.Session == b.Session && a.Due.Equal(b.Due) && a.WaitsFor == b.WaitsFor &&
		a.Updated.Equal(b.Updated) && a.Base == b.Base && a.Posted == b.Posted && a.Consumed == b.Consumed
}

// seed is of the digests of one process.
var seed = maphash.MakeSeed()

// claims looks for external ids that another work claims to have made, too. A step that cannot be
// undone and changes nothing when it is repeated shares what it finds with others; any other step
// makes a thing of its own.
func (c *checker) claims(ctx context.Context, w *checked) error {
	if w.st == nil {
		return nil
	}
	spec := c.specs[Version{Saga: w.head.ID.Saga, Version: w.st.Version}]
	if spec == nil {
		return nil
	}
	steps := machine.Summarize(spec, w.st).Steps
	for i := range spec.Steps {
		s := &spec.Steps[i]
		step := steps[s.Name]
		own := s.Undo || s.Repeat == program.RepeatKeyed || s.Repeat == program.RepeatAtMostOnce
		if !own || !step.Done || step.ExternalID == "" {
			continue
		}
		digest := maphash.Comparable(seed, [3]string{spec.Saga, s.Name, step.ExternalID})
		first, claimed := c.made[digest]
		if !claimed {
			c.made[digest] = w.head.Number
			continue
		}
		// Two ids may have one digest: the ledger knows whether the first work recorded this one.
		// In each bucket one other may have been started as early.
		f := Filter{Saga: spec.Saga, ExternalID: step.ExternalID}
		f.After = f.Behind(Position{Number: first - 1})
		heads, err := First(ctx, c, f)
		if err != nil {
			return fmt.Errorf("look who made %s: %w", step.ExternalID, err)
		}
		for i := range heads {
			if heads[i].Number == first {
				w.addf(0, doAsk, "Step %s made %s, and so it did for %s: one thing cannot be both.", s.Name, step.ExternalID, heads[i].ID)
			}
		}
	}
	return nil
}
