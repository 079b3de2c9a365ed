package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Apply makes an instance what its source says: it starts the saga, or a newer revision of it, or
// withdraws it. It is the Apply of an inbox's source and of a reconciler. Applied twice, a change
// does nothing the second time, and what was never started is withdrawn by doing nothing.
func (c *Coordinator) Apply(ctx context.Context, ch saga.Change) error {
	if ch.Message != nil {
		return c.applyMessage(ctx, &ch)
	}
	switch ch.Want {
	case saga.WantRun:
		_, err := c.Start(ctx, ch.ID.Saga, ch.ID.Work, ch.Input, &saga.StartOptions{Revision: ch.Revision, Source: ch.Actor, Cause: ch.Cause, Starter: cmp.Or(ch.Starter, ch.Actor, "its source"), NotBefore: ch.NotBefore})
		return err
	case saga.WantNothing:
		return c.letGo(ctx, &ch)
	case saga.WantHeld:
		return c.hold(ctx, &ch)
	case saga.WantWithdrawn:
		by := saga.Actor{Name: cmp.Or(ch.Actor, "its source"), Reason: cmp.Or(ch.Reason, "the source does not want it any more")}
		err := c.Withdraw(ctx, ch.ID.Saga, ch.ID.Work, ch.Revision, by)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return err
	default:
		return fmt.Errorf("apply a change to %s: Want is %q: use saga.WantRun, WantNothing, WantHeld or WantWithdrawn", ch.ID, ch.Want)
	}
}

// hold has an instance go no further that its source does not want gone on with yet. What is not known is not begun.
func (c *Coordinator) hold(ctx context.Context, ch *saga.Change) error {
	if err := saga.CheckRevision(ch.Revision); err != nil || ch.Revision == "" {
		return fmt.Errorf("hold %s: say at which version of the source: without one what ends it could not be told from what came before: %w", ch.ID, cmp.Or(err, ErrInvalid))
	}
	err := c.post(ctx, ch.ID, machine.Signal{
		Kind: machine.SignalPause, Key: "hold:" + ch.Revision, Actor: cmp.Or(ch.Actor, "its source"), Reason: cmp.Or(ch.Reason, "the source is not done with it yet"),
		News: machine.News{Revision: ch.Revision},
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return c.knownOf(ctx, ch.ID, ch.Revision, err)
}

// letGo ends a hold of the source, which wants nothing done now; without one there is nothing to do.
func (c *Coordinator) letGo(ctx context.Context, ch *saga.Change) error {
	s, err := c.stand(ctx, ch.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("apply a change to %s: %w", ch.ID, err)
	}
	held := s.st.HeldRevision != "" || slices.ContainsFunc(s.unread, func(u machine.Signal) bool { return u.Kind == machine.SignalPause && u.Revision != "" })
	if !held || ch.Revision == "" {
		return nil
	}
	return c.post(ctx, ch.ID, machine.Signal{
		Kind: machine.SignalResume, Key: "let-go:" + ch.Revision, Actor: cmp.Or(ch.Actor, "its source"), Reason: "the source is done with it",
		News: machine.News{Revision: ch.Revision},
	})
}

// applyMessage brings a message that a source sent to what waits for it. One that is declined, or that a definition could not read, is on
// record there, and does not come again.
func (c *Coordinator) applyMessage(ctx context.Context, ch *saga.Change) error {
	m := *ch.Message
	if m.ID == "" {
		m.ID = ch.ID.Work
		if ch.Revision != "" {
			m.ID += "/" + ch.Revision
		}
		if len(m.ID) > program.MaxWork {
			m.ID = digestOf(m.ID)
		}
	}
	_, err := c.Deliver(ctx, m)
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrBroken) && !errors.Is(err, ErrBehind) {
		return nil
	}
	return err
}
