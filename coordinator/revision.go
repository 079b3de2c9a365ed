package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Withdraw says that the source cancelled or deleted the object of a work, at a version of its own.
// What the work did is undone: before the pivot wherever it stands, after it, or when the work has
// ended, if every step that stands says how it is undone or why it need not be; else the work goes
// to review for a person to choose. A revision that is not newer than what the work has heard
// changes nothing. An unknown work matches
// [ledger.ErrNotFound]: there is nothing to undo.
func (c *Coordinator) Withdraw(ctx context.Context, sagaName, work, revision string, by saga.Actor) error {
	id := saga.ID{Saga: sagaName, Work: work}
	if err := by.Validate(); err != nil {
		return fmt.Errorf("withdraw %s:\n%w", id, err)
	}
	if revision == "" {
		return fmt.Errorf("withdraw %s: say at which version of the source it was cancelled; without one, cancel it", id)
	}
	if err := saga.CheckRevision(revision); err != nil {
		return fmt.Errorf("withdraw %s: %w", id, err)
	}
	return c.knownOf(ctx, id, revision, c.post(ctx, id, machine.Signal{
		Kind: machine.SignalCancel, Key: "withdraw:" + revision, Actor: by.Name, Reason: by.Reason,
		News: machine.News{Revision: revision},
	}))
}

// knownOf is err, unless the records of the work have gone, and what its source says of it is not new or was done: it is undone.
func (c *Coordinator) knownOf(ctx context.Context, id saga.ID, revision string, err error) error {
	if !errors.Is(err, ErrForgotten) {
		return err
	}
	st, ferr := c.fold(ctx, id)
	if ferr == nil && (st.Status == saga.Compensated || saga.CompareRevisions(revision, st.NewestRevision) <= 0) {
		return nil
	}
	return errors.Join(err, ferr)
}

// revise posts the input of a newer version to a work that is known.
func (c *Coordinator) revise(ctx context.Context, in *intake) error {
	return c.post(ctx, in.id, machine.Signal{
		Kind: machine.SignalRevise, Key: "revise:" + in.revision, Actor: cmp.Or(in.starter, in.source), Reason: in.cause,
		News: machine.News{Revision: in.revision, Version: in.program.Spec().Version, Input: in.accepted.Input, Identity: in.accepted.Apart()},
	})
}

// post posts a signal, and has the work told at once: here when it is in hand here, and by other processes else.
func (c *Coordinator) post(ctx context.Context, id saga.ID, sig machine.Signal) error {
	p, err := c.ledger.Post(ctx, id, sig)
	if err != nil {
		return fmt.Errorf("%s %s: %w", sig.Kind, id, err)
	}
	c.announce(id, sig, p)
	return nil
}

// heard has a signal read at once that was posted in this process. It reports whether the work is in hand here.
func (c *Coordinator) heard(id saga.ID, sig *machine.Signal) bool {
	if w := c.hand.holding(id); w != nil {
		w.hear(sig)
		return true
	}
	c.wake()
	return false
}

// newer reports whether the start brings a version of the source that the work has not heard of.
func (in *intake) newer(st *machine.State) bool {
	return in.revision != "" && saga.CompareRevisions(in.revision, st.NewestRevision) > 0
}

// same reports whether a signal brings the identity that the work heard last, so that nothing is to
// be done again.
func (w *work) same(sig *machine.Signal) bool {
	if sig.Kind != machine.SignalRevise {
		return false
	}
	before, err := heardLast(w.program, w.st)
	if err != nil {
		return false // what no longer decodes cannot be compared
	}
	now, err := w.program.Accept(w.id.Work, sig.Input)
	return err == nil && before == now.Identity
}

// heardLast is the identity of the input that the work heard last, whether it has begun it or not.
func heardLast(p saga.Program, st *machine.State) (string, error) {
	input, gone := st.Input, st.InputGone
	if n := st.PendingRevision; n != nil && !n.Withdrawn {
		input, gone = n.Input, n.InputGone
	}
	if gone != nil {
		return gone.Same(), nil
	}
	accepted, err := p.Accept(st.ID.Work, input)
	return accepted.Identity, err
}

// programFor returns the program that can run a work: the one of its version. For a work that has
// ended a newer one will do: it hears what is said to the work and may begin a revision. An older
// one does not know what the work did.
func (c *Coordinator) programFor(st *machine.State) saga.Program {
	if p := c.program(ledger.Version{Saga: st.ID.Saga, Version: st.Version}); p != nil || !st.Status.Terminal() {
		return p
	}
	if p := c.newestProgram(st.ID.Saga); p != nil && p.Spec().Version > st.Version {
		return p
	}
	return nil
}

// newestSpec is the definition that a revision of the work takes; nil: its own.
func (c *Coordinator) newestSpec(st *machine.State) *program.Spec {
	if p := c.newestProgram(st.ID.Saga); p != nil {
		return p.Spec()
	}
	return nil
}

// newestProgram returns the program of a saga's newest version here, or nil.
func (c *Coordinator) newestProgram(name string) saga.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest[name]
}
