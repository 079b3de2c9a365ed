package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// act carries one action out, if everything it rests on is still so, and says on the row what
// became of it. A row that it leaves pending was not tried.
func (r *Reconciler) act(ctx context.Context, row *plan.Row, planID string) {
	s := sight{item: plan.Item{Key: row.Key, Looked: plan.Looks}} // when it was planned; this is one more look
	r.look(ctx, &s, false)
	err := s.err
	if err == nil {
		if now := &s.finding; !rests(now, &row.Finding) {
			row.Outcome, row.Error = plan.Superseded, "it is not so any more: "+inWords(now)
			return
		}
		var waits error
		if waits, err = r.waits(ctx, &row.Finding); waits != nil {
			row.Outcome, row.Error = plan.Superseded, waits.Error()
			return
		}
		if err == nil {
			if err = r.proceed(ctx); err != nil { // the look may have waited long for its turn
				row.Error = err.Error()
				return
			}
			err = guard(func() error { return r.carryOut(ctx, &s, planID) })
		}
	}
	switch {
	case err == nil:
		row.Outcome = plan.Applied
	case errors.Is(err, errKnown):
		row.Outcome, row.Error = plan.Superseded, err.Error()
	case untried(ctx, err):
		row.Error = err.Error()
	default:
		row.Outcome, row.Error = plan.Failed, err.Error()
	}
}

// waits is what a start or a newer version waits for, which a person is still to decide on; nil: it does not.
func (r *Reconciler) waits(ctx context.Context, f *plan.Finding) (waits, err error) {
	if f.Action != plan.Start && f.Action != plan.Revise {
		return nil, nil
	}
	found, err := r.found(ctx, f.Key)
	if found.Open != nil {
		waits = found.Open
	}
	return waits, err
}

// untried reports whether an error says nothing about the action: its time has not come.
func untried(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, asking.ErrSpent)
}

// rests reports whether what is found now is what was planned for: the same difference, to be
// treated in the same way, on the same versions and documents.
func rests(now, planned *plan.Finding) bool {
	return now.Class == planned.Class && now.Action == planned.Action &&
		now.SourceRevision == planned.SourceRevision && now.LedgerRevision == planned.LedgerRevision &&
		slices.Equal(now.Documents, planned.Documents) && slices.Equal(now.Changes, planned.Changes)
}

func inWords(f *plan.Finding) string { return fmt.Sprintf("%s, %s", f.Class, f.Reason) }

// errKnown says that an adoption came late.
var errKnown = errors.New("the ledger knows it meanwhile")

// carryOut does what was found to be done. Everything it calls may be told the same twice.
func (r *Reconciler) carryOut(ctx context.Context, s *sight, planID string) error {
	f := &s.finding
	by := saga.Actor{Name: "reconcile " + r.name, Reason: "plan " + planID + ": " + f.Reason}
	switch f.Action {
	case plan.Start, plan.Revise, plan.Withdraw:
		unheard := s.object.Deleted && s.number != nil && s.number.accepted == 0 // the inbox counts no end of what it never heard of
		if s.number != nil && s.number.news && s.item.Truth.Revision == s.number.revision() && !unheard {
			return r.hear(ctx, s.object.ID)
		}
		state := s.change(r.source.Object)
		state.Cause = "plan " + planID
		return r.deliver(ctx, state)
	case plan.Again:
		return r.instances.Rerun(ctx, f.Key, planID, by)
	case plan.Resume:
		return r.instances.Resume(ctx, f.Key, by)
	case plan.Adopt:
		if err := r.behind(ctx, s); err != nil {
			return err
		}
		a, err := r.adoption(s)
		if err != nil {
			return err
		}
		done, err := r.adopt(ctx, []adoptee{a}, by)
		switch {
		case err != nil:
			return err
		case done[0].Known:
			return errKnown
		default:
			return done[0].Err
		}
	default:
		return fmt.Errorf("%q is not carried out by itself", f.Action)
	}
}

// readBack looks at a key whose action was carried out, until its work has come to rest. It returns
// what is wrong, or nothing.
func (r *Reconciler) readBack(ctx context.Context, key string) (wrong string, err error) {
	again := false // it was wrong once: the destination may not have settled
	for waited, wait := time.Duration(0), r.settle/16; ; waited, wait = waited+wait, min(2*wait, r.settle) {
		s := sight{item: plan.Item{Key: key, Looked: plan.Looks}}
		r.look(ctx, &s, false)
		f := &s.finding
		k := s.item.Known
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case s.err != nil: // the answer is that there is none
			return fmt.Sprintf("%s could not be read back: %v", key, s.err), nil //nolint:nilerr // it is in the answer
		case f.Action == plan.Nothing && k != nil && k.Status.Live(): // also while a lost answer is looked for
			if waited >= r.patience {
				return fmt.Sprintf("%s is still %s after %s", key, k.Status, waited), nil
			}
		case !f.Class.Drift():
			return "", nil
		case f.Action.Acts() && s.number != nil && s.number.news && waited < r.patience: // the inbox has not asked yet
		case again || f.Action == plan.Ask && k != nil && k.Reason != "":
			return fmt.Sprintf("%s was done, and is %s", key, inWords(f)), nil
		default:
			again, wait = true, r.settle
		}
		if err := nap.For(ctx, wait); err != nil {
			return "", err
		}
	}
}
