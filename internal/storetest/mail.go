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
	{name: "waits", run: mailWaits, breaks: broken{"wait-stays": func(s Store) Store { return sweeping{s} }}},
	{name: "messages", run: mailMessages, breaks: broken{"message-once": func(s Store) Store { return renewing{s} }}},
	{name: "messages expire", run: mailExpires, needs: hasClock},
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
	ms, err := b.Messages(b.Context(), name, key)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range ms {
		ids += m.ID + "=" + string(m.Body) + " "
	}
	return strings.TrimSpace(ids)
}

// Waits are found by name and key, in the order of saga, work and step; "one that is there already stays as it is".
func mailWaits(b *bench) {
	one, two, token := wait("b", "paid", "7"), wait("a", "paid", "7"), wait("a", "", "digest")
	token.StepKey = "am-key"
	other := one // of a newer version, under the same key
	other.StepKey = "another"
	b.await(one, two, token, wait("c", "paid", "8"))
	b.await(one, other)
	if got := b.waits("paid", "7"); !slices.Equal(got, []ledger.Wait{two, one, other}) {
		b.Errorf("found %+v, want %+v, %+v and %+v", got, two, one, other)
	}
	if got := b.waits("", "digest"); !slices.Equal(got, []ledger.Wait{token}) {
		b.Errorf("found %+v, want %+v", got, token)
	}
	for range 2 {
		if err := b.Unwait(b.Context(), []ledger.Wait{one, wait("x", "paid", "7")}); err != nil {
			b.Fatal(err)
		}
	}
	if got := b.waits("paid", "7"); !slices.Equal(got, []ledger.Wait{two, other}) {
		b.Errorf("found %+v, want %+v and %+v", got, two, other)
	}
	if got := b.waits("paid", "9"); len(got) != 0 {
		b.Errorf("nothing waits, and %+v was found", got)
	}
}

// A message is stored once, and not given out any more once it is delivered; one with its id that says something else is told.
func mailMessages(b *bench) {
	m := program.Message{Name: "paid", Key: "7", ID: "evt_1", Body: []byte("\x00\xff{}")}
	first := b.keep(m, time.Hour)
	if first.At.IsZero() || first.Delivered || first.Other {
		b.Errorf("a new message is answered with %+v", first)
	}
	b.keep(program.Message{Name: "paid", Key: "7", ID: "evt_2"}, time.Hour)
	b.keep(program.Message{Name: "paid", Key: "8", ID: "evt_3"}, time.Hour)
	b.keep(program.Message{Name: "refused", Key: "7", ID: "evt_1"}, time.Hour)
	if again := b.keep(m, time.Hour); again != first {
		b.Errorf("the same message is answered with %+v, and before with %+v", again, first)
	}
	for _, other := range []program.Message{{Name: "paid", Key: "7", ID: "evt_1"}, {Name: "paid", Key: "9", ID: "evt_1", Body: m.Body}} {
		if k := b.keep(other, time.Hour); !k.Other {
			b.Errorf("another message with its id is answered with %+v", k)
		}
	}
	if got := b.messages("paid", "7"); got != "evt_1=\x00\xff{} evt_2=" {
		b.Errorf("messages %q", got)
	}
	for range 2 {
		if err := b.Delivered(b.Context(), "paid", "evt_1"); err != nil {
			b.Fatal(err)
		}
	}
	if got := b.messages("paid", "7"); got != "evt_2=" {
		b.Errorf("messages %q once the first was delivered", got)
	}
	if k := b.keep(m, time.Hour); !k.Delivered || k.Other || !k.At.Equal(first.At) {
		b.Errorf("a delivered message that comes again is answered with %+v", k)
	}
	if k := b.keep(program.Message{Name: "paid", Key: "7", ID: "evt_1"}, time.Hour); !k.Other {
		b.Errorf("another message with the id of a delivered one is answered with %+v", k)
	}
}

// A message is kept for as long as it was said, by the ledger's clock, and its id is new after that.
func mailExpires(b *bench) {
	b.setClock(ahead)
	m := program.Message{Name: "paid", Key: "7", ID: "evt_1"}
	b.keep(m, time.Hour)
	b.setClock(ahead.Add(time.Hour - time.Millisecond))
	if got := b.messages("paid", "7"); got != "evt_1=" {
		b.Errorf("messages %q before its time is over", got)
	}
	b.setClock(ahead.Add(time.Hour))
	if got := b.messages("paid", "7"); got != "" {
		b.Errorf("messages %q when its time is over", got)
	}
	m.Body = []byte("another")
	if k := b.keep(m, time.Hour); k.Other || !k.At.Equal(ahead.Add(time.Hour)) {
		b.Errorf("its id is used again, and answered with %+v", k)
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
