package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/play"
	"github.com/amends-dev/amends/internal/shopsim/rest"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// silent is an address at which no server answers.
const silent = "http://127.0.0.1:1"

// definition is the job's saga in a place. Servers left out do not answer.
func definition(t *testing.T, p play.Place) *saga.Definition[shop.Order] {
	t.Helper()
	for _, url := range []*string{&p.Shop, &p.Books} {
		if *url == "" {
			*url = silent
		}
	}
	p.Answer, p.Settle = time.Second, time.Second
	job, err := newSync(p)
	if err != nil {
		t.Fatal(err)
	}
	d, err := job.Saga()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// order is a paid order, and call what a step of it is called with once the steps before are done.
func order() shop.Order { return world.Orders(world.Config{Seed: 1, Orders: 1})[0] }

func call(t *testing.T, step string) *program.Invocation {
	t.Helper()
	input, err := json.Marshal(order())
	if err != nil {
		t.Fatal(err)
	}
	return &program.Invocation{
		Work: order().Ref(), Step: step, Direction: saga.Forward, Attempt: 1, Key: "the-key", Input: input,
		Results: map[string]program.Result{"customer": {ExternalID: "cus_0001"}, "invoice": {ExternalID: "inv_0001"}},
	}
}

// The saga is what the README and the design show: four steps, how each is safe to repeat, and how
// it is undone.
func TestSaga(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range definition(t, play.Place{}).Spec().Steps {
		line := fmt.Sprintf("%s %s to %s", s.Name, s.Repeat, s.To)
		if s.Find {
			line += " by lookup"
		}
		if s.UndoMaybe {
			line += " maybe"
		}
		if s.Undo {
			line += " undo"
		}
		if s.Pivot {
			line += " pivot"
		}
		if s.NoUndo != "" {
			line += ": " + s.NoUndo
		}
		got = append(got, line)
	}
	want := []string{
		"customer idempotent to books: customers outlive their orders",
		"invoice find to books by lookup undo",
		"mark-synced idempotent to shop maybe undo pivot",
		"receipt at-most-once to mail: the shop tells the customer that the order is cancelled",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range definition(t, play.Place{}).Spec().Steps {
		if _, limited := destinations[s.To]; !limited {
			t.Errorf("step %s goes to %q, for which there is no limit", s.Name, s.To)
		}
	}
}

// What a mail server says decides what is known: it did not take the letter for now (4xx) or for
// good (5xx), and both are said instead of taking it. What breaks before the letter leaves has not
// sent it. What breaks after leaves open whether it did, and it is not guessed.
func TestReceipt(t *testing.T) {
	t.Parallel()
	says := func(code int) mail.Around {
		return func(string, net.Conn, func() error) error { return &smtp.SMTPError{Code: code, Message: "no"} }
	}
	for name, c := range map[string]struct {
		around mail.Around
		to     string // the customer's address, if not the order's
		want   saga.Class
		stored int
	}{
		"taken":                {nil, "", "done", 1},
		"not now":              {says(451), "", saga.Unsent, 0},
		"no":                   {says(554), "", saga.Refused, 0},
		"no such mailbox":      {nil, "gone@" + mail.BounceDomain, saga.Refused, 0},
		"taken, then cut off":  {func(_ string, c net.Conn, store func() error) error { return errors.Join(store(), c.Close()) }, "", saga.Unknown, 1},
		"cut off, never taken": {func(_ string, c net.Conn, _ func() error) error { return c.Close() }, "", saga.Unknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, addr := mailServer(t, c.around)
			inv := call(t, "receipt")
			if c.to != "" {
				o := order()
				o.Customer.Email = c.to
				inv.Input, _ = json.Marshal(o)
			}
			got := definition(t, play.Place{Mail: addr}).Act(t.Context(), inv)
			if got.Class != c.want || len(box.Messages()) != c.stored {
				t.Errorf("%s (%s), %d in the mailbox; want %s and %d", got.Class, got.Error, len(box.Messages()), c.want, c.stored)
			}
			if got.Done() && (got.ExternalID != "the-key@orders.example" || len(box.Find(got.ExternalID)) != 1) {
				t.Errorf("the receipt's id is %q, the mailbox has %+v", got.ExternalID, box.Messages())
			}
		})
	}
}

// A letter that never left is provably not sent: no server answers, the server hangs up before it
// asks for the letter, or our own gate is closed.
func TestReceiptThatNeverLeft(t *testing.T) {
	t.Parallel()
	rude, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer rude.Close()
	go func() {
		for {
			conn, err := rude.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	box, addr := mailServer(t, nil)
	closed := program.NewGate(nil)
	closed.Close()
	for name, c := range map[string]struct {
		addr string
		gate *program.Gate
	}{
		"no server answers": {"127.0.0.1:1", nil},
		"hangs up":          {rude.Addr().String(), nil},
		"the gate closed":   {addr, closed},
	} {
		inv := call(t, "receipt")
		inv.Gate = c.gate
		if got := definition(t, play.Place{Mail: c.addr}).Act(t.Context(), inv); got.Class != saga.Unsent {
			t.Errorf("%s: %s (%s), want %s", name, got.Class, got.Error, saga.Unsent)
		}
	}
	if n := len(box.Messages()); n != 0 {
		t.Errorf("%d letters left through a closed gate", n)
	}
}

func mailServer(t *testing.T, around mail.Around) (*mail.Mailbox, string) {
	t.Helper()
	box, err := mail.OpenMailbox(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server, err := mail.Listen(t.Context(), box, around)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return box, server.Addr
}

// The lookup tells live invoices under our reference. A voided one keeps its reference and does not
// count; two live ones are a duplicate, with both ids.
func TestFindInvoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states []books.State
		want   program.Answer
		id     string
	}{
		"none":           {nil, program.AnswerNotFound, ""},
		"one":            {[]books.State{books.Live}, program.AnswerFound, "inv_0001"},
		"voided":         {[]books.State{books.Void}, program.AnswerNotFound, ""},
		"voided, remade": {[]books.State{books.Void, books.Live}, program.AnswerFound, "inv_0002"},
		"two":            {[]books.State{books.Live, books.Live}, program.AnswerSeveral, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, url := booksServer(t)
			for _, state := range c.states {
				addInvoice(t, store, state)
			}
			got := definition(t, play.Place{Books: url}).Look(t.Context(), call(t, "invoice"))
			if got.Answer != c.want || got.ExternalID != c.id {
				t.Errorf("%s %q (%s), want %s %q", got.Answer, got.ExternalID, got.Error, c.want, c.id)
			}
			if c.want == program.AnswerSeveral && len(got.IDs) != 2 {
				t.Errorf("the duplicates are %v", got.IDs)
			}
		})
	}
	if got := definition(t, play.Place{}).Look(t.Context(), call(t, "invoice")); got.Answer != program.AnswerUnclear {
		t.Errorf("books that do not answer say %s", got.Answer)
	}
}

// An invoice that was deleted at the books is no refusal when a newer version of its order is to be
// shown: the lookup finds nothing, and the next attempt makes another.
func TestInvoiceDeletedAtTheBooks(t *testing.T) {
	t.Parallel()
	store, url := booksServer(t)
	d := definition(t, play.Place{Books: url})
	left := addInvoice(t, store, books.Live)
	if _, err := store.Delete(t.Context(), left.ID); err != nil {
		t.Fatal(err)
	}
	update := call(t, "invoice")
	delete(update.Results, "invoice")
	update.Previous, update.Gate = &program.Result{ExternalID: left.ID}, program.NewGate(nil)
	if got := d.Act(t.Context(), update); got.Class != saga.Gone {
		t.Fatalf("the update is %s (%s)", got.Class, got.Error)
	}
	update.Previous, update.Gate = nil, program.NewGate(nil)
	if got := d.Look(t.Context(), update); got.Answer != program.AnswerNotFound {
		t.Errorf("the lookup says %s (%s)", got.Answer, got.Error)
	}
	customer, err := store.PutCustomer(t.Context(), order().Customer.Ref(), books.Contact{Name: order().Customer.Name})
	if err != nil {
		t.Fatal(err)
	}
	update.Results["customer"], update.Key = program.Result{ExternalID: customer.ID}, "a new key"
	if got := d.Act(t.Context(), update); !got.Done() || got.ExternalID == left.ID {
		t.Errorf("made again it is %s %q (%s)", got.Class, got.ExternalID, got.Error)
	}
}

// The undo voids the invoice that is on record, and never another one: where the result is not
// known the coordinator looks it up first, and this function is not called.
func TestVoidInvoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done    bool // the step is done
		id      string
		output  bool
		outcome saga.Class
		state   books.State
	}{
		"the result is known":       {true, "inv_0001", true, "done", books.Void},
		"only its id is known":      {true, "inv_0001", false, saga.Fault, books.Live},
		"half-made":                 {false, "inv_0001", true, "done", books.Void},
		"a person named no id":      {true, "", false, saga.Fault, books.Live},
		"nothing is known, not due": {false, "", false, saga.Fault, books.Live},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, url := booksServer(t)
			inv := addInvoice(t, store, books.Live)
			undo := call(t, "invoice")
			undo.Direction = saga.Undo
			known := program.Result{ExternalID: c.id}
			if c.output {
				known.Output, _ = json.Marshal(inv)
			}
			if delete(undo.Results, "invoice"); c.done {
				undo.Results["invoice"] = known
			}
			if c.done || c.output {
				undo.Undoing = &known
			}
			for range 2 {
				undo.Gate = program.NewGate(nil)
				if got := definition(t, play.Place{Books: url}).Act(t.Context(), undo); got.Class != c.outcome {
					t.Errorf("%s (%s), want %s", got.Class, got.Error, c.outcome)
				}
			}
			all, err := store.Invoices(t.Context())
			if err != nil || len(all) != 1 || all[0].State != c.state {
				t.Errorf("the books have %+v, %v; want it %s", all, err, c.state)
			}
		})
	}
}

