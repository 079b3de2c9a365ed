package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
)

// What a reconciler calls.
var gateCalls = []call{
	{"accept", 20, drawAccept},
	{"judge", 14, drawJudge},
	{"lease", 8, drawLease},
	{"update", 8, drawUpdate},
	{"weigh", 6, drawWeigh},
	{"deliveries", 16, drawDeliveries},
	{"entries", 12, drawEntries},
	{"stopped", 5, drawStopped},
	{"hold", 3, drawHold},
	{"replay", 4, drawReplay},
	{"purge", 5, drawPurge},
	{"draft", 7, drawDraft},
	{"find", 14, drawFind},
	{"finish", 9, drawFinish},
	{"plans", 8, drawPlans},
	{"drift", 12, drawDrift},
	{"sweep", 12, drawSweep},
	{"sightings", 8, drawSightings},
}

// drawOf draws for a callback, which may be called again.
func drawOf(seed uint64) *draw { return &draw{Rand: rand.New(rand.NewPCG(seed, 11))} }

func (d *draw) object() intake.Object {
	return intake.Object{Source: pick(d, "shop", "shop", "crm"), Tenant: pick(d, "", "", "a:b"), Type: "order", ID: pick(d, "1", "2", "3")}
}

func (d *draw) event() intake.Event {
	n := pick(d, "1", "2", "3", "4", "5", "6", "7")
	e := intake.Event{
		Object: d.object(), Topic: "order.updated", ID: "evt" + n, Dedupe: intake.DigestOf("evt", n), Payload: intake.Whole, At: d.now,
		Body: json.RawMessage(pick(d, `{"t": 1}`, `{"t": 1}`, `{"t": 2}`)), Received: d.now.Add(-time.Duration(d.IntN(50)) * time.Second), Secret: "new",
	}
	e.Version = intake.Version{Clock: intake.CounterClock, N: int64(d.IntN(4))}
	if e.Fingerprint = intake.DigestOf(string(e.Body)); d.one(6) {
		e.Fingerprint = intake.Digest{}
	}
	if d.one(6) {
		e.Disposition, e.Why = pick(d, intake.Malformed, intake.Unknown), "w"
	}
	if d.one(25) {
		e.Dedupe = intake.Digest{}
	}
	return e
}

// events are one event, or several of which none is in conflict with another: in which order a call
// stores those is not said.
func (d *draw) events() []intake.Event {
	es := []intake.Event{d.event()}
	if d.one(3) {
		es = nil
		for range 2 + d.IntN(2) {
			n := pick(d, "8", "9", "10")
			e := event(n)
			e.At, e.Received, e.Version = d.now, d.now, intake.Version{Clock: intake.CounterClock, N: 1}
			es = append(es, e)
		}
	}
	return es
}

func drawAccept(d *draw) act {
	es := d.events()
	return func(s *side) {
		s.tell("Accept", s.Accept(s.ctx, es))
		s.arrived()
	}
}

// arrived gives the deliveries that came their places, whatever number a store drew.
func (s *side) arrived() {
	all, _ := s.raw.Deliveries(s.ctx, intake.DeliveryFilter{Limit: 1000})
	for i := range all {
		n := all[len(all)-1-i].Number
		if name := (number{"delivery", n}); s.names[name] == "" {
			s.named("delivery", name, false)
			s.deliveries = append(s.deliveries, n)
		}
	}
}

// delivery is the number of the delivery that came in a place.
func (s *side) delivery(place int) int64 {
	if place >= len(s.deliveries) {
		return 1 << 40
	}
	return s.deliveries[place]
}

// alter changes an entry as a callback might.
func (d *draw) alter(e *intake.Entry, now time.Time, place int) {
	e.Attempts++
	pick(d,
		func() { e.Blocked = pick(d, "b", "") },
		func() { e.Dirty = e.Clean + int64(d.IntN(2)) },
		func() {
			e.Due = now.Add(time.Duration(d.IntN(4)-1)*time.Second + time.Duration(place)*time.Millisecond)
		},
		func() {
			e.Accepted, e.Body = e.Accepted+1, json.RawMessage(`{"t": 3}`)
			e.Version = intake.Version{Clock: intake.ObjectClock, N: now.UnixNano() + int64(d.IntN(2))*int64(time.Hour), Step: time.Second}
		},
		func() { e.Delivered, e.LastError, e.Deleted = e.Accepted, pick(d, "", "e"), d.one(2) },
		func() { e.Held, e.Withdrawn, e.Changed = int64(d.IntN(2)), now, now },
		func() {
			e.Parked = append(e.Parked, intake.Event{Object: e.Object, Payload: intake.Delta, Body: json.RawMessage(`1`), Received: now})
		},
		func() {
			e.Newest, e.Missing, e.Reread, e.Behind = intake.Version{Clock: intake.CounterClock, N: 9}, now, now, now
		},
		func() { e.Changed, e.Due = now, time.Time{} },
	)()
}

