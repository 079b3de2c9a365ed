package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

var valueCases = []testCase{
	{name: "records", run: valuesRecords, breaks: broken{"bytes-kept": func(s Store) Store { return tidy{s} }}},
	{name: "prefixes are literal", run: valuesPrefix},
	{name: "caller's memory", run: valuesCopied},
	{name: "a bad record fails no other", run: valuesBadRecords, breaks: broken{"split-batch": func(s Store) Store { return lumper{s} }}},
	{name: "a place that is taken fails no other", run: valuesTaken},
	{name: "bad signals, controls and mail", run: valuesRefused},
	{name: "a bad event fails no other", run: valuesEvents},
	{name: "bad values of an entry", run: valuesEntry},
	{name: "findings", run: valuesFindings},
	{name: "sightings", run: valuesSightings},
	{name: "runs", run: valuesRuns},
	{name: "pages", run: pages},
	{name: "many stray and signalled works", run: manyHeld},
	{name: "the newest plans stay", run: plansKept},
}

// oddTexts are valid texts that a careless database, driver or query bends.
var oddTexts = []string{
	"",
	" leading, trailing and  double spaces ",
	"tab\tnewline\ncarriage\r\nreturn",
	`quotes ' " and \ back\\slash \n \x00 \u0000`,
	"{braces,and,commas}", `{"NULL",null}`, "NULL", "null", "0", "1e3", "true", "'; DROP TABLE amends_instances; --",
	"$1 ? :name @p %s %d 100% a_b",
	"Grüße, Ñandú, ß ẞ, İstanbul ı",
	"é and é", // composed, and with a combining accent: two texts
	"日本語テキスト", "السلام عليكم", "שלום", "ไทย", "\u200bzero\u200dwidth\ufeff", "\u202eright to left",
	"👩‍👩‍👧‍👦🏳️‍🌈𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "\U0010ffff", "\ufffd the replacement character itself", "\x01\x02\x1f\x7f",
	strings.Repeat("long ", 140),
}

// longest is the longest key there is, and hard to compress.
var longest = func() string {
	b := make([]byte, ledger.MaxText)
	for i := range b {
		b[i] = byte('!' + (i*i+i/7)%90)
	}
	return string(b)
}()

// full is a record with every field set.
func full() machine.Record {
	return machine.Record{
		Kind: machine.KindDone, Version: 7, Revision: "2026-02-29T24:00:00Z/r9", Nonce: -1 << 62, Step: "invoice", Direction: saga.Undo,
		Attempt: 12, ExternalID: "inv_5530", Body: json.RawMessage(`{"z":1, "a":[1.0,2e3]}`), BodyDropped: true,
		ErrorClass: saga.Refused, Error: "422: no such customer", Note: "look", Actor: "anna", Why: "she called", Cause: "webhook evt_1", Tags: []string{"a=1", "shop=at \"x\""}, Status: saga.Review, Reason: saga.ReasonUndoFailed,
		Wait: 90*time.Minute + time.Millisecond,
		Dispatch: &machine.Dispatch{
			Step: "mark-synced", Direction: saga.Forward, Attempt: 3, Key: "am-0123456789_-", Reissue: 2,
			Budget: 30*time.Second + time.Millisecond,
		},
		Snapshot: json.RawMessage(`{"steps":[]}`),
	}
}

