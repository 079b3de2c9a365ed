package main

import (
	"context"
	"encoding/json"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// mark is how the references of our invoices begin. What follows is the order's id, and the whole is the work's.
const mark = "shop:order:"

// invoicing is the saga: every order has an invoice, which says what the order says last, and a mail tells of it once.
func invoicing(books *Books) (*saga.Definition[Order], error) {
	write := func(_ context.Context, c saga.Call[Order]) (string, error) {
		return books.Write(Invoice{ID: c.PreviousID(), Mark: c.Work, Version: c.Revision, Total: c.Input.Total}), nil
	}
	find := func(_ context.Context, c saga.Call[Order]) (saga.Finding[string], error) {
		var ids []string
		for _, inv := range books.Under(func(i *Invoice) bool { return i.Mark == c.Work && i.Version == c.Revision && !i.Void }) {
			ids = append(ids, inv.ID)
		}
		return saga.Found(ids...), nil
	}
	void := func(_ context.Context, _ saga.Call[Order], id string) error {
		books.Edit(id, func(inv *Invoice) { inv.Void = true })
		return nil
	}
	mail := func(context.Context, saga.Call[Order]) (string, error) {
		books.Mail()
		return "", nil
	}
	return saga.Define("invoice-order", 1,
		saga.Do("invoice", write).Find(find).Undo(void).Pivot(),
		saga.Do("mail", mail).AtMostOnce().NoID().NoUndo("the shop tells the customer that the order is cancelled"),
	)
}

// decide says what the saga of an order should do, by whichever way a state of the order came.
func decide(o inbox.Snapshot) (saga.Change, error) {
	var order Order
	err := json.Unmarshal(o.Body, &order)
	if order.Cancelled {
		return saga.Change{Want: saga.WantWithdrawn, Input: order, Reason: "cancelled in the shop"}, err
	}
	return saga.Change{Input: order}, err
}