func (d *draw) refusal() error {
	if d.one(5) {
		return errRefused
	}
	return nil
}

func drawJudge(d *draw) act {
	limit, seed, refusal := pick(d, 1, 2, 9), d.Uint64(), d.refusal()
	return func(s *side) {
		n, err := s.Judge(s.ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			d := drawOf(seed)
			s.tell("Judge", nil, now, ds)
			for i := range ds {
				e := es[ds[i].Object]
				s.tell("Judge", nil, e)
				ds[i].Outcome, ds[i].Because = pick(d, intake.Applied, intake.Stale, intake.Duplicate, intake.Hint), "b"
				d.alter(e, now, i)
			}
			return refusal
		})
		s.tell("Judge", err, n)
	}
}

func drawLease(d *draw) act {
	limit, seed, refusal, who := 100, d.Uint64(), d.refusal(), pick(d, "p1", "p2") // which goes first of those whose lease is over is not said
	return func(s *side) {
		got, err := s.Lease(s.ctx, limit, func(now time.Time, e *intake.Entry) error {
			d := drawOf(seed)
			e.Holder, e.Until, e.Fence = who, now.Add(time.Duration(d.IntN(6)-1)*time.Second), e.Fence+1
			return refusal
		})
		s.tell("Lease", err, sorted(got, func(e intake.Entry) string { return e.Object.String() }))
	}
}

func drawUpdate(d *draw) act {
	o, seed, refusal := d.object(), d.Uint64(), d.refusal()
	return func(s *side) {
		err := s.Update(s.ctx, o, func(now time.Time, e *intake.Entry) error {
			s.tell("Update", nil, now, e)
			drawOf(seed).alter(e, now, 0)
			return refusal
		})
		s.tell("Update", err)
		s.says("Entry")(s.Entry(s.ctx, o))
	}
}

func drawWeigh(d *draw) act {
	o, id, refusal := d.object(), d.id(), d.refusal()
	bound := intake.Bound{Count: int64(1 + d.IntN(2)), Percent: 50, Window: time.Minute}
	return func(s *side) {
		err := s.Weigh(s.ctx, o, id, bound, func(now time.Time, e *intake.Entry, t intake.Tally) error {
			s.tell("Weigh", nil, now, e, t)
			e.Accepted, e.Delivered, e.Attempts = 2, 1, e.Attempts+1
			e.Weigh(2, now, t, &bound)
			return refusal
		})
		s.tell("Weigh", err)
	}
}

func (d *draw) deliveryFilter() (f intake.DeliveryFilter) {
	pick(d, func() {}, func() {},
		func() { f.Source = pick(d, "shop", "crm") },
		func() { f.Object.ID = pick(d, "1", "2") },
		func() { f.Object = d.object() },
		func() { f.Disposition = pick(d, intake.Applied, intake.Stale, intake.Hint, intake.Malformed) },
		func() { f.Unjudged = true },
		func() { f.From = d.shift(-80, 0) },
		func() { f.Until = d.shift(-80, 0) },
	)()
	f.Limit = d.IntN(4)
	return f
}

func drawDeliveries(d *draw) act {
	f, one := d.deliveryFilter(), d.IntN(12)
	before, some := d.one(2), d.one(6)
	d.with(f)
	return func(s *side) {
		f := f
		if before {
			f.Before = s.delivery(one)
		}
		if some {
			f.Numbers = []int64{s.delivery(one), s.delivery(0), s.delivery(99)}
		}
		s.says("Deliveries")(s.Deliveries(s.ctx, f))
		s.says("Delivery")(s.Delivery(s.ctx, s.delivery(one)))
		counts, err := s.Counts(s.ctx)
		for i := range counts {
			if s.forgot { // a store may remember one that is gone or was judged otherwise since
				counts[i].Last = time.Time{}
			}
		}
		s.tell("Counts", err, counts)
		s.says("BlockedDays")(s.BlockedDays(s.ctx, time.Time{}))
	}
}

