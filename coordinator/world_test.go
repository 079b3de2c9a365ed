package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/saga"
)

// order is the input of the canonical saga.
type order struct {
	Customer string
	Total    int
	Memo     string
}

// thing is what a destination answers.
type thing struct {
	ID   string
	Memo string `json:",omitempty"`
}

func (t thing) ExternalID() string { return t.ID }

// world is the outside: one destination for each kind of step. It counts what takes effect, and
// outlives every process that talks to it.
//
//	customer  an upsert by the customer's name: repeating changes nothing
//	invoice   every request makes a new one; can be asked by work id
//	mark      remembers keys and answers a repetition with the first result
//	receipt   every request is a mail; cannot be asked
type world struct {
	mu       sync.Mutex
	arrivals []arrival
	effects  []*outcome
	plan     func(arrival) fault           // what goes wrong; nil: nothing
	judge    func(arrival) string          // says why a request must not be here
	asked    func(step, work string) error // what goes wrong with a lookup; nil: nothing
	illegal  []string                      // what judge said
	orders   []string                      // works that somebody should start
	pending  sync.WaitGroup                // requests and late effects on their way
}

// arrival is one request that reached its destination. n counts the arrivals of the same step and
// direction of the same work, from 1.
type arrival struct {
	work, step string
	dir        saga.Direction
	key        string
	attempt, n int
	customer   string
	target     string // the external id an undo speaks of; "": it goes by the key
	made       string // the key under which the step was sent
	at         time.Time
}

func (a arrival) String() string {
	return fmt.Sprintf("%s %s of %s, attempt %d, key %s", a.step, a.dir, a.work, a.attempt, a.key)
}

// outcome is one thing that exists at a destination because of us.
type outcome struct {
	step, work, key, id string
	undone              bool
	cause               arrival   // the request that made it
	at                  time.Time // when it took effect
}

// fault says what happens to one request. The zero value: it takes effect and is answered.
type fault struct {
	think   time.Duration // it lies at the destination that long before anything else happens
	refuse  bool          // 4xx: no effect, for good
	unsent  bool          // refused connection: provably no effect
	after   time.Duration // with unsent: 429, Retry-After; with cut: the effect is there, and the answer asks for silence
	drop    bool          // lost on the way: no effect, no answer
	mute    bool          // takes effect, no answer
	cut     bool          // takes effect, the connection breaks at once
	broken  bool          // takes effect, is answered with a 500
	slow    time.Duration // takes effect, is answered after that long
	ignore  bool          // with slow: the action does not notice that its context has ended
	late    time.Duration // no answer; takes effect after that long
	explode bool          // the action panics after the effect
}

var (
	errRefused  = errors.New("422 the destination says no")
	errNoRoute  = errors.New("connection refused")
	errCut      = errors.New("connection reset by peer")
	errBroken   = errors.New("500 the destination broke down")
	errTooBusy  = errors.New("429 too many requests")
	errDead     = errors.New("the process is dead")
	errNoAnswer = errors.New("no answer")
)

// request is what a process sends. It returns what the destination answers.
func (w *world) request(ctx context.Context, a arrival) (thing, error) {
	w.pending.Add(1)
	defer w.pending.Done()
	f := w.arrive(&a)
	defer w.ask(a) // afterwards: the question takes its time, and the effect must not
	if f.think > 0 {
		<-time.After(f.think)
	}
	switch {
	case f.unsent && f.after > 0:
		return thing{}, saga.HoldBack(saga.RetryAfter(f.after, saga.NotSent(errTooBusy)))
	case f.unsent:
		return thing{}, saga.NotSent(errNoRoute)
	case f.refuse:
		return thing{}, saga.Permanent(errRefused)
	case f.drop:
		<-ctx.Done()
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	case f.late > 0:
		w.pending.Add(1)
		time.AfterFunc(f.late, func() { defer w.pending.Done(); w.take(a) })
		<-ctx.Done()
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	}
	id := w.take(a)
	switch {
	case f.explode:
		panic("the action blew up")
	case f.cut && f.after > 0:
		return thing{}, saga.HoldBack(saga.RetryAfter(f.after, errTooBusy))
	case f.cut:
		return thing{}, errCut
	case f.broken:
		return thing{}, saga.Answered(errBroken)
	case f.mute:
		<-ctx.Done()
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	case f.slow > 0:
		t := time.NewTimer(f.slow)
		defer t.Stop()
		gone := ctx.Done()
		if f.ignore {
			gone = nil
		}
		select {
		case <-t.C:
		case <-gone:
			return thing{}, errors.Join(errNoAnswer, ctx.Err())
		}
	}
	return thing{ID: id}, nil
}

// pass lets virtual time go by. It is for tests in a synctest bubble, whose clock starts with the
// year 2000; real time is never slept away.
func pass(d time.Duration) {
	if time.Now().Year() > 2020 {
		panic("pass is for virtual time: wait for what you wait for")
	}
	time.Sleep(d) //nolint:forbidigo // virtual
}

// arrive notes the request and says what becomes of it.
func (w *world) arrive(a *arrival) fault {
	w.mu.Lock()
	a.n, a.at = 1, time.Now()
	for _, b := range w.arrivals {
		if b.work == a.work && b.step == a.step && b.dir == a.dir {
			a.n++
		}
	}
	w.arrivals = append(w.arrivals, *a)
	plan := w.plan
	w.mu.Unlock()
	if plan == nil {
		return fault{}
	}
	return plan(*a)
}

// ask has the request judged.
func (w *world) ask(a arrival) {
	if w.judge == nil {
		return
	}
	if why := w.judge(a); why != "" {
		w.mu.Lock()
		w.illegal = append(w.illegal, why)
		w.mu.Unlock()
	}
}

// take carries the request out, as its kind of destination does.
func (w *world) take(a arrival) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.dir == saga.Undo {
		for _, e := range w.effects {
			if e.step == a.step && (a.target == "" && (e.key == a.made || e.key == "lost" && e.work == a.work) || a.target != "" && e.work == a.work && e.id == a.target) {
				e.undone = true
			}
		}
		return ""
	}
	for _, e := range w.effects {
		if a.step == "customer" && e.step == a.step && e.work == a.customer || a.step == "mark" && e.key == a.key {
			return e.id
		}
	}
	e := &outcome{step: a.step, work: a.work, key: a.key, id: fmt.Sprintf("%s-%d", a.step, len(w.effects)+1), cause: a, at: time.Now()}
	if a.step == "customer" {
		e.work = a.customer
	}
	w.effects = append(w.effects, e)
	return e.id
}

// find answers a lookup by work id.
func (w *world) find(step, work string) []thing {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []thing
	for _, e := range w.effects {
		if e.step == step && e.work == work && !e.undone {
			found = append(found, thing{ID: e.id})
		}
	}
	return found
}

// made returns the effects of a step for a work, undone ones included.
func (w *world) made(step, work string) []outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	var made []outcome
	for _, e := range w.effects {
		if e.step == step && e.work == work {
			made = append(made, *e)
		}
	}
	return made
}

// count returns how many requests of a step and direction arrived, of all works when work is empty.
func (w *world) count(work, step string, dir saga.Direction) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.arrivals {
		if (work == "" || a.work == work) && a.step == step && a.dir == dir {
			n++
		}
	}
	return n
}

// on returns a plan that strikes the first n requests of one step and direction, of every work.
//
//nolint:unparam // which direction it strikes is to be read where it is called
func on(step string, dir saga.Direction, n int, f fault) func(arrival) fault {
	return func(a arrival) fault {
		if a.step == step && a.dir == dir && a.n <= n {
			return f
		}
		return fault{}
	}
}
