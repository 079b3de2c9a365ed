package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var raceCases = []testCase{
	{name: "ten writers on twelve chains", run: raceAppend},
	{name: "one start", run: raceStart},
	{name: "append, claim, post and bury", run: raceAll},
}

// settle appends, and what is blocked again: "append the same again later". On a busy machine a
// writer may keep its locks for longer than the others wait.
func (b *bench) settle(s Store, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	as, err := s.Append(b.Context(), t, es)
	if err != nil {
		return nil, err
	}
	for i := range as {
		for as[i].Result == ledger.Blocked {
			again, err := s.Append(b.Context(), t, es[i:i+1])
			if err != nil {
				return nil, err
			}
			as[i] = again[0]
		}
	}
	return as, nil
}

// racer appends to many chains from its own, mostly stale views.
type racer struct {
	b      *bench
	store  Store
	token  machine.Token
	rng    *rand.Rand
	views  []*chain
	stored []machine.Hash
}

// round appends to a random part of the chains, in a random order, each at the tail this racer
// knows.
func (r *racer) round(round int) {
	var es []ledger.Entry
	var vs []*chain
	for _, i := range r.rng.Perm(len(r.views))[:1+r.rng.IntN(len(r.views))] {
		v := r.views[i]
		rec := arming(doing(machine.KindDispatched, saga.Running), round+1)
		rec.Error = fmt.Sprintf("round %d of %s", round, r.token)
		es, vs = append(es, v.entry(rec, []*ledger.Schedule{keep, hold, release}[r.rng.IntN(3)])), append(vs, v)
	}
	as, err := r.b.settle(r.store, r.token, es)
	if err != nil {
		r.b.Errorf("append %d records: %v", len(es), err)
		return
	}
	var behind []*chain
	for i, a := range as {
		switch a.Result {
		case ledger.Appended:
			vs[i].moved(es[i], a)
			r.stored = append(r.stored, es[i].Record.Hash)
		case ledger.Stale:
			behind = append(behind, vs[i])
		default:
			r.b.Errorf("append record %d of %s: got %+v, want appended or stale", es[i].Record.Seq, es[i].ID, a)
		}
	}
	if len(behind) > 0 {
		r.reload(behind)
	}
}

// reload brings views up to date. It may be stale again before the next round.
func (r *racer) reload(behind []*chain) {
	var ids []saga.ID
	for _, v := range behind {
		ids = append(ids, v.id)
	}
	chains, err := r.store.Load(r.b.Context(), ids)
	if err != nil {
		r.b.Errorf("load: %v", err)
		return
	}
	for _, c := range chains {
		i := slices.IndexFunc(behind, func(v *chain) bool { return v.id == c.Instance.ID })
		last := c.Records[len(c.Records)-1]
		behind[i].seq, behind[i].tail = last.Seq, last.Hash
	}
}

// Ten writers race on twelve chains from stale views: no fork, no gap, no foreign link, nothing
// lost and nothing that was refused is there.
func raceAppend(b *bench) {
	const writers, chains, rounds = 10, 12, 12
	t := b.session()
	var all []*chain
	for i := range chains {
		all = append(all, b.start(t, order(i), started(), hold))
	}
	stores := []Store{b.Store, b.again()}
	racers := make([]*racer, writers)
	var wg sync.WaitGroup
	for i := range racers {
		r := &racer{b: b, store: stores[i%2], token: b.session(), rng: rand.New(rand.NewPCG(1, uint64(i)))}
		for _, c := range all {
			r.views = append(r.views, c.view(r.token))
		}
		racers[i] = r
		wg.Go(func() {
			for round := range rounds {
				r.round(round)
			}
		})
	}
	wg.Wait()
	stored := map[machine.Hash]bool{}
	for _, r := range racers {
		for _, h := range r.stored {
			stored[h] = true
		}
	}
	found := 0
	for _, c := range all {
		prev := machine.Hash{}
		for i, rec := range c.history() {
			if rec.Seq != int64(i)+1 || rec.Sum(c.id, theSalt, prev) != rec.Hash {
				b.Errorf("%s: record %d at place %d does not follow from its predecessor", c.id, rec.Seq, i+1)
			}
			prev = rec.Hash
			if i > 0 && !stored[rec.Hash] {
				b.Errorf("%s: record %d is in the chain, but no writer was told that it was appended", c.id, rec.Seq)
			}
			found++
		}
	}
	if want := len(stored) + chains; found != want {
		b.Errorf("%d records in the chains, %d were answered appended", found, want)
	}
}

