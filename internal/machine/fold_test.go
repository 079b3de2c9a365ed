package machine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "R1: one record for one decision. What an event taught and what follows from it are the same
// record".
func TestR1OneRecord(t *testing.T) {
	d := begin(t, orderToInvoice)
	d.succeed("cus_7").fail(saga.Unknown).due().found(KindFound, "inv_1").fail(saga.Unsent).due().succeed("").succeed("mail_1")
	var got []string
	for i := range d.chain {
		s := string(d.chain[i].Kind)
		if a := d.chain[i].Dispatch; a != nil {
			s += " + arm " + a.Step
		}
		got = append(got, s)
	}
	want := "started + arm customer, done + arm invoice, unknown, found + arm mark-synced, not-sent, dispatched + arm mark-synced, done + arm receipt, done"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("the chain is\n%s\nwant\n%s", s, want)
	}
}

// "R2: an event that does not fit the chain is an error and makes no record: the caller's view is
// stale".
func TestR2EventsThatDoNotFit(t *testing.T) {
	outcome := Event{Outcome: &program.Outcome{Class: program.Succeeded}}
	evidence := func(step string) Event {
		return Event{Evidence: &program.Evidence{Step: step, Answer: program.AnswerNotFound}}
	}
	for what, c := range map[string]struct {
		d  *desk
		ev Event
	}{
		"an outcome without an attempt":   {begin(t, "a find undo").fail(saga.Unknown), outcome},
		"an outcome before the start":     {newDesk(t, "a find undo"), outcome},
		"nothing before the start":        {newDesk(t, "a find undo"), Event{}},
		"a second start":                  {begin(t, "a find undo"), Event{Start: &Start{Input: json.RawMessage(`1`)}}},
		"evidence about an unknown step":  {begin(t, "a find undo").fail(saga.Unknown), evidence("z")},
		"evidence about a done step":      {begin(t, "a find undo\nb find undo").succeed("1").fail(saga.Unknown), evidence("a")},
		"evidence about an open attempt":  {begin(t, "a find undo"), evidence("a")},
		"evidence beside an open attempt": {begin(t, "a find undo").cancelAfter(saga.Unknown).due().found(KindUnfinished, "1"), evidence("a")},
		"a signal over an open attempt":   {begin(t, "a find undo"), Event{Signal: &Signal{ID: 1, Kind: SignalConflict}}},
	} {
		n := len(c.d.chain)
		err := c.d.try(c.ev)
		if err == nil || len(c.d.chain) != n {
			t.Errorf("%s is decided", what)
			continue
		}
		if !strings.Contains(err.Error(), "does not fit the chain") || !strings.Contains(err.Error(), order.Work) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// longStory drives a work through more records than one snapshot's worth, with everything a state
// can hold.
func longStory(t *testing.T) *desk {
	t.Helper()
	d := begin(t, "a idempotent undo attempts=1000 within=100000h\nb find undo attempts=1000 within=100000h\nc idempotent undo pivot")
	d.fail(saga.Unknown).due().succeed("<1> & é")
	for range 40 {
		d.fail(saga.Unknown).due().found(KindUnclear).due().found(KindUnfinished, "half").signalIfIdle(Signal{Kind: SignalConflict})
	}
	return d
}

// signalIfIdle ends the open attempt as not sent and posts s.
func (d *desk) signalIfIdle(s Signal) *desk {
	d.t.Helper()
	return d.fail(saga.Unsent).signal(s).due()
}

// "R4: ... a fold from the first record equals a fold from any record with a snapshot. A snapshot
// is taken after 64 records without one".
func TestR4Snapshots(t *testing.T) {
	d := longStory(t)
	var at []int64
	for i := range d.chain {
		if d.chain[i].Snapshot == nil {
			continue
		}
		at = append(at, d.chain[i].Seq)
		st, err := Fold(order, d.chain[i:])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(dump(t, st)), string(dump(t, d.st)); got != want || st.ID != d.st.ID {
			t.Errorf("from the snapshot in record %d:\n%s\nfrom the start:\n%s", d.chain[i].Seq, got, want)
		}
	}
	if len(d.chain) < 200 || len(at) < 3 {
		t.Fatalf("the story has %d records and snapshots at %v", len(d.chain), at)
	}
	for i, seq := range at {
		if want := int64(i+1)*snapshotEvery + 1; seq != want {
			t.Errorf("snapshot %d is in record %d, want %d", i, seq, want)
		}
	}
	if d.st.SnapshotSeq != at[len(at)-1] {
		t.Errorf("base %d, want %d", d.st.SnapshotSeq, at[len(at)-1])
	}
	st, err := Fold(order, d.chain)
	if err != nil || string(dump(t, st)) != string(dump(t, d.st)) {
		t.Errorf("the whole chain folds to another state than it was decided on (%v)", err)
	}
}

// Every prefix of a chain folds, and going on from it is going on from where it was (a crash loses
// nothing that was stored).
func TestR4EveryPrefixFolds(t *testing.T) {
	d := longStory(t)
	live := &State{ID: order}
	for i := range d.chain {
		if err := live.Apply(&d.chain[i]); err != nil {
			t.Fatal(err)
		}
		again, err := Fold(order, d.chain[:i+1])
		if err != nil {
			t.Fatal(err)
		}
		if string(dump(t, again)) != string(dump(t, live)) {
			t.Fatalf("record %d: %s\nfolded anew: %s", i+1, dump(t, live), dump(t, again))
		}
	}
}

// Fold reports what cannot be, and where. These are the chains that an accident leaves behind.
func TestFoldFaults(t *testing.T) {
	t.Parallel()
	d := begin(t, "a idempotent undo\nb find undo").succeed("1").fail(saga.Unknown).due().found(KindNotFound)
	arm := func(step string, dir saga.Direction, attempt int) *Dispatch {
		return &Dispatch{Step: step, Direction: dir, Attempt: attempt, Key: "k", Budget: time.Second}
	}
	for want, c := range map[string]struct {
		r Record
		n int // records before it
	}{
		"the work is started twice":                                      {Record{Kind: KindStarted}, 2},
		`done speaks of step "z", which was never armed`:                 {Record{Kind: KindDone, Step: "z"}, 2},
		`done speaks of attempt 2 of step "b"; the latest is 1`:          {Record{Kind: KindDone, Step: "b", Attempt: 2}, 2},
		`done ends an attempt of step "b", which is in-doubt`:            {Record{Kind: KindDone, Step: "b", Attempt: 1}, 3},
		`found is a lookup's answer on step "b", which is started`:       {Record{Kind: KindFound, Step: "b", Attempt: 1}, 2},
		`not-found is a lookup's answer on step "a", which is done`:      {Record{Kind: KindNotFound, Step: "a", Attempt: 1}, 3},
		`a resolution on step "b", which is started`:                     {Record{Kind: KindResolved, Step: "b", Attempt: 1}, 2},
		`a resolution on step "a", which is done`:                        {Record{Kind: KindResolved, Step: "a", Attempt: 1}, 2},
		`unknown kind "gone"`:                                            {Record{Kind: "gone", Step: "b", Attempt: 1}, 2},
		`it arms step "a" while an attempt of step "b" is open`:          {Record{Kind: KindDispatched, Status: saga.Running, Dispatch: arm("a", saga.Forward, 2)}, 2},
		`it arms attempt 3 of step "b" (forward), which is in-doubt`:     {Record{Kind: KindDispatched, Status: saga.Running, Dispatch: arm("b", saga.Forward, 3)}, 3},
		`it arms attempt 2 of step "a" (forward), which is done after 1`: {Record{Kind: KindDispatched, Status: saga.Running, Dispatch: arm("a", saga.Forward, 2)}, 3},
		`it arms step "b" forward while compensating`:                    {Record{Kind: KindDispatched, Status: saga.Compensating, Dispatch: arm("b", saga.Forward, 2)}, 3},
	} {
		err := d.forged(c.r, c.n)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), order.Work) {
			t.Errorf("%v\nwant: %s", err, want)
		}
	}
	for want, chain := range map[string][]Record{
		"the chain is empty": nil,
		"the chain begins at record 2, which carries no snapshot":       d.chain[1:],
		"the snapshot in record 3 does not decode":                      {{Seq: 3, Snapshot: json.RawMessage(`{`)}},
		"record 3 follows record 1":                                     {d.chain[0], d.chain[2]},
		"record 1 follows record 1":                                     {d.chain[0], d.chain[0]},
		"record 9 follows record 7":                                     {{Seq: 9, Snapshot: json.RawMessage(`{"seq":7}`)}},
		`record 2: done speaks of attempt 0 of step "a"; the latest is`: {d.chain[0], {Seq: 2, Kind: KindDone, Step: "a"}},
	} {
		st, err := Fold(order, chain)
		if err == nil || st != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant: %s", err, want)
		}
	}
}

