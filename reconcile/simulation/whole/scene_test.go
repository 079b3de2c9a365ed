package whole

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// scene is one history of one world.
type scene struct {
	mode mode
	size size
	seed uint64

	shop  *shop
	books *books
	post  *post
	watch watch

	mu    sync.Mutex // guards what follows, while it runs
	db    *memory.DB
	alive *process // nil: nobody opens the door
	all   []*process

	crashes, rebuilds, answered, released, corrected int
	faults                                           []string // what went wrong that never should
}

// size is how large a history is.
type size struct{ orders, lives int }

func newScene(m mode, k kind, seed uint64, sz size) *scene {
	luck := func(n uint64) mood { return mood{chance: rand.New(rand.NewPCG(seed, n))} }
	return &scene{
		mode: m, size: sz, seed: seed,
		shop:  newShop(k, seed, sz.orders, time.Now()),
		books: &books{mood: luck(4), ids: map[string]*invoice{}, keys: map[string][]*invoice{}},
		post:  &post{mood: luck(5), mails: map[string]int{}},
		db:    memory.New(nil),
	}
}

// play lets the world run until all is quiet, and calls judge when nothing moves any more.
func play(t *testing.T, m mode, k kind, seed uint64, sz size, judge func(*testing.T, *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(m, k, seed, sz)
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			s.keep(ctx, began.Add(span/2))
		}()
		all := s.shop.webhooks(seed, m.stripped)
		if !m.webhooks {
			all = nil
		}
		s.tell(ctx, all)
		_ = pause(ctx, time.Until(began.Add(span+5*time.Minute)))
		s.calmDown()
		for range 3 {
			_ = pause(ctx, 30*time.Minute)
			s.person(ctx)
		}
		_ = pause(ctx, 30*time.Minute) // longer than the grace altogether
		stop()
		<-kept
		judge(t, s)
		t.Logf("%s: %d orders, %d webhooks, %d crashes, %d rebuilds; %d calls to the shop, %d to the books, %d invoices, %d mails; a person answered %d times, released %d withdrawals and corrected %d invoices; %s",
			m.name, sz.orders, len(all), s.crashes, s.rebuilds, s.shop.calls, s.books.calls, len(s.books.invoices), s.post.calls, s.answered, s.released, s.corrected, time.Since(began).Round(time.Minute))
	})
}

// calmDown lets nothing fail any more.
func (s *scene) calmDown() {
	for _, m := range []*mood{&s.shop.mood, &s.books.mood, &s.post.mood} {
		unlock := m.lock()
		m.calm = true
		unlock()
	}
}

// keep keeps one process alive and lets it crash, until ctx ends. Each life lasts for a random
// number of boundaries, until the world is calm. When the disaster comes, ledger and inbox are
// gone.
func (s *scene) keep(ctx context.Context, disaster time.Time) {
	chance := rand.New(rand.NewPCG(s.seed, 6))
	for life := 0; ctx.Err() == nil; life++ {
		var last int64
		if life < s.size.lives && !s.shop.isCalm() {
			last = 1 + chance.Int64N(int64(s.size.orders*(life+2)/2))
		}
		running, p, err := s.boot(ctx, last)
		if err == nil {
			s.let(p)
			go p.run(running, s)
			s.outlive(ctx, p, disaster)
		} else {
			p.cut()
		}
		if ctx.Err() != nil {
			break
		}
		s.crashes++
		s.let(nil)
		_ = pause(ctx, time.Duration(chance.IntN(60))*time.Second)
		if s.mode.loss && !time.Now().Before(disaster) {
			s.mode.loss = false
			s.lose(ctx, chance)
		}
	}
	s.let(nil)
	for _, p := range s.all {
		<-p.done
		for _, err := range p.errs {
			s.faults = append(s.faults, "a round failed, and nobody else did: "+err.Error())
		}
	}
}

// let makes p the process that opens the door.
func (s *scene) let(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive = p; p != nil {
		s.all = append(s.all, p)
	}
}

// outlive waits until the process is over, and kills it when the disaster comes.
func (s *scene) outlive(ctx context.Context, p *process, disaster time.Time) {
	if !s.mode.loss {
		<-p.over
		return
	}
	select {
	case <-p.over:
	case <-time.After(time.Until(disaster)):
		p.kill()
	case <-ctx.Done():
	}
}

// kill ends a process where it is.
func (p *process) kill() {
	p.dead.Store(true)
	p.cut()
}

