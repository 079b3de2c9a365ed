package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

var mailCases = []testCase{
	{name: "a message is used once in each saga", run: mailUses, breaks: broken{"used-by-all": func(s Store) Store { return sharing{s} }}},
	{name: "what cannot be stored", run: mailInvalid},
	{name: "a message and a wait meet", run: mailMeet},
}

func wait(work, name, key string) ledger.Wait {
	return ledger.Wait{Name: name, Key: key, ID: saga.ID{Saga: "order-to-invoice", Work: work}, Step: "paid"}
}

func (b *bench) await(waits ...ledger.Wait) {
	b.Helper()
	if err := b.Await(b.Context(), waits); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) waits(name, key string) []ledger.Wait {
	b.Helper()
	waits, err := b.Waits(b.Context(), name, key)
	if err != nil {
		b.Fatal(err)
	}
	return waits
}

func (b *bench) keep(m program.Message, long time.Duration) ledger.Kept {
	b.Helper()
	k, err := b.Keep(b.Context(), m, long)
	if err != nil {
		b.Fatal(err)
	}
	return k
}

func (b *bench) messages(name, key string) (ids string) {
	b.Helper()
	return b.messagesFor(name, key, "order-to-invoice")
}

func (b *bench) messagesFor(name, key, saga string) (ids string) {
	b.Helper()
	ms, err := b.Messages(b.Context(), name, key, saga)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range ms {
		ids += m.ID + "=" + string(m.Body) + " "
	}
	return strings.TrimSpace(ids)
}

func (b *bench) use(name, id string, by ledger.Wait) bool {
	b.Helper()
	is, err := b.Use(b.Context(), name, id, by)
	if err != nil {
		b.Fatal(err)
	}
	return is
}

// "In each saga one wait uses a message, the first that says so", however many say so at once; what is used in a saga is not there
// for it any more, and its id stays known.
func mailUses(b *bench) {
	m := program.Message{Name: "paid", Key: "7", ID: "evt_1", Body: []byte("{}")}
	b.keep(m, time.Hour)
	b.keep(program.Message{Name: "paid", Key: "7", ID: "evt_2"}, time.Hour)
	var all sync.WaitGroup
	var wins [8]bool
	for i := range wins {
		all.Go(func() { wins[i], _ = b.Use(b.Context(), "paid", "evt_1", wait(string(rune('a'+i)), "paid", "7")) })
	}
	all.Wait()
	first := slices.Index(wins[:], true)
	if first < 0 || slices.Index(wins[first+1:], true) >= 0 {
		b.Errorf("of eight that use one message those do: %v", wins)
		return
	}
	winner := wait(string(rune('a'+first)), "paid", "7")
	again, other := winner, winner
	other.StepKey, other.ID.Saga = "of another version", winner.ID.Saga
	if !b.use("paid", "evt_1", again) || b.use("paid", "evt_1", other) {
		b.Error("who uses it says so again, and does not; or another wait of that work does")
	}
	if got := b.messages("paid", "7"); got != "evt_2=" {
		b.Errorf("messages %q once the first is used", got)
	}
	if got := b.messagesFor("paid", "7", "ship"); got != "evt_1={} evt_2=" {
		b.Errorf("messages %q for another saga", got)
	}
	ship := wait("z", "paid", "7")
	if ship.ID.Saga = "ship"; !b.use("paid", "evt_1", ship) {
		b.Error("another saga cannot use it, too")
	}
	var ids []saga.ID
	uses, err := b.Uses(b.Context(), "paid", "evt_1")
	for _, w := range uses {
		ids = append(ids, w.ID)
	}
	if err != nil || !slices.Equal(ids, []saga.ID{winner.ID, ship.ID}) || uses[0].Step != winner.Step || uses[0].StepKey != winner.StepKey {
		b.Errorf("it is used by %+v, %v", uses, err)
	}
	if k := b.keep(m, time.Hour); k.Other {
		b.Errorf("a used message that comes again is answered with %+v", k)
	}
	if !b.use("paid", "gone", winner) {
		b.Error("a message whose time is over cannot be used by who has it")
	}
}

func mailInvalid(b *bench) {
	long := strings.Repeat("x", ledger.MaxText+1)
	for _, w := range []ledger.Wait{{}, wait("a", "paid", ""), wait("a", long, "7"), wait("a", "paid", "\x00")} {
		if err := b.Await(b.Context(), []ledger.Wait{w}); !errors.Is(err, ledger.ErrInvalid) {
			b.Errorf("%+v: %v, want %v", w, err, ledger.ErrInvalid)
		}
	}
	for _, m := range []program.Message{{}, {Name: "paid", Key: "7"}, {Name: "paid", ID: "1"}, {Key: "7", ID: "1"}, {Name: "paid", Key: "\x00", ID: "1"}, {Name: "paid", Key: "7", ID: "1", Body: make([]byte, program.MaxAnswer+1)}} {
		if _, err := b.Keep(b.Context(), m, time.Hour); !errors.Is(err, ledger.ErrInvalid) {
			b.Errorf("%.60q: %v, want %v", m.Name, err, ledger.ErrInvalid)
		}
	}
}

// "One of the two finds the other": a wait that is made findable and then looks for messages, beside a message that is stored
// and then looks for waits.
func mailMeet(b *bench) {
	for i := range 50 {
		key := string(rune('a'+i%26)) + string(rune('a'+i/26))
		var found []ledger.Wait
		var got string
		var both sync.WaitGroup
		both.Go(func() {
			b.await(wait("w", "paid", key))
			got = b.messages("paid", key)
		})
		both.Go(func() {
			b.keep(program.Message{Name: "paid", Key: key, ID: key}, time.Hour)
			found = b.waits("paid", key)
		})
		both.Wait()
		if len(found) == 0 && got == "" {
			b.Fatalf("round %d: neither found the other", i)
		}
	}
}