// "R5: texts in a record are valid UTF-8 without NUL and bounded; a bad byte never makes a record
// unstorable, least of all after an effect".
func TestR5Texts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                    "",
		"plain":                               "plain",
		"nul\x00nul":                          "nul�nul",
		"bad\xff\xfebytes":                    "bad�bytes",
		"half a rune \xc3":                    "half a rune �",
		strings.Repeat("x", 20):               strings.Repeat("x", 20),
		strings.Repeat("x", 21):               strings.Repeat("x", 17) + "…",
		strings.Repeat("é", 11):               strings.Repeat("é", 8) + "…", // 16 bytes: a 17th would cut a rune
		strings.Repeat("日", 7):                strings.Repeat("日", 5) + "…",
		strings.Repeat("\xff", 3) + "é" + "x": "�éx",
	} {
		got := program.Clean(in, 20)
		if got != want || len(got) > 20 || !utf8.ValidString(got) {
			t.Errorf("clean(%q) = %q (%d bytes), want %q", in, got, len(got), want)
		}
	}
	bad := strings.Repeat("no\x00 \xff é ", 1000)
	check := func(what string, r *Record) {
		t.Helper()
		for _, s := range []string{r.Error, r.Note, r.Actor, r.Why, r.Cause, r.ExternalID} {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") || len(s) > maxText {
				t.Errorf("%s: recorded %.40q, %d bytes", what, s, len(s))
			}
		}
		if r.Said() == "" && r.ExternalID == "" {
			t.Errorf("%s: nothing is recorded", what)
		}
	}
	d := begin(t, "a find undo").outcome(program.Outcome{Class: saga.Unsent, Error: bad})
	check("an error", d.tail())
	d = begin(t, "a find undo").outcome(program.Outcome{Class: program.Succeeded, ExternalID: bad, Output: output("1")})
	check("an external id", d.tail())
	d = begin(t, "a find undo").fail(saga.Unknown).signal(Signal{Kind: SignalConflict, Actor: bad, Reason: bad})
	check("a person's words", d.tail())
	d = begin(t, "a find undo").fail(saga.Unknown).due().found(KindSeveral, bad, bad)
	check("the ids of a duplicate", d.tail())
	d = begin(t, "a find undo").feed(Event{Outcome: &program.Outcome{Class: program.Succeeded, ExternalID: bad}, Invalid: 2})
	check("the words of one that is given up", d.tail())
}

