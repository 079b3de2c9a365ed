package machine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

type order struct {
	Number string
	Lines  int
}

// orderToInvoice is a saga whose pivot refuses.
func orderToInvoice() (*saga.Definition[order], error) {
	return saga.Define("order-to-invoice", 1,
		saga.Do("customer", func(context.Context, saga.Call[order]) (string, error) { return "cus_7", nil }).
			Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", func(_ context.Context, c saga.Call[order]) (string, error) {
			fmt.Printf("create an invoice of %d lines for %s\n", c.Input.Lines, c.ExternalID("customer"))
			return "inv_5530", nil
		}).Idempotent().UndoMaybe(func(_ context.Context, _ saga.Call[order], id *string) error {
			fmt.Println("void", *id)
			return nil
		}),
		saga.Do("mark-synced", func(context.Context, saga.Call[order]) (string, error) {
			return "", saga.Permanent(errors.New("the order was cancelled"))
		}).NoID().Idempotent().NoUndo("the order is cancelled").Pivot(),
	)
}

// The smallest caller of the machine: it keeps the chain in a slice, acts, and feeds back what came
// of it. The order was cancelled meanwhile, so the pivot refuses and the invoice is voided. Where
// the work stands is a fold of its records.
func ExampleFold() {
	d, err := orderToInvoice()
	if err != nil {
		fmt.Println(err)
		return
	}
	id := saga.ID{Saga: "order-to-invoice", Work: "shop:order:10492"}
	in, err := d.Accept(id.Work, order{Number: "10492", Lines: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	st := &machine.State{ID: id}
	var chain []machine.Record
	ev := machine.Event{Start: &machine.Start{Input: in.Input}}
	for !st.Status.Terminal() {
		ev.Now, ev.Slot = machine.Moment{Earliest: now, Latest: now}, true
		dec, err := machine.Decide(d.Spec(), st, ev)
		if err != nil {
			fmt.Println(err)
			return
		}
		r := dec.Record // 1. append
		r.Seal(id, machine.Salt{}, st.Seq, st.TailHash, 1)
		r.At = now
		chain = append(chain, *r)
		if err := st.Apply(r); err != nil {
			fmt.Println(err)
			return
		}
		ev = machine.Event{}
		if dec.Do.Do == machine.Act { // 2. act
			o := d.Act(context.Background(), st.Invocation(dec.Do))
			ev = machine.Event{Outcome: &o} // 3. feed back
		}
	}

	st, err = machine.Fold(id, chain)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s after %d records\n", st.Status, st.Seq)
	for _, s := range st.Steps {
		fmt.Printf("%s: %s %q, undo %q\n", s.Name, s.Forward.Phase, s.ExternalID, s.Undo.Phase)
	}
	// Output:
	// create an invoice of 3 lines for cus_7
	// void inv_5530
	// compensated after 6 records
	// customer: done "cus_7", undo ""
	// invoice: done "inv_5530", undo "done"
	// mark-synced: refused "", undo ""
}
