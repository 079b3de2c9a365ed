package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// old is a shop with an old script: what both have made, by work.
type old struct {
	mu       sync.Mutex
	rand     *rand.Rand
	invoices map[string][]int // their amounts
	mails    map[string]int
}

// script makes the invoice of a work, and the mail, unless it did before. What it sends appears a little later.
func (b *old) script(work string, amount int) {
	b.mu.Lock()
	lag := time.Duration(b.rand.IntN(20)) * time.Second
	b.mu.Unlock()
	time.Sleep(lag)
	b.made(work, amount)
}

func (b *old) made(work string, amount int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.invoices[work] = append(b.invoices[work], amount)
	b.mails[work]++
}

// lucky draws one of n.
func (b *old) lucky(n int) bool { return b.rand.IntN(n) == 0 }

func (b *old) invoice(ctx context.Context, c saga.Call[order]) (string, error) {
	if err := sleepFor(ctx, 100*time.Millisecond); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.invoices[c.Work] = append(b.invoices[c.Work], c.Input.Total); b.lucky(10) {
		return "", errors.New("the answer was lost")
	}
	return "inv-" + c.Work, nil
}

func (b *old) change(_ context.Context, c saga.Call[order], id string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.invoices[c.Work][0] = c.Input.Total
	return id, nil
}

func (b *old) find(_ context.Context, c saga.Call[order]) (saga.Finding[string], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch all := b.invoices[c.Work]; {
	case b.lucky(10):
		return saga.CannotTell[string](), nil
	case len(all) == 0:
		return saga.NotFound[string](), nil
	case all[0] != c.Input.Total:
		return saga.FoundOther("inv-"+c.Work, fmt.Sprintf("it says %d and not %d", all[0], c.Input.Total)), nil
	default:
		return saga.Found("inv-" + c.Work), nil
	}
}

func (b *old) mail(_ context.Context, c saga.Call[order]) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mails[c.Work]++
	return c.Work, nil
}

func (b *old) program(stopped time.Time) saga.Program {
	steps := []saga.Step[order]{
		saga.Do("invoice", b.invoice).Find(b.find).Update(b.change).NoUndo("it is kept"),
		saga.Do("mail", b.mail).AtMostOnce().When(func(c saga.Call[order]) bool { return stopped.IsZero() || !c.WasThere("invoice") }).NoUndo("it is read"),
	}
	if !stopped.IsZero() {
		steps = append(steps, saga.TakeOver[order](stopped))
	}
	d, err := saga.Define(orderSaga, 1, steps...)
	if err != nil {
		panic(err)
	}
	return d
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// machine/T1, machine/T2: what another program may have done is asked for before the first request, when that program rests. An old script is at work until it is stopped, and what it
// sent last appears later; amends begins with all its orders meanwhile, and its process is killed again and again. No invoice and no mail
// is made twice, every invoice says what it should, and a work that the script never saw is not held back. Without TakeOver they are.
func TestAnOldProgramsWorkIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	seed, _, _ := storySeeds()
	for _, takesOver := range []bool{true, false} {
		t.Run(fmt.Sprintf("%t, AMENDS_SEED=%d", takesOver, seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const works = 200
				r := rand.New(rand.NewPCG(seed, 2))
				b := &old{rand: rand.New(rand.NewPCG(seed, 1)), invoices: map[string][]int{}, mails: map[string]int{}}
				stopped := time.Now().Add(time.Minute)
				var scripts sync.WaitGroup
				for i := range works {
					switch n := r.IntN(10); {
					case n < 4: // the script never comes to it
					case n < 5: // an amount was changed since
						b.made(order00(i), 99)
					default:
						at := time.Duration(r.IntN(60)) * time.Second
						scripts.Go(func() { time.Sleep(at); b.script(order00(i), 100) })
					}
				}
				l, cfg := memory.New(nil), config{}
				cfg.program = func(*process) saga.Program {
					if takesOver {
						return b.program(stopped)
					}
					return b.program(time.Time{})
				}
				p := boot(t, l, &world{}, cfg)
				for i := range works {
					p.begin(order00(i))
				}
				for range 20 {
					time.Sleep(time.Duration(r.IntN(10_000)) * time.Millisecond)
					p.kill()
					p = boot(t, l, &world{}, cfg)
				}
				scripts.Wait()
				twice, ends := 0, make([]saga.Summary, works)
				for i := range works {
					ends[i] = p.await(order00(i))
				}
				_ = p.halt()
				b.mu.Lock() // of a process that was killed an action may be under way still
				defer b.mu.Unlock()
				for i, s := range ends {
					work := order00(i)
					switch {
					case len(b.invoices[work]) > 1 || b.mails[work] > 1:
						twice++
					case s.Status == saga.Review && s.Reason == saga.ReasonInDoubt && len(b.invoices[work]) == 1: // a kill left it in doubt
					case s.Status != saga.Completed || b.invoices[work][0] != 100 || takesOver && b.mails[work] != 1:
						t.Errorf("%s is %s (%s) with invoices %v and %d mails", work, s.Status, s.Next, b.invoices[work], b.mails[work])
					}
				}
				if takesOver != (twice == 0) {
					t.Errorf("%d works were done twice", twice)
				}
			})
		})
	}
}

func order00(i int) string { return fmt.Sprintf("o%03d", i) }
