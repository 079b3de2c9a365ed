package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var faultCases = []testCase{
	{name: "sixteen set one control", run: raceControl, needs: func(h Harness) bool { return !h.LosesAnswers }}, // else one sets it and is told that another did
	{name: "a session that dies sets nothing", run: controlDeath},
	{name: "every answer lost", run: faultLost},
	{name: "cancelled context", run: faultCancelled},
	{name: "a schema that became newer", run: faultSchema, needs: func(h Harness) bool { return h.Newer != nil },
		breaks: broken{"schema-known": func(s Store) Store { return credulous{s} }}},
	{name: "what was answered is there", run: crashAnswered, breaks: broken{"survives-kill": func(s Store) Store { return hasty{s} }},
		needs: func(h Harness) bool { return h.Address != nil }}, // else it dies with its process
}

// "A method that returns an error may or may not have taken effect, and calling it again with the
// same arguments settles which". Here every append takes effect, and every other answer is lost.
func faultLost(b *bench) {
	t := b.session()
	var chains []*chain
	for i := range 4 {
		chains = append(chains, b.fresh(t, order(i)))
	}
	for i, r := range []machine.Record{
		arming(started(), 1), arming(doing(machine.KindDone, saga.Running), 2), doing(machine.KindDone, saga.Completed),
	} {
		s := []*ledger.Schedule{hold, hold, release}[i]
		var batch []ledger.Entry
		for _, c := range chains {
			batch = append(batch, c.entry(r, s))
		}
		l := ledgertest.Faulty(b.Store, ledgertest.LoseAnswer(1, ledgertest.Append), ledgertest.FailBefore(2, ledgertest.Append))
		for range 2 {
			_, err := l.Append(b.Context(), t, batch)
			b.wantError("append", err, ledgertest.ErrInjected)
		}
		for k, a := range of(l.Append(b.Context(), t, batch)) {
			if a.Result != ledger.Mine || a.At.IsZero() || a.Number == 0 {
				b.Errorf("record %d of %s again: got %+v, want mine with time and number", i+1, chains[k].id, a)
			}
			chains[k].moved(batch[k], a)
		}
	}
	for _, c := range chains {
		if rs := c.history(); len(rs) != 3 {
			b.Errorf("%s has %d records, want each once", c.id, len(rs))
		}
	}
}

// A call on a cancelled context fails, or it is done; it does not do half.
func faultCancelled(b *bench) {
	t := b.session()
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	var batch []ledger.Entry
	for i := range 5 {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	_, err := b.Append(ctx, t, batch)
	b.wantError("append", err, context.Canceled)
	b.wantError("accept", b.Accept(ctx, events(1)), context.Canceled)
	first := of(b.Append(b.Context(), t, batch))
	for _, a := range first {
		if a.Result != first[0].Result || a.Result != ledger.Appended && a.Result != ledger.Mine {
			b.Errorf("after an append on a cancelled context: got %s, want appended or mine throughout", a.Result)
		}
	}
	if ok(b.Accept(b.Context(), []intake.Event{event("later")})); len(b.all()) != 1 {
		b.Errorf("%d deliveries, want the later one alone", len(b.all()))
	}
}

// "A schema that is newer than this program answers ErrSchema", also when it has become so while
// the process runs: a renewal notices, and no session is opened.
func faultSchema(b *bench) {
	t := b.session()
	b.harness.Newer(b.T, b.raw)
	_, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
	b.wantError("renew on a newer schema", err, ledger.ErrSchema)
	_, err = b.OpenSession(b.Context(), time.Hour, "suite", nil)
	b.wantError("open a session on a newer schema", err, ledger.ErrSchema)
}

// nonces are drawn in order: what counts is that none comes twice.
var nonces atomic.Int64

// control is a control as a process would set it behind one that it knows.
func control(name string, was ledger.Control) ledger.Control {
	return ledger.Control{Kind: ledger.ControlShare, Name: name, Nonce: nonces.Add(1), Version: was.Version, Body: json.RawMessage("1" + string(was.Body))} // a digit for each set
}

// named is the control of a name.
func named(all []ledger.Control, name string) (c ledger.Control) {
	for i := range all {
		if all[i].Name == name {
			c = all[i]
		}
	}
	return c
}

// Sixteen setters in two processes set one control at once, and each one of its own. Of the sets that
// were decided on one version, one succeeds. Versions ascend and no set is lost. A setter that was told
// of a version reads every control as it was then or later.
func raceControl(b *bench) {
	const setters, sets = 16, 6
	stores := b.stores()
	var stored atomic.Int64
	b.atOnce(setters, func(i int) {
		s, t, own := stores[i%2], b.session(), fmt.Sprint("own ", i)
		for won := 0; won < sets; {
			told := of(s.Claim(b.Context(), t, ledger.Claim{})).Controls
			all, newest, err := s.Controls(b.Context())
			if ok(err); newest < told {
				b.Errorf("read up to version %d, told of %d", newest, told)
			}
			switch is, err := s.SetControl(b.Context(), t, control("shared", named(all, "shared"))); {
			case err == nil && is.Version <= newest:
				b.Errorf("stored version %d behind %d", is.Version, newest)
			case err == nil:
				won++
				stored.Add(1)
			default:
				b.wantError("a set", err, ledger.ErrChanged)
			}
			of(s.SetControl(b.Context(), t, control(own, named(all, own))))
			stored.Add(1)
		}
	})
	all, newest, err := b.Controls(b.Context())
	if ok(err); newest != stored.Load() || len(named(all, "shared").Body) != setters*sets {
		b.Errorf("%d were stored, the newest is %d, and the shared one was set %d times", stored.Load(), newest, len(named(all, "shared").Body))
	}
}

// A session that dies while it sets: what it sets is stored before its death or not at all. So what
// another does when it has buried the session is the last word.
func controlDeath(b *bench) {
	const setters = 4
	stores := b.stores()
	for round := range 20 {
		t := b.session()
		var late [setters]ledger.Control
		var heir ledger.Control
		b.atOnce(setters+1, func(i int) {
			if i == setters {
				ok(stores[1].Bury(b.Context(), t))
				c := control(fmt.Sprint(round), heir)
				c.Actor = "ann"
				heir = of(b.SetControl(b.Context(), 0, c))
				return
			}
			for {
				is, err := stores[0].SetControl(b.Context(), t, control(fmt.Sprint(round, ".", i), late[i]))
				if errors.Is(err, ledger.ErrSessionDead) {
					return
				}
				ok(err)
				late[i] = is
			}
		})
		for _, c := range late {
			if c.Version > heir.Version {
				b.Errorf("a dead session stored version %d behind %d, which was stored after its end", c.Version, heir.Version)
			}
		}
	}
}
