package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What breaks the rules of controls.

// controlOverwriter: a control is set whatever it is by now.
type controlOverwriter struct{ Store }

func (o controlOverwriter) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	is, err := o.Store.SetControl(ctx, t, c)
	if !errors.Is(err, ledger.ErrChanged) {
		return is, err
	}
	all, _, err := o.Controls(ctx)
	c.Version = 0
	for _, now := range all {
		if now.Kind == c.Kind && now.Name == c.Name {
			c.Version = now.Version
		}
	}
	if err != nil {
		return is, err
	}
	return o.Store.SetControl(ctx, t, c)
}

// haunted: what a dead session wants to control is set as if a person had.
type haunted struct{ Store }

func (h haunted) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	is, err := h.Store.SetControl(ctx, t, c)
	if !errors.Is(err, ledger.ErrSessionDead) {
		return is, err
	}
	c.Actor = "the late " + t.String()
	return h.Store.SetControl(ctx, 0, c)
}

// shortlived: of what people did to a control only the last is kept.
type shortlived struct{ Store }

func (s shortlived) Acts(ctx context.Context, kind ledger.ControlKind, name string, _ int) ([]ledger.Control, error) {
	return s.Store.Acts(ctx, kind, name, 1)
}

// discreet: who looked at what is not told.
type discreet struct{ Store }

func (d discreet) Deeds(ctx context.Context, before time.Time, limit int) ([]ledger.Deed, error) {
	all, err := d.Store.Deeds(ctx, before, limit)
	return slices.DeleteFunc(all, func(d ledger.Deed) bool { return d.Kind == ledger.DeedLooked }), err
}

// doubler: each who asks is the first.
type doubler struct{ Store }

func (f doubler) Request(ctx context.Context, r ledger.Request) (ledger.Request, error) {
	kept, err := f.Store.Request(ctx, r)
	kept.Nonce = r.Nonce
	return kept, err
}

// accuser: what a program says counts as said by a person.
type accuser struct{ Store }

func (a accuser) Post(ctx context.Context, id saga.ID, s machine.Signal) error {
	s.ByHand = true
	return a.Store.Post(ctx, id, s)
}

// mute: a claim does not tell of the newest version of the controls.
type mute struct{ Store }

func (m mute) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	got, err := m.Store.Claim(ctx, t, c)
	got.Controls = 0
	return got, err
}

// renamer: a set that comes again is not known again.
type renamer struct{ Store }

func (r renamer) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	c.Nonce = nonces.Add(1)
	return r.Store.SetControl(ctx, t, c)
}
