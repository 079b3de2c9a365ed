package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// The times of the simulated fleet. An attempt has four seconds, settles within three, and a lease
// is six.
const (
	simTimeout = 4 * time.Second
	simSettle  = 3 * time.Second
	simLease   = 6 * time.Second
	simPoll    = time.Second
	simHold    = 2 * time.Second
)

const parcelSaga = "parcel"

// member is one process of a simulated fleet: a coordinator, its way to the ledger and its way to
// the destinations.
type member struct {
	*coordinator.Coordinator
	s     *simulation
	name  string
	knows []ledger.Version
	link  *link
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	dead    bool
	halting bool
	asleep  chan struct{} // closed when the process wakes; nil: it is awake
	sickTil time.Time     // until then its way to the ledger is out of order
	well    time.Time     // since when nothing has been wrong with it
	err     error         // of Run, once ended is closed
}

// versions of definitions, as roles of processes in a deploy.
var (
	orders1  = ledger.Version{Saga: orderSaga, Version: 1}
	orders2  = ledger.Version{Saga: orderSaga, Version: 2}
	parcels1 = ledger.Version{Saga: parcelSaga, Version: 1}
)

// limits are those of the scene. A site without one is named, too, because a step that names
// another is refused.
func (s *simulation) limits() map[string]coordinator.Limit {
	if len(s.scene.limits) == 0 {
		return nil
	}
	limits := map[string]coordinator.Limit{}
	for name := range s.sites.byName {
		limits[name] = s.scene.limits[name]
	}
	return limits
}

// join starts a process that knows the given definitions.
func (s *simulation) join(knows ...ledger.Version) {
	s.mu.Lock()
	s.born++
	name := fmt.Sprintf("p%d", s.born)
	s.mu.Unlock()
	m := &member{s: s, name: name, knows: knows, ended: make(chan struct{}), well: time.Now()}
	m.link = &link{Ledger: s.tap, m: m}
	o := coordinator.Options{
		Lease: simLease, Poll: simPoll, Hold: simHold, Drain: 10 * time.Second, Label: m.name, Log: silent(),
		MaxWorks: s.scene.maxWorks, Destinations: s.limits(),
	}
	c, err := coordinator.New(m.link, &o)
	if err != nil {
		s.t.Fatal(err)
	}
	m.Coordinator = c
	s.mu.Lock()
	s.members = append(s.members, m)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() {
		defer close(m.ended)
		m.run(ctx)
	}()
}

// run is a process's main: it registers what it knows, as often as that takes, and runs.
func (m *member) run(ctx context.Context) {
	for _, v := range m.knows {
		for {
			try, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := m.Register(try, m.program(v))
			cancel()
			if err == nil || ctx.Err() != nil {
				break
			}
			<-time.After(time.Second)
		}
	}
	err := m.Run(ctx)
	m.mu.Lock()
	m.err = err
	unasked := !m.dead && !m.halting
	m.mu.Unlock()
	if unasked {
		m.s.faultf("Run of %s ended although it was not stopped: %v", m.name, err)
	}
}

func (m *member) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// kill ends the process as kill -9 does: nothing it does from now on has an effect.
func (m *member) kill() {
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	m.wake()
	m.stop()
}

// halt stops the process gracefully.
func (m *member) halt() {
	m.mu.Lock()
	m.halting = true
	m.mu.Unlock()
	m.stop()
}

// sleep stalls the process as SIGSTOP does: its calls and its requests stand still, its clocks do
// not.
func (m *member) sleep(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asleep != nil || m.dead {
		return
	}
	m.asleep = make(chan struct{})
	time.AfterFunc(d, m.wake)
}

func (m *member) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asleep != nil {
		close(m.asleep)
		m.asleep, m.well = nil, time.Now()
	}
}

// awake stands still while the process does.
func (m *member) awake() {
	for {
		m.mu.Lock()
		c := m.asleep
		m.mu.Unlock()
		if c == nil {
			return
		}
		<-c
	}
}

// ail notes that the process's way to the ledger is out of order for a while.
func (m *member) ail(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until := time.Now().Add(d); until.After(m.sickTil) {
		m.sickTil, m.well = until, until
	}
}

// healthy reports since when the process has been able to do its work.
func (m *member) healthy() (since time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.well, !m.dead && !m.halting && m.asleep == nil && !m.sickTil.After(time.Now())
}

// knowsVersion reports whether the process knows a version of a definition; orNewer, or a newer
// one, as is enough to read what is said to a work that has ended.
func (m *member) knowsVersion(v ledger.Version, orNewer bool) bool {
	return slices.ContainsFunc(m.knows, func(k ledger.Version) bool {
		return k.Saga == v.Saga && (k.Version == v.Version || orNewer && k.Version > v.Version)
	})
}

