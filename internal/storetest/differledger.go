package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What a coordinator calls, but for what is in differother.go.
var ledgerCalls = []call{
	{"open", 12, callOpen},
	{"renew", 12, func(d *draw, s *side) {
		t, r := s.token(d.session()), ledger.Renewal{TTL: pick(d, time.Second, time.Minute, time.Hour), Knows: d.knows()}
		r.InHand = []int64{s.number(d.IntN(9)), s.number(d.IntN(9))}
		l, err := s.Renew(s.ctx, t, r)
		s.tellLease("Renew", l, err)
	}},
	{"bury", 3, func(d *draw, s *side) { s.tell("Bury", s.Bury(s.ctx, s.token(d.session()))) }},
	{"fail over", 1, callFailOver},
	{"append", 70, callAppend}, {"post", 16, callPost}, {"claim", 24, callClaim}, {"give back", 20, callGiveBack},
	{"catch up", 3, func(_ *draw, s *side) {
		works, sessions, err := s.CatchUp(s.ctx)
		s.tell("CatchUp", err, works, sessions)
	}},
	{"load", 12, callLoad},
	{"history", 6, func(d *draw, s *side) {
		id := d.id()
		s.says("History")(s.History(s.ctx, id))
		s.says("Signals")(s.Signals(s.ctx, id))
	}},
	{"list", 30, callList},
	{"rest", 3, func(d *draw, s *side) {
		got, err := s.AtRest(s.ctx, []saga.ID{d.id(), d.id(), d.id()})
		s.tell("AtRest", err, sorted(got, saga.ID.String))
	}},
	{"overview", 10, callOverview},
}

// token is the session that was opened in a place, or one that never was.
func (s *side) token(place int) machine.Token {
	if len(s.tokens) == 0 || place > 8 {
		return 12345
	}
	return s.tokens[len(s.tokens)-1-place%len(s.tokens)]
}

// writer is the same, or no session.
func (s *side) writer(place int) machine.Token {
	if place == 8 {
		return 0
	}
	return s.token(place)
}

// number is the ledger's number of the work that was started in a place.
func (s *side) number(place int) int64 {
	if place >= len(s.numbers) {
		return 1 << 40
	}
	return s.numbers[place]
}

// session is the place of one of the sessions, the newest of them mostly.
func (d *draw) session() int { return pick(d, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 8, 8+d.IntN(2)) }

func (d *draw) knows() []ledger.Version {
	return pick(d, known, known, []ledger.Version{{Saga: theSaga, Version: 1}, {Saga: theSaga, Version: 2}, {Saga: "crm", Version: 1}},
		[]ledger.Version{{Saga: "crm", Version: 2}}, nil)
}

func (d *draw) id() saga.ID {
	return saga.ID{Saga: pick(d, theSaga, theSaga, theSaga, theSaga, "crm"), Work: d.work()}
}

func (d *draw) work() string {
	return pick(d, "a:1", "a:1", "a:1", "a:2", "a:2", "a:3", "b:1", "B:ä")
}

// Each record of a batch is due at a time of its own, and so is that of each call.
func (d *draw) wait(place int) time.Duration {
	return time.Duration(pick(d, 0, 0, 1, 2, 5, 90)*1000+place) * time.Millisecond
}

func (s *side) tellLease(method string, l ledger.Lease, err error) {
	l.Live = sorted(l.Live, func(t machine.Token) string { return fmt.Sprintf("%09s", s.named("session", t, false)) })
	l.Stray = sorted(l.Stray, func(h ledger.Instance) string { return h.ID.String() })
	s.tell(method, err, l)
}

func callOpen(d *draw, s *side) {
	l, err := s.OpenSession(s.ctx, pick(d, 10*time.Second, time.Minute, time.Hour, time.Hour), pick(d, "p", "ö"), d.knows())
	s.tokens = append(s.tokens, l.Token)
	s.named("session", l.Token, false)
	s.tellLease("OpenSession", l, err)
}

// The database becomes another one in the eyes of the ledger, once, and has lost nothing. Sessions that
// were opened before speak no more: what they are told differs from store to store.
func callFailOver(d *draw, s *side) {
	if s.over {
		return
	}
	if db, reference := s.raw.(*memory.DB); reference {
		db.FailOver(db.Backup())
	} else {
		d.harness.Change(d.t, s.raw)
	}
	s.over, s.tokens = true, nil
}

