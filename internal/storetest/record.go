package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var recordCases = []testCase{
	{name: "every field", run: recordFields},
	{name: "odd texts", run: recordTexts},
	{name: "bodies byte by byte", run: recordBodies, breaks: broken{"bytes-kept": func(s Store) Store { return tidy{s} }}},
	{name: "large bodies", run: recordLarge},
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

// full is a record with every field set.
func full() machine.Record {
	return machine.Record{
		Kind: machine.KindDone, Version: 7, Revision: "2026-02-29T24:00:00Z/r9", Nonce: -1 << 62, Step: "invoice", Direction: saga.Undo,
		Attempt: 12, ExternalID: "inv_5530", Body: json.RawMessage(`{"z":1, "a":[1.0,2e3]}`), BodyDropped: true,
		Class: saga.Refused, Error: "422: no such customer", Note: "look", Actor: "anna", Why: "she called", Cause: "webhook evt_1", Status: saga.Review, Reason: saga.ReasonUndoFailed,
		Wait: 90*time.Minute + time.Millisecond,
		Dispatch: &machine.Dispatch{
			Step: "mark-synced", Direction: saga.Forward, Attempt: 3, Key: "am-0123456789_-", Reissue: 2,
			Budget: 30*time.Second + time.Millisecond,
		},
		Snapshot: json.RawMessage(`{"steps":[]}`),
	}
}

// Every field of a record comes back as it went in, so that its hash can be computed again.
func recordFields(b *bench) {
	t := b.session()
	r := full()
	r.Status, r.Reason, r.Kind, r.Snapshot = saga.Running, "", machine.KindStarted, nil
	c := b.start(t, "w", r, hold)
	for i := range 12 {
		b.post(c.id, fmt.Sprint(i))
	}
	written := []machine.Record{c.sealed(r)}
	add := func(r machine.Record) { written = append(written, c.write(r, release)) }
	add(b.consuming(c.id, full(), 3, 1, 4, 0, 5, 9, 2, 6)) // in the order the writer read them
	add(machine.Record{Kind: machine.KindNoted, Status: saga.Running})
	bare := full()
	bare.Dispatch, bare.Snapshot, bare.Body = nil, nil, nil
	add(bare)
	least := full()
	least.Wait, least.Dispatch.Budget, least.Dispatch.Reissue, least.Attempt = 0, 0, 0, 0
	add(least)
	most := full()
	most.Attempt, most.Dispatch.Attempt, most.Dispatch.Reissue = math.MaxInt32, math.MaxInt32, math.MaxInt32
	most.Wait, most.Dispatch.Budget = 10*365*24*time.Hour, 10*365*24*time.Hour
	add(most)
	erased := full()
	erased.Erase(theSalt)
	add(erased)
	erased.Erased.Body = machine.Hash{}
	add(erased)
	b.sameRecords(c, written)
}

// write appends r, which must be stored, and returns it as it was sealed.
func (c *chain) write(r machine.Record, s *ledger.Schedule) machine.Record {
	c.b.Helper()
	e := c.entry(r, s)
	c.add(r, s)
	return e.Record
}

// sealed is r as the first record of c.
func (c *chain) sealed(r machine.Record) machine.Record {
	r.Seal(c.id, theSalt, 0, machine.Hash{}, c.token)
	return r
}

// sameRecords compares a work's chain, as History and as Load give it, with what was written.
func (b *bench) sameRecords(c *chain, written []machine.Record) {
	b.Helper()
	got := c.history()
	if len(got) != len(written) {
		b.Fatalf("history of %s: %d records, want %d", c.id, len(got), len(written))
	}
	var prev machine.Hash
	for i := range written {
		if diff := recordDiff(got[i], written[i]); diff != "" {
			b.Errorf("record %d of %s came back changed:%s", i+1, c.id, diff)
		}
		if sum := got[i].Sum(c.id, theSalt, prev); sum != got[i].Hash {
			b.Errorf("record %d of %s: hash %s, computed again %s", i+1, c.id, got[i].Hash, sum)
		}
		prev = got[i].Hash
	}
	for _, loaded := range b.load(c.id) {
		if tail := got[loaded.Instance.Base-1:]; !slices.EqualFunc(loaded.Records, tail, sameRecord) {
			b.Errorf("load of %s differs from its history behind record %d", c.id, loaded.Instance.Base)
		}
	}
}

func sameRecord(a, c machine.Record) bool { return recordDiff(a, c) == "" && a.At.Equal(c.At) }

// recordDiff says in which fields got differs from want. The time is the ledger's and not compared;
// an empty body is as good as none.
func recordDiff(got, want machine.Record) (diff string) {
	line := func(name string, got, want any) {
		if got != want {
			diff += fmt.Sprintf("\n\t%s: got %.200q, want %.200q", name, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	line("Seq", got.Seq, want.Seq)
	line("Hash", got.Hash, want.Hash)
	line("Session", got.Session, want.Session)
	line("Kind", got.Kind, want.Kind)
	line("Version", got.Version, want.Version)
	line("Revision", got.Revision, want.Revision)
	line("Nonce", got.Nonce, want.Nonce)
	line("Step", got.Step, want.Step)
	line("Direction", got.Direction, want.Direction)
	line("Attempt", got.Attempt, want.Attempt)
	line("ExternalID", got.ExternalID, want.ExternalID)
	line("Body", string(got.Body), string(want.Body))
	line("BodyDropped", got.BodyDropped, want.BodyDropped)
	line("Class", got.Class, want.Class)
	line("Error", got.Error, want.Error)
	line("Note", got.Note, want.Note)
	line("Actor", got.Actor, want.Actor)
	line("Why", got.Why, want.Why)
	line("Cause", got.Cause, want.Cause)
	line("Erased", got.Erased, want.Erased)
	line("Signals", fmt.Sprint(got.Signals), fmt.Sprint(want.Signals))
	line("Status", got.Status, want.Status)
	line("Reason", got.Reason, want.Reason)
	line("Wait", got.Wait, want.Wait)
	line("Snapshot", string(got.Snapshot), string(want.Snapshot))
	switch {
	case (got.Dispatch == nil) != (want.Dispatch == nil):
		diff += fmt.Sprintf("\n\tArm: got %+v, want %+v", got.Dispatch, want.Dispatch)
	case got.Dispatch != nil:
		line("Arm", *got.Dispatch, *want.Dispatch)
	}
	return diff
}

// Any valid text comes back byte by byte: no trimming, folding, normalising or quoting.
func recordTexts(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	written := []machine.Record{c.sealed(started())}
	for _, s := range oddTexts {
		r := arming(doing(machine.KindRefused, saga.Running), 1)
		r.Step, r.ExternalID, r.Error, r.Revision = s, s, s, s
		r.Note, r.Actor, r.Why, r.Cause = s, s, s, s
		r.Dispatch.Step, r.Dispatch.Key = s, s
		body, err := json.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		r.Body, r.Snapshot = body, body
		written = append(written, c.write(r, keep))
	}
	b.sameRecords(c, written)
}

// A body is kept byte by byte: spaces, order and spelling of numbers are part of its hash.
func recordBodies(b *bench) {
	t := b.session()
	c := b.start(t, "w", started(), hold)
	written := []machine.Record{c.sealed(started())}
	for _, body := range []string{
		"", "null", "{}", "[]", `""`, "0", " {\n\t\"b\" : 1 ,\"a\":1.0,\"a\":2}\n", `{"escaped":"\u0000\ud83d\ude00\/"}`,
		"1e400", "123456789012345678901234567890.10", `{"":""}`, `"'"`, `"\\"`,
	} {
		r := doing(machine.KindDone, saga.Running)
		r.Body, r.Snapshot = json.RawMessage(body), json.RawMessage(body)
		written = append(written, c.write(r, keep))
	}
	b.sameRecords(c, written)
}

// A body of a megabyte is stored, alone and in a batch of others.
func recordLarge(b *bench) {
	t := b.session()
	large := func(n int) json.RawMessage {
		return append(append([]byte{'"'}, bytes.Repeat([]byte("0123456789abcdef"), n/16)...), '"')
	}
	r := started()
	r.Body = large(1 << 20)
	c := b.start(t, "large", r, hold)
	small := b.start(t, "small", started(), hold)
	next := doing(machine.KindDone, saga.Running)
	next.Body = large(1<<20 + 4096)
	e := c.entry(next, hold)
	for _, a := range b.append(t, small.entry(doing(machine.KindDone, saga.Running), hold), e) {
		if a.Err != nil {
			b.Errorf("append beside a large body: %+v", a)
		}
	}
	b.sameRecords(c, []machine.Record{c.sealed(r), e.Record})
}