// Every field of a record comes back as it went in, so that its hash can be computed again: any
// valid text, without trimming, folding, normalising or quoting, and every byte of a body, of a megabyte,
// too.
func valuesRecords(b *bench) {
	c := b.start(b.session(), "w", hold)
	for i := range 12 {
		c.post(b, fmt.Sprint(i))
	}
	written := []machine.Record{c.history()[0]}
	add := func(r machine.Record) { written = append(written, c.add(r, release)) }
	add(c.consuming(full(), 3, 1, 4, 0, 5, 9, 2, 6)) // in the order the writer read them
	add(machine.Record{Kind: machine.KindNoted, Status: saga.Running})
	for _, change := range []func(r *machine.Record){
		func(r *machine.Record) { r.Dispatch, r.Snapshot, r.Body = nil, nil, nil },
		func(r *machine.Record) { r.Wait, r.Dispatch.Budget, r.Dispatch.Reissue, r.Attempt = 0, 0, 0, 0 },
		func(r *machine.Record) {
			r.Attempt, r.Dispatch.Attempt, r.Dispatch.Reissue = math.MaxInt32, math.MaxInt32, math.MaxInt32
		},
		func(r *machine.Record) { r.Wait, r.Dispatch.Budget = 10*365*24*time.Hour, 10*365*24*time.Hour },
		func(r *machine.Record) { r.Erase(theSalt) },
		func(r *machine.Record) { r.Erase(theSalt); r.Digests.Body = machine.Hash{} },
	} {
		r := full()
		change(&r)
		add(r)
	}
	for _, s := range oddTexts {
		r := arming(doing(machine.KindRefused, saga.Running), 1)
		r.Step, r.ExternalID, r.Error, r.Revision, r.Note, r.Actor, r.Why, r.Cause, r.Dispatch.Step, r.Dispatch.Key = s, s, s, s, s, s, s, s, s, s
		r.Body = of(json.Marshal(s))
		add(r)
	}
	large := `"` + strings.Repeat("0123456789abcdef", 1<<16) + `"`
	for _, body := range []string{
		"", "null", "{}", "[]", `""`, "0", " {\n\t\"b\" : 1 ,\"a\":1.0,\"a\":2}\n", `{"escaped":"\u0000\ud83d\ude00\/"}`,
		"1e400", "123456789012345678901234567890.10", `{"":""}`, `"'"`, `"\\"`, large,
	} {
		r := doing(machine.KindDone, saga.Running)
		r.Body = json.RawMessage(body)
		add(r)
	}
	got := c.history()
	loaded := of(b.Load(b.Context(), []saga.ID{c.id}))[0]
	if len(got) != len(written) || !reflect.DeepEqual(loaded.Records, got[loaded.Instance.Base-1:]) {
		b.Fatalf("%d records, want %d; or a load differs from the history", len(got), len(written))
	}
	for i, want := range written {
		at := got[i].At
		want.At = at
		if want.Body = slices.Clip(want.Body); len(want.Body) == 0 { // an empty body is as good as none
			want.Body, got[i].Body = nil, nil
		}
		if !reflect.DeepEqual(got[i], want) {
			b.Errorf("record %d came back as\n%.2000v, want\n%.2000v", i+1, fmt.Sprint(got[i]), fmt.Sprint(want))
		}
	}
}

