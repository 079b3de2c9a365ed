package saga_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

type Order struct {
	Number string
	Lines  int
}

type Invoice struct {
	Number string
	Total  int
}

func (i Invoice) ExternalID() string { return i.Number }

// Books is the part of an accounting system that the examples need.
type Books struct{}

func (b *Books) ensureCustomer(context.Context, saga.Call[Order]) (string, error) {
	return "cus_7", nil
}

func (b *Books) createInvoice(_ context.Context, c saga.Call[Order]) (Invoice, error) {
	fmt.Printf("create an invoice of %d lines for %s\n", c.Input.Lines, c.ExternalID("customer"))
	return Invoice{"inv_5530", 99}, nil
}

func (b *Books) updateInvoice(_ context.Context, c saga.Call[Order], id string) (Invoice, error) {
	fmt.Printf("change %s to %d lines\n", id, c.Input.Lines)
	return Invoice{id, 99}, nil
}

func (b *Books) findInvoice(context.Context, saga.Call[Order]) (saga.Finding[Invoice], error) {
	return saga.NotFound[Invoice](), nil
}

func (b *Books) voidInvoice(_ context.Context, _ saga.Call[Order], i Invoice) error {
	fmt.Println("void", i.Number)
	return nil
}

func (b *Books) markSynced(context.Context, saga.Call[Order]) (string, error) {
	return "marked", nil
}

func (b *Books) clearSynced(context.Context, saga.Call[Order], *string) error { return nil }

func orderToInvoice(b *Books) (*saga.Definition[Order], error) {
	return saga.Define("order-to-invoice", 1,
		saga.Do("customer", b.ensureCustomer).Idempotent().NoUndo("customers outlive their orders"),
		saga.Do("invoice", b.createInvoice).Find(b.findInvoice).Update(b.updateInvoice).Undo(b.voidInvoice),
		saga.Do("mark-synced", b.markSynced).NoID().Idempotent().UndoMaybe(b.clearSynced).Pivot(),
	)
}

// A definition is a value: it can be read back as its structure.
func ExampleDefine() {
	d, err := orderToInvoice(&Books{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range d.Spec().Steps {
		fmt.Printf("%-12s %-11s undo %-5v pivot %v\n", s.Name, s.Repeat, s.Undo, s.Pivot)
	}
	// Output:
	// customer     idempotent  undo false pivot false
	// invoice      find        undo true  pivot false
	// mark-synced  idempotent  undo true  pivot true
}

// A payment is authorized now and captured after two weeks. What is not captured within a month is released.
// examples/capture-later runs it.
func ExampleDelay() {
	send := func(context.Context, saga.Call[Order]) (string, error) { return "id_1", nil }
	release := func(context.Context, saga.Call[Order], *string) error { return nil }
	const day = 24 * time.Hour
	d, err := saga.Define("capture-later", 1,
		saga.Deadline[Order](30*day, saga.Compensate),
		saga.Do("authorize", send).Keyed(60*day).Once().UndoMaybe(release),
		saga.Delay[Order]("cooling-off", 14*day),
		saga.Do("capture", send).Keyed(60*day).Once().NoUndo("a refund is a saga of its own").Pivot(),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("within", d.Spec().Deadline)
	for _, s := range d.Spec().Steps {
		fmt.Println(s.Name, s.Delay)
	}
	// Output:
	// within 720h0m0s
	// authorize 0s
	// cooling-off 336h0m0s
	// capture 0s
}

// A film is rendered elsewhere, which takes hours. The renderer calls back with the token that it was sent; a lost callback is only a
// delay, because it is asked, too. examples/charge-and-provision runs such a saga.
func ExampleAwait() {
	submit := func(_ context.Context, c saga.Call[Order]) (string, error) {
		return "job_1", nil // it sends c.CallbackToken() along
	}
	cancel := func(context.Context, saga.Call[Order], *string) error { return nil }
	read := func(_ saga.Call[Order], m saga.Message) (film string, err error) {
		return film, json.Unmarshal(m.Body, &film)
	}
	find := func(context.Context, saga.Call[Order]) (saga.Finding[string], error) {
		return saga.NotFound[string](), nil
	}
	d, err := saga.Define("film", 1,
		saga.Do("submit", submit).Idempotent().UndoMaybe(cancel),
		saga.Await("rendered", read).Callback("submit").Within(48*time.Hour, saga.Compensate).Find(find).Poll(time.Hour),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := d.Spec().Steps[1].Answer
	fmt.Println("waits for the callback of", a.Callback, "for", time.Duration(a.Within), "and asks every", time.Duration(a.Poll))
	// Output: waits for the callback of submit for 48h0m0s and asks every 1h0m0s
}

// A large order waits for two people of finance before the customer is charged.
func ExampleApprove() {
	type order struct{ Cents int64 }
	ask := func(_ context.Context, c saga.Call[order]) (struct{}, error) {
		b := c.Brief() // a mail to b.Roles, with the address of the page: b.Path
		return struct{}{}, fmt.Errorf("no mail server to ask %s", b.Roles)
	}
	charge := func(context.Context, saga.Call[order]) (string, error) { return "ch_1", nil }
	refund := func(context.Context, saga.Call[order], *string) error { return nil }
	d, err := saga.Define("charge", 1,
		saga.Approve[order]("approved").By("finance").Votes(2).NotStarter().Within(72*time.Hour).
			When(func(c saga.Call[order]) bool { return c.Input.Cents > 100_000 }).
			Ask(saga.Do("ask-finance", ask).Keyed(24*time.Hour).NoID().NoUndo("its page says that it is over")).
			Remind(4*time.Hour).Escalate(24*time.Hour, "cfo"),
		saga.Do("charge", charge).Keyed(24*time.Hour).Once().UndoMaybe(refund),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range d.Spec().Steps {
		fmt.Println(s.Name)
	}
	// Output:
	// ask-finance
	// ask-finance-reminder
	// ask-finance-escalation
	// approved
	// charge
}

// Every fault is reported at once.
func ExampleDefine_faults() {
	b := &Books{}
	_, err := saga.Define("order-to-invoice", 1,
		saga.Do("invoice", b.createInvoice).Undo(b.voidInvoice),
		saga.Do("mark synced", b.markSynced).Idempotent().Pivot(),
		saga.Do("again", b.markSynced).Idempotent().UndoMaybe(b.clearSynced),
	)
	fmt.Println(err)
	// Output:
	// saga "order-to-invoice" version 1 is wrong:
	// step "invoice": it does not say how it is safe to repeat: Idempotent, Keyed, Find or AtMostOnce
	// step "invoice": its Undo needs the result, and after a lost answer nothing could tell it: say Find, too, or say UndoMaybe and take a nil
	// step "mark synced": its name "mark synced" may only have letters, digits, '-', '_' and '.', and starts with a letter or digit
	// step "mark synced": it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason
}