// A snapshot can be taken whatever was in the answers.
func TestSnapshotOfEverything(t *testing.T) {
	d := begin(t, "a idempotent undo attempts=1000 within=10000h")
	for range 3 * snapshotEvery {
		d.outcome(program.Outcome{Class: saga.Unsent, Error: "\x00\xff<&>\u2028"}).due()
	}
	if d.st.SnapshotSeq < 2*snapshotEvery {
		t.Errorf("base %d after %d records", d.st.SnapshotSeq, len(d.chain))
	}
}

// The backoff is bounded: never longer than the policy's maximum, never shorter than half of what
// it would be without its jitter, for every policy and every try.
func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	for _, r := range []program.Retry{
		{}, {Initial: time.Millisecond, Max: time.Hour}, {Initial: time.Hour}, {Initial: 3 * time.Second, Max: 3 * time.Second},
		{Initial: 1<<41 + 1<<20, Max: 1000 * time.Hour}, {Initial: time.Second, Max: 1<<63 - 1},
	} {
		p := r.WithDefaults()
		for n := 1; n < 200; n++ {
			plain := p.Max
			if n <= 32 && p.Initial <= p.Max>>(n-1) {
				plain = p.Initial << (n - 1)
			}
			for _, key := range []string{"am-1", "am-2", "am-3"} {
				got := r.Backoff(key, n)
				if got > p.Max || got < plain/2-time.Millisecond || got != r.Backoff(key, n) {
					t.Errorf("%+v: the wait after try %d of %s is %s, want between %s and %s", r, n, key, got, plain/2, p.Max)
				}
			}
		}
	}
}

// Works that failed together do not return together.
func TestBackoffSpreads(t *testing.T) {
	t.Parallel()
	const n = 1000
	var early, late int
	seen := map[time.Duration]bool{}
	for i := range n {
		d := program.Retry{Initial: time.Minute}.Backoff(RootKey("s", string(rune(i)), ""), 1)
		seen[d] = true
		switch {
		case d < 40*time.Second:
			early++
		case d > 50*time.Second:
			late++
		}
	}
	if len(seen) < n*9/10 || early < n/5 || late < n/5 {
		t.Errorf("%d different waits, %d early, %d late", len(seen), early, late)
	}
}

// A string result is its own external id, so the id alone, from a person or from an adoption, tells
// the whole result.
func TestAnIDThatIsTheResult(t *testing.T) {
	d, err := saga.Define(order.Saga, 1, saga.Do("a", func(context.Context, saga.Call[string]) (string, error) { return "", nil }).
		Find(func(context.Context, saga.Call[string]) (saga.Finding[string], error) {
			return saga.CannotTell[string](), nil
		}).
		EachRun().Undo(func(context.Context, saga.Call[string], string) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	w := &desk{t: t, spec: d.Spec(), st: &State{ID: order}, now: noon}
	w.start().fail(saga.Unknown).due().found(KindSeveral, "1", "2").resolution("ticket_1").wants("rest", saga.Completed)
	if got := string(w.st.Step("a").Output); got != `"ticket_1"` {
		t.Errorf("by a resolution: %s", got)
	}
	w = &desk{t: t, spec: d.Spec(), st: &State{ID: order}, now: noon}
	a := &Adoption{Revision: "1", Input: output("1"), Effects: map[string]Effect{"a": {ExternalID: "ticket_1"}}, Cancelled: true}
	w.takeOver(a).tick().wants("act a undo", saga.Compensating)
}
