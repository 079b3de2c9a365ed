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
	{name: "unknown work", run: signalUnknown},
	{name: "every field", run: signalFields},
	{name: "once per key", run: signalOnce},
	{name: "only under its number", run: signalNumbered, breaks: broken{"signal-numbered": func(s Store) Store { return numberless{s} }}},
	{name: "one of two under a number", run: signalNumberedRace},
	{name: "once per key, at the same time", run: signalOnceRace},
	{name: "numbered within the work", run: signalNumbers},
	{name: "makes the work due", run: signalDue},
	{name: "posted before the release", run: signalBefore, breaks: broken{"signal-kept": func(s Store) Store { return signalDeaf{s} }}},
	{name: "posted after the release", run: signalAfter},
	{name: "posted while it is released", run: signalRace},
	{name: "bad values", run: signalInvalid},
}

// "One with an ID is stored only under that number", and a key that is there is there.
func signalNumbered(b *bench) {
	c := b.start(b.session(), "w", started(), release)
	post := func(key string, number int64) error {
		return b.Post(b.Context(), c.id, machine.Signal{ID: number, Kind: machine.SignalCancel, Key: key})
	}
	b.wantError("the second before the first", post("a", 2), ledger.ErrChanged)
	for _, key := range []string{"a", "b"} {
		if err := post(key, int64(len(b.signals(c.id))+1)); err != nil {
			b.Errorf("the next one: %v", err)
		}
	}
	before := c.now()
	b.wantError("a number that another has", post("c", 2), ledger.ErrChanged)
	if err := post("a", 1); err != nil {
		b.Errorf("the same again: %v", err)
	}
	if err := post("b", 7); err != nil {
		b.Errorf("a key that is there, under another number: %v", err)
	}
	if diff := headDiff(c.now(), before); diff != "" || len(b.signals(c.id)) != 2 {
		b.Errorf("what was refused changed the head:%s, or the signals %+v", diff, b.signals(c.id))
	}
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

// "An unknown work matches ErrNotFound".
func signalUnknown(b *bench) {
	b.wantError("post", b.Post(b.Context(), id("nowhere"), machine.Signal{Kind: machine.SignalCancel, Key: "k"}), ledger.ErrNotFound)
	_, err := b.Signals(b.Context(), id("nowhere"))
	b.wantError("signals", err, ledger.ErrNotFound)
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

// "A signal whose Key the work has already received changes nothing." Another work's keys do not
// count.
func signalOnce(b *bench) {
	t := b.session()
	c, other := b.start(t, "w", started(), hold), b.start(t, "other", started(), hold)
	b.post(c.id, "k")
	before, first := c.now(), b.signals(c.id)
	if err := b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalCancel, Key: "k", Reason: "again"}); err != nil {
		b.Errorf("posting a known key: %v", err)
	}
	if got := b.signals(c.id); len(got) != 1 || got[0].ID != first[0].ID || got[0].Reason != first[0].Reason {
		b.Errorf("posting a known key changed the signals: %+v", got)
	}
	if diff := headDiff(c.now(), before); diff != "" {
		b.Errorf("posting a known key changed the head:%s", diff)
	}
	// Nor does it wake the work once more when the signal has been consumed.
	c.add(due(b.consuming(c.id, doing(machine.KindNoted, saga.Retrying), 0), time.Hour), release)
	before = c.now()
	b.post(c.id, "k")
	if diff := headDiff(c.now(), before); diff != "" {
		b.Errorf("posting a consumed key changed the head:%s", diff)
	}
	b.post(other.id, "k")
	if h := other.now(); h.Posted != 1 {
		b.Errorf("the same key at another work was not posted: %+v", h)
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

// Post "makes the work due at the latest now, also one that has ended". A work that a session holds
// stays without a due time.
func signalDue(b *bench) {
	t := b.session()
	waiting := b.start(t, "waiting", due(started(), time.Hour), release)
	parked := b.start(t, "parked", started(), hold)
	parked.add(reviewed(), release)
	held := b.start(t, "held", started(), hold)
	ended := b.start(t, "ended", started(), hold)
	ended.add(doing(machine.KindDone, saga.Completed), release)
	before := b.clock()
	for _, c := range []*chain{waiting, parked, held, ended} {
		b.post(c.id, "k")
		h := c.now()
		isDue := !h.Due.IsZero() && !h.Due.Before(before) && !h.Due.After(b.clock())
		if want := c != held; isDue != want || !want && !h.Due.IsZero() {
			b.Errorf("%s is due at %v, want due now: %v", c.id, h.Due, want)
		}
		if h.Posted != 1 || len(b.signals(c.id)) != 1 {
			b.Errorf("%s: the signal was not counted or not stored: %+v", c.id, h)
		}
	}
	if h := held.now(); h.Session != t {
		b.Errorf("a signal took the work from its holder: %+v", h)
	}
	overdue := b.start(t, "overdue", started(), release)
	since := overdue.now().Due
	b.until(b.clock, since)
	b.post(overdue.id, "k")
	if h := overdue.now(); !h.Due.Equal(since) { // "at the latest now"
		b.Errorf("a work that was due since %v is due at %v behind a signal", since, h.Due)
	}
}

// releases are the ways to let go of a work with something left to wait for.
var releases = map[string]machine.Record{
	"review":   reviewed(),
	"paused":   doing(machine.KindPaused, saga.Paused),
	"retrying": due(doing(machine.KindNotSent, saga.Retrying), time.Hour),
	"ended":    doing(machine.KindDone, saga.Completed),
}

// A signal that comes while the work is held, and that the releasing record does not consume, must
// not be lost: the work is due at once.
func signalBefore(b *bench) {
	t := b.session()
	for name, r := range releases {
		lost := b.start(t, "unread "+name, started(), hold)
		b.post(lost.id, "k")
		lost.add(r, release)
		b.claimable(t, lost, true)

		half := b.start(t, "half read "+name, started(), hold)
		b.post(half.id, "k1")
		b.post(half.id, "k2")
		half.add(b.consuming(half.id, r, 0), release)
		b.claimable(t, half, true)

		read := b.start(t, "read "+name, started(), hold)
		b.post(read.id, "k")
		read.add(b.consuming(read.id, r, 0), release)
		b.claimable(t, read, false)

		earlier := b.start(t, "read earlier "+name, started(), hold)
		b.post(earlier.id, "k")
		earlier.add(b.consuming(earlier.id, doing(machine.KindNoted, saga.Running), 0), keep)
		earlier.add(r, release)
		b.claimable(t, earlier, false)
	}
}

// A signal that comes after the release makes the work due.
func signalAfter(b *bench) {
	t := b.session()
	for name, r := range releases {
		c := b.start(t, name, started(), hold)
		c.add(r, release)
		b.claimable(t, c, false)
		b.post(c.id, "k")
		b.claimable(t, c, true)
	}
}

// claimable claims and expects c to be given, or not.
func (b *bench) claimable(t machine.Token, c *chain, want bool) {
	b.Helper()
	got := false
	for _, h := range b.claim(t, 1000) {
		got = got || h.ID == c.id
	}
	if got != want {
		b.Errorf("%s can be claimed: %v, want %v; its head is %+v", c.id, got, want, c.now())
	}
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
