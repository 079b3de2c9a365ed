package storetest

import (
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
	{"count", 8, drawCount},
	{"control", 12, drawControl},
	{"deeds", 4, drawDeeds},
	{"request", 8, drawRequest},
	{"describe", 3, drawDescribe},
	{"wait", 8, drawWaits},
	{"message", 10, drawMessages},
	{"turn", 14, drawTurn},
	{"runs", 6, drawRuns},
}

func drawCount(d *draw) act {
	c := ledger.Counter(1 + d.IntN(3))
	total := ledger.Duplicate{ID: saga.ID{Saga: theSaga, Work: pick(d, "a:1", "a:2", "b:1")}, Source: pick(d, "cron", "hook"), Count: int64(1 + d.IntN(5))}
	if d.one(20) {
		total.Source = longest + pick(d, "", "!")
	}
	f := ledger.Filter{Limit: d.IntN(3)}
	pick(d, func() {}, func() { f.Saga = pick(d, theSaga, "crm") }, func() { f.Work = d.work() }, func() { f.Prefix = "a" })()
	since := pick(d, time.Time{}, d.now)
	return func(s *side) {
		s.tell("Count", s.Count(s.ctx, c, []ledger.Duplicate{total}))
		s.says("Duplicates")(s.Duplicates(s.ctx, f))
		s.says("BlockedDays")(s.BlockedDays(s.ctx, since))
	}
}

func drawControl(d *draw) act {
	place, person, twice, decided := d.session(), d.one(2), d.one(3), d.IntN(4)
	c := ledger.Control{
		Kind: pick(d, ledger.ControlPause, ledger.ControlDestination, ledger.ControlShare), Name: d.oddity("all", "books", "books"),
		Nonce: d.Int64(), Body: json.RawMessage(pick(d, `{"a": 1}`, `[]`, ``)),
	}
	if len(c.Body) == 0 {
		c.Body = nil
	}
	if person {
		c.Actor, c.Reason = pick(d, "anna", "ben"), pick(d, "", "why")
	}
	if d.one(30) {
		c.Body = json.RawMessage(`{`)
	}
	limit := d.IntN(3)
	return func(s *side) {
		t := s.token(place)
		if person && place > 0 {
			t = 0
		}
		set := c
		all, _, _ := s.raw.Controls(s.ctx)
		for _, is := range all {
			if is.Kind == c.Kind && is.Name == c.Name && decided > 0 {
				set.Version = is.Version
			} else if decided == 2 {
				set.Version = max(set.Version, is.Version)
			}
		}
		s.says("SetControl")(s.SetControl(s.ctx, t, set))
		if twice {
			s.says("SetControl")(s.SetControl(s.ctx, t, set))
		}
		all, newest, err := s.Controls(s.ctx)
		s.tell("Controls", err, all, s.named("control", number{"control", newest}, newest == 0))
		s.says("Acts")(s.Acts(s.ctx, c.Kind, c.Name, limit))
	}
}

func drawDeeds(d *draw) act {
	before, limit, looked := pick(d, time.Time{}, d.now, d.shift(-30, 0)), d.IntN(4), d.oddity("bodies", "bodies", "")
	return func(s *side) {
		s.tell("Looked", s.Looked(s.ctx, looked, saga.Actor{Name: "cid", Reason: "a complaint"}))
		s.says("Deeds")(s.Deeds(s.ctx, before, limit))
	}
}

func drawRequest(d *draw) act {
	r := ledger.Request{Key: pick(d, "k1", "k2"), Nonce: int64(1 + d.IntN(3)), Asks: pick(d, "a", "b")}
	answers, answer := d.one(3), []byte(pick(d, `{"é": 1}`, ``))
	if len(answer) == 0 {
		answer = nil
	}
	return func(s *side) {
		if answers {
			s.tell("Answer", s.Answer(s.ctx, r.Key, r.Nonce, answer))
			return
		}
		s.says("Request")(s.Request(s.ctx, r))
	}
}

