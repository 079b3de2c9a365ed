package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// Objects without a version are numbered by the inbox: each state that it accepts is one more. A comparison goes by that count. What it
// finds that the inbox has not accepted yet it has the inbox ask for, so that one place numbers.

// hearing is what a reconciler needs of the inbox.
type hearing interface {
	Entry(ctx context.Context, o intake.Object) (*intake.Entry, error)
	Update(ctx context.Context, o intake.Object, decide func(now time.Time, e *intake.Entry) error) error
	Found(ctx context.Context, work string) (intake.Found, error)
}

// numbered is how the inbox numbers a state of an object: by the count of those it has accepted.
type numbered struct {
	accepted int64
	news     bool // the state is not among them: it is the next one
}

func (n *numbered) revision() string {
	if n.news {
		return strconv.FormatInt(n.accepted+1, 10)
	}
	return strconv.FormatInt(n.accepted, 10)
}

// number numbers the state of an object that has no version; nil for one that has.
func (r *Reconciler) number(ctx context.Context, o *scan.Listed) (*numbered, error) {
	if o.Version.Revision() != "" || r.hearing == nil {
		return nil, nil
	}
	e, err := r.hearing.Entry(ctx, r.objectOf(o.ID))
	if err != nil {
		return nil, fmt.Errorf("ask the inbox: %w", err)
	}
	if e == nil || e.Accepted == 0 {
		return &numbered{0, true}, nil
	}
	says, err := intake.Fingerprint(o.Body, r.source.Volatile...)
	return &numbered{e.Accepted, err != nil || says != e.Fingerprint || o.Deleted != e.Deleted}, nil
}

// stands is the object as it is adopted: of one without a version whatever the inbox accepts next is newer.
func (s *sight) stands(of inbox.Object) inbox.Snapshot {
	c := s.change(of)
	if n := s.number; n != nil && c.Revision == n.revision() {
		c.Revision = strconv.FormatInt(n.accepted, 10)
	}
	return c
}

func (r *Reconciler) objectOf(id string) inbox.Object {
	o := r.source.Object
	o.ID = id
	return o
}

// behind has the inbox count on behind the states that documents show: a ledger that was lost knew them, and their keys are used.
func (r *Reconciler) behind(ctx context.Context, s *sight) error {
	if s.number == nil {
		return nil
	}
	shown := s.number.accepted
	for i := range s.item.Documents {
		if n, err := strconv.ParseInt(saga.BaseRevision(s.item.Documents[i].Revision), 10, 64); err == nil {
			shown = max(shown, n)
		}
	}
	if shown == s.number.accepted {
		return nil
	}
	was := s.number.revision()
	if s.number.accepted = shown; s.item.Truth.Revision == was {
		s.item.Truth.Revision = s.number.revision()
	}
	return r.hearing.Update(ctx, r.objectOf(s.object.ID), func(_ time.Time, e *intake.Entry) error {
		if e.Accepted < shown {
			e.Accepted, e.Delivered = shown, max(e.Delivered, shown)
		}
		return nil
	})
}

// hear has the inbox ask the source for an object, and hand on what it says.
func (r *Reconciler) hear(ctx context.Context, id string) error {
	err := r.hearing.Update(ctx, r.objectOf(id), func(now time.Time, e *intake.Entry) error {
		e.FetchAgain()
		e.Due = now
		return nil
	})
	if err == nil && r.wake != nil {
		r.wake()
	}
	return err
}