// Records of several works, the first of each or one behind what its writer saw last.
func callAppend(d *draw, s *side) {
	t := s.writer(d.session())
	views := map[saga.ID]*chain{}
	var es []ledger.Entry
	for place := range pick(d, 1, 1, 1, 2, 3) {
		id := d.id()
		c := s.works[id]
		if views[id] != nil {
			continue
		}
		if c == nil || d.one(8) {
			c = &chain{token: t, id: id}
			if d.one(25) {
				c.id.Work = d.oddity("a")
			}
			views[c.id], es = c, append(es, c.entry(d.first(place), cmp.Or(d.schedule(), release)))
			continue
		}
		views[id], es = c, append(es, s.follows(d, t, *c, d.record(place)))
	}
	// In which order those of one call are started is not said.
	slices.SortStableFunc(es, func(a, b ledger.Entry) int {
		return cmp.Or(strings.Compare(a.ID.Work, b.ID.Work), strings.Compare(a.ID.Saga, b.ID.Saga))
	})
	if len(es) > 0 && d.one(4) { // of one: which of the same time is older is not said
		e, w := &es[d.IntN(len(es))], d.waits()
		w.ID, e.Waits = e.ID, []ledger.Wait{w}
	}
	d.with(es)
	for range pick(d, 1, 1, 1, 1, 1, 1, 2) {
		as, err := s.Append(s.ctx, t, es)
		for i, a := range as {
			s.met.add("Append", string(a.Result))
			if a.Result == ledger.Appended || a.Result == ledger.Mine {
				s.stored(views[es[i].ID], es[i], a)
			}
		}
		s.tell("Append", err, as)
	}
}

// stored moves the view of what was stored.
func (s *side) stored(c *chain, e ledger.Entry, a ledger.Answer) {
	if known := s.works[c.id]; known == nil {
		s.works[c.id], s.numbers = c, append(s.numbers, a.Number)
		s.named("work", number{"work", a.Number}, false)
	} else if c = known; e.Record.Seq <= c.seq {
		return
	}
	before := *c
	c.before, c.status, c.reason = &before, e.Record.Status, e.Record.Reason
	c.moved(e, a)
	if k := e.Record.Kind; k == machine.KindStarted || k == machine.KindRevised {
		c.revision = e.Record.Revision
	}
}

func (d *draw) schedule() *ledger.Schedule {
	c := pick(d, ledger.ClassCompensating, ledger.ClassBegun, ledger.ClassBegun, ledger.ClassUnbegun)
	return pick(d, nil, &ledger.Schedule{Class: c}, &ledger.Schedule{Class: c}, &ledger.Schedule{Class: c, Hold: true}, &ledger.Schedule{Class: c, Hold: true})
}

// first is the first record of a work.
func (d *draw) first(place int) machine.Record {
	r := started()
	r.Version, r.Nonce, r.Revision, r.Wait, r.Cause = pick(d, 1, 1, 1, 2), d.Int64(), pick(d, "r1", "r2", ""), d.wait(place), pick(d, "", "shop/1")
	pick(d, func() {}, func() {},
		func() {
			r = arming(r, 1)
			r.Dispatch.Key = pick(d, "am-key", machine.StepKey(machine.RootKey(theSaga, "a:1", r.Revision), "invoice", saga.Forward, 0))
		},
		func() { r.Limit = pick(d, time.Second, time.Minute, time.Hour) },
		func() { r.Until = d.now.Add(r.Wait).Truncate(time.Millisecond) },
		func() { r.Status = pick(d, saga.Adopting, saga.Completed, saga.Paused) },
	)()
	r.Tags = pick(d, nil, nil, []string{"shop=at"}, []string{"customer=7", "shop=de"})
	return r
}

// record is one of those that follow.
func (d *draw) record(place int) machine.Record {
	r := doing(pick(d, machine.KindNoted, machine.KindDone, machine.KindDone, machine.KindUnknown, machine.KindRefused, machine.KindDispatched, machine.KindOverdue),
		pick(d, saga.Running, saga.Running, saga.Retrying, saga.Waiting, saga.Compensating, saga.Review, saga.Review, saga.Paused, saga.Completed, saga.Compensated))
	if r.Status == saga.Review {
		r.Reason = pick(d, saga.ReasonInDoubt, saga.ReasonExhausted, saga.ReasonHung)
	}
	r.Step, r.ExternalID, r.Wait = pick(d, "invoice", "mail", ""), pick(d, "", "", "inv_1", "inv_2"), d.wait(place)
	r.Body = json.RawMessage(pick(d, `{"a": 1}`, `{"a":1}`, ` [1, 2]`, ``))
	arms := func() { r = arming(r, 1+d.IntN(3)) }
	pick(d, arms, arms, arms, func() {},
		func() { r.Snapshot = json.RawMessage(`{"steps": [] }`) },
		func() {
			r.Kind, r.Version, r.Revision, r.Limit = machine.KindRevised, pick(d, 1, 2), pick(d, "r2", "r3"), pick(d, 0, time.Second, time.Hour)
		},
		func() { r.Kind, r.ErrorClass = machine.KindAdopted, pick(d, "", saga.Unknown) },
		func() { r.Kind, r.Until = machine.KindWaiting, d.now.Truncate(time.Millisecond).Add(d.wait(place)) },
		func() {
			r.Error, r.Note, r.Actor, r.Why = d.oddity("e"), d.oddity("n"), d.oddity("anna"), d.oddity("w")
		},
		func() {
			whole := full()
			whole.Status, whole.Reason, whole.Kind, whole.Wait = r.Status, r.Reason, r.Kind, r.Wait
			r = whole
		},
	)()
	if d.one(14) {
		pick(d,
			func() { r.ExternalID = strings.Repeat("x", ledger.MaxText+1) }, func() { r.Error = "a\x00" },
			func() { r.Status = "gone" }, func() { r.Wait = time.Nanosecond }, func() { r.Note = "\xff" },
		)()
	}
	return r
}

