package storetest

import (
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What is read, and when.

// K5: each chain is loaded as it was at one moment: head, records and unread signals belong
// together, whatever is appended and posted meanwhile.
func loadMoment(b *bench) {
	const rounds = 40
	there := b.again()
	c := b.start(b.session(), "w", started(), hold)
	looks, written := make(chan struct{}), make(chan struct{})
	var reading sync.WaitGroup
	defer reading.Wait()
	defer close(written)
	for _, s := range []Store{b.Store, there} {
		reading.Go(func() {
			for {
				select {
				case looks <- struct{}{}: // now something is written
				case <-written:
					return
				}
				chains, err := s.Load(b.Context(), []saga.ID{c.id})
				if err != nil || len(chains) != 1 {
					b.Errorf("load: %d chains, %v", len(chains), err)
					continue
				}
				b.ofOneMoment(&chains[0])
			}
		})
	}
	for i := range rounds {
		<-looks
		b.post(c.id, order(i))
		status := []saga.Status{saga.Compensating, saga.Running}[i%2]
		c.add(b.consuming(c.id, doing(machine.KindNoted, status), i), hold)
	}
}

// ofOneMoment compares a head with the records and signals beside it.
func (b *bench) ofOneMoment(c *ledger.Chain) {
	b.Helper()
	read := int64(0)
	for i := range c.Records {
		read += int64(len(c.Records[i].Signals))
	}
	last := &c.Records[len(c.Records)-1]
	if c.Instance.Status != last.Status || c.Instance.Consumed != read || c.Instance.Posted-c.Instance.Consumed != int64(len(c.Signals)) {
		b.Errorf("the head is %s with %d signals of which %d are read; %d records end %s, have read %d, and %d are unread",
			c.Instance.Status, c.Instance.Posted, c.Instance.Consumed, len(c.Records), last.Status, read, len(c.Signals))
	}
}

// K6: who is told that another was first sees at the next load what that one wrote.
func loadBehindStale(b *bench) {
	there := b.again()
	t := b.session()
	c := b.start(t, "w", started(), hold)
	for range 10 {
		b.load(c.id) // what is known of it grows old
		late := c.view(b.session())
		e := c.entry(doing(machine.KindNoted, saga.Running), hold)
		as, err := there.Append(b.Context(), t, []ledger.Entry{e})
		if err != nil || as[0].Result != ledger.Appended {
			b.Fatalf("append from another process: %+v, %v", as, err)
		}
		c.moved(e, as[0])
		b.want(late.token, late.entry(doing(machine.KindUnknown, saga.Running), hold), ledger.Stale)
		chains := b.load(c.id)
		if n := len(chains[0].Records); chains[0].Records[n-1].Hash != c.tail {
			b.Fatalf("behind a stale answer the chain has %d records, and the one that was first is not the last of them", n)
		}
	}
}
