package main

import (
	"fmt"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

const sagaName = "invoice-order"

// define is the saga: a paid order has one invoice. find asks for it when the answer was lost.
func define(b *Books) (*saga.Definition[Order], error) {
	return saga.Define(sagaName, 1, saga.Do("invoice", b.create).To("books").Find(b.find).Update(b.update).Undo(b.void))
}

// decide says what should be of an order, by whichever way its state came.
func decide(o inbox.Snapshot) (saga.Change, error) {
	var order Order
	if err := o.Decode(&order); err != nil {
		return saga.Change{}, err
	}
	switch order.Status {
	case "paid":
		return saga.Change{Input: order}, nil
	case "cancelled":
		return saga.Change{Want: saga.WantWithdrawn, Input: order, Reason: "cancelled in the shop"}, nil
	default:
		return saga.Change{Want: saga.WantNothing, Input: order}, nil
	}
}

// fields are what an invoice should say for an order.
func fields(o Order) map[string]string { return map[string]string{"cents": fmt.Sprint(o.Cents)} }