// follows seals a record behind a view of a chain, or beside it.
func (s *side) follows(d *draw, t machine.Token, c chain, r machine.Record) ledger.Entry {
	revision, schedule := c.revision, d.schedule()
	if schedule == nil { // "neither status, holder nor due time change"
		r.Status, r.Reason = c.status, c.reason
	}
	switch c.token = t; d.IntN(14) {
	case 0, 1:
		if c.before != nil && c.before.seq > 0 {
			c = *c.before
		}
	case 2:
		c.tail[0] ^= 1
	case 3:
		c.head += 1000
	}
	loaded, _ := s.raw.Load(s.ctx, []saga.ID{c.id})
	for i := range loaded {
		unread := loaded[i].Signals
		for _, signal := range unread[:min(pick(d, 0, 0, 0, 1, 2, 9), len(unread))] {
			r.Signals = append(r.Signals, signal.ID)
		}
	}
	if r.Kind == machine.KindRevised {
		revision = r.Revision
	}
	if r.Dispatch != nil && d.one(2) {
		r.Dispatch.Key = machine.StepKey(machine.RootKey(c.id.Saga, c.id.Work, revision), "invoice", saga.Forward, 0)
	}
	c.token = t
	e := c.entry(r, schedule)
	e.Revision = revision
	return e
}

func callPost(d *draw, s *side) {
	id := d.id()
	sig := machine.Signal{
		Kind: pick(d, machine.SignalCancel, machine.SignalWake, machine.SignalResolve, machine.SignalPause, machine.SignalRevise),
		Key:  d.oddity("k1", "k2", "k3", "k4", fmt.Sprint(d.IntN(99))), Actor: d.oddity("anna"), Reason: "r", ByHand: d.one(2),
	}
	if d.one(3) {
		sig.ID = int64(1 + d.IntN(4))
	}
	if d.one(3) {
		sig.Resolution = saga.Resolution{Step: "mail", Direction: saga.Forward, Attempt: 2, Happened: true, ExternalID: "m", Output: json.RawMessage(`{"z":1}`)}
	}
	if d.one(4) {
		sig.News = machine.News{Revision: "r9", Version: 2, Input: json.RawMessage(`{"a":1}`)}
	}
	d.with(sig)
	// SQLite takes the time of the latest renewal where it is earlier than that of the post.
	beat, _ := s.raw.OpenSession(s.ctx, time.Hour, "beat", nil)
	s.says("Post")(s.Post(s.ctx, id, sig))
	_ = s.raw.Bury(s.ctx, beat.Token)
}

func callClaim(d *draw, s *side) {
	t := s.token(d.session())
	c := ledger.Claim{Limit: pick(d, 0, 1, 2, 3, 9), Fresh: pick(d, 0, 0, 1, 2), Known: d.knows(), Rooms: map[string]int{"books": d.IntN(3), "mail": d.IntN(2)}}
	d.with(c)
	mine, tied := s.held(t)
	if tied && c.Limit > 0 { // which of them goes first is not said
		c.Limit = 99
	}
	got, err := s.Claim(s.ctx, t, c)
	if c.Fresh == 0 && !tied { // nor in which order places that are kept are given, and what it held already is told
		s.tell("Claim", err, slices.DeleteFunc(slices.Clone(got.Instances), func(h ledger.Instance) bool { return mine[h.Number] }))
	}
	got.Instances = sorted(got.Instances, func(h ledger.Instance) string { return h.ID.String() })
	s.tell("Claim", err, got)
}

