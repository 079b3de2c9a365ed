package reconcile_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/saga"
)

// fakeLedger is the world's third side.
type fakeLedger struct{ *world }

func (w fakeLedger) Heads(_ context.Context, after string, limit int) ([]plan.Head, error) {
	defer w.lock()()
	var heads []plan.Head
	for _, key := range slices.Sorted(maps.Keys(w.works)) {
		if key > after && len(heads) < limit {
			k := *w.works[key]
			k.Made, k.InDoubt = "", false
			heads = append(heads, plan.Head{Key: key, Known: k})
		}
	}
	return heads, nil
}

func (w fakeLedger) Known(_ context.Context, key string) (*plan.Known, error) {
	defer w.lock()()
	if w.works[key] == nil || w.cutOff[key] {
		return nil, nil
	}
	k := *w.works[key]
	return &k, nil
}

func (w fakeLedger) Resume(_ context.Context, key string, _ saga.Actor) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k, o := w.works[key], w.orders[key]
	w.begin(k, func() {
		if o != nil {
			k.Revision = strconv.FormatInt(o.Version, 10)
			w.fulfil(key, k, o.Total)
		}
	})
	return nil
}

func (w fakeLedger) Rerun(_ context.Context, key, _ string, _ saga.Actor) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k := w.works[key]
	w.begin(k, func() { w.fulfil(key, k, w.orders[key].Total) })
	return nil
}

func (w fakeLedger) Undo(_ context.Context, key string, _ saga.Actor) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k := w.works[key]
	w.begin(k, func() {
		k.Status = saga.Compensated
		for _, d := range w.live(key) {
			d.Void = d.ID == k.Made
		}
	})
	return nil
}

func (w fakeLedger) Adopt(_ context.Context, as []coordinator.Adoption) ([]coordinator.Adopted, error) {
	defer w.lock()()
	out := make([]coordinator.Adopted, len(as))
	for i, a := range as {
		if err := cmp.Or(w.write(), w.deliverFails[a.Work]); err != nil {
			out[i].Err = err
			continue
		}
		if w.works[a.Work] != nil {
			out[i].Known = true
			continue
		}
		invoice := a.Effects["invoice"]
		k := &plan.Known{Works: 1, Status: saga.Completed, Revision: a.Revision, Made: invoice.ExternalID}
		w.works[a.Work], w.mails[a.Work] = k, max(1, w.mails[a.Work]) // counts as sent
		switch {
		case a.Cancelled:
			k.Status, k.Made = saga.Compensated, ""
		case a.Quarantine != "":
			k.Status, k.Reason = saga.Review, saga.ReasonInDoubt
		case invoice.Revision != "" && invoice.Revision != a.Revision:
			total := w.orders[a.Work].Total
			w.begin(k, func() { w.fulfil(a.Work, k, total) })
		}
		out[i].Status = k.Status
	}
	return out, nil
}

// effects says what a document shows.
func effects(_ *scan.Listed, live, _ []plan.Document) (map[string]reconcile.Effect, error) {
	if len(live) == 0 {
		return nil, nil
	}
	return map[string]reconcile.Effect{"invoice": {ExternalID: live[0].ID}}, nil
}
