package machine

import (
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// "F31: a refusal that the destination says it has saved under the key settles every attempt under the key, of a step that is Keyed: none
// has had an effect, or will, and nothing is owed an undo. Any other refusal speaks of its attempt alone, and so does this one of an
// attempt that sent more than one request. A retry takes a new key".
func TestF31RefusalsOfTheKey(t *testing.T) {
	t.Parallel()
	const charge = "a idempotent undo\nb keyed=24h undo"
	begin(t, charge).succeed("1").fail(saga.Unknown).due().fail(saga.RefusedKey).wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	begin(t, charge).succeed("1").fail(saga.Unknown).due().fail(saga.Refused).due().wants("act b undo", saga.Compensating)
	begin(t, "a idempotent undo\nb idempotent undo").succeed("1").fail(saga.Unknown).due().fail(saga.RefusedKey).due().wants("act b undo", saga.Compensating)
	twice := program.Outcome{Class: saga.RefusedKey, Error: "no", Maybe: true}
	begin(t, charge).succeed("1").fail(saga.Unknown).due().outcome(twice).due().wants("act b undo", saga.Compensating)

	// its undo is no step with a key of that kind
	begin(t, charge+"\nc idempotent").succeed("1").succeed("2").fail(saga.Refused).fail(saga.Unknown).due().fail(saga.RefusedKey).review(saga.ReasonUndoFailed)

	d := begin(t, "a idempotent undo pivot\nb keyed=24h undo").succeed("1").fail(saga.Unknown).due()
	was := d.key()
	d.fail(saga.RefusedKey).review(saga.ReasonAfterPivot).retry().wants("act b forward", saga.Running)
	if d.key() == was || d.armed().Reissue != 1 {
		t.Errorf("it is tried again under %+v", d.armed())
	}
	d = begin(t, "a idempotent undo pivot\nb keyed=24h undo").succeed("1").fail(saga.Unknown).due()
	if was = d.key(); d.fail(saga.Refused).review(saga.ReasonAfterPivot).retry().key() != was {
		t.Error("another refusal is tried again under a new key")
	}
}

// "C14: an undo that says that it cannot be had any more: review, cannot-undo. A person says that what the step made stands, as of any undo
// that was refused: the way back goes on without it, and the end names it. Or it was undone by hand".
func TestC14WhatCannotBeUndone(t *testing.T) {
	t.Parallel()
	back := func(c saga.Class) *desk {
		return begin(t, "a idempotent undo\nb idempotent undo\nc idempotent").succeed("1").succeed("2").fail(saga.Refused).wants("act b undo", saga.Compensating).fail(c)
	}
	d := back(saga.NotUndoable).review(saga.ReasonCannotUndo)
	if next := Summarize(d.spec, d.st).Next; !strings.Contains(next, "cannot be undone any more") || !strings.Contains(next, "Say that it stands") {
		t.Errorf("a person is told %q", next)
	}
	d.skip("").wants("act a undo", saga.Compensating).succeed("").wants("rest", saga.Compensated)
	if s := Summarize(d.spec, d.st); !strings.Contains(s.Next, "but for what no undo takes back: b (2)") || s.Steps["b"].Status != "stands" || !s.Steps["b"].Done {
		t.Errorf("in the end it says %q, and %+v", s.Next, s.Steps["b"])
	}
	d.revise("2").succeed("1").wants("act b forward", saga.Running)
	if in := d.st.Invocation(d.last.Do); in.Previous == nil || in.Previous.ExternalID != "2" {
		t.Errorf("a newer version is told of %+v", in.Previous)
	}
	back(saga.NotUndoable).review(saga.ReasonCannotUndo).resolution("x").wants("act a undo", saga.Compensating)
	back(saga.NotUndoable).review(saga.ReasonCannotUndo).retry().wants("act b undo", saga.Compensating)
	back(saga.Refused).review(saga.ReasonUndoFailed).skip("").wants("act a undo", saga.Compensating)
	begin(t, "a idempotent undo\nb idempotent undo").succeed("1").fail(saga.NotUndoable).wants("act a undo", saga.Compensating) // an action is refused by it
	two := program.Outcome{Class: saga.NotUndoable, Error: "no", Maybe: true}
	begin(t, "a idempotent undo\nb idempotent").succeed("1").fail(saga.Refused).outcome(two).review(saga.ReasonUndoFailed)
}
