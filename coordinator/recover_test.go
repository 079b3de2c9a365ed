package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// crowd is some processes that send orders to one town, in virtual time.
type crowd struct {
	t     *testing.T
	l     *memory.DB
	books *town
	r     *rand.Rand
	log   *lines
	retry saga.Retry
	ps    []*coordinator.Coordinator
	stop  context.CancelFunc
	ended *sync.WaitGroup
	n     int
}

func gather(t *testing.T, seed uint64, processes int, retry saga.Retry) *crowd {
	t.Helper()
	c := &crowd{t: t, l: memory.New(nil), books: &town{}, r: rand.New(rand.NewPCG(seed, 3)), log: &lines{}, retry: retry}
	c.books.be(func(string) error { return nil })
	c.open(processes)
	return c
}

// open starts processes.
func (c *crowd) open(processes int) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	c.stop, c.ended, c.ps = stop, &sync.WaitGroup{}, nil
	for range processes {
		p, err := coordinator.New(c.l, &coordinator.Options{Log: c.log.logger()})
		if err != nil {
			c.t.Fatal(err)
		}
		if err := p.Register(ctx, billing(c.t, "good", c.books, c.retry)); err != nil {
			c.t.Fatal(err)
		}
		c.ps = append(c.ps, p)
		c.ended.Go(func() {
			if err := p.Run(ctx); err != nil {
				c.t.Error(err)
			}
		})
	}
	synctest.Wait()
}

// be has the books answer so from now on.
func (b *town) be(says func(work string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.says = says
}

func (c *crowd) close() {
	c.stop()
	c.ended.Wait()
}

// orders starts one at each interval, for so long.
func (c *crowd) orders(every, long time.Duration) {
	c.t.Helper()
	for begun := time.Now(); time.Since(begun) < long; c.n++ {
		p := c.ps[c.r.IntN(len(c.ps))]
		if _, err := p.Start(c.t.Context(), "good", fmt.Sprintf("good-%06d", c.n), order{}, nil); err != nil {
			c.t.Fatal(err)
		}
		pass(every)
	}
}

// rate is how many were served in each second of a span.
func (c *crowd) rate(from, to time.Time) float64 {
	return float64(c.books.between(&c.books.served, from, to)) / to.Sub(from).Seconds()
}

func (b *town) between(all *[]time.Time, from, to time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return between(*all, from, to)
}

func (c *crowd) done() int { return in(c.t, c.l, "good")[saga.Completed] }

// seeded plays a story for each seed, with one process and with three.
func seeded(t *testing.T, story func(t *testing.T, seed uint64, processes int)) {
	t.Helper()
	first, seeds, all := storySeeds()
	for seed := first; seed < first+seeds; seed++ {
		for _, n := range []int{1, 3} {
			if !all && seed%2 == uint64(n/2) {
				continue
			}
			t.Run(fmt.Sprintf("%d processes, AMENDS_SEED=%d", n, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { story(t, seed, n) })
			})
		}
	}
}

// One 429 closes a destination for as long as it asks, and no longer: what waited goes on at the
// rate of before.
func TestA429IsOverWhenItIsOver(t *testing.T) {
	t.Parallel()
	rounds := 2
	if pace.AtNight() {
		rounds = 5
	}
	for name, again := range map[string]time.Duration{"once": time.Hour, "every minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeded(t, func(t *testing.T, seed uint64, processes int) {
				c := gather(t, seed, processes, saga.Retry{})
				defer c.close()
				const every = 50 * time.Millisecond
				c.orders(every, 30*time.Second)
				before := c.rate(time.Now().Add(-10*time.Second), time.Now())
				for range rounds {
					var once sync.Once
					c.books.be(func(string) (err error) {
						once.Do(func() { err = saga.HoldBack(saga.RetryAfter(time.Second, saga.NotSent(errors.New("429")))) })
						return err
					})
					c.orders(every, time.Second+latency)
					end := time.Now()
					c.orders(every, 5*time.Second)
					if after := c.rate(end, end.Add(3*time.Second)); after < 0.9*before {
						t.Errorf("%.1f a second in the three seconds after it, %.1f before", after, before)
					}
					c.orders(every, min(again, 2*time.Minute)-6*time.Second)
				}
			})
		})
	}
}