// held is what a session holds, and whether two works are due, or will be when a claim releases them, at
// the same time.
func (s *side) held(t machine.Token) (mine map[int64]bool, tied bool) {
	mine = map[int64]bool{}
	live, seen := map[machine.Token]bool{}, map[string]bool{}
	sessions, _ := s.raw.Sessions(s.ctx)
	for _, l := range sessions {
		live[l.Token] = !l.Dead
	}
	heads, _ := ledger.First(s.ctx, s.raw, ledger.Filter{Limit: 1000})
	for _, h := range heads {
		mine[h.Number] = h.Session == t && live[t]
		if since := h.Session.String() + h.Due.String(); !live[h.Session] && (h.Session != 0 || !h.Due.IsZero()) {
			tied, seen[since] = tied || seen[since], true
		}
	}
	return mine, tied
}

func callGiveBack(d *draw, s *side) {
	t, places := s.writer(d.session()), d.Perm(7) // none twice
	var back []ledger.Return
	for i := range pick(d, 1, 1, 1, 2, 3) {
		r := ledger.Return{Number: s.number(places[i]), WaitsFor: pick(d, "", "books", "books", "mail")}
		r.Due = d.shift(-3, 20).Add(time.Duration(i) * time.Millisecond)
		if d.one(40) {
			r.WaitsFor = d.oddity("books")
		}
		if d.one(8) {
			r.Leaves = d.shift(1, 20)
		}
		back = append(back, r)
	}
	d.with(back)
	s.tell("GiveBack", s.GiveBack(s.ctx, t, back))
}

func callLoad(d *draw, s *side) {
	cs, err := s.Load(s.ctx, []saga.ID{d.id(), d.id()}[:1+d.IntN(2)])
	for i := range cs {
		if d.back { // what was written before then is not clear
			cs[i].Changed = time.Time{}
		}
	}
	s.tell("Load", err, sorted(cs, func(c ledger.Chain) string { return c.Instance.ID.String() }))
}

// filter draws a filter of a listing.
func (d *draw) filter() (f ledger.Filter) {
	for range pick(d, 0, 1, 1, 1, 2) {
		pick(d,
			func() { f.Saga = pick(d, theSaga, "crm", "other") },
			func() { f.Work = d.work() },
			func() { f.Prefix = pick(d, "a:", "b", "a", "%") },
			func() { f.Status = pick(d, saga.Running, saga.Running, saga.Review, saga.Waiting, saga.Completed) },
			func() { f.Status, f.Reason = saga.Review, pick(d, saga.ReasonInDoubt, saga.ReasonExhausted) },
			func() { f.WaitsFor = pick(d, "books", "mail") },
			func() { f.Step = pick(d, "invoice", "mail") },
			func() { f.ExternalID = pick(d, "inv_1", "inv_2", "inv_5530") },
			func() { f.Unconfirmed = true }, func() { f.Tag = pick(d, "shop=at", "shop=de", "customer=7") },
			func() { f.CreatedSince = d.shift(-40, 0) }, func() { f.CreatedUntil = d.shift(-40, 1) },
			func() { f.UpdatedSince = d.shift(-20, 0) }, func() { f.UpdatedUntil = d.shift(-20, 1) },
			func() { f.ByWork, f.AfterWork = true, d.work() },
		)()
	}
	f.Newest, f.ByWork, f.Limit = d.one(3), f.ByWork || d.one(8), pick(d, 1, 2, 3, 0)
	d.with(f)
	return f
}

func callList(d *draw, s *side) {
	f := d.filter()
	for range 6 {
		page, err := s.List(s.ctx, f)
		s.tell("List", err, page.Instances, page.Next != "")
		if page.Next == "" {
			break
		}
		f.After = page.Next
	}
	if f.After != "" && d.one(3) { // goes on with another listing
		f.Status += "x"
		_, err := s.List(s.ctx, f)
		s.tell("List", err)
	}
}

func callOverview(d *draw, s *side) {
	o, err := s.Overview(s.ctx)
	o.Waiting = sorted(o.Waiting, func(w ledger.Waiting) string { return w.Destination })
	for i := range o.Unknown {
		if d.back { // since when is not clear
			o.Unknown[i].Oldest = time.Time{}
		}
	}
	o.Ahead.Works = slices.DeleteFunc(o.Ahead.Works, func(h ledger.Instance) bool { return !h.Status.Live() }) // databases name none with a signal
	o.Ahead.Works = sorted(o.Ahead.Works, func(h ledger.Instance) string { return h.ID.String() })
	s.tell("Overview", err, o)
	s.says("Totals")(s.Totals(s.ctx))
	all, err := s.Sessions(s.ctx)
	s.tell("Sessions", err, slices.DeleteFunc(all, func(l ledger.Session) bool { return l.Opened.IsZero() })) // when one that is not known was opened is not said
}
