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
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// What a reconciler calls.
var gateCalls = []call{
	{"accept", 20, func(d *draw, s *side) {
		s.tell("Accept", s.Accept(s.ctx, d.events()))
		s.arrived()
	}},
	{"judge", 14, callJudge}, {"lease", 8, callLease}, {"update", 8, callUpdate}, {"weigh", 6, callWeigh}, {"deliveries", 16, callDeliveries}, {"entries", 12, callEntries},
	{"stopped", 5, func(d *draw, s *side) {
		o := pick(d, intake.Object{}, intake.Object{}, d.object(), intake.Object{Tenant: "a:b"})
		s.says("Stopped")(s.Stopped(s.ctx, intake.StoppedFilter{Object: o, Prefix: pick(d, "", "shop:", "shop:a%3Ab", "crm::"), Limit: d.IntN(3)}))
	}},
	{"hold", 3, callHold},
	{"replay", 4, func(d *draw, s *side) {
		s.forgot = true
		s.says("Replay")(s.Replay(s.ctx, d.deliveryFilter(), "why"))
	}},
	{"forget", 3, func(d *draw, s *side) {
		s.forgot = true
		s.says("Forget")(s.Forget(s.ctx, d.object()))
	}},
	{"purge", 5, func(d *draw, s *side) {
		kept := func() time.Duration { return pick(d, 0, time.Second, time.Minute, time.Hour) }
		s.forgot = true
		s.says("Purge")(s.Purge(s.ctx, intake.Retention{Bodies: kept(), Rows: kept(), Digests: kept()}, 1000))
	}},
	{"draft", 7, func(d *draw, s *side) {
		ref, err := s.Draft(s.ctx, pick(d, "books", "books", "tax"))
		s.refs = append(s.refs, ref)
		s.tell("Draft", err, ref)
	}},
	{"find", 14, callFind},
	{"found", 10, callFound},
	{"finish", 9, func(d *draw, s *side) {
		ref := s.ref(d)
		if d.one(2) {
			s.says("Finish")(s.Finish(s.ctx, ref, &plan.Plan{ID: pick(d, "aa1", "aa2", "bb"), Job: ref.Job, MappingVersion: "3", Counts: plan.Census{Keys: 5}, HoldsNothingReason: pick(d, "", "", "", "many")}))
			return
		}
		row := plan.Row{Finding: plan.Finding{Key: pick(d, "1", "2", "Z")}, Outcome: pick(d, plan.Failed, plan.Applied, plan.Withheld, plan.ForPerson), Error: "e"}
		s.tell("Done", s.Done(s.ctx, ref, []plan.Row{row}))
	}},
	{"plans", 8, func(d *draw, s *side) {
		id := pick(d, "aa1", "aa2", "bb", "aa", "b", "")
		if d.one(3) {
			s.tell("Approve", s.Approve(s.ctx, id, saga.Actor{Name: "anna", Reason: "r"}))
		}
		if !d.back { // else which is the newest is not clear
			s.says("Latest")(s.Latest(s.ctx, pick(d, "books", "tax")))
			s.says("Plan")(s.Plan(s.ctx, id))
		}
	}},
	{"drift", 12, callDrift}, {"decide", 10, callDecide},
	{"sweep", 12, callSweep},
	{"sightings", 8, func(d *draw, s *side) {
		q := scan.SightingQuery{Name: "o", Side: pick(d, scan.SourceSide, scan.SourceSide, scan.DestinationSide), Generation: int64(d.IntN(4)), Limit: d.IntN(4), Bare: d.one(4)}
		q.After, q.AfterID = pick(d, "", "", "B", "a"), pick(d, "", "1")
		d.with(q)
		if d.one(4) {
			s.says("Discard")(s.Discard(s.ctx, q, d.IntN(3)))
		}
		s.says("Sightings")(s.Sightings(s.ctx, q))
		s.says("Tally")(s.Tally(s.ctx, q))
	}},
}

// again draws for a callback, which may be called again, the same each time.
func (d *draw) again() func() *draw {
	seed := d.Uint64()
	return func() *draw { return &draw{Rand: rand.New(rand.NewPCG(seed, 11))} }
}

func (d *draw) refusal() error {
	if d.one(5) {
		return errRefused
	}
	return nil
}

