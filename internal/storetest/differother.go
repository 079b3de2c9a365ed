package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// What a coordinator calls beside its chains, and the runs of jobs.
var otherCalls = []call{
	{"deeds", 4, func(d *draw, s *side) {
		s.tell("Did", s.Did(s.ctx, ledger.DeedLooked, d.oddity("bodies", "bodies", ""), saga.Actor{Name: "cid", Reason: "a complaint"}))
		s.says("Deeds")(s.Deeds(s.ctx, pick(d, time.Time{}, d.now, d.shift(-30, 0)), d.IntN(4)))
	}},
	{"acts", 4, callActs},
	{"request", 8, func(d *draw, s *side) {
		r := ledger.Request{Key: pick(d, "k1", "k2"), Nonce: int64(1 + d.IntN(3)), Asks: pick(d, "a", "b")}
		if d.one(3) {
			s.tell("Answer", s.Answer(s.ctx, r.Key, r.Nonce, pick(d, []byte(`{"é": 1}`), nil)))
			return
		}
		s.says("Request")(s.Request(s.ctx, r))
	}},
	{"describe", 6, func(d *draw, s *side) {
		steps := []program.StepSpec{{Name: pick(d, "a", "a", "b")}}
		s.tell("Describe", s.Describe(s.ctx, &program.Spec{Saga: pick(d, theSaga, "crm"), Version: 1 + d.IntN(2), Steps: steps}))
		s.says("Definitions")(s.Definitions(s.ctx))
	}},
	{"wait", 8, callWaits}, {"message", 10, callMessages}, {"turn", 14, callTurn}, {"runs", 6, callRuns}, {"count", 8, callCount}, {"control", 12, callControl},
}

func callActs(d *draw, s *side) {
	acts, head, err := s.ActChain(s.ctx, int64(d.IntN(5)-1), d.IntN(5))
	for i := range acts {
		a := &acts[i]
		if i > 0 && !bytes.Equal(a.Hash, a.Sum(acts[i-1].Hash)) {
			s.said.WriteString(" act " + fmt.Sprint(a.Number) + " does not follow")
		}
		if a.Session == 0 && a.Nonce == 0 { // no control: drawn by chance
			a.Version = 0
		}
	}
	for i := range acts {
		acts[i].Hash = nil
	}
	s.tell("ActChain", err, acts, head.Number)
}

func callCount(d *draw, s *side) {
	total := ledger.Duplicate{ID: saga.ID{Saga: theSaga, Work: pick(d, "a:1", "a:2", "b:1")}, Source: pick(d, "cron", "hook"), Count: int64(1 + d.IntN(5))}
	if d.one(20) {
		total.Source = longest + pick(d, "", "!")
	}
	s.tell("Count", s.Count(s.ctx, ledger.Counter(1+d.IntN(3)), []ledger.Duplicate{total}))
	f := ledger.Filter{Limit: d.IntN(3)}
	pick(d, func() {}, func() { f.Saga = pick(d, theSaga, "crm") }, func() { f.Work = d.work() }, func() { f.Prefix = "a" })()
	s.says("Duplicates")(s.Duplicates(s.ctx, f))
	if d.one(3) {
		s.tell("Blocked", s.Blocked(s.ctx, pick(d, ledger.ByVote, ledger.ByLookup), pick(d, "", "books", "Mail"), int64(1+d.IntN(3))))
	}
	s.says("BlockedDays")(s.BlockedDays(s.ctx, pick(d, time.Time{}, d.now)))
}

func callControl(d *draw, s *side) {
	t := s.token(d.session())
	c := ledger.Control{
		Kind: pick(d, ledger.ControlPause, ledger.ControlDestination, ledger.ControlShare), Name: d.oddity("all", "books", "books"),
		Nonce: d.Int64(), Body: pick(d, json.RawMessage(`{"a": 1}`), json.RawMessage(`[]`), nil),
	}
	if d.one(2) {
		if c.Actor, c.Reason = pick(d, "anna", "ben"), pick(d, "", "why"); !d.one(3) {
			t = 0
		}
	}
	if d.one(30) {
		c.Body = json.RawMessage(`{`)
	}
	decided := d.IntN(4)
	all, _, _ := s.raw.Controls(s.ctx)
	for _, is := range all {
		if is.Kind == c.Kind && is.Name == c.Name && decided > 0 {
			c.Version = is.Version
		} else if decided == 2 {
			c.Version = max(c.Version, is.Version)
		}
	}
	for range pick(d, 1, 1, 2) {
		s.says("SetControl")(s.SetControl(s.ctx, t, c))
	}
	all, newest, err := s.Controls(s.ctx)
	s.tell("Controls", err, all, s.named("control", number{"control", newest}, newest == 0))
	s.says("Acts")(s.Acts(s.ctx, c.Kind, c.Name, d.IntN(3)))
}

