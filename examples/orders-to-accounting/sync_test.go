package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/play"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// silent is an address at which no server answers.
const silent = "http://127.0.0.1:1"

// definition is the job's saga in a place. Servers left out do not answer.
func definition(t *testing.T, p play.Place) *saga.Definition[outside.Order] {
	t.Helper()
	for _, url := range []*string{&p.Shop, &p.Books, &p.Mail} {
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
func order() outside.Order { return outside.Orders(outside.Config{Seed: 1, Orders: 1})[0] }

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
		line := fmt.Sprintf("%s %s to %s", s.Name, s.Repeat, s.Destination)
		if s.Find {
			line += " by lookup"
		}
		if s.UndoWhenUnknown {
			line += " maybe"
		}
		if s.Undo {
			line += " undo"
		}
		if s.Pivot {
			line += " pivot"
		}
		if s.NoUndoReason != "" {
			line += ": " + s.NoUndoReason
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
		if _, limited := destinations[s.Destination]; !limited {
			t.Errorf("step %s goes to %q, for which there is no limit", s.Name, s.Destination)
		}
	}
}

// What the mail server says decides what is known: it did not take the letter for now, or for good, and
// both are said instead of taking it. Where no server answers or our own gate is closed it never left.
// What breaks after it left leaves open whether it arrived, and it is not guessed.
func TestReceipt(t *testing.T) {
	t.Parallel()
	says := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	closed := program.NewGate(nil)
	closed.Close()
	for name, c := range map[string]struct {
		before http.Handler // answers instead of the mailbox; nil: none
		kept   bool         // the mailbox gets the letter all the same
		to     string       // the customer's address, if not the order's
		gate   *program.Gate
		want   saga.Class
		stored int
	}{
		"taken":                {nil, true, "", nil, "done", 1},
		"not now":              {says(429), false, "", nil, saga.Unsent, 0},
		"no":                   {says(422), false, "", nil, saga.Refused, 0},
		"no such mailbox":      {nil, true, "gone@" + outside.BounceDomain, nil, saga.Refused, 0},
		"taken, then cut off":  {cut, true, "", nil, saga.Unknown, 1},
		"taken, then broken":   {says(502), true, "", nil, saga.Unknown, 1},
		"cut off, never taken": {cut, false, "", nil, saga.Unknown, 0},
		"the gate closed":      {nil, true, "", closed, saga.Unsent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := &outside.Mailbox{}
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := w
				if c.before != nil {
					answer = httptest.NewRecorder()
				}
				if c.kept {
					box.Handler().ServeHTTP(answer, r)
				}
				if c.before != nil {
					c.before.ServeHTTP(w, r)
				}
			}))
			inv := call(t, "receipt")
			if inv.Gate = c.gate; c.to != "" {
				o := order()
				o.Customer.Email = c.to
				inv.Input, _ = json.Marshal(o)
			}
			got := definition(t, play.Place{Mail: url}).Act(t.Context(), inv)
			if got.Class != c.want || len(box.Messages()) != c.stored {
				t.Errorf("%s (%s), %d in the mailbox; want %s and %d", got.Class, got.Error, len(box.Messages()), c.want, c.stored)
			}
			if got.Done() && (got.ExternalID != "the-key@orders.example" || box.Messages()[0].ID != got.ExternalID) {
				t.Errorf("the receipt's id is %q, the mailbox has %+v", got.ExternalID, box.Messages())
			}
		})
	}
	if got := definition(t, play.Place{}).Act(t.Context(), call(t, "receipt")); got.Class != saga.Unsent {
		t.Errorf("no server answers: %s (%s), want %s", got.Class, got.Error, saga.Unsent)
	}
}

// The lookup tells live invoices under our reference. A voided one keeps its reference and does not
// count; two live ones are a duplicate, with both ids.
func TestFindInvoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states []outside.State
		want   program.Answer
		id     string
	}{
		"none":           {nil, program.AnswerNotFound, ""},
		"one":            {[]outside.State{outside.Live}, program.AnswerFound, "inv_0001"},
		"voided":         {[]outside.State{outside.Void}, program.AnswerNotFound, ""},
		"voided, remade": {[]outside.State{outside.Void, outside.Live}, program.AnswerFound, "inv_0002"},
		"two":            {[]outside.State{outside.Live, outside.Live}, program.AnswerSeveral, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			books, url := booksServer(t)
			for _, state := range c.states {
				addInvoice(t, books, state)
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
	books, url := booksServer(t)
	d := definition(t, play.Place{Books: url})
	left := addInvoice(t, books, outside.Live)
	if _, err := books.Delete(left.ID); err != nil {
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
	customer := books.PutCustomer(order().Customer.Ref(), outside.Contact{Name: order().Customer.Name})
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
		state   outside.State
	}{
		"the result is known":       {true, "inv_0001", true, "done", outside.Void},
		"only its id is known":      {true, "inv_0001", false, saga.Fault, outside.Live},
		"half-made":                 {false, "inv_0001", true, "done", outside.Void},
		"a person named no id":      {true, "", false, saga.Fault, outside.Live},
		"nothing is known, not due": {false, "", false, saga.Fault, outside.Live},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			books, url := booksServer(t)
			inv := addInvoice(t, books, outside.Live)
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
			if all := books.Invoices(); len(all) != 1 || all[0].State != c.state {
				t.Errorf("the books have %+v; want it %s", all, c.state)
			}
		})
	}
}

func booksServer(t *testing.T) (*outside.Books, string) {
	t.Helper()
	books := outside.NewBooks()
	return books, serve(t, books.Handler())
}

func addInvoice(t *testing.T, books *outside.Books, state outside.State) outside.Invoice {
	t.Helper()
	o := order()
	customer := books.PutCustomer(o.Customer.Ref(), outside.Contact{Name: o.Customer.Name})
	inv, err := books.Add(outside.Draft{Customer: customer.ID, Reference: o.Ref(), Content: outside.Content{Lines: []outside.Line{tea}}}, 0)
	if err == nil && state == outside.Void {
		inv, err = books.Void(inv.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

var tea = outside.Line{Description: "tea", Quantity: 1, UnitCents: 890}

// An order that was cancelled meanwhile refuses its mark for good; the mark of one that was not can
// be set again and taken off again.
func TestMarkSynced(t *testing.T) {
	t.Parallel()
	shop := outside.NewShop()
	shop.Add(order())
	d := definition(t, play.Place{Shop: serve(t, shop.Handler())})
	wipe := call(t, "mark-synced")
	wipe.Direction = saga.Undo
	for _, inv := range []*program.Invocation{call(t, "mark-synced"), call(t, "mark-synced"), wipe, wipe} {
		if got := d.Act(t.Context(), inv); !got.Done() {
			t.Errorf("%s: %s (%s)", inv.Direction, got.Class, got.Error)
		}
	}
	if _, err := shop.Cancel(order().ID); err != nil {
		t.Fatal(err)
	}
	if got := d.Act(t.Context(), call(t, "mark-synced")); got.Class != saga.Refused {
		t.Errorf("cancelled: %s (%s), want %s", got.Class, got.Error, saga.Refused)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
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