// A pause, a restart of all processes and a resume leave nothing behind.
func TestAPauseIsOverWhenItIsOver(t *testing.T) {
	t.Parallel()
	seeded(t, func(t *testing.T, seed uint64, processes int) {
		c := gather(t, seed, processes, saga.Retry{})
		const every = 50 * time.Millisecond
		c.orders(every, 30*time.Second)
		before := c.rate(time.Now().Add(-10*time.Second), time.Now())
		op := coordinator.NewOperator(c.l)
		by := saga.Actor{Name: "anna", Reason: "they are being moved"}
		if err := op.PauseScope(t.Context(), coordinator.OfDestination("books"), by); err != nil {
			t.Fatal(err)
		}
		c.orders(every, 10*time.Second)
		c.close()
		pass(time.Minute)
		c.open(processes)
		defer c.close()
		c.orders(every, 10*time.Second)
		if err := op.ResumeScope(t.Context(), coordinator.OfDestination("books"), by); err != nil {
			t.Fatal(err)
		}
		end := time.Now()
		c.orders(every, 5*time.Second)
		if after := c.rate(end, end.Add(3*time.Second)); after < 0.9*before {
			t.Errorf("%.1f a second in the three seconds after it, %.1f before", after, before)
		}
	})
}

// However the books are away, and for however long: nothing is undone, given up or spent; they are
// knocked at about once a minute; and when they are back, the backlog goes as fast as they serve.
func TestAnOutageIsOverWhenItIsOver(t *testing.T) {
	t.Parallel()
	kinds := map[string]error{
		"refused": saga.NotSent(errors.New("connection refused")), "a time-out": errHangs,
		"503": saga.HoldBack(saga.Answered(errors.New("503"))), "500": saga.Answered(errors.New("500")),
	}
	_, _, all := storySeeds()
	var told [3]int
	for kind, away := range kinds { // in no order: by day the first of each length is told
		for i, long := range []time.Duration{20 * time.Second, 30 * time.Minute, 2 * time.Hour} {
			for _, flaky := range []bool{false, true} {
				all := all || kind == "a time-out" && i == 2 && !flaky // those that hung came back all at once
				if told[i]++; told[i] > 1 && !all {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, flaky %t", kind, long, flaky), func(t *testing.T) {
					t.Parallel()
					seeded(t, func(t *testing.T, seed uint64, processes int) { isAway(t, seed, processes, away, long, flaky) })
				})
			}
		}
	}
}

func isAway(t *testing.T, seed uint64, processes int, away error, long time.Duration, flaky bool) { //nolint:thelper // it is the test itself
	retry := saga.Retry{Attempts: 3}
	if flaky {
		retry.Attempts = 12
	}
	c := gather(t, seed, processes, retry)
	defer c.close()
	r := rand.New(rand.NewPCG(seed, 4))
	well := func(string) error {
		if flaky && r.IntN(5) == 0 {
			return saga.Answered(errors.New("500"))
		}
		return nil
	}
	c.books.be(well)
	every := max(long/500, 200*time.Millisecond)
	c.orders(every, min(20*every, time.Minute))
	c.books.be(func(string) error { return away })
	left := time.Now()
	c.orders(every, long)
	back := time.Now()
	c.books.be(well)
	backlog := c.n - c.done()
	for c.done() < c.n && time.Since(back) < time.Hour {
		pass(100 * time.Millisecond)
	}
	took := time.Since(back)
	served := c.books.first(back).Sub(back)
	most := served + 7*time.Second + time.Duration(backlog)*5*time.Millisecond
	if errors.Is(away, errHangs) { // what was sent last may hang until its own time-out
		most += 30 * time.Second
	}
	if got := in(t, c.l, "good"); got[saga.Completed] != c.n {
		t.Fatalf("of %d: %v", c.n, got)
	}
	knocks := c.books.between(&c.books.heard, left.Add(long/12), back)
	t.Logf("%d waited, %d requests while they were away, without the first twelfth; the first was served %s after, all %s after", backlog, knocks, served, took)
	if most := 20 + int(long/(6*time.Second)); long > time.Minute && knocks > most {
		t.Errorf("%d requests while they were away, %d at most", knocks, most)
	}
	if flaky { // an order that fails once more waits for as long as its policy says
		took = c.books.most(back, backlog*9/10).Sub(back)
	}
	if took > most {
		t.Errorf("the backlog of %d took %s, %s at most", backlog, took, most)
	}
	if !flaky {
		c.books.mu.Lock()
		defer c.books.mu.Unlock()
		if at := crowded(c.books.heard, c.books.served, back); !at.IsZero() {
			t.Errorf("%s after they are back they got more than twice what they had served", at.Sub(back))
		}
	}
}

// first is when the books served first, from then on.
func (b *town) first(from time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.served, from, time.Time.Compare)
	return b.served[i]
}

// most is when they had served n, from then on.
func (b *town) most(from time.Time, n int) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.served, from, time.Time.Compare)
	return b.served[i+n-1]
}