// A prefix is text, not a pattern, and case counts.
func valuesPrefix(b *bench) {
	t := b.session()
	for _, w := range []string{"a%b", "a_b", "axb", `a\b`, "A_B", "ä", "Ä", "*", "[a]", "\U0010ffff", "\U0010ffff\U0010ffffz", "z"} {
		b.start(t, w, hold)
	}
	for prefix, want := range map[string]string{ // by bytes
		"a%": "[a%b]", "a_": "[a_b]", `a\`: `[a\b]`, "a": `[a%b a\b a_b axb]`, "A": "[A_B]", "ä": "[ä]", "%": "[]", "*": "[*]",
		"[": "[[a]]", "\U0010ffff": "[\U0010ffff \U0010ffff\U0010ffffz]", "a_b": "[a_b]", "a_bc": "[]",
	} {
		var got []string
		for _, h := range b.list(ledger.Filter{Prefix: prefix}) {
			got = append(got, h.ID.Work)
		}
		if fmt.Sprint(got) != want {
			b.Errorf("prefix %q: got %q, want %s", prefix, got, want)
		}
	}
}

// What a caller does with its slices after a call, or with those it was given, does not change the
// ledger.
func valuesCopied(b *bench) {
	c := b.fresh(b.session(), "w")
	e := c.entry(arming(started(), 1), hold)
	c.moved(e, b.want(c.token, e, ledger.Appended))
	e.Record.Body[2], e.Record.Dispatch.Key = 'X', "other"
	got := c.history()
	got[0].Body[2], got[0].Dispatch.Key = 'Y', "other"
	if r := c.history()[0]; r.Sum(c.id, theSalt, machine.Hash{}) != r.Hash || !bytes.Equal(r.Body, started().Body) {
		b.Errorf("the record changed behind the ledger's back: body %s, key %s", r.Body, r.Dispatch.Key)
	}
	output := []byte(`"as posted"`)
	of(b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalLate, Key: "k", Resolution: saga.Resolution{Output: output}}))
	output[1] = 'X'
	c.signals()[0].Output[1] = 'Y'
	if s := c.signals()[0]; string(s.Output) != `"as posted"` {
		b.Errorf("the signal changed behind the ledger's back: %+v", s)
	}
}

// Invalid: "the database refuses a value of this record; the others were stored". One bad value
// must not fail a batch, least of all after an effect, and leaves no trace.
func valuesBadRecords(b *bench) {
	t := b.session()
	var batch []ledger.Entry
	var names []string
	add := func(name string, change func(r *machine.Record)) {
		r := arming(doing(machine.KindRefused, saga.Running), 2)
		change(&r)
		good, bad := b.start(t, "good with "+name, hold), b.start(t, name, hold)
		batch, names = append(batch, good.entry(doing(machine.KindDone, saga.Running), hold), bad.entry(r, hold)), append(names, "beside "+name, name)
	}
	for name, text := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
		add(name+" in the error", func(r *machine.Record) { r.Error = text })
		add(name+" in the external id", func(r *machine.Record) { r.ExternalID = text })
		add(name+" in the step", func(r *machine.Record) { r.Step = text })
		add(name+" in the body", func(r *machine.Record) { r.Body = []byte(text) })
		add(name+" in the key", func(r *machine.Record) { r.Dispatch.Key = text })
		batch, names = append(batch, b.fresh(t, name).entry(started(), hold), b.fresh(t, text).entry(started(), hold)), append(names, "beside "+name, name)
	}
	add("a long external id", func(r *machine.Record) { r.ExternalID = longest + "!" })
	add("unknown status", func(r *machine.Record) { r.Status = "sleeping" })
	add("unknown kind", func(r *machine.Record) { r.Kind = "guessed" })
	add("review without a reason", func(r *machine.Record) { r.Status, r.Dispatch = saga.Review, nil })
	add("a reason without review", func(r *machine.Record) { r.Reason = saga.ReasonPoison })
	add("unknown direction", func(r *machine.Record) { r.Direction = "sideways" })
	add("more signals than were posted", func(r *machine.Record) { r.Signals = []int64{1 << 40} })
	add("a wait no column holds", func(r *machine.Record) { r.Wait = time.Millisecond + 1 })
	add("a budget no column holds", func(r *machine.Record) { r.Dispatch.Budget = time.Microsecond })
	for name, bad := range map[string]ledger.Wait{"a wait without a key": wait("a wait without a key", ""), "a wait of another": wait("w", "7")} {
		good, e := b.start(t, "good with "+name, hold), b.start(t, name, hold).entry(doing(machine.KindDone, saga.Running), hold)
		e.Waits = []ledger.Wait{bad}
		batch, names = append(batch, good.entry(doing(machine.KindDone, saga.Running), hold), e), append(names, "beside "+name, name)
	}
	for _, good := range []ledger.Result{ledger.Appended, ledger.Mine} {
		for i, a := range of(b.Append(b.Context(), t, batch)) {
			if i%2 == 0 && a.Result != good || i%2 == 1 && (a.Result != ledger.Invalid || a.Err == nil) {
				b.Errorf("%s: got %s (%v), want %s, or invalid with the reason", names[i], a.Result, a.Err, good)
			}
		}
	}
	if n := len(b.list(ledger.Filter{Limit: 1000})); n != 2*(len(batch)/2)-2 {
		b.Errorf("%d works of a batch of %d", n, len(batch))
	}
}

// A record whose place is taken keeps no other of its batch from being stored whole: with its instance, its signals and its waits.
func valuesTaken(b *bench) {
	t := b.session()
	taken, mine, next := b.start(t, "taken", hold), b.start(t, "mine", hold), b.start(t, "next", hold)
	late, again := taken.view(t).entry(doing(machine.KindLost, saga.Running), hold), mine.entry(doing(machine.KindDone, saga.Completed), release)
	taken.add(doing(machine.KindDone, saga.Completed), release)
	b.want(t, again, ledger.Appended)
	next.post(b, "1")
	e := next.entry(next.consuming(doing(machine.KindDone, saga.Waiting), 0), release)
	e.Waits = []ledger.Wait{wait("next", "7")}
	for _, want := range []ledger.Result{ledger.Appended, ledger.Mine} {
		for i, a := range of(b.Append(b.Context(), t, []ledger.Entry{late, again, e})) {
			if want := []ledger.Result{ledger.Stale, ledger.Mine, want}[i]; a.Result != want {
				b.Errorf("record %d is %s (%v), want %s", i, a.Result, a.Err, want)
			}
		}
	}
	head, waits := next.now(), of(b.Waits(b.Context(), "paid", "7"))
	if head.Status != saga.Waiting || head.Consumed != 1 || len(next.history()) != 2 || len(waits) != 1 {
		b.Errorf("what was stored beside it shows %+v, %d records, and waits %v", head, len(next.history()), waits)
	}
	if n := len(taken.history()); n != 2 || taken.now().Status != saga.Completed {
		b.Errorf("where a place was taken there are %d records", n)
	}
}

// What no database holds is refused before anything is sent, the same on every engine.
func valuesRefused(b *bench) {
	c := b.start(b.session(), "w", release)
	long := longest + "!"
	said := func(output, input string) machine.Signal {
		return machine.Signal{Kind: machine.SignalLate, Key: "k", Resolution: saga.Resolution{Step: "s", Output: []byte(output)}, News: machine.News{Input: []byte(input)}}
	}
	for i, s := range []machine.Signal{
		{Kind: machine.SignalCancel, Key: "k", Actor: "a\x00b"}, {Kind: machine.SignalCancel, Key: "k", Reason: "a\xffb"},
		{Kind: machine.SignalCancel, Key: "a\x00b"}, {Kind: machine.SignalCancel, Key: long}, {Kind: "shout", Key: "k"},
		{Kind: machine.SignalResolve, Key: "k", Resolution: saga.Resolution{Step: "s", ExternalID: long}},
		// Valid JSON by syntax, Latin-1 by content: SQLite took it, and no record could ever consume it.
		said("\"caf\xe9\"", `1`), said(`1`, "\"caf\xe9\""), said("{", `1`),
	} {
		_, err := b.Post(b.Context(), c.id, s)
		b.wantError(fmt.Sprint("signal ", i), err, ledger.ErrInvalid)
	}
	of(b.Post(b.Context(), c.id, machine.Signal{Kind: machine.SignalCancel, Key: longest}))
	good := control("books", ledger.Control{})
	for i, change := range []func(c *ledger.Control){
		func(c *ledger.Control) { c.Kind = "" }, func(c *ledger.Control) { c.Kind = "Pause" }, func(c *ledger.Control) { c.Name = "" },
		func(c *ledger.Control) { c.Name = long }, func(c *ledger.Control) { c.Name = "a\x00" }, func(c *ledger.Control) { c.Name = "\xff" },
		func(c *ledger.Control) { c.Body = json.RawMessage(`{`) }, func(c *ledger.Control) { c.Body = json.RawMessage("\"\xff\"") },
		func(c *ledger.Control) { c.Actor = "\x00" }, func(c *ledger.Control) { c.Actor, c.Reason = "ann", "\x00" },
		func(c *ledger.Control) { c.Reason = "why" }, func(c *ledger.Control) { c.Nonce = 0 }, func(c *ledger.Control) { c.Version = -1 },
	} {
		bad := good
		change(&bad)
		_, err := b.SetControl(b.Context(), c.token, bad)
		b.wantError(fmt.Sprint("control ", i), err, ledger.ErrInvalid)
	}
	_, err := b.SetControl(b.Context(), 0, good)
	b.wantError("a person without a name", err, ledger.ErrInvalid)
	for _, w := range []ledger.Wait{{}, wait("a", ""), wait("a", "\x00"), {Name: long, Key: "7", ID: c.id, Step: "paid"}} {
		b.wantError("await", b.Await(b.Context(), []ledger.Wait{w}), ledger.ErrInvalid)
	}
	for _, m := range []program.Message{{}, {Name: "paid", Key: "7"}, {Name: "paid", ID: "1"}, {Key: "7", ID: "1"}, {Name: "paid", Key: "\x00", ID: "1"}, {Name: "paid", Key: "7", ID: "1", Body: make([]byte, program.MaxAnswer+1)}} {
		_, err := b.Keep(b.Context(), m, time.Hour)
		b.wantError("keep", err, ledger.ErrInvalid)
	}
}

// object is an order of the one shop there is.
func object(id string) intake.Object { return intake.Object{Source: "shop", Type: "order", ID: id} }

// event is the one event there is about an order, unless the test changes it.
func event(id string) intake.Event {
	now := time.Now().UTC().Truncate(time.Microsecond)
	body := fmt.Sprintf(`{"id": %q, "total": "10.00"}`, id)
	return intake.Event{
		Object: object(id), Topic: "order.updated", ID: "evt_" + id, Dedupe: intake.DigestOf("evt", id), Payload: intake.Whole,
		Version: intake.At(now.Truncate(time.Second), time.Second), Body: json.RawMessage(body), Fingerprint: intake.DigestOf(body),
		At: now.Add(-time.Second), Received: now, Secret: "new",
	}
}

// events are events about n orders.
func events(n int) []intake.Event {
	es := make([]intake.Event, n)
	for i := range es {
		es[i] = event(fmt.Sprintf("%04d", i))
	}
	return es
}

// all lists every delivery, the newest first.
func (b *bench) all() []intake.Delivery {
	return of(b.Deliveries(b.Context(), intake.DeliveryFilter{Limit: 100_000}))
}

// put changes an entry.
func (b *bench) put(o intake.Object, change func(*intake.Entry)) {
	ok(b.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error { change(e); return nil }))
}

// Values that a database refuses are made fit for it. Their sender gets the same answer as others,
// and the events beside them are stored, too.
func valuesEvents(b *bench) {
	changes := []func(*intake.Event){
		func(e *intake.Event) { e.Topic = "a\x00b" }, func(e *intake.Event) { e.ID = "\xff\xfe" },
		func(e *intake.Event) { e.Object.ID = "id\x00\xc3" }, func(e *intake.Event) { e.Object.Tenant = strings.Repeat("t", 10_000) },
		func(e *intake.Event) { e.Topic = strings.Repeat("é", 1<<20) }, func(e *intake.Event) { e.Body = json.RawMessage("not json \x00 \xff at all") },
		func(e *intake.Event) { e.Body = json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`) },
		func(e *intake.Event) { e.At = time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(e *intake.Event) { e.At = time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC) }, func(e *intake.Event) { e.Received = time.Time{} },
		func(e *intake.Event) {
			e.Version = intake.Version{Epoch: math.MaxInt64, N: math.MinInt64, Step: math.MaxInt64}
		},
		func(e *intake.Event) {
			e.Payload, e.Disposition, e.Why = "no such", "no such", strings.Repeat("\x00", 9000)
		},
		func(e *intake.Event) { e.Object = intake.Object{} }, func(e *intake.Event) { e.Topic = `{"quoted\\", NULL}` }, func(*intake.Event) {},
	}
	es := events(len(changes))
	for i, change := range changes {
		change(&es[i])
	}
	b.atOnce(len(es), func(i int) { ok(b.Accept(b.Context(), es[i:i+1])) })
	ok(b.Accept(b.Context(), es))
	of(b.Judge(b.Context(), 100, count))
	ds := b.all()
	for _, d := range ds {
		if len(ds) != len(es) || d.Copies != 2 || d.Judged.IsZero() {
			b.Errorf("%d deliveries of %d; %d copies of %.80q, judged at %s", len(ds), len(es), d.Copies, d.ID, d.Judged)
		}
	}
}