func drawDescribe(d *draw) act {
	spec := d.spec()
	return func(s *side) {
		s.tell("Describe", s.Describe(s.ctx, spec))
		s.says("Definitions")(s.Definitions(s.ctx))
	}
}

func (d *draw) waits() ledger.Wait {
	return ledger.Wait{Name: pick(d, "paid", "paid", ""), Key: pick(d, "1", "2"), ID: d.id(), Step: pick(d, "s", "t"), StepKey: pick(d, "k1", "k2")}
}

func drawWaits(d *draw) act {
	waits, ends := []ledger.Wait{d.waits(), d.waits()}[:1+d.IntN(2)], d.one(4)
	if d.one(30) {
		waits[0].Key = d.oddity("")
	}
	return func(s *side) {
		if ends {
			s.tell("Unwait", s.Unwait(s.ctx, waits))
		} else {
			s.tell("Await", s.Await(s.ctx, waits[:1]))
		}
		found, err := s.Waits(s.ctx, waits[0].Name, waits[0].Key)
		if d.back { // which is the oldest is not clear
			found = sorted(found, func(w ledger.Wait) string { return fmt.Sprint(w) })
		}
		s.tell("Waits", err, found)
		shared, err := s.Shared(s.ctx)
		s.tell("Shared", err, sorted(shared, func(w ledger.Shared) string { return w.Saga + w.Name + w.Key }))
	}
}

func drawMessages(d *draw) act {
	w := d.waits()
	m := program.Message{Name: "paid", Key: w.Key, ID: pick(d, "m1", "m2", "m3"), Body: []byte(pick(d, "1", "\x00\xff"))}
	keep, uses := pick(d, time.Second, 30*time.Second, time.Hour), d.one(2)
	if !uses && d.one(20) {
		m.ID = pick(d, "", strings.Repeat("x", ledger.MaxText+1))
	}
	return func(s *side) {
		if uses {
			s.says("Use")(s.Use(s.ctx, m.Name, m.ID, w))
		} else {
			s.says("Keep")(s.Keep(s.ctx, m, keep))
		}
		ms, err := s.Messages(s.ctx, "paid", w.Key, w.ID.Saga)
		if d.back {
			ms = sorted(ms, func(m program.Message) string { return m.ID })
		}
		s.tell("Messages", err, ms)
		s.says("Uses")(s.Uses(s.ctx, m.Name, m.ID))
	}
}

func drawTurn(d *draw) act {
	job, seed, refuse := pick(d, "j1", "j1", "j2", schedule.Everything), d.Uint64(), d.one(4)
	return func(s *side) {
		err := s.Turn(s.ctx, job, func(now time.Time, a *schedule.Agenda) error {
			s.tell("Turn", nil, now, a)
			change(seed, now, a)
			if refuse {
				return errRefused
			}
			return nil
		})
		s.tell("Turn", err)
		s.says("Paused")(s.Paused(s.ctx, "j1"))
	}
}

// change changes an agenda as a number says.
func change(seed uint64, now time.Time, a *schedule.Agenda) {
	d := drawOf(seed)
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
}

func drawRuns(d *draw) act {
	f := schedule.RunFilter{Job: pick(d, "", "j1"), Open: d.one(3), Limit: d.IntN(4)}
	if d.one(3) {
		f.Result = schedule.OK
	}
	number, next := int64(1+d.IntN(3)), d.one(2)
	d.with(f)
	return func(s *side) {
		runs, err := s.Runs(s.ctx, f)
		s.tell("Runs", err, runs)
		if f := f; next && len(runs) > 0 {
			f.Before = &runs[len(runs)-1]
			s.says("Runs")(s.Runs(s.ctx, f))
		}
		s.says("Run")(s.Run(s.ctx, "j1", number))
		s.says("Jobs")(s.Jobs(s.ctx))
	}
}
