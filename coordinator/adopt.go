package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/saga"
)

// Adopt records what stands of works whose ledger was lost, and makes and sends nothing. It answers
// each at its own index. A work that the ledger knows is left as it is; one whose adoption was cut
// off is taken up where it was. What is left to do in a work is done once a coordinator claims it,
// which may be at once.
//
// No request may be under way when the caller asks the destinations what stands: stop every
// coordinator, and wait until what they sent has settled. Adopt needs no session: it may be called
// before, beside and without Run. An error says that the ledger could not be asked; adopt the same
// again, the result is the same.
func (c *Coordinator) Adopt(ctx context.Context, as []Adoption) ([]Adopted, error) {
	out := make([]Adopted, len(as))
	all := make([]*adopting, 0, len(as))
	named := map[saga.ID]bool{}
	for i := range as {
		a, err := c.adopting(&as[i])
		if err == nil && named[a.st.ID] {
			err = fmt.Errorf("adopt %s: it is named twice in one call", a.st.ID)
		}
		if err != nil {
			out[i].Err = err
			continue
		}
		named[a.st.ID], a.out = true, &out[i]
		all = append(all, a)
	}
	for len(all) > 0 {
		n := min(len(all), c.opts.MaxBatch)
		if err := c.adoptBatch(ctx, all[:n]); err != nil {
			return out, fmt.Errorf("adopt %d works: the ledger has not answered for all; adopt them again: %w", len(as), err)
		}
		all = all[n:]
	}
	c.wake()
	return out, nil
}

// adopting is one adoption on its way.
type adopting struct {
	machine.Adoption

	program saga.Program
	st      *machine.State
	salt    machine.Salt
	head    int64
	record  *machine.Record // the next one; nil when there is none any more
	out     *Adopted
}

// adopting checks what is handed in and turns it into what the machine takes.
func (c *Coordinator) adopting(in *Adoption) (*adopting, error) {
	start, err := c.accept(in.Saga, in.Work, in.Input, &saga.StartOptions{Revision: in.Revision})
	a := &adopting{program: start.program, st: &machine.State{ID: start.id}, Adoption: machine.Adoption{
		Revision: in.Revision, Input: start.accepted.Input, Identity: start.accepted.Apart(), Tags: start.accepted.Tags, Effects: make(map[string]machine.Effect, len(in.Effects)),
		Cancelled: in.Cancelled, Quarantine: in.Quarantine, Actor: in.By.Name, Reason: in.By.Reason,
	}}
	faults := []error{err, in.By.Validate()}
	for step, e := range in.Effects {
		output, err := e.kept()
		if err != nil {
			faults = append(faults, fmt.Errorf("the output of step %q is not serialisable: %w", step, err))
		}
		if id, ok := e.Output.(saga.Identified); ok && e.ExternalID == "" {
			e.ExternalID = id.ExternalID()
		}
		a.Effects[step] = machine.Effect{
			ExternalID: e.ExternalID, Output: output, Revision: e.Revision, Unknown: e.Unknown, NotDone: e.NotDone, Foreign: e.Foreign,
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("adopt %s: %w", start.id, err)
	}
	return a, nil
}

// adoptBatch takes works over, one record of each at a time, until every one is at its end.
func (c *Coordinator) adoptBatch(ctx context.Context, as []*adopting) error {
	for {
		var entries []ledger.Entry
		var under []*adopting
		for _, a := range as {
			if a.next() {
				under, entries = append(under, a), append(entries, a.entry())
			}
		}
		if len(under) == 0 {
			return nil
		}
		answers, err := c.appendAdopted(ctx, entries)
		if err != nil {
			return err
		}
		if err := c.answered(ctx, under, answers); err != nil {
			return err
		}
		as = under
	}
}

// next asks the machine for the next record. It reports false when there is none.
func (a *adopting) next() bool {
	if a.out.Err != nil {
		return false
	}
	a.record, a.out.Err = machine.Adopt(a.program.Spec(), a.st, &a.Adoption)
	if a.record != nil {
		return true
	}
	if st := a.st; st.Seq > 0 {
		a.out.Status, a.out.Reason, a.out.Revision, a.out.Unconfirmed = st.Status, st.Reason, st.Revision, st.Unconfirmed()
	}
	return false
}

// entry seals the next record. The record names no session, so that two processes that adopt the
// same work write the same record behind the first, whose salt one of them has drawn.
func (a *adopting) entry() ledger.Entry {
	e := ledger.Entry{ID: a.st.ID, Subject: ledger.SubjectOf(a.st.Tags), Number: a.head, Prev: a.st.TailHash, Revision: a.st.Revision}
	if a.st.Seq == 0 {
		e.Subject = ledger.SubjectOf(a.Tags)
		_, _ = rand.Read(a.salt[:]) // it never fails
	}
	e.Salt = a.salt
	a.record.Seal(a.st.ID, a.salt, a.st.Seq, a.st.TailHash, 0)
	e.Record = *a.record
	if a.record.Status != a.st.Status {
		e.Schedule = &ledger.Schedule{Class: class(a.st, a.record)}
	}
	return e
}

// appendAdopted appends the very same records until there is an answer, or ctx ends.
func (c *Coordinator) appendAdopted(ctx context.Context, entries []ledger.Entry) ([]ledger.Answer, error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		sent := time.Now()
		answers, err := c.ledger.Append(ctx, 0, entries)
		if err == nil {
			c.tell.committed(len(entries), time.Since(sent))
			return answers, nil
		}
		if errors.Is(err, ledger.ErrDatabaseChanged) || nap.For(ctx, wait) != nil {
			return nil, err
		}
	}
}