// What a callback leaves in one entry never fails the others of its batch.
func valuesEntry(b *bench) {
	ok(b.Accept(b.Context(), events(2)))
	of(b.Judge(b.Context(), 10, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome, ds[i].Because = intake.Disposition(strings.Repeat("ä", 10_000)), "a\x00\xff"
		}
		e, parked := es[ds[0].Object], ds[0].Event
		e.LastError, e.Blocked, e.Holder = "panic: \x00\xff", strings.Repeat("\xf0", 10_000), "\x00"
		e.Body, e.Due = json.RawMessage("\xff\x00"), now.AddDate(20_000, 0, 0)
		parked.Body, parked.At, parked.Why = json.RawMessage("{\xff"), e.Due, "\x00"
		e.Parked = []intake.Event{parked}
		return nil
	}))
	if e := of(b.Entry(b.Context(), object("0000"))); e.Blocked == "" || len(e.Parked) != 1 {
		b.Errorf("it came back as %+v", e)
	}
	if n := of(b.Replay(b.Context(), intake.DeliveryFilter{}, "once more")); n != 2 || len(of(b.Counts(b.Context()))) != 1 {
		b.Errorf("replayed are %d", n)
	}
}

// finding is a finding about a key.
func finding(key string, c plan.Class, do plan.Verb) plan.Finding {
	return plan.Finding{Key: key, Class: c, Action: do, Reason: "the test says so"}
}