// send is how the actions of a process reach their destination.
func (m *member) send(ctx context.Context, c saga.Call[order], dir saga.Direction, to, target string) (thing, error) {
	m.awake()
	if err := c.Sending(); err != nil {
		return thing{}, err
	}
	if m.isDead() {
		return thing{}, errDead
	}
	r := &request{
		id: saga.ID{Saga: c.Saga, Work: c.Work}, step: c.Step, dir: dir, key: c.Key, attempt: c.Attempt, revision: c.Revision,
		memo: c.Input.Memo, target: target, from: m,
	}
	answer, err := m.s.sites.send(ctx, r, to, simSettle)
	m.awake()
	if m.isDead() {
		return thing{}, errDead
	}
	return answer, err
}

// step is one step of a simulated saga; its repeat and its undo are said by the caller.
func (m *member) step(name, to string) *saga.Action[order, thing] {
	settle := simSettle
	if m.s.broken[brokenSettle] != "" {
		settle = time.Millisecond
	}
	return saga.Do(name, func(ctx context.Context, c saga.Call[order]) (thing, error) {
		if m.s.broken[brokenPoison] != "" && name == "invoice" {
			c.ExternalID("a step that does not exist")
		}
		return m.send(ctx, c, saga.Forward, to, c.PreviousID())
	}).To(to).Timeout(simTimeout).Settle(settle).Retry(saga.Retry{Initial: 500 * time.Millisecond, Max: 8 * time.Second, Attempts: 500})
}

// back undoes what a step made and is on record.
func (m *member) back(to string) func(context.Context, saga.Call[order], thing) error {
	return func(ctx context.Context, c saga.Call[order], made thing) error {
		_, err := m.send(ctx, c, saga.Undo, to, made.ID)
		return err
	}
}

// maybe undoes whatever a step made for a work, known or not.
func (m *member) maybe(to string) func(context.Context, saga.Call[order], *thing) error {
	return func(ctx context.Context, c saga.Call[order], made *thing) error {
		target := ""
		if made != nil {
			target = made.ID
		}
		_, err := m.send(ctx, c, saga.Undo, to, target)
		return err
	}
}

// find is a lookup.
func (m *member) find(_ context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
	m.awake()
	if m.isDead() {
		return saga.Finding[thing]{}, errDead
	}
	return m.s.sites.find(c, saga.ID{Saga: c.Saga, Work: c.Work})
}

// program is a definition in the hands of this process. The order has a step of each kind, its
// second version two more; the parcel begins with something that may be asked about and must not be
// sent again.
func (m *member) program(v ledger.Version) saga.Program {
	var d saga.Program
	var err error
	switch v {
	case parcels1:
		d, err = saga.Define(v.Saga, v.Version,
			m.step("label", "depot").AtMostOnce().Find(m.find).Undo(m.back("depot")),
			m.step("pack", "stock").Idempotent().NoUndo("it is unpacked by hand"),
			m.step("ship", "shop").Find(m.find).EachRun().Undo(m.back("shop")).Pivot(),
		)
	case orders1:
		d, err = saga.Define(v.Saga, v.Version,
			m.step("customer", "crm").Idempotent().NoUndo("customers outlive their orders"),
			m.step("invoice", "books").Find(m.find).EachRun().Undo(m.back("books")),
			m.step("mark", "shop").Keyed(keyWindow).EachRun().Find(m.find).UndoMaybe(m.maybe("shop")).Pivot(),
			m.step("receipt", "post").AtMostOnce().NoUndo("a mail cannot be taken back"),
		)
	default:
		d, err = saga.Define(v.Saga, v.Version,
			m.step("customer", "crm").Idempotent().NoUndo("customers outlive their orders"),
			m.step("stock", "stock").Idempotent().UndoMaybe(m.maybe("stock")),
			m.step("invoice", "books").Find(m.find).EachRun().Undo(m.back("books")),
			m.step("mark", "shop").Keyed(keyWindow).EachRun().Find(m.find).UndoMaybe(m.maybe("shop")).Pivot(),
			m.step("receipt", "post").AtMostOnce().NoUndo("a mail cannot be taken back"),
			m.step("notice", "post").AtMostOnce().NoUndo("a mail cannot be taken back"),
		)
	}
	if err != nil {
		m.s.t.Fatal(err)
	}
	return d
}

// tooBusy is an answer that asks everybody to stay away for a while, as 429 and 503 do.
func tooBusy(after time.Duration, err error) error { return saga.HoldBack(saga.RetryAfter(after, err)) }

var errLinkCut = errors.New("connection reset by peer")
