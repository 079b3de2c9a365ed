package repair_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/saga"
)

// ledger is the world's third side.
type ledger struct{ *world }

func (w ledger) Heads(_ context.Context, after string, limit int) ([]repair.Head, error) {
	defer w.lock()()
	var heads []repair.Head
	for _, key := range slices.Sorted(maps.Keys(w.works)) {
		if key > after && len(heads) < limit {
			k := *w.works[key]
			k.Made, k.InDoubt = "", false
			heads = append(heads, repair.Head{Key: key, Known: k})
		}
	}
	return heads, nil
}

func (w ledger) Known(_ context.Context, key string) (*plan.Known, error) {
	defer w.lock()()
	if w.works[key] == nil || w.cutOff[key] {
		return nil, nil
	}
	k := *w.works[key]
	return &k, nil
}

func (w ledger) Resume(_ context.Context, key string, _ repair.By) error {
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

func (w ledger) Again(_ context.Context, key, _ string, _ repair.By) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k := w.works[key]
	w.begin(k, func() { w.fulfil(key, k, w.orders[key].Total) })
	return nil
}

func (w ledger) Adopt(_ context.Context, as []repair.Adoption, _ repair.By) ([]repair.Adopted, error) {
	defer w.lock()()
	out := make([]repair.Adopted, len(as))
	for i, a := range as {
		if err := cmp.Or(w.write(), w.deliverFails[a.Key]); err != nil {
			out[i].Err = err
			continue
		}
		if w.works[a.Key] != nil {
			out[i].Known = true
			continue
		}
		invoice := a.Effects["invoice"]
		k := &plan.Known{Works: 1, Status: saga.Completed, Revision: a.Change.Revision, Made: invoice.ExternalID}
		w.works[a.Key], w.mails[a.Key] = k, max(1, w.mails[a.Key]) // counts as sent
		switch {
		case a.Cancelled:
			k.Status, k.Made = saga.Compensated, ""
		case a.Quarantine != "":
			k.Status, k.Reason = saga.Review, saga.ReasonInDoubt
		case invoice.Revision != "" && invoice.Revision != a.Change.Revision:
			total := w.orders[a.Key].Total
			w.begin(k, func() { w.fulfil(a.Key, k, total) })
		}
		out[i].Status = k.Status
	}
	return out, nil
}

// effects says what a document shows.
func effects(_ *scan.Object, live, _ []plan.Document) (map[string]repair.Effect, error) {
	if len(live) == 0 {
		return nil, nil
	}
	return map[string]repair.Effect{"invoice": {ExternalID: live[0].ID}}, nil
}