func missing(keys ...string) (fs []plan.Finding) {
	for _, key := range keys {
		fs = append(fs, finding(key, plan.Missing, plan.Start))
	}
	return fs
}

// plan makes a plan with an id.
func (b *bench) plan(job, id string, fs ...plan.Finding) plan.Ref {
	ref := of(b.Draft(b.Context(), job))
	ok(b.Find(b.Context(), ref, fs))
	of(b.Finish(b.Context(), ref, &plan.Plan{ID: id, Job: job}))
	return ref
}

// One bad value does not fail the batch it is in, and what became of it can be noted by its own key.
func valuesFindings(b *bench) {
	bad := plan.Finding{
		Key: "shop:order:\x00\xff", Class: plan.Diverged, Action: plan.Ask, Reason: "it says \x00\xff", Suggestion: "x\x00",
		Changes: []plan.Change{{Field: "note\xff", Actual: "\x00", Desired: strings.Repeat("ä", 5000)}},
	}
	ref := b.plan(`b"o\oks?`, "a1", append(missing("1", strings.Repeat("k", 5000)), bad)...)
	for _, r := range of(b.Findings(b.Context(), plan.FindingQuery{Plan: ref})) {
		ok(b.Done(b.Context(), ref, []plan.Row{{Finding: r.Finding, Outcome: plan.Applied}}))
	}
	if rows := of(b.Findings(b.Context(), plan.FindingQuery{Plan: ref, Outcome: plan.Applied})); len(rows) != 3 {
		b.Errorf("by its own key nothing can be noted: %d of 3", len(rows))
	}
	ok(b.Remember(b.Context(), ref, plan.Part{}, []plan.Finding{bad}))
}