func (d *draw) waits() ledger.Wait {
	return ledger.Wait{Name: pick(d, "paid", "paid", ""), Key: pick(d, "1", "2"), ID: d.id(), Step: pick(d, "s", "t"), StepKey: pick(d, "k1", "k2")}
}

func callWaits(d *draw, s *side) {
	w := d.waits()
	if d.one(4) {
		s.tell("Unwait", s.Unwait(s.ctx, []ledger.Wait{w, d.waits()}))
	} else {
		bad := w
		if d.one(10) {
			bad.Key = pick(d, "", "\x00", longest+"!")
		}
		s.tell("Await", s.Await(s.ctx, []ledger.Wait{bad}))
	}
	found, err := s.Waits(s.ctx, w.Name, w.Key)
	if d.back { // which is the oldest is not clear
		found = sorted(found, func(w ledger.Wait) string { return fmt.Sprint(w) })
	}
	s.tell("Waits", err, found)
	shared, err := s.Shared(s.ctx)
	s.tell("Shared", err, sorted(shared, func(w ledger.Shared) string { return w.Saga + w.Name + w.Key }))
}

func callMessages(d *draw, s *side) {
	w := d.waits()
	m := program.Message{Name: "paid", Key: w.Key, ID: pick(d, "m1", "m2", "m3"), Body: []byte(pick(d, "1", "\x00\xff"))}
	if d.one(2) {
		s.says("Use")(s.Use(s.ctx, m.Name, m.ID, w))
	} else {
		kept := m
		if d.one(20) {
			kept.ID = pick(d, "", strings.Repeat("x", ledger.MaxText+1))
		}
		s.says("Keep")(s.Keep(s.ctx, kept, pick(d, time.Second, 30*time.Second, time.Hour)))
	}
	ms, err := s.Messages(s.ctx, "paid", w.Key, w.ID.Saga)
	if d.back {
		ms = sorted(ms, func(m program.Message) string { return m.ID })
	}
	s.tell("Messages", err, ms)
	s.says("Uses")(s.Uses(s.ctx, m.Name, m.ID))
}

func callTurn(d *draw, s *side) {
	again := d.again()
	err := s.Turn(s.ctx, pick(d, "j1", "j1", "j2", schedule.Everything), func(now time.Time, a *schedule.Agenda) error {
		s.tell("Turn", nil, now, a)
		return change(again(), now, a)
	})
	s.tell("Turn", err)
	s.says("Paused")(s.Paused(s.ctx, "j1"))
}

// change changes an agenda as a callback might.
func change(d *draw, now time.Time, a *schedule.Agenda) error {
	records := func() {
		if a.State.Name != schedule.Everything {
			r := planned(now, pick(d, "i1", "i2", "i3", "i4"))
			r.Job, r.By, r.Ask = a.State.Name, pick(d, "", "anna"), pick(d, "", "now")
			a.New = append(a.New, r)
		}
	}
	pick(d, records, records,
		func() { a.State.Paused = schedule.Mark{At: now, By: "anna", Why: "w"} },
		func() { a.State.Paused = schedule.Mark{} },
		func() {
			for i := range a.Open {
				a.Open[i].Result, a.Open[i].Ended, a.Open[i].Until = pick(d, schedule.OK, schedule.Skipped), now, time.Time{}
			}
		},
		func() { a.State = fullState(now) },
		func() { a.Forget = now.Add(-time.Duration(d.IntN(20)) * time.Second) },
	)()
	if len(a.Open) > 0 && a.Open[0].Open() && d.one(3) {
		a.Open[0].Holder, a.Open[0].Until, a.Open[0].Fence = "p", now.Add(time.Minute), a.State.Fence
	}
	return d.refusal()
}

func callRuns(d *draw, s *side) {
	f := schedule.RunFilter{Job: pick(d, "", "j1"), Result: pick(d, "", "", schedule.OK), Open: d.one(3), Limit: d.IntN(4)}
	d.with(f)
	runs, err := s.Runs(s.ctx, f)
	s.tell("Runs", err, runs)
	if len(runs) > 0 {
		f.Before = &runs[len(runs)-1]
		s.says("Runs")(s.Runs(s.ctx, f))
	}
	s.says("Run")(s.Run(s.ctx, "j1", int64(1+d.IntN(3))))
	s.says("Jobs")(s.Jobs(s.ctx))
}