// answered folds what was stored, and looks again at what was not.
func (c *Coordinator) answered(ctx context.Context, as []*adopting, answers []ledger.Answer) error {
	var again []*adopting
	blocked := false
	for i, a := range as {
		switch answer := answers[i]; {
		case answer.Result == ledger.Appended, answer.Result == ledger.Mine && a.record.Seq > 1:
			a.record.At, a.head = answer.At, answer.Number
			was := a.st.Status
			if err := a.st.Apply(a.record); err != nil {
				a.out.Err = fmt.Errorf("adopt %s: a stored record does not fold; please report this: %w", a.st.ID, err)
				continue
			}
			c.tell.recorded(a.st, was, a.record)
		case answer.Result == ledger.Exists, answer.Result == ledger.Stale, answer.Result == ledger.Mine: // it was begun before
			again = append(again, a)
		case answer.Result == ledger.Blocked && !errors.Is(answer.Err, ledger.ErrKeys): // the open transaction of another process decides whether the work is known
			blocked = true
		default:
			a.out.Err = fmt.Errorf("adopt %s: the ledger did not take it (%s): %w", a.st.ID, answer.Result, errors.Join(errRefusedStart, answer.Err))
		}
	}
	if blocked {
		if err := nap.For(ctx, blockedPause); err != nil {
			return err
		}
	}
	return c.loadAdopted(ctx, again)
}

// loadAdopted folds the chains of works that are known: adoptions that were cut off go on, all
// others stay as they are.
func (c *Coordinator) loadAdopted(ctx context.Context, as []*adopting) error {
	if len(as) == 0 {
		return nil
	}
	ids, byID := make([]saga.ID, len(as)), make(map[saga.ID]*adopting, len(as))
	for i, a := range as {
		ids[i], byID[a.st.ID] = a.st.ID, a
	}
	chains, err := c.ledger.Load(ctx, ids)
	if err != nil {
		return err
	}
	for i := range chains {
		a := byID[chains[i].Instance.ID]
		st, err := machine.Fold(a.st.ID, chains[i].Records)
		if err != nil {
			a.out.Err = fmt.Errorf("adopt %s: its chain does not fold; run amends check: %w", a.st.ID, err)
			continue
		}
		a.st, a.salt, a.head, a.out.Known = st, chains[i].Instance.Salt, chains[i].Instance.Number, !st.Adopting
		if p := c.program(ledger.Version{Saga: st.ID.Saga, Version: st.Version}); p != nil {
			a.program = p // it may have been begun with an older version of the definition
		}
	}
	return nil
}
