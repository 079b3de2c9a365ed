package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var signalCases = []testCase{
	{name: "one of two under a number", run: signalNumberedRace},
	{name: "numbered within the work", run: signalNumbers},
	{name: "posted while it is released", run: signalRace},
	{name: "bad values", run: signalInvalid},
}

// Of those who post under one number at the same moment one is stored, and the others are told.
func signalNumberedRace(b *bench) {
	c := b.start(b.session(), "w", started(), release)
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = b.Post(b.Context(), c.id, machine.Signal{ID: 1, Kind: machine.SignalCancel, Key: fmt.Sprint("k", i)})
		})
	}
	all.Wait()
	stored := 0
	for i, err := range errs {
		switch {
		case err == nil:
			stored++
		case !errors.Is(err, ledger.ErrChanged):
			b.Errorf("post %d: %v", i, err)
		}
	}
	if n := len(b.signals(c.id)); stored != 1 || n != 1 {
		b.Errorf("%d of 8 were told that they are stored, and %d are", stored, n)
	}
}

// "Signals are numbered within their work, from 1 and without a gap": sixteen posts of one key at
// the same time take one number, and sixteen of different keys one each (K4).
func signalNumbers(b *bench) {
	t := b.session()
	c, other := b.start(t, "w", started(), hold), b.start(t, "other", started(), hold)
	post := func(c *chain, keys func(i int) string) {
		b.Helper()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if err := b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalWake, Key: keys(i)}); err != nil {
					b.Errorf("post: %v", err)
				}
			})
		}
		wg.Wait()
	}
	numbers := func(c *chain, want int) {
		b.Helper()
		got := b.signals(c.id)
		for i, s := range got {
			if s.ID != int64(i)+1 {
				b.Errorf("signal %d of %s has number %d", i+1, c.id, s.ID)
			}
		}
		if h := c.now(); len(got) != want || h.Posted != int64(want) {
			b.Errorf("%s: %d signals and a count of %d, want %d", c.id, len(got), h.Posted, want)
		}
	}
	post(c, func(int) string { return "one" })
	numbers(c, 1)
	post(c, func(i int) string { return fmt.Sprint("each ", i) })
	numbers(c, 17)
	post(c, func(int) string { return "one" })
	b.post(c.id, "behind the repetitions")
	numbers(c, 18)
	b.post(other.id, "of another")
	numbers(other, 1)
	b.want(t, other.entry(b.consuming(other.id, doing(machine.KindNoted, saga.Running), 0), hold), ledger.Appended)
	if unread := b.load(c.id)[0].Signals; len(unread) != 18 { // the number of another's signal is no one's here
		b.Errorf("%d signals of %s are unread, want 18", len(unread), c.id)
	}
}

// releases are the ways to let go of a work with something left to wait for.
var releases = map[string]machine.Record{
	"review":   reviewed(),
	"paused":   doing(machine.KindPaused, saga.Paused),
	"retrying": due(doing(machine.KindNotSent, saga.Retrying), time.Hour),
	"ended":    doing(machine.KindDone, saga.Completed),
}

// Whichever comes first, the post or the release: the signal is found.
func signalRace(b *bench) {
	t, claimer := b.session(), b.session()
	poster := b.again()
	names := []string{"review", "paused", "retrying", "ended"}
	var chains []*chain
	for i := range 60 {
		chains = append(chains, b.start(t, order(i), started(), hold))
	}
	var wg sync.WaitGroup
	for i, c := range chains {
		e := c.entry(releases[names[i%len(names)]], release)
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			if as, err := b.settle(b.Store, t, []ledger.Entry{e}); err != nil || as[0].Result != ledger.Appended {
				b.Errorf("release %s: %+v, %v", c.id, as, err)
			}
		})
		wg.Go(func() {
			<-start
			if err := poster.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalCancel, Key: "k"}); err != nil {
				b.Errorf("post to %s: %v", c.id, err)
			}
		})
		close(start)
		if i%4 == 3 { // a few at a time, so that both sides are really under way together
			wg.Wait()
		}
	}
	wg.Wait()
	if got := b.claim(claimer, 1000); len(got) != len(chains) {
		b.Errorf("%d of %d signalled works can be claimed: the others' signals are lost", len(got), len(chains))
	}
}

// longest is the longest key there is, and hard to compress.
var longest = func() string {
	b := make([]byte, ledger.MaxText)
	for i := range b {
		b[i] = byte('!' + (i*i+i/7)%90)
	}
	return string(b)
}()

// A value that no database holds is an error of its own post, the same on every engine, and changes
// nothing.
func signalInvalid(b *bench) {
	c := b.start(b.session(), "w", started(), release)
	for name, s := range map[string]machine.Signal{
		"NUL in the actor":    {Kind: machine.SignalCancel, Key: "k", Actor: "a\x00b"},
		"NUL in the reason":   {Kind: machine.SignalCancel, Key: "k", Reason: "a\x00b"},
		"NUL in the key":      {Kind: machine.SignalCancel, Key: "a\x00b"},
		"UTF-8 in the reason": {Kind: machine.SignalCancel, Key: "k", Reason: "a\xffb"},
		// CORE-10: valid JSON by syntax, Latin-1 by content. SQLite took it, and no record could
		// ever consume it.
		"UTF-8 in the output": {Kind: machine.SignalLate, Key: "k", Resolution: saga.Resolution{Step: "s", Output: []byte("\"caf\xe9\"")}},
		"UTF-8 in the input":  {Kind: machine.SignalRevise, Key: "k", News: machine.News{Revision: "2", Input: []byte("\"caf\xe9\"")}},
		"no JSON":             {Kind: machine.SignalLate, Key: "k", Resolution: saga.Resolution{Step: "s", Output: []byte("{")}},
		"an unknown kind":     {Kind: "shout", Key: "k"},
		// CORE-23: what no index holds.
		"a long key":         {Kind: machine.SignalCancel, Key: strings.Repeat("k", ledger.MaxText+1)},
		"a long external id": {Kind: machine.SignalResolve, Key: "k", Resolution: saga.Resolution{Step: "s", ExternalID: strings.Repeat("k", ledger.MaxText+1)}},
	} {
		b.wantError(name, b.Post(b.Context(), c.id, s), ledger.ErrInvalid)
	}
	if err := b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalCancel, Key: longest}); err != nil {
		b.Errorf("the longest key: %v", err)
	}
	c = b.start(b.session(), "another", started(), release)
	if h := c.now(); h.Posted != 0 || len(b.signals(c.id)) != 0 {
		b.Errorf("a refused signal left a trace: %+v", h)
	}
	b.post(c.id, "k")
}