// Three requests of ten that fail at random are no outage, for ever.
func TestOneThatOftenFailsIsNotFailing(t *testing.T) {
	t.Parallel()
	seeded(t, func(t *testing.T, seed uint64, processes int) {
		c := gather(t, seed, processes, saga.Retry{Attempts: 30})
		defer c.close()
		r := rand.New(rand.NewPCG(seed, 5))
		c.books.be(func(string) error {
			if r.IntN(10) < 3 {
				return saga.Answered(errors.New("500"))
			}
			return nil
		})
		begun := time.Now()
		every := []time.Duration{20 * time.Millisecond, 500 * time.Millisecond, 10 * time.Second}[c.r.IntN(3)]
		c.orders(every, max(2*time.Minute, 100*every))
		end := time.Now()
		if sent := c.books.between(&c.books.heard, begun, end); float64(sent) < 0.9*float64(c.n) {
			t.Errorf("%d requests for %d orders", sent, c.n)
		}
		if said := c.log.lined(t, failsLine); len(said) > 0 {
			t.Errorf("it was called failing: %v", said)
		}
	})
}

const failsLine = "the destination fails; what wants it waits, and one attempt at a time finds out when it is back"

// An empty answer is an answer: nothing but such answers is no outage, and what needs a name in them
// spends its attempts and goes to a person.
func TestAnEmptyAnswerIsAnAnswer(t *testing.T) {
	t.Parallel()
	seeded(t, func(t *testing.T, seed uint64, processes int) {
		c := gather(t, seed, processes, saga.Retry{})
		defer c.close()
		empty := func(ctx context.Context, s saga.Call[order]) (thing, error) {
			return thing{}, errors.Join(s.Sending(), c.books.ask(ctx, s.Work))
		}
		retry := saga.Retry{Attempts: 4, Initial: 100 * time.Millisecond, Max: 5 * time.Second}
		needs, err := saga.Define("needs", 1, saga.Do("invoice", empty).Idempotent().NoUndo("none").To("books").Retry(retry))
		if err != nil {
			t.Fatal(err)
		}
		needsNone, err := saga.Define("needs-none", 1, saga.Do("note", empty).NoID().Idempotent().NoUndo("none").To("books").Retry(retry))
		if err != nil {
			t.Fatal(err)
		}
		start := func(name string, n int) {
			t.Helper()
			if _, err := c.ps[c.r.IntN(len(c.ps))].Start(t.Context(), name, fmt.Sprintf("%s-%d", name, n), order{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range c.ps {
			if err := p.Register(t.Context(), needs, needsNone); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 30 {
			start("needs", i)
			pass(200 * time.Millisecond)
		}
		pass(time.Minute)
		start("needs-none", 0)
		pass(time.Second)
		if got := in(t, c.l, "needs"); got[saga.Review] != 30 {
			t.Errorf("of 30 that need a name: %v", got)
		}
		if got := in(t, c.l, "needs-none"); got[saga.Completed] != 1 {
			t.Errorf("of one that needs none: %v", got)
		}
		if said := c.log.lined(t, failsLine); len(said) > 0 {
			t.Errorf("the books were called failing: %v", said)
		}
		if n := c.books.between(&c.books.heard, time.Time{}, time.Now()); n != 30*4+1 {
			t.Errorf("%d requests for 30 with four attempts each, and one", n)
		}
	})
}

// Half of all orders are at fault for an hour: the others are done as soon as they come.
func TestHalfMayFail(t *testing.T) {
	t.Parallel()
	seeded(t, func(t *testing.T, seed uint64, processes int) {
		c := gather(t, seed, processes, saga.Retry{Attempts: 8, Initial: 100 * time.Millisecond, Max: 5 * time.Second})
		defer c.close()
		bad := func(work string) bool {
			h := fnv.New64()
			_, _ = h.Write([]byte(work))
			return rand.New(rand.NewPCG(seed, h.Sum64())).IntN(2) == 0
		}
		c.books.be(func(work string) error {
			if bad(work) {
				return saga.Answered(errors.New("500"))
			}
			return nil
		})
		every := []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}[c.r.IntN(3)]
		long := min(time.Hour, 1000*every)
		c.orders(every, long)
		pass(time.Minute)
		heads, err := ledger.First(t.Context(), c.l, ledger.Filter{Limit: c.n + 1})
		if err != nil {
			t.Fatal(err)
		}
		var took []time.Duration
		for i := range heads {
			switch h := &heads[i]; {
			case bad(h.ID.Work):
			case h.Status != saga.Completed:
				t.Errorf("%s is %s", h.ID.Work, h.Status)
			default:
				took = append(took, h.Finished.Sub(h.Created))
			}
		}
		slices.Sort(took)
		p99 := took[(len(took)*99+99)/100-1]
		t.Logf("one every %s: p99 of %d is %s", every, len(took), p99)
		if p99 > latency+2*time.Second {
			t.Errorf("p99 is %s", p99)
		}
	})
}