// Every value comes back as it was, or fit for a text column; Bare leaves the fields out. What one process
// stored another one reads.
func valuesSightings(b *bench) {
	row, odd := sighting("k", "1", 3), sighting(strings.Repeat("k", 3000), strings.Repeat("i", 3000)+"\x00\xff", 3)
	row.Flags, row.Created = scan.Void|scan.Locked|scan.Foreign, time.Date(1999, 1, 2, 3, 4, 5, 6000, time.UTC)
	row.Fields = plan.Fields{"a": `"<&>\`, "": "é\u2028", "b": ""}
	odd.Revision, odd.Fields, odd.Created = "\x00\xff", plan.Fields{"\xff": "\x00"}, time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)
	of(b.Advance(b.Context(), scan.Position{Name: "orders", State: json.RawMessage(`{}`)}, scan.Catch{Name: "orders", Side: scan.SourceSide, Sightings: []scan.Sighting{row, odd}}))
	q := scan.SightingQuery{Name: "orders", Side: scan.SourceSide}
	if got := of(b.again().Sightings(b.Context(), q)); len(got) != 2 || !reflect.DeepEqual(got[0], row) {
		b.Fatalf("there is %+v, want %+v", got, row)
	}
	q.Bare = true
	if bare := of(b.Sightings(b.Context(), q))[0]; bare.Fields != nil || bare.Partition != "" || bare.Fingerprint != row.Fingerprint || bare.Flags != row.Flags {
		b.Errorf("bare there is %+v", bare)
	}
}

// fullState is a job of which everything is known.
func fullState(now time.Time) schedule.JobState {
	mark := schedule.Mark{At: now, By: "ann", Why: "the shop is closed"}
	return schedule.JobState{
		Name: "sweep", Schedule: "*/5 * * * *", Zone: "Europe/Vienna", Overlap: schedule.BufferOne, CatchUp: time.Hour,
		Fresh: 4, First: now, Described: now.Add(time.Second), Planned: now.Add(2 * time.Second), Fence: 12, Asked: 3,
		Paused: mark, Approved: schedule.Mark{At: now.Add(time.Hour), By: "bob", Why: "looks good"},
		Good:     schedule.Good{Instant: "2026-11-21T01:00:00 Europe/Vienna", At: now.Add(-time.Hour), Ended: now.Add(-time.Minute)},
		Failures: 2, Watermark: strings.Repeat("w", 10_000),
	}
}

// Values that a database refuses are made fit for it: what a job says at its end never keeps it
// from ending.
func valuesRuns(b *bench) {
	odd := "\x00\xff" + strings.Repeat("é", 5000)
	turn := func(change func(now time.Time, a *schedule.Agenda)) {
		ok(b.Turn(b.Context(), "sweep", func(now time.Time, a *schedule.Agenda) error { change(now, a); return nil }))
	}
	turn(func(now time.Time, a *schedule.Agenda) {
		r := planned(now, odd)
		r.Ask, r.By, r.Why, r.Holder, r.Error, r.Before, r.After, r.Plan, r.Note = odd, odd, odd, odd, odd, odd, odd, odd, odd
		a.New = []schedule.RunRow{r}
		a.State.Paused = schedule.Mark{At: now, By: odd, Why: odd}
		a.State.Watermark, a.State.Schedule, a.State.Zone, a.State.Good.Instant = odd, odd, odd, odd
		a.State.Described = now.AddDate(20_000, 0, 0)
	})
	turn(func(now time.Time, a *schedule.Agenda) {
		if !strings.HasSuffix(a.Open[0].After, odd[2:]) || !strings.HasSuffix(a.State.Watermark, odd[2:]) {
			b.Errorf("a cursor was cut")
		}
		a.Open[0].Result, a.Open[0].Ended = schedule.Skipped, now
	})
	turn(func(_ time.Time, a *schedule.Agenda) {
		if len(a.Open) != 0 {
			b.Errorf("%d runs are still open", len(a.Open))
		}
	})
}