func drawEntries(d *draw) act {
	f := intake.EntryFilter{Limit: d.IntN(4), Owing: d.one(5), Blocked: d.one(8), Held: d.one(8), Future: d.one(8)}
	pick(d, func() {}, func() { f.Object = intake.Object{Source: "shop"} }, func() { f.Object = d.object() }, func() { f.After = d.object() })()
	d.with(f)
	return func(s *side) { s.says("Entries")(s.Entries(s.ctx, f)) }
}

func drawStopped(d *draw) act {
	f := intake.StoppedFilter{Prefix: pick(d, "", "shop:", "shop:a%3Ab", "crm::"), Limit: d.IntN(3)}
	if d.one(3) {
		f.Object = pick(d, d.object(), intake.Object{Tenant: "a:b"})
	}
	return func(s *side) { s.says("Stopped")(s.Stopped(s.ctx, f)) }
}

func drawHold(d *draw) act {
	source, act := pick(d, "shop", "shop", "crm", ""), pick(d, intake.ActRelease, intake.ActDrop)
	return func(s *side) {
		s.says("Holdings")(s.Holdings(s.ctx))
		s.says("EndHold")(s.EndHold(s.ctx, source, act, saga.Actor{Name: "anna", Reason: "r"}))
		all, _ := s.raw.Entries(s.ctx, intake.EntryFilter{Owing: true})
		for i, e := range all { // none is due at the time of another
			_ = s.raw.Update(s.ctx, e.Object, func(now time.Time, e *intake.Entry) error {
				e.Due = now.Add(time.Duration(i) * time.Millisecond)
				return nil
			})
		}
	}
}

func drawReplay(d *draw) act {
	f := d.deliveryFilter()
	d.with(f)
	return func(s *side) {
		s.forgot = true
		s.says("Replay")(s.Replay(s.ctx, f, "why"))
	}
}

func drawPurge(d *draw) act {
	kept := func() time.Duration { return pick(d, 0, time.Second, time.Minute, time.Hour) }
	r := intake.Retention{Bodies: kept(), Rows: kept(), Digests: kept()}
	return func(s *side) {
		s.forgot = true
		s.says("Purge")(s.Purge(s.ctx, r, 1000))
	}
}

func drawDraft(d *draw) act {
	job := pick(d, "books", "books", "tax")
	return func(s *side) {
		ref, err := s.Draft(s.ctx, job)
		s.refs = append(s.refs, ref)
		s.tell("Draft", err, ref)
	}
}

// ref is one of the newest drafts or plans.
func (s *side) ref(place int) plan.Ref {
	if len(s.refs) == 0 {
		return plan.Ref{Job: "books", Number: 77}
	}
	return s.refs[max(0, len(s.refs)-1-place)]
}

func (d *draw) findings() (fs []plan.Finding) {
	for range 1 + d.IntN(4) {
		fs = append(fs, finding(pick(d, "1", "2", "3", "Z", "a", "ä"), pick(d, plan.Missing, plan.Missing, plan.Orphan, plan.InSync, plan.Diverged), pick(d, plan.Start, plan.Nothing, plan.Ask)))
	}
	return fs
}

func drawFind(d *draw) act {
	place, fs := pick(d, 0, 0, 1, 2), d.findings()
	q := plan.FindingQuery{After: pick(d, "", "", "1", "a"), Acting: d.one(3), Class: pick(d, "", "", plan.Missing, plan.Orphan), Limit: d.IntN(4)}
	if d.one(4) {
		q.Outcome = plan.Failed
	}
	finds := d.one(2)
	d.with(q)
	return func(s *side) {
		if finds {
			s.tell("Find", s.Find(s.ctx, s.ref(place), fs))
		}
		q := q
		q.Plan = s.ref(place)
		s.says("Findings")(s.Findings(s.ctx, q))
	}
}