// lose deletes ledger and inbox, and rebuilds a ledger. The first process that does it crashes on
// the way. Where a fifth of the questions is refused a rebuild gives up, again and again, so after
// a few times the others behave better.
func (s *scene) lose(ctx context.Context, chance *rand.Rand) {
	_ = pause(ctx, time.Minute) // what was on its way has happened, or never will
	since := time.Now()
	s.mu.Lock()
	s.db = memory.New(nil)
	s.mu.Unlock()
	for dies := 1 + chance.Int64N(60); ctx.Err() == nil; dies = 0 {
		running, p, err := s.boot(ctx, dies)
		r := reconcile.Report{}
		if err == nil {
			s.rebuilds++
			r, err = p.reconciler.Rebuild(running, since, saga.Actor{Name: "anna", Reason: "the ledger is lost"})
		}
		if p.kill(); err == nil && r.Result == schedule.OK && r.Failed == 0 {
			return
		}
		for _, m := range []*mood{&s.shop.mood, &s.books.mood} {
			unlock := m.lock()
			m.better = s.rebuilds > 3
			unlock()
		}
		_ = pause(ctx, time.Minute)
	}
}

// person answers what is in review, by looking with his own eyes.
func (s *scene) person(ctx context.Context) {
	op := coordinator.NewOperator(s.db)
	program, err := (&desk{}).program()
	if err != nil {
		panic(err)
	}
	heads, err := ledger.First(ctx, s.db, ledger.Filter{Status: saga.Review, Limit: 1_000_000})
	for i := range heads {
		records, failed := s.db.History(ctx, heads[i].ID)
		st, folded := machine.Fold(heads[i].ID, records)
		if err = errors.Join(err, failed, folded); err != nil {
			break
		}
		ss, dir := st.Issue(program.Spec())
		if ss == nil {
			s.faults = append(s.faults, fmt.Sprintf("%s is in review about nothing: %s", st.ID.Work, st.Reason))
			continue
		}
		s.answered++
		err = errors.Join(err, op.Resolve(ctx, st.ID, ss.Name, s.result(st.ID.Work, ss, dir), saga.Actor{Name: "anna", Reason: "I have looked"}))
	}
	held, failed := s.db.Holdings(ctx)
	err = errors.Join(err, failed)
	for _, h := range held { // the shop did withdraw them, and a few hundred in an hour are beyond what is let through unseen
		n, failed := s.db.EndHold(ctx, h.Source, intake.ActRelease, saga.Actor{Name: "anna", Reason: "I have looked"})
		s.released, err = s.released+int(n), errors.Join(err, failed)
	}
	if err != nil {
		s.faults = append(s.faults, "the person: "+err.Error())
	}
	s.correct(ctx)
}

// correct writes into the books by hand what the plan asks a person about. Only of two changes
// within one tick of the shop's clock nobody but a person can tell which one an invoice shows,
// where no gate has heard them one by one: behind a loss, or without hearing at all. Everything
// else is not his to do.
func (s *scene) correct(ctx context.Context) {
	ds, err := s.db.Drifts(ctx, plan.DriftQuery{Job: "orders", Limit: 1_000_000})
	if err != nil {
		s.faults = append(s.faults, "the person: "+err.Error())
	}
	for i := range ds {
		o := s.shop.byID[strings.TrimPrefix(ds[i].Key, "shop:order:")]
		if s.rebuilds == 0 && s.mode.sweeps || ds[i].Action != plan.Ask || o == nil || !s.shop.tied(o) || o.last().deleted {
			continue
		}
		s.corrected++
		unlock := s.books.lock()
		for _, inv := range s.books.live(o.key) {
			e := *inv.now()
			e.at, e.Total, e.Written, e.Void = time.Now(), o.last().Total, o.last().Total, !o.wanted()
			inv.says = append(inv.says, e)
		}
		unlock()
	}
}

// result is what somebody sees who looks whether a step happened.
func (s *scene) result(key string, ss *machine.StepState, dir saga.Direction) saga.Resolution {
	if ss.Name == "receipt" {
		if s.post.sent(key) {
			return coordinator.Happened("mail-" + key)
		}
		return coordinator.DidNotHappen()
	}
	defer s.books.lock()()
	live := s.books.live(key)
	switch {
	case dir == saga.Undo && len(live) == 0:
		return coordinator.Happened("")
	case dir == saga.Forward && len(live) > 0:
		return coordinator.Happened(live[0].id)
	default:
		return coordinator.DidNotHappen()
	}
}