func (d *draw) object() intake.Object {
	return intake.Object{Source: pick(d, "shop", "shop", "crm"), Tenant: pick(d, "", "", "a:b"), Type: "order", ID: pick(d, "1", "2", "3")}
}

// events are one event, or several of which none is in conflict with another: in which order a call
// stores those is not said.
func (d *draw) events() (es []intake.Event) {
	for range pick(d, 0, 0, 2, 3) {
		e := event(pick(d, "8", "9", "10"))
		e.At, e.Received, e.Version = d.now, d.now, intake.Version{Clock: intake.CounterClock, N: 1}
		es = append(es, e)
	}
	if len(es) > 0 {
		return es
	}
	e := event(pick(d, "1", "2", "3", "4", "5", "6", "7"))
	e.Object, e.Body, e.At, e.Received = d.object(), json.RawMessage(pick(d, `{"t": 1}`, `{"t": 1}`, `{"t": 2}`)), d.now, d.now.Add(-time.Duration(d.IntN(50))*time.Second)
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
	return []intake.Event{e}
}

// arrived gives the deliveries that came their places, whatever number a store drew.
func (s *side) arrived() {
	all, _ := s.raw.Deliveries(s.ctx, intake.DeliveryFilter{Limit: 1000})
	for _, delivery := range slices.Backward(all) {
		if name := (number{"delivery", delivery.Number}); s.names[name] == "" {
			s.named("delivery", name, false)
			s.deliveries = append(s.deliveries, delivery.Number)
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
		func() { e.FetchRequested = e.FetchCompleted + int64(d.IntN(2)) },
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

func callJudge(d *draw, s *side) {
	again := d.again()
	s.says("Judge")(s.Judge(s.ctx, pick(d, 1, 2, 9), func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		d := again()
		s.tell("Judge", nil, now, ds)
		for i := range ds {
			e := es[ds[i].Object]
			s.tell("Judge", nil, e)
			ds[i].Outcome, ds[i].Because = pick(d, intake.Applied, intake.Stale, intake.Duplicate, intake.Hint), "b"
			d.alter(e, now, i)
		}
		return d.refusal()
	}))
}

func callLease(d *draw, s *side) {
	again, who := d.again(), pick(d, "p1", "p2")
	// Which goes first of those whose lease is over is not said: all are taken.
	got, err := s.Lease(s.ctx, 100, func(now time.Time, e *intake.Entry) error {
		d := again()
		e.Holder, e.Until, e.Fence = who, now.Add(time.Duration(d.IntN(6)-1)*time.Second), e.Fence+1
		return d.refusal()
	})
	s.tell("Lease", err, sorted(got, func(e intake.Entry) string { return e.Object.String() }))
}

func callUpdate(d *draw, s *side) {
	again, o := d.again(), d.object()
	s.tell("Update", s.Update(s.ctx, o, func(now time.Time, e *intake.Entry) error {
		d := again()
		s.tell("Update", nil, now, e)
		d.alter(e, now, 0)
		return d.refusal()
	}))
	s.says("Entry")(s.Entry(s.ctx, o))
}

func callWeigh(d *draw, s *side) {
	again, bound := d.again(), intake.Bound{Count: int64(1 + d.IntN(2)), Percent: 50, Window: time.Minute}
	s.tell("Weigh", s.Weigh(s.ctx, d.object(), d.id(), bound, func(now time.Time, e *intake.Entry, t intake.Tally) error {
		s.tell("Weigh", nil, now, e, t)
		e.Accepted, e.Delivered, e.Attempts = 2, 1, e.Attempts+1
		e.Weigh(2, now, t, &bound)
		return again().refusal()
	}))
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
	d.with(f)
	return f
}

func callDeliveries(d *draw, s *side) {
	f, one := d.deliveryFilter(), d.IntN(12)
	if d.one(2) {
		f.Before = s.delivery(one)
	}
	if d.one(6) {
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

func callEntries(d *draw, s *side) {
	f := intake.EntryFilter{Limit: d.IntN(4), Owing: d.one(5), Blocked: d.one(8), Held: d.one(8), Future: d.one(8)}
	pick(d, func() {}, func() { f.Object = intake.Object{Source: "shop"} }, func() { f.Object = d.object() }, func() { f.After = d.object() })()
	d.with(f)
	s.says("Entries")(s.Entries(s.ctx, f))
}

func callHold(d *draw, s *side) {
	s.says("Holdings")(s.Holdings(s.ctx))
	s.says("EndHold")(s.EndHold(s.ctx, pick(d, "shop", "shop", "crm", ""), pick(d, intake.ActRelease, intake.ActDrop), saga.Actor{Name: "anna", Reason: "r"}))
	all, _ := s.raw.Entries(s.ctx, intake.EntryFilter{Owing: true})
	for i, e := range all { // none is due at the time of another
		_ = s.raw.Update(s.ctx, e.Object, func(now time.Time, e *intake.Entry) error {
			e.Due = now.Add(time.Duration(i) * time.Millisecond)
			return nil
		})
	}
}

// ref is one of the newest drafts or plans.
func (s *side) ref(d *draw) plan.Ref {
	if place := pick(d, 0, 0, 0, 1, 2); place < len(s.refs) {
		return s.refs[len(s.refs)-1-place]
	}
	return plan.Ref{Job: "books", Number: 77}
}

func (d *draw) findings() (fs []plan.Finding) {
	for range 1 + d.IntN(4) {
		fs = append(fs, finding(pick(d, "1", "2", "3", "Z", "a", "ä"), pick(d, plan.Missing, plan.Missing, plan.Orphan, plan.InSync, plan.Diverged), pick(d, plan.Start, plan.Nothing, plan.Ask)))
	}
	return fs
}

func callFind(d *draw, s *side) {
	q := plan.FindingQuery{Plan: s.ref(d), After: pick(d, "", "", "1", "a"), Acting: d.one(3), Class: pick(d, "", "", plan.Missing, plan.Orphan), Outcome: pick(d, "", "", "", plan.Failed), Limit: d.IntN(4)}
	d.with(q)
	if d.one(2) {
		s.tell("Find", s.Find(s.ctx, q.Plan, d.findings()))
	}
	s.says("Findings")(s.Findings(s.ctx, q))
}

func callDrift(d *draw, s *side) {
	ref, part := plan.Ref{Job: pick(d, "books", "books", "tax"), Number: int64(1 + d.IntN(9))}, plan.Part{From: pick(d, "", "", "1"), Until: pick(d, "", "", "2", "Z")}
	var fs []plan.Finding // each key once
	for _, f := range d.findings() {
		if part.Has(f.Key) && f.Class != plan.InSync && !slices.ContainsFunc(fs, func(o plan.Finding) bool { return o.Key == f.Key }) {
			fs = append(fs, f)
		}
	}
	q := plan.DriftQuery{Job: pick(d, "", "", "books"), Key: pick(d, "", "", "1"), Class: pick(d, "", "", plan.Missing), Times: d.IntN(3), Open: d.one(2), Limit: d.IntN(4)}
	d.with(q)
	if d.one(2) {
		s.tell("Remember", s.Remember(s.ctx, ref, part, fs))
	}
	ds, err := s.Drifts(s.ctx, q)
	if s.tell("Drifts", err, ds); len(ds) > 0 {
		q.After = &ds[0]
		s.says("Drifts")(s.Drifts(s.ctx, q))
	}
}

// callDecide: what people decide, what becomes of it, and what is left to be decided.
func callDecide(d *draw, s *side) {
	job := pick(d, "books", "books", "tax")
	verdict := pick(d, plan.Accept, plan.Hide, plan.Ours, plan.Ours, plan.Reopen, plan.Keep)
	what := plan.Decision{Finding: finding(pick(d, "1", "2", "ä"), pick(d, plan.Diverged, plan.AdoptMismatch, plan.Missing), plan.Ask), Verdict: verdict, By: saga.Actor{Name: pick(d, "anna", "anna", ""), Reason: "r"}}
	if verdict == plan.Hide || d.one(4) {
		what.Until = time.Unix(pick(d, int64(2e9), 1e9), 0)
	}
	q := plan.DecisionQuery{Job: job, Keys: pick(d, nil, nil, []string{"1", "ä"}), Open: d.one(2), After: pick(d, "", "", "1"), Limit: d.IntN(4)}
	d.with(q)
	if d.one(2) {
		s.tell("Decide", s.Decide(s.ctx, job, []plan.Decision{what}))
	}
	ds, err := s.Decisions(s.ctx, q)
	s.tell("Decisions", err, ds)
	for i := range ds {
		ds[i].Outcome, ds[i].Error = pick(d, plan.Applied, plan.Failed, plan.Superseded), pick(d, "", "because")
		if d.one(4) {
			ds[i].At = ds[i].At.Add(-time.Second) // another was decided since
		}
	}
	if d.one(2) {
		s.tell("Settled", s.Settled(s.ctx, job, ds))
	}
	if len(ds) > 0 && d.one(2) {
		s.tell("Turn", s.Turn(s.ctx, job, func(now time.Time, a *schedule.Agenda) error {
			a.State = fullState(now)
			a.Forget = now.Add(time.Hour)
			return nil
		}))
	}
	s.says("Decisions")(s.Decisions(s.ctx, plan.DecisionQuery{Job: job}))
	s.says("Drifts")(s.Drifts(s.ctx, plan.DriftQuery{Open: true}))
	s.found("1")
}

// found tells what is left to people about a work.
func (s *side) found(key string) {
	of, err := s.Found(s.ctx, key)
	if of.Open != nil { // of several jobs it is any
		of.Open = &intake.Undecided{}
	}
	s.tell("Found", err, of)
}

// callFound: what a plan leaves to a person about a work, as it is found, decided on and carried out.
func callFound(d *draw, s *side) {
	job := pick(d, "books", "tax")
	f := finding("1", pick(d, plan.Diverged, plan.Diverged, plan.AdoptMismatch, plan.PhantomDone, plan.Missing), pick(d, plan.Ask, plan.Ask, plan.Ask, plan.Nothing))
	for range pick(d, 1, 1, 2) {
		switch d.IntN(6) {
		case 0: // the source has a newer version meanwhile
			f.Class, f.Action, f.Reason = pick(d, plan.Stale, plan.Diverged), plan.Ask, pick(d, plan.ChangedThere, plan.AsApplied, "in vain")
		case 1:
			f.Action, f.Reason = plan.Nothing, plan.LookFailed
		}
		ref, err := s.Draft(s.ctx, job)
		s.refs = append(s.refs, ref)
		s.tell("Draft", err, ref)
		s.tell("Remember", s.Remember(s.ctx, ref, plan.Part{}, []plan.Finding{f}))
		s.found("1")
		if p := (plan.Plan{ID: "f", Job: job, MappingVersion: "3", HoldsNothingReason: pick(d, "", "", "", "many")}); !d.one(4) {
			s.says("Finish")(s.Finish(s.ctx, ref, &p))
		}
		s.found("1")
	}
	if d.one(4) {
		f.Reason += ", but differently"
	}
	what := plan.Decision{Finding: f, Verdict: pick(d, plan.Accept, plan.Hide, plan.Ours, plan.Remake, plan.Reopen), By: saga.Actor{Name: "anna", Reason: "r"}}
	if what.Verdict == plan.Hide || d.one(4) {
		what.Until = time.Unix(2e9, 0)
	}
	s.tell("Decide", s.Decide(s.ctx, job, []plan.Decision{what}))
	s.found("1")
	ds, err := s.Decisions(s.ctx, plan.DecisionQuery{Job: job, Keys: []string{"1"}})
	s.tell("Decisions", err, ds)
	for i := range ds {
		ds[i].Outcome = pick(d, plan.Applied, plan.Failed)
	}
	s.tell("Settled", s.Settled(s.ctx, job, ds))
	s.found("1")
}

func callSweep(d *draw, s *side) {
	p := scan.Catch{Name: "o", Side: scan.SourceSide}
	for range 1 + d.IntN(2) {
		row := sighting(pick(d, "a", "B", "c"), pick(d, "1", "2", "ä"), int64(1+d.IntN(3)))
		row.Partition = pick(d, "p", "q")
		p.Sightings = append(p.Sightings, row)
	}
	if d.one(2) {
		p.Events = d.events()
	}
	at, err := s.Position(s.ctx, pick(d, "o/s", "o/s", "p"))
	s.tell("Position", err, at)
	at.Serial, at.State = at.Serial-int64(pick(d, 0, 0, 0, 1)), json.RawMessage(fmt.Sprintf(`{"n": %d}`, d.IntN(1000)))
	for range pick(d, 1, 1, 1, 2) {
		s.says("Advance")(s.Advance(s.ctx, at, p))
		if d.one(8) {
			at.State = json.RawMessage(`{}`)
		}
	}
	s.arrived()
	s.says("Positions")(s.Positions(s.ctx, "o"))
}