func booksServer(t *testing.T) (*books.Store, string) {
	t.Helper()
	store, err := books.Open(filepath.Join(t.TempDir(), "books.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, serve(t, books.NewHandler(store, books.Options{}))
}

func addInvoice(t *testing.T, store *books.Store, state books.State) books.Invoice {
	t.Helper()
	o := order()
	customer, err := store.PutCustomer(t.Context(), o.Customer.Ref(), books.Contact{Name: o.Customer.Name})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := store.AddInvoice(t.Context(), books.Draft{
		Customer: customer.ID, Reference: o.Ref(), Lines: []books.Line{{Description: "tea", Quantity: 1, UnitCents: 890}},
	}, 0)
	if err == nil && state == books.Void {
		inv, err = store.Void(t.Context(), inv.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// An order that was cancelled meanwhile refuses its mark for good; the mark of one that was not can
// be set again and taken off again.
func TestMarkSynced(t *testing.T) {
	t.Parallel()
	store, err := shop.Open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Add(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	d := definition(t, play.Place{Shop: serve(t, shop.NewHandler(store))})
	wipe := call(t, "mark-synced")
	wipe.Direction = saga.Undo
	for _, inv := range []*program.Invocation{call(t, "mark-synced"), call(t, "mark-synced"), wipe, wipe} {
		if got := d.Act(t.Context(), inv); !got.Done() {
			t.Errorf("%s: %s (%s)", inv.Direction, got.Class, got.Error)
		}
	}
	if _, err := store.Cancel(t.Context(), order().ID); err != nil {
		t.Fatal(err)
	}
	if got := d.Act(t.Context(), call(t, "mark-synced")); got.Class != saga.Refused {
		t.Errorf("cancelled: %s (%s), want %s", got.Class, got.Error, saga.Refused)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server, err := rest.Listen(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server.URL
}

// Our own mark moves an order's version and updatedAt: starting it again is a duplicate and no
// conflict. The same number over other goods is one.
func TestOurOwnMarkIsNoNews(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(memory.New(nil), &coordinator.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), definition(t, play.Place{})); err != nil {
		t.Fatal(err)
	}
	first := order()
	if got, err := c.Start(t.Context(), sagaName, first.Ref(), first, nil); err != nil || got.Duplicate {
		t.Fatalf("first: duplicate %t, %v", got.Duplicate, err)
	}
	marked := first
	marked.Version, marked.UpdatedAt, marked.InvoiceID = 2, first.UpdatedAt.Add(time.Hour), "inv_0001"
	if got, err := c.Start(t.Context(), sagaName, first.Ref(), marked, nil); err != nil || !got.Duplicate {
		t.Errorf("marked by us: duplicate %t, %v", got.Duplicate, err)
	}
	other := order()
	other.Lines[0].Quantity++
	if got, err := c.Start(t.Context(), sagaName, first.Ref(), other, nil); !errors.Is(err, coordinator.ErrConflict) || !got.Duplicate {
		t.Errorf("other goods: duplicate %t, %v, want %v", got.Duplicate, err, coordinator.ErrConflict)
	}
}
