package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/sqlite"
)

// both runs a test on a SQLite file and on a Postgres database; open opens another handle of the ledger, on SQLite the same one.
func both(t *testing.T, do func(t *testing.T, open func() ledger.Ledger)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "l.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		do(t, func() ledger.Ledger { return db })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		do(t, func() ledger.Ledger { return openPostgres(t, url) })
	})
}

// callers call back in every way there is, for the instances of one saga.
type callers struct {
	*testing.T

	ps   []*process
	l    ledger.Ledger
	mu   sync.Mutex
	told map[string]map[string]bool // work to the bodies that were told 200
	sent int
	seed uint64
}

// A thousand callbacks of every kind come in at two processes: each that is told 200 is on record, and each wait ends once.
func TestCallbacksOfEveryKind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func() ledger.Ledger) {
		t.Helper()
		var tokens sync.Map
		var undone atomic.Int64
		c := &callers{T: t, l: open(), told: map[string]map[string]bool{}, seed: rand.Uint64()}
		t.Logf("seed %d", c.seed)
		d, err := saga.Define("job", 1,
			saga.Do("submit", func(ctx context.Context, call saga.Call[order]) (thing, error) {
				tokens.Store(call.Work, call.CallbackToken())
				if err := call.Sending(); err != nil {
					return thing{}, err
				}
				if call.Input.Total%3 == 0 { // it is answered before its request is
					c.call(ctx, call.Work, call.CallbackToken(), "film-"+call.Work)
				}
				return thing{ID: "job-" + call.Work}, nil
			}).Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { undone.Add(1); return nil }),
			saga.Await("done", func(_ saga.Call[order], m saga.Message) (thing, error) {
				switch string(m.Body[:4]) {
				case "film":
					return thing{ID: string(m.Body)}, nil
				case "boom":
					panic("a bug")
				}
				return thing{}, errors.New("it is progress")
			}).Callback("submit").Within(5*time.Second, saga.Compensate))
		if err != nil {
			t.Fatal(err)
		}
		opts := coordinator.Options{CallbackSecrets: [][]byte{farmSecret}}
		c.ps = []*process{several(t, c.l, config{opts: opts}, d), several(t, open(), config{opts: opts}, d)}
		n := 40
		if pace.AtNight() {
			n = 100
		}
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				work := fmt.Sprintf("w%03d", i)
				if _, err := c.ps[i%2].Start(t.Context(), "job", work, order{Total: i}, nil); err != nil {
					t.Error(err)
				}
				for _, known := tokens.Load(work); !known; _, known = tokens.Load(work) {
					<-time.After(5 * time.Millisecond)
				}
				token, _ := tokens.Load(work)
				c.caller(i, work, token.(string))
			})
		}
		all.Wait()
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			if got := in(t, c.l, "job"); got[saga.Completed]+got[saga.Compensated]+got[saga.Review] == n {
				t.Logf("%d callbacks: %v, %d undone", c.sent, got, undone.Load())
				break
			}
		}
		c.check(n)
		c.ps[0].kill()
		c.ps[1].kill()
	})
}

// caller calls back for one instance: what is progress, what is forged, what has the definition panic, and the answer, five times or late.
func (c *callers) caller(i int, work, token string) {
	bodies := []string{"prog-1", "prog-2", "prog-3", "prog-4", "prog-5", "prog-6"}
	switch i % 10 {
	case 1:
		bodies = append(bodies, "boom-1", "film-"+work)
	case 2: // never
	default:
		for range 5 {
			bodies = append(bodies, "film-"+work)
		}
	}
	rand.New(rand.NewPCG(c.seed, uint64(i))).Shuffle(len(bodies), func(a, b int) { bodies[a], bodies[b] = bodies[b], bodies[a] })
	if i%10 == 4 { // late
		<-time.After(8 * time.Second)
	}
	var all sync.WaitGroup
	for j, body := range bodies {
		all.Go(func() { c.call(c.Context(), work, token, body) })
		if j%3 == 0 {
			all.Go(func() {
				if _, err := c.ps[j%2].Complete(c.Context(), token+"x", []byte("film-forged")); !errors.Is(err, coordinator.ErrUnknownToken) {
					c.Errorf("a forged token: %v", err)
				}
			})
		}
	}
	all.Wait()
}

// call calls back as often as it is told to come again.
func (c *callers) call(ctx context.Context, work, token, body string) {
	for {
		c.mu.Lock()
		c.sent++
		p := c.ps[c.sent%2]
		c.mu.Unlock()
		_, err := p.Complete(ctx, token, []byte(body))
		switch {
		case errors.Is(err, coordinator.ErrDeclined), err != nil && ctx.Err() != nil: // or it hung up, and was told nothing
			return
		case err != nil && !errors.Is(err, coordinator.ErrBroken): // it was told to come again
			<-time.After(10 * time.Millisecond)
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.told[work] == nil {
			c.told[work] = map[string]bool{}
		}
		c.told[work][body] = true
		return
	}
}

// check holds that the first answer is the same for all, what was told 200 is on record, and each wait ends once.
func (c *callers) check(n int) {
	for i := range n {
		id := saga.ID{Saga: "job", Work: fmt.Sprintf("w%03d", i)}
		signals, err := c.l.Signals(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		stored := map[string]bool{}
		for j := range signals {
			stored[string(signals[j].Body)] = true
		}
		answered := stored["film-"+id.Work]
		for body := range c.told[id.Work] {
			if !stored[body] && (body[:4] != "prog" || !answered) { // behind the answer progress is acknowledged with that
				c.Errorf("%s: %q was told 200 and is not on record", id.Work, body)
			}
		}
		rs, err := c.l.History(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		ends := 0
		for j := range rs {
			if k := rs[j].Kind; rs[j].Step == "done" && (k == machine.KindAnswered || k == machine.KindAnsweredNo || k == machine.KindUnanswered) {
				ends++
			}
		}
		if review := rs[len(rs)-1].Reason; ends > 1 || ends == 0 && review != saga.ReasonPoison {
			c.Errorf("%s: its wait ended %d times, and it is %s %s", id.Work, ends, rs[len(rs)-1].Status, review)
		}
	}
}

// On Postgres an answer that comes in at a process without a coordinator reaches the one that polls once in an hour.
func TestAnAnswerReachesAnotherProcess(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	tokens, finished := make(chan string, 1), make(chan string, 1)
	d, err := saga.Define("job", 1,
		saga.Do("submit", func(_ context.Context, call saga.Call[order]) (string, error) {
			tokens <- call.CallbackToken()
			return "job_1", nil
		}).Idempotent().NoUndo("a test"),
		saga.Await("done", func(_ saga.Call[order], m saga.Message) (string, error) { return string(m.Body), nil }).
			Callback("submit").Within(24*time.Hour, saga.Compensate),
		saga.Do("finish", func(_ context.Context, call saga.Call[order]) (string, error) {
			finished <- call.ExternalID("done")
			return "finished", nil
		}).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	l := openPostgres(t, url)
	c, err := coordinator.New(l, &coordinator.Options{Poll: time.Hour, CallbackSecrets: [][]byte{farmSecret}, Log: (&lines{}).logger()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	if _, err := c.Start(t.Context(), "job", "w", order{}, nil); err != nil {
		t.Fatal(err)
	}
	token, op := <-tokens, coordinator.NewOperator(openPostgres(t, url))
	for in(t, l, "job")[saga.Waiting] == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := op.Complete(t.Context(), token, []byte("film")); err != nil {
		t.Fatal(err)
	}
	if got := <-finished; got != "film" {
		t.Errorf("the next step found %q", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