func drawFinish(d *draw) act {
	place, id, key := pick(d, 0, 0, 0, 1), pick(d, "aa1", "aa2", "bb"), pick(d, "1", "2", "Z")
	done := pick(d, plan.Failed, plan.Applied, plan.Withheld, plan.ForPerson)
	finishes := d.one(2)
	return func(s *side) {
		ref := s.ref(place)
		if finishes {
			s.says("Finish")(s.Finish(s.ctx, ref, &plan.Plan{ID: id, Job: ref.Job, Mapping: "3", Census: plan.Census{Keys: 5}}))
			return
		}
		s.tell("Done", s.Done(s.ctx, ref, []plan.Row{{Finding: plan.Finding{Key: key}, Outcome: done, Error: "e"}}))
	}
}

func drawPlans(d *draw) act {
	id, job, approves := pick(d, "aa1", "aa2", "bb", "aa", "b", ""), pick(d, "books", "tax"), d.one(3)
	return func(s *side) {
		if approves {
			s.tell("Approve", s.Approve(s.ctx, id, saga.Actor{Name: "anna", Reason: "r"}))
		}
		if d.back { // which is the newest is not clear
			return
		}
		s.says("Latest")(s.Latest(s.ctx, job))
		s.says("Plan")(s.Plan(s.ctx, id))
	}
}

func drawDrift(d *draw) act {
	ref, part := plan.Ref{Job: pick(d, "books", "books", "tax"), Number: int64(1 + d.IntN(9))}, plan.Part{From: pick(d, "", "", "1"), Until: pick(d, "", "", "2", "Z")}
	var fs []plan.Finding // each key once
	for _, f := range d.findings() {
		if part.Has(f.Key) && f.Class != plan.InSync && !slices.ContainsFunc(fs, func(o plan.Finding) bool { return o.Key == f.Key }) {
			fs = append(fs, f)
		}
	}
	q := plan.DriftQuery{Job: pick(d, "", "", "books"), Key: pick(d, "", "", "1"), Class: pick(d, "", "", plan.Missing), Times: d.IntN(3), Limit: d.IntN(4)}
	remembers := d.one(2)
	d.with(q)
	return func(s *side) {
		if remembers {
			s.tell("Remember", s.Remember(s.ctx, ref, part, fs))
		}
		ds, err := s.Drifts(s.ctx, q)
		s.tell("Drifts", err, ds)
		if q := q; len(ds) > 0 {
			q.After = &ds[0]
			s.says("Drifts")(s.Drifts(s.ctx, q))
		}
	}
}

func drawSweep(d *draw) act {
	name, state := pick(d, "o/s", "o/s", "p"), fmt.Sprintf(`{"n": %d}`, d.IntN(1000))
	behind, again, other := d.one(4), d.one(4), d.one(8)
	page := scan.Catch{Name: "o", Side: scan.SourceSide}
	for range 1 + d.IntN(2) {
		row := sighting(pick(d, "a", "B", "c"), pick(d, "1", "2", "ä"), int64(1+d.IntN(3)))
		row.Partition = pick(d, "p", "q")
		page.Sightings = append(page.Sightings, row)
	}
	if d.one(2) {
		page.Events = d.events()
	}
	return func(s *side) {
		at, err := s.Position(s.ctx, name)
		s.tell("Position", err, at)
		if behind {
			at.Serial--
		}
		at.State = json.RawMessage(state)
		s.says("Advance")(s.Advance(s.ctx, at, page))
		if again {
			if other {
				at.State = json.RawMessage(`{}`)
			}
			s.says("Advance")(s.Advance(s.ctx, at, page))
		}
		s.arrived()
		s.says("Positions")(s.Positions(s.ctx, "o"))
	}
}

func drawSightings(d *draw) act {
	q := scan.SightingQuery{Name: "o", Side: pick(d, scan.SourceSide, scan.SourceSide, scan.DestinationSide), Generation: int64(d.IntN(4)), Limit: d.IntN(4), Bare: d.one(4)}
	if d.one(3) {
		q.After, q.AfterID = pick(d, "B", "a"), pick(d, "", "1")
	}
	discards, limit := d.one(4), d.IntN(3)
	d.with(q)
	return func(s *side) {
		if discards {
			s.says("Discard")(s.Discard(s.ctx, q, limit))
		}
		s.says("Sightings")(s.Sightings(s.ctx, q))
		s.says("Tally")(s.Tally(s.ctx, q))
	}
}
