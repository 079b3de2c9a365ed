package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var signalCases = []testCase{
	{name: "every field", run: signalFields},
	{name: "one of two under a number", run: signalNumberedRace},
	{name: "once per key, at the same time", run: signalOnceRace},
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

// A signal comes back as it was posted, with the number and time the ledger gave it, oldest first.
func signalFields(b *bench) {
	t := b.session()
	c, other := b.start(t, "w", started(), hold), b.start(t, "other", started(), hold)
	before := b.clock()
	want := []machine.Signal{
		{Kind: machine.SignalCancel, Key: "k0"},
		{Kind: machine.SignalResolve, Key: "k1", Actor: "anna@example.com", Reason: "looked in the mailbox", Resolution: saga.Resolution{
			Step: "receipt", Direction: saga.Undo, Attempt: math.MaxInt32, Happened: true, ExternalID: "msg-1",
			Output: json.RawMessage(`{"z":1,"a":[1.0]}`),
		}},
		{Kind: machine.SignalConflict, Key: "k2"}, {Kind: machine.SignalLate, Key: "k3"}, {Kind: machine.SignalWake, Key: "k4"},
		{Kind: machine.SignalKeep, Key: "k5", Actor: "anna@example.com", ByHand: true},
		{Kind: machine.SignalRevise, Key: "k6", News: machine.News{Revision: "2/17", Version: 3, Input: json.RawMessage(`{"z":1,"a":[1.0]}`)}},
		{Kind: machine.SignalCancel, Key: "k7", News: machine.News{Revision: "2026-11-20T10:00:00.25Z"}},
		{Kind: machine.SignalPause, Key: "k8", Actor: "anna@example.com"}, {Kind: machine.SignalResume, Key: "k9", Actor: "anna@example.com"},
		{Kind: machine.SignalRetry, Key: "k10", Resolution: saga.Resolution{Step: "receipt", Direction: saga.Forward, Attempt: 3}},
		{Kind: machine.SignalSkip, Key: "k11", Resolution: saga.Resolution{Step: "receipt", Direction: saga.Forward, Attempt: 3, Output: json.RawMessage(`{"z":1}`)}},
	}
	for i, s := range oddTexts {
		out, err := json.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		want = append(want, machine.Signal{
			Kind: machine.SignalLate, Key: fmt.Sprint("odd ", i, s), Actor: s, Reason: s,
			Resolution: saga.Resolution{Step: s, ExternalID: s, Output: out},
		})
	}
	for i, s := range want {
		if err := b.Post(b.Context(), c.id, s); err != nil {
			b.Fatalf("post %d: %v", i, err)
		}
		b.post(other.id, fmt.Sprint(i))
	}
	got := b.signals(c.id)
	if len(got) != len(want) {
		b.Fatalf("%d signals, want %d", len(got), len(want))
	}
	last := machine.Signal{At: before}
	for i, g := range got {
		w := want[i]
		if g.ID <= last.ID || g.At.Before(last.At) {
			b.Errorf("signal %d has number %d and time %v, behind number %d and time %v", i, g.ID, g.At, last.ID, last.At)
		}
		last = g
		if g.Kind != w.Kind || g.Key != w.Key || g.Actor != w.Actor || g.Reason != w.Reason ||
			g.Step != w.Step || g.Direction != w.Direction || g.Attempt != w.Attempt || g.Happened != w.Happened ||
			g.ExternalID != w.ExternalID || string(g.Output) != string(w.Output) ||
			g.Revision != w.Revision || g.Version != w.Version || string(g.Input) != string(w.Input) {
			b.Errorf("signal %d came back as\n%+v, want\n%+v", i, g, w)
		}
	}
	if h := c.now(); h.Posted != int64(len(want)) {
		b.Errorf("the head counts %d signals, want %d", h.Posted, len(want))
	}
}

// The same key posted by many at once is one signal.
func signalOnceRace(b *bench) {
	c := b.start(b.session(), "w", started(), release)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 5 {
				s := machine.Signal{Kind: machine.SignalCancel, Key: fmt.Sprint(k), Actor: fmt.Sprint(i)}
				if err := b.Post(b.Context(), c.id, s); err != nil {
					b.Errorf("post: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n, h := len(b.signals(c.id)), c.now(); n != 5 || h.Posted != 5 {
		b.Errorf("%d signals and a count of %d, want 5 of both", n, h.Posted)
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
