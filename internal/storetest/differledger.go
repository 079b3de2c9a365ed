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
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What a coordinator calls, but for what is in differother.go.
var ledgerCalls = []call{
	{"tick", 24, drawTick},
	{"open", 12, drawOpen},
	{"renew", 12, drawRenew},
	{"bury", 3, drawBury},
	{"fail over", 1, drawFailOver},
	{"start", 20, drawStart},
	{"follow", 50, drawFollow},
	{"post", 16, drawPost},
	{"claim", 24, drawClaim},
	{"give back", 20, drawGiveBack},
	{"catch up", 3, drawCatchUp},
	{"load", 12, drawLoad},
	{"history", 6, drawHistory},
	{"list", 30, drawList},
	{"rest", 3, drawRest},
	{"overview", 10, drawOverview},
}

// The clock goes on by whole milliseconds, and back now and then.
func drawTick(d *draw) act {
	by := pick(d, time.Millisecond, 500*time.Millisecond, time.Second, 3*time.Second, 3*time.Second, 20*time.Second, 2*time.Minute)
	switch {
	case d.one(30):
		by = 25 * time.Hour
	case d.one(30):
		by, d.back = -time.Hour, true
	}
	d.now = d.now.Add(by)
	return func(*side) {}
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

func (s *side) tellLease(method string, l ledger.Lease, err error) {
	l.Live = sorted(l.Live, func(t machine.Token) string { return fmt.Sprintf("%09s", s.named("session", t, false)) })
	l.Stray = sorted(l.Stray, func(h ledger.Instance) string { return h.ID.String() })
	s.tell(method, err, l)
}

func drawOpen(d *draw) act {
	ttl, label, knows := pick(d, 10*time.Second, time.Minute, time.Hour, time.Hour), pick(d, "p", "ö"), d.knows()
	return func(s *side) {
		l, err := s.OpenSession(s.ctx, ttl, label, knows)
		s.tokens = append(s.tokens, l.Token)
		s.named("session", l.Token, false)
		s.tellLease("OpenSession", l, err)
	}
}

func drawRenew(d *draw) act {
	place, inHand := d.session(), d.Perm(9)[:2]
	r := ledger.Renewal{TTL: pick(d, time.Second, time.Minute, time.Hour), Knows: d.knows()}
	return func(s *side) {
		r.InHand = []int64{s.number(inHand[0]), s.number(inHand[1])}
		l, err := s.Renew(s.ctx, s.token(place), r)
		s.tellLease("Renew", l, err)
	}
}

func drawBury(d *draw) act {
	place := d.session()
	return func(s *side) { s.tell("Bury", s.Bury(s.ctx, s.token(place))) }
}

// The database becomes another one in the eyes of the ledger, and has lost nothing. Sessions that were
// opened before speak no more: what they are told differs from store to store.
func drawFailOver(d *draw) act {
	if d.over { // there is no third one
		return func(*side) {}
	}
	d.over = true
	return func(s *side) {
		if db, reference := s.raw.(*memory.DB); reference {
			db.FailOver(db.Backup())
		} else {
			d.harness.Change(d.t, s.raw)
		}
		s.tokens = nil
	}
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

func (d *draw) schedule() *ledger.Schedule {
	c := pick(d, ledger.ClassCompensating, ledger.ClassBegun, ledger.ClassBegun, ledger.ClassUnbegun)
	return pick(d, nil, &ledger.Schedule{Class: c}, &ledger.Schedule{Class: c}, &ledger.Schedule{Class: c, Hold: true}, &ledger.Schedule{Class: c, Hold: true})
}

func drawStart(d *draw) act {
	var all []follow
	place, twice := d.session(), d.one(8)
	for i := range pick(d, 1, 1, 1, 2, 3) {
		r := started()
		r.Version, r.Nonce, r.Revision = pick(d, 1, 1, 1, 2), d.Int64(), pick(d, "r1", "r2", "")
		r.Wait, r.Cause = d.wait(i), pick(d, "", "shop/1")
		pick(d, func() {}, func() {},
			func() {
				r = arming(r, 1)
				r.Dispatch.Key = pick(d, "am-key", machine.StepKey(machine.RootKey(theSaga, "a:1", r.Revision), "invoice", saga.Forward, 0))
			},
			func() { r.Limit = pick(d, time.Second, time.Minute, time.Hour) },
			func() { r.Until = d.now.Add(r.Wait).Truncate(time.Millisecond) },
			func() { r.Status = pick(d, saga.Adopting, saga.Completed, saga.Paused) },
		)()
		sch := d.schedule()
		if sch == nil {
			sch = release
		}
		id := d.id()
		if d.one(25) {
			id.Work = d.oddity("a")
		}
		all = append(all, follow{id: id, r: r, s: sch})
	}
	d.with(all)
	slices.SortStableFunc(all, func(a, b follow) int {
		return cmp.Or(strings.Compare(a.id.Work, b.id.Work), strings.Compare(a.id.Saga, b.id.Saga))
	}) // the order in which a batch is started is not said
	return func(s *side) {
		t := s.writer(place)
		var es []ledger.Entry
		var cs []*chain
		for _, a := range all {
			c := &chain{token: t, id: a.id}
			cs, es = append(cs, c), append(es, c.entry(a.r, a.s))
		}
		s.append(t, cs, es)
		if twice {
			s.append(t, cs, es)
		}
	}
}

// append appends entries and moves the views of those that are stored.
func (s *side) append(t machine.Token, cs []*chain, es []ledger.Entry) {
	as, err := s.Append(s.ctx, t, es)
	for i, a := range as {
		s.met.add("Append", string(a.Result))
		if a.Result != ledger.Appended && a.Result != ledger.Mine {
			continue
		}
		c := cs[i]
		if c.seq == 0 && s.works[c.id] == nil {
			s.works[c.id], s.numbers = c, append(s.numbers, a.Number)
			s.named("work", number{"work", a.Number}, false)
		}
		if known := s.works[c.id]; es[i].Record.Seq > known.seq || known == c {
			before := *known
			known.before = &before
			known.moved(es[i], a)
			known.status, known.reason = es[i].Record.Status, es[i].Record.Reason
			if k := es[i].Record.Kind; k == machine.KindStarted || k == machine.KindRevised {
				known.revision = es[i].Record.Revision
			}
		}
	}
	s.tell("Append", err, as)
}

// How a record goes wrong.
const (
	asItIs = iota
	asBefore
	asGone
	asOfNoWork
	asInvalid
)

// follow is a record behind what its writer saw last of a work.
type follow struct {
	id       saga.ID
	r        machine.Record
	s        *ledger.Schedule
	wrong    int
	consume  int // how many of the unread signals
	ownKey   bool
	snapshot bool
}

func drawFollow(d *draw) act {
	var all []follow
	place, again := d.session(), d.one(8)
	ids := map[saga.ID]bool{}
	for i := range pick(d, 1, 1, 1, 2, 3) {
		f := d.follow(i)
		if !ids[f.id] {
			all = append(all, f)
		}
		ids[f.id] = true
	}
	d.with(all)
	return func(s *side) {
		t := s.token(place)
		var es []ledger.Entry
		var cs []*chain
		for _, f := range all {
			if c := s.works[f.id]; c != nil {
				cs, es = append(cs, c), append(es, s.follows(t, *c, f))
			}
		}
		if len(es) == 0 {
			return
		}
		s.append(t, cs, es)
		if again {
			s.append(t, cs, es)
		}
	}
}

// follows seals a record behind a view of a chain.
func (s *side) follows(t machine.Token, c chain, f follow) ledger.Entry {
	revision := c.revision
	switch f.wrong {
	case asBefore:
		if c.before != nil {
			c = *c.before
		}
	case asGone:
		c.tail[0] ^= 1
	case asOfNoWork:
		c.head += 1000
	}
	c.token = t
	r := f.r
	if f.s == nil { // "neither status, holder nor due time change"
		r.Status, r.Reason = c.status, c.reason
	}
	if f.consume > 0 {
		loaded, _ := s.raw.Load(s.ctx, []saga.ID{f.id})
		for i := range loaded {
			unread := loaded[i].Signals
			for _, signal := range unread[:min(f.consume, len(unread))] {
				r.Signals = append(r.Signals[:len(r.Signals):len(r.Signals)], signal.ID)
			}
		}
	}
	if r.Kind == machine.KindRevised {
		revision = r.Revision
	}
	if f.ownKey && r.Dispatch != nil {
		arm := *r.Dispatch
		arm.Key = machine.StepKey(machine.RootKey(f.id.Saga, f.id.Work, revision), "invoice", saga.Forward, 0)
		r.Dispatch = &arm
	}
	e := c.entry(r, f.s)
	e.Revision = revision
	return e
}

func (d *draw) follow(place int) follow {
	f := follow{id: d.id(), s: d.schedule(), ownKey: d.one(2)}
	status := pick(d, saga.Running, saga.Running, saga.Retrying, saga.Waiting, saga.Compensating, saga.Review, saga.Review, saga.Paused, saga.Completed, saga.Compensated)
	f.r = doing(pick(d, machine.KindNoted, machine.KindDone, machine.KindDone, machine.KindUnknown, machine.KindRefused, machine.KindDispatched, machine.KindOverdue), status)
	r := &f.r
	if status == saga.Review {
		r.Reason = pick(d, saga.ReasonInDoubt, saga.ReasonExhausted, saga.ReasonHung)
	}
	r.Step = pick(d, "invoice", "mail", "")
	r.Body = json.RawMessage(pick(d, `{"a": 1}`, `{"a":1}`, ` [1, 2]`, ``))
	r.ExternalID = pick(d, "", "", "inv_1", "inv_2")
	r.Wait = d.wait(place)
	arms := func() { *r = arming(*r, 1+d.IntN(3)) }
	pick(d, arms, arms, arms, func() {},
		func() { r.Snapshot = json.RawMessage(`{"steps": [] }`) },
		func() {
			r.Kind, r.Version, r.Revision, r.Limit = machine.KindRevised, pick(d, 1, 2), pick(d, "r2", "r3"), pick(d, 0, time.Second, time.Hour)
		},
		func() { r.Kind, r.Class = machine.KindAdopted, pick(d, "", saga.Unknown) },
		func() { r.Kind, r.Until = machine.KindWaiting, d.now.Truncate(time.Millisecond).Add(d.wait(place)) },
		func() {
			r.Error, r.Note, r.Actor, r.Why = d.oddity("e"), d.oddity("n"), d.oddity("anna"), d.oddity("w")
		},
		func() {
			whole := full()
			whole.Status, whole.Reason, whole.Kind, whole.Wait = r.Status, r.Reason, r.Kind, r.Wait
			*r = whole
		},
	)()
	f.consume = pick(d, 0, 0, 0, 1, 2, 9)
	f.wrong = pick(d, asItIs, asItIs, asItIs, asItIs, asItIs, asItIs, asItIs, asItIs, asBefore, asBefore, asGone, asOfNoWork, asInvalid)
	if f.wrong == asInvalid {
		pick(d,
			func() { r.ExternalID = strings.Repeat("x", ledger.MaxText+1) }, func() { r.Error = "a\x00" },
			func() { r.Status = "gone" }, func() { r.Wait = time.Nanosecond }, func() { r.Note = "\xff" },
		)()
	}
	return f
}

func drawPost(d *draw) act {
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
	return func(s *side) {
		// SQLite takes the time of the latest renewal where it is earlier than that of the post.
		beat, _ := s.raw.OpenSession(s.ctx, time.Hour, "beat", nil)
		s.tell("Post", s.Post(s.ctx, id, sig))
		_ = s.raw.Bury(s.ctx, beat.Token)
	}
}

func drawClaim(d *draw) act {
	place := d.session()
	c := ledger.Claim{Limit: pick(d, 0, 1, 2, 3, 9), Fresh: pick(d, 0, 0, 1, 2), Known: d.knows()}
	c.Rooms = map[string]int{"books": d.IntN(3), "mail": d.IntN(2)}
	d.with(c)
	return func(s *side) {
		c, t := c, s.token(place)
		mine, tied := s.held(t)
		if tied && c.Limit > 0 { // which of them goes first is not said
			c.Limit = 99
		}
		got, err := s.Claim(s.ctx, t, c)
		said := got.Instances
		if c.Fresh == 0 && !tied { // nor in which order places that are kept are given, and what it held already is told
			said = slices.DeleteFunc(slices.Clone(said), func(h ledger.Instance) bool { return mine[h.Number] })
			s.tell("Claim", err, said)
		}
		got.Instances = sorted(got.Instances, func(h ledger.Instance) string { return h.ID.String() })
		s.tell("Claim", err, got)
	}
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

func drawGiveBack(d *draw) act {
	place := d.session()
	var all []ledger.Return
	places := d.Perm(7) // none twice
	for i := range pick(d, 1, 1, 1, 2, 3) {
		r := ledger.Return{Number: int64(places[i]), WaitsFor: pick(d, "", "books", "books", "mail")}
		if d.one(40) {
			r.WaitsFor = d.oddity("books")
		}
		r.Due = d.shift(-3, 20).Add(time.Duration(i) * time.Millisecond)
		if d.one(8) {
			r.Leaves = d.shift(1, 20)
		}
		all = append(all, r)
	}
	d.with(all)
	return func(s *side) {
		t := s.writer(place)
		var back []ledger.Return
		for _, r := range all {
			r.Number = s.number(int(r.Number))
			back = append(back, r)
		}
		s.tell("GiveBack", s.GiveBack(s.ctx, t, back))
	}
}

func drawCatchUp(*draw) act {
	return func(s *side) {
		works, sessions, err := s.CatchUp(s.ctx)
		s.tell("CatchUp", err, works, sessions)
	}
}

func drawLoad(d *draw) act {
	ids := []saga.ID{d.id(), d.id()}[:1+d.IntN(2)]
	return func(s *side) {
		cs, err := s.Load(s.ctx, ids)
		for i := range cs {
			if d.back { // what was written before then is not clear
				cs[i].Changed = time.Time{}
			}
		}
		s.tell("Load", err, sorted(cs, func(c ledger.Chain) string { return c.Instance.ID.String() }))
	}
}

func drawHistory(d *draw) act {
	id := d.id()
	return func(s *side) {
		s.says("History")(s.History(s.ctx, id))
		s.says("Signals")(s.Signals(s.ctx, id))
	}
}

// filter draws a filter of a listing.
func (d *draw) filter() ledger.Filter {
	var f ledger.Filter
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
			func() { f.Unconfirmed = true },
			func() { f.CreatedSince = d.shift(-40, 0) }, func() { f.CreatedUntil = d.shift(-40, 1) },
			func() { f.UpdatedSince = d.shift(-20, 0) }, func() { f.UpdatedUntil = d.shift(-20, 1) },
		)()
	}
	f.Newest, f.ByWork = d.one(3), d.one(6)
	if f.ByWork && d.one(2) {
		f.AfterWork = d.work()
	}
	f.Limit = pick(d, 1, 2, 3, 0)
	return f
}

func drawList(d *draw) act {
	f, foreign := d.filter(), d.one(6)
	d.with(f)
	return func(s *side) {
		g := f
		for range 6 {
			page, err := s.List(s.ctx, g)
			if page.Next != "" {
				g.After = page.Next
			}
			s.tell("List", err, page.Instances, page.Next != "")
			if page.Next == "" || err != nil {
				break
			}
		}
		if foreign && g.After != "" {
			g.Status += "x"
			_, err := s.List(s.ctx, g)
			s.tell("List", err)
		}
	}
}

func drawRest(d *draw) act {
	ids := []saga.ID{d.id(), d.id(), d.id()}
	return func(s *side) {
		got, err := s.AtRest(s.ctx, ids)
		s.tell("AtRest", err, sorted(got, saga.ID.String))
	}
}

func drawOverview(d *draw) act {
	return func(s *side) {
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
		s.says("Sessions")(s.Sessions(s.ctx))
	}
}

// spec is a definition, of which a draw chooses the structure.
func (d *draw) spec() *program.Spec {
	return &program.Spec{Saga: pick(d, theSaga, "crm"), Version: 1 + d.IntN(2), Steps: []program.StepSpec{{Name: pick(d, "a", "a", "b")}}}
}