// The same work started by many at once is started once: one is told appended, the others that it
// exists.
func raceStart(b *bench) {
	stores := []Store{b.Store, b.again()}
	results := make([][]ledger.Answer, 8)
	var wg sync.WaitGroup
	for i := range results {
		var es []ledger.Entry
		t := b.session()
		for w := range 20 {
			es = append(es, b.fresh(t, order((w*7+i)%20)).entry(started(), hold))
		}
		wg.Go(func() {
			as, err := b.settle(stores[i%2], t, es)
			if err != nil {
				b.Errorf("start: %v", err)
			}
			results[i] = as
		})
	}
	wg.Wait()
	counts := map[ledger.Result]int{}
	for _, as := range results {
		for _, a := range as {
			counts[a.Result]++
		}
	}
	if counts[ledger.Appended] != 20 || counts[ledger.Exists] != 140 {
		b.Errorf("answers %v, want 20 appended and 140 exists", counts)
	}
	if n := len(b.list(ledger.Filter{})); n != 20 {
		b.Errorf("%d works, want 20", n)
	}
}

// takeover is a work whose session dies while its last result is on its way.
type takeover struct {
	view *chain
	late ledger.Result // what the dead session was told
	heir ledger.Result // what the session that claimed the work was told
}

// append appends a record of one of the two, at the place behind the start.
func (w *takeover) append(b *bench, s Store, t machine.Token, k machine.Kind) ledger.Result {
	e := w.view.view(t).entry(doing(k, saga.Running), hold)
	as, err := b.settle(s, t, []ledger.Entry{e})
	if err != nil {
		b.Errorf("append %s to %s: %v", k, e.ID, err)
		return ""
	}
	return as[0].Result
}

// A claim takes a work away from a dead session: what the dead one still appends on the tail it
// knows competes with the new holder, and only one of them gets the place.
func raceAll(b *bench) {
	dead, heir := b.session(), b.session()
	here, there := b.Store, b.again()
	all := map[saga.ID]*takeover{}
	var inOrder []*takeover
	for i := range 24 {
		w := &takeover{view: b.start(dead, order(i), arming(started(), 1), hold)}
		all[w.view.id], inOrder = w, append(inOrder, w)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, w := range inOrder {
			w.late = w.append(b, here, dead, machine.KindDone)
		}
	})
	wg.Go(func() {
		for _, w := range inOrder {
			if err := there.Post(b.Context(), w.view.id, machine.Signal{Kind: machine.SignalCancel, Key: "k"}); err != nil {
				b.Errorf("post: %v", err)
			}
		}
	})
	wg.Go(func() {
		if err := there.Bury(b.Context(), dead); err != nil {
			b.Errorf("bury: %v", err)
		}
		got, err := there.Claim(b.Context(), heir, ledger.Claim{Limit: len(inOrder), Known: known})
		if err != nil {
			b.Errorf("claim: %v", err)
		}
		for _, h := range got.Instances {
			all[h.ID].heir = all[h.ID].append(b, there, heir, machine.KindLost)
		}
	})
	wg.Wait()
	for id, w := range all {
		won := 0
		for _, r := range []ledger.Result{w.late, w.heir} {
			switch r {
			case ledger.Appended:
				won++
			case ledger.Stale, "": // "": the work was not claimed
			default:
				b.Errorf("%s: got %s, want appended or stale", id, r)
			}
		}
		if rs := w.view.history(); won != 1 || len(rs) != 2 {
			b.Errorf("%s: %d writers were told appended and the chain has %d records, want 1 and 2", id, won, len(rs))
		}
	}
}
