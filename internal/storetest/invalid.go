package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var invalidCases = []testCase{
	{name: "the others are stored", run: invalidSplit, breaks: broken{"split-batch": func(s Store) Store { return lumper{s} }}},
	{name: "starts", run: invalidStart},
}

// badRecords are records that no ledger can give back as they are, or that break the schema's own
// rules.
func badRecords() map[string]machine.Record {
	bad := map[string]machine.Record{}
	add := func(name string, change func(r *machine.Record)) {
		r := arming(doing(machine.KindRefused, saga.Running), 2)
		change(&r)
		bad[name] = r
	}
	for name, text := range map[string]string{"NUL": "a\x00b", "UTF-8": "a\xffb"} {
		add(name+" in the error", func(r *machine.Record) { r.Error = text })
		add(name+" in the external id", func(r *machine.Record) { r.ExternalID = text })
		add(name+" in the step", func(r *machine.Record) { r.Step = text })
		add(name+" in the body", func(r *machine.Record) { r.Body = []byte(text) })
		add(name+" in the key", func(r *machine.Record) { r.Dispatch.Key = text })
	}
	add("unknown status", func(r *machine.Record) { r.Status = "sleeping" })
	add("no status", func(r *machine.Record) { r.Status = "" })
	add("unknown kind", func(r *machine.Record) { r.Kind = "guessed" })
	add("review without a reason", func(r *machine.Record) { r.Status, r.Dispatch = saga.Review, nil })
	add("a reason without review", func(r *machine.Record) { r.Reason = saga.ReasonPoison })
	add("unknown direction", func(r *machine.Record) { r.Direction = "sideways" })
	add("more signals than were posted", func(r *machine.Record) { r.Signals = []int64{1 << 40} })
	add("a wait no column holds", func(r *machine.Record) { r.Wait = time.Millisecond + 1 })
	add("a budget no column holds", func(r *machine.Record) { r.Dispatch.Budget = time.Microsecond })
	return bad
}

// Invalid: "the database refuses a value of this record; the others were stored". One bad value
// must not fail a batch, least of all after an effect.
func invalidSplit(b *bench) {
	t := b.session()
	var batch []ledger.Entry
	var names []string
	for name, r := range badRecords() {
		good, bad := b.start(t, "good with "+name, started(), hold), b.start(t, name, started(), hold)
		batch = append(batch, good.entry(doing(machine.KindDone, saga.Running), hold), bad.entry(r, hold))
		names = append(names, name, name)
	}
	check := func(good ledger.Result) {
		b.Helper()
		as, err := b.Append(b.Context(), t, batch)
		if err != nil || len(as) != len(batch) {
			b.Fatalf("a batch with bad values failed as a whole: %d answers, error %v", len(as), err)
		}
		for i, a := range as {
			switch {
			case i%2 == 0 && a.Result != good:
				b.Errorf("the record beside %q: got %s (%v), want %s", names[i], a.Result, a.Err, good)
			case i%2 == 1 && (a.Result != ledger.Invalid || a.Err == nil):
				b.Errorf("%s: got %s (%v), want invalid with the reason", names[i], a.Result, a.Err)
			}
		}
	}
	check(ledger.Appended)
	check(ledger.Mine)
}

// A start that is invalid makes no work, and its neighbours start.
func invalidStart(b *bench) {
	t := b.session()
	bad := started()
	bad.Revision = "r\x00"
	as := b.append(t,
		b.fresh(t, "a").entry(started(), hold),
		b.fresh(t, "b").entry(bad, hold),
		b.fresh(t, "c\x00").entry(started(), hold),
		b.fresh(t, "d\xff").entry(started(), hold),
		b.fresh(t, "e").entry(started(), hold),
	)
	want := []ledger.Result{ledger.Appended, ledger.Invalid, ledger.Invalid, ledger.Invalid, ledger.Appended}
	for i, a := range as {
		if a.Result != want[i] {
			b.Errorf("start %d: got %s (%v), want %s", i, a.Result, a.Err, want[i])
		}
	}
	if got := works(b.list(ledger.Filter{})); len(got) != 2 || got[0] != "a" || got[1] != "e" {
		b.Errorf("works after invalid starts: %q, want a and e", got)
	}
}
