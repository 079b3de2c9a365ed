package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// tap stands in front of the ledger that all processes share and follows every work: what was last
// recorded of it, what it waits for, who holds it. On it the liveness checker rests: "no instance
// that a live process knows, that is due and neither paused nor behind a closed destination, is
// untouched for longer than deadline + settle + lease".
type tap struct {
	*memory.DB
	s *simulation

	mu     sync.Mutex
	traces map[saga.ID]*trace
	order  []*trace
	// How long a work of each class was left alone at most, as a part of how long it may be.
	worst map[string]float64
	begun []time.Time // when works began
	// controls are what the processes know of destinations.
	controls map[string]controlled
}

// trace is what is known of one work.
type trace struct {
	st      *machine.State
	holder  machine.Token
	unread  int
	spoken  time.Time     // when the oldest unread signal was posted
	touched time.Time     // the latest record
	stored  time.Time     // the first record
	begun   bool          // something was armed
	until   time.Time     // ledger time at which it wants attention
	due     time.Time     // the same, by a clock that never steps
	to      string        // the destination it wants to talk to then
	line    time.Duration // what standing in line may have cost since then
	ramp    time.Duration // and in the line of a destination that is back
	hurt    time.Time     // when a call of a process that held it was last in the dark, since it was touched
	told    bool          // that it is untouched was reported
}

func newTap(s *simulation) *tap {
	l := memory.New(&memory.Options{Now: s.clock.now})
	return &tap{DB: l, s: s, traces: map[saga.ID]*trace{}, worst: map[string]float64{}, controls: map[string]controlled{}}
}

// controlled is what the processes know of a destination: since when it fails, or when it was back.
type controlled struct {
	fails bool
	since time.Time
}

func (t *tap) SetControl(ctx context.Context, token machine.Token, c ledger.Control) (ledger.Control, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stored, err := t.DB.SetControl(ctx, token, c)
	if err != nil || c.Kind != ledger.ControlDestination {
		return stored, err
	}
	var h struct {
		FailingSince time.Time `json:"failureStartedAt"`
	}
	if err := json.Unmarshal(stored.Body, &h); err != nil {
		t.s.faultf("the state of %s is no JSON: %v", c.Name, err)
	}
	if is := t.controls[c.Name]; is.fails == h.FailingSince.IsZero() {
		t.controls[c.Name] = controlled{!is.fails, time.Now()}
	}
	return stored, nil
}

// simProbes is how long a destination that is open may go on to fail for the processes: three
// probes in a row, each as long after the one before as any is, that come to nothing or die with
// their processes.
const simProbes = 3 * (time.Minute + 2*simTimeout + 2*simHold)

func (t *tap) Append(ctx context.Context, token machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	as, err := t.DB.Append(ctx, token, es)
	if err != nil {
		return as, err
	}
	for i := range es {
		if as[i].Result == ledger.Appended {
			t.follow(&es[i], as[i])
		}
	}
	return as, nil
}

// follow folds a record that was stored.
func (t *tap) follow(e *ledger.Entry, a ledger.Answer) {
	w := t.traces[e.ID]
	if w == nil {
		w = &trace{st: &machine.State{ID: e.ID}, stored: time.Now()}
		t.traces[e.ID], t.order = w, append(t.order, w)
	}
	r := e.Record
	r.At = a.At
	if err := w.st.Apply(&r); err != nil {
		t.s.faultf("a record was stored that its own fold refuses: %v", err)
		return
	}
	w.touched, w.line, w.ramp, w.hurt = time.Now(), 0, 0, time.Time{}
	w.unread = max(0, w.unread-len(r.Signals))
	w.spoken = time.Now()
	if e.Schedule != nil || r.Seq == 1 {
		w.holder = 0
		if e.Schedule != nil && e.Schedule.Hold && r.Status.Live() {
			w.holder = r.Session
		}
	}
	if r.Dispatch != nil && !w.begun {
		w.begun = true
		t.begun = append(t.begun, time.Now())
	}
	t.look(w)
	// Who was told the time before the clock stepped forward cannot tell how much of a wait is over, and waits for as long as it stepped besides.
	if leap, recorded := t.s.clock.leap(), time.Now().Add(r.Wait); leap > 0 && recorded.After(w.due) && recorded.Sub(w.due) <= leap+simTimeout+simSettle {
		w.until, w.due = t.s.clock.now().Add(r.Wait), recorded
	}
}

// look asks the machine itself when the work wants attention, and whom it wants to talk to then.
func (t *tap) look(w *trace) {
	now := t.s.clock.now()
	w.until, w.due, w.to = now, time.Now(), ""
	spec := t.s.spec(versionOf(w.st))
	at := now
	for range 3 {
		d, err := machine.Decide(spec, w.st, machine.Event{Now: machine.Moment{Earliest: at, Latest: at}, Slot: true})
		switch {
		case err != nil:
			t.s.faultf("the machine has no answer for %s: %v", w.st.ID, err)
		case d.Record != nil && d.Record.Dispatch != nil:
			w.to = destinationOf(spec, d.Record.Dispatch.Step)
		case d.Do.Do == machine.Look || d.Do.Do == machine.Slot:
			w.to = destinationOf(spec, d.Do.Step)
		case d.Record == nil && d.Do.Do == machine.Wait && d.Do.Until.After(at):
			at = d.Do.Until
			if w.until.Equal(now) {
				w.until, w.due = at, time.Now().Add(at.Sub(now))
			}
			continue
		}
		return
	}
}

func destinationOf(spec *program.Spec, step string) string {
	for i := range spec.Steps {
		if spec.Steps[i].Name == step {
			return spec.Steps[i].Destination
		}
	}
	return ""
}

func (t *tap) Claim(ctx context.Context, token machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, err := t.DB.Claim(ctx, token, c)
	for i := range got.Instances {
		if w := t.traces[got.Instances[i].ID]; w != nil {
			w.holder = token
		}
	}
	return got, err
}

func (t *tap) GiveBack(ctx context.Context, token machine.Token, works []ledger.Return) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.DB.GiveBack(ctx, token, works)
	for _, r := range works {
		if i := r.Number - 1; err == nil && i >= 0 && i < int64(len(t.order)) && t.order[i].holder == token {
			t.order[i].holder = 0
			t.aside(t.order[i], r)
		}
	}
	return err
}

// simAside is how long a work may stay away from a destination that failed it before.
const simAside = 15 * time.Minute

// aside follows a work that is given back to stay away from a destination that failed it.
func (t *tap) aside(w *trace, r ledger.Return) {
	away := r.Due.Sub(t.s.clock.now())
	if r.WaitsFor == "" || away <= 0 {
		return
	}
	if strings.TrimPrefix(r.WaitsFor, "retry:") != w.to || away > simAside {
		t.s.faultf("%s is to stay away from %s for %s, and wants %q", w.st.ID, r.WaitsFor, away, w.to)
		return
	}
	if until := time.Now().Add(away); until.After(w.due) {
		w.until, w.due = r.Due, until
	}
}

func (t *tap) Post(ctx context.Context, id saga.ID, sig machine.Signal) (ledger.Posted, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sig.Kind == machine.SignalCancel && sig.Revision == "" && t.s.broken[brokenCancel] != "" {
		return ledger.Posted{}, nil
	}
	before := t.signals(id)
	posted, err := t.DB.Post(ctx, id, sig)
	if w := t.traces[id]; w != nil && t.signals(id) > before {
		if w.unread == 0 {
			w.spoken = time.Now()
		}
		w.unread++
	}
	return posted, err
}

func (t *tap) signals(id saga.ID) int {
	sigs, err := t.Signals(context.Background(), id)
	if err != nil {
		return 0
	}
	return len(sigs)
}

// What a work may need beyond deadline + settle + lease: the poll that finds a lease at its end,
// the one that finds the work, one more when that process could not load it, and what calls and
// steps take between them.
const simSlack = 3*simPoll + time.Second

// class says in which line a work stands: what was begun must not wait for what was not.
func (w *trace) class() string {
	switch {
	case w.st.Status.Terminal():
		return "ended, spoken to"
	case w.st.Status.Parked():
		return "in review, spoken to"
	case w.st.Compensating:
		return "compensating"
	case w.begun:
		return "begun"
	default:
		return "unbegun"
	}
}

// sample looks at all works once.
func (t *tap) sample() {
	t.mu.Lock()
	defer t.mu.Unlock()
	caught, since := t.s.clock.caughtUp()
	if !caught {
		return
	}
	for _, w := range t.order {
		if !w.st.Status.Live() && w.unread == 0 || w.st.Status == saga.Paused || w.told {
			continue
		}
		if quiet, bound, why := t.quiet(w, since); quiet > 0 {
			class := w.class()
			t.worst[class] = max(t.worst[class], quiet.Seconds()/bound.Seconds())
			if quiet > bound && (class != "unbegun" || !t.s.scene.overload) {
				w.told = true
				t.s.faultf("liveness: %s (%s) is due and untouched for %s, which is longer than %s; %s\n%s", w.st.ID, class, quiet.Round(time.Second), bound, why, t.tail(w))
			}
		}
	}
}

// tail tells the head and the last records of a work.
func (t *tap) tail(w *trace) string {
	heads, err := ledger.First(context.Background(), t, ledger.Filter{Saga: w.st.ID.Saga, Work: w.st.ID.Work})
	rs, herr := t.History(context.Background(), w.st.ID)
	if err != nil || herr != nil || len(heads) != 1 {
		return "it cannot be read"
	}
	h := &heads[0]
	b := fmt.Sprintf("    due %s, version %d, now %s by the ledger\n", clock(h.Due), h.Version, clock(t.s.clock.now()))
	for _, r := range rs[max(0, len(rs)-4):] {
		b += fmt.Sprintf("    %s %3d %s %s %s %d, wait %s, %q\n", clock(r.At), r.Seq, r.Session, r.Kind, r.Step, r.Attempt, r.Wait, r.Said())
	}
	return b
}

// quiet is for how long a work has been left alone although a process should have moved it, and for
// how long that may be.
func (t *tap) quiet(w *trace, since time.Time) (quiet, bound time.Duration, why string) {
	now := time.Now()
	if w.until.After(t.s.clock.now()) { // no process finds it yet, also where the clock went back since
		w.due = later(w.due, now)
	}
	due := w.due
	if !w.st.Status.Live() || w.unread > 0 && w.spoken.Before(due) && !attempting(w.st) {
		due = w.spoken
	}
	bound = simTimeout + simSettle + simLease + simSlack
	known, ok := t.s.known(ledger.Version{Saga: w.st.ID.Saga, Version: w.st.Version}, w.st.Status.Terminal())
	if !ok {
		return 0, bound, ""
	}
	from := slices.MaxFunc([]time.Time{w.touched, due, since, known}, time.Time.Compare)
	if w.to != "" {
		opened, closed := t.s.sites.closed(w.to)
		if closed {
			return 0, bound, ""
		}
		from = later(from, opened)
		w.line = max(w.line, t.line(w)) // the line it came into, should that be shorter by now
		bound += w.line
		switch is := t.controls[w.to]; {
		case is.fails:
			from = later(from, is.since)
			bound += simProbes
		case !is.since.IsZero(): // one by one at least, of which some hang or ask for silence; and those that went before it are not counted any more
			from = later(from, is.since)
			w.ramp = max(w.ramp, time.Duration(t.wanting(w))*3*time.Second/2)
			bound += w.ramp
		}
	}
	holder := "no process"
	if w.holder == 0 {
		from = later(from, t.s.claimant(versionOf(w.st), w.st.Status.Terminal()))
	}
	if m := t.s.owner(w.holder); m != nil {
		holder = m.name
		dark, last := m.link.disturbed()
		well, ok := m.healthy()
		if ok && dark {
			w.hurt = now
			return 0, bound, "" // that the call comes back is another rule's business
		}
		if !ok || well.After(from) {
			// Out of order now or in between, it renews its lease until something else has had no
			// answer for a lease, with a renewal between to see that, and the lease that it renewed
			// last has to end. Then another one has to be there.
			free := from.Add(2*simLease + simLease/3)
			from = later(free, t.s.claimant(versionOf(w.st), w.st.Status.Terminal()))
		}
		if ok {
			w.hurt = later(w.hurt, last)
		}
	}
	from = later(from, w.hurt)
	return now.Sub(from), bound, fmt.Sprintf("it is %s, held by %s, %d signals unread, wants %q since %s", w.st.Status, holder, w.unread, w.to, from.Format(time.TimeOnly))
}

// line is how long a work may have to stand in line for a destination that takes a bounded number
// at a time: everything that was begun goes before it, and new works have their share.
func (t *tap) line(w *trace) time.Duration {
	limit := t.s.scene.limits[w.to]
	if limit.Concurrent == 0 {
		return 0
	}
	ahead := t.wanting(w)
	each := (t.s.sites.byName[w.to].think + time.Duration(t.s.scene.rules.trouble*float64(simTimeout+simSettle))) / time.Duration(limit.Concurrent)
	each += time.Duration(t.s.scene.rules.trouble * float64(time.Second)) // one hurt in eight has all wait for up to eight seconds
	if limit.PerSecond > 0 {
		each = max(each, time.Duration(float64(time.Second)/limit.PerSecond))
	}
	// Three that nobody answers keep their slots until they have settled; and a process that dies,
	// or does not heed its end, keeps its part of the limit for a lease and as long as its last
	// request.
	return 3*time.Duration(ahead)*each + 3*(simTimeout+simSettle) + simLease + simTimeout + simSettle
}

// wanting is how many works want the destination of w, itself among them, that may go before it.
func (t *tap) wanting(w *trace) (n int) {
	for _, o := range t.order {
		if o.to == w.to && o.st.Status.Live() && (o.begun || !w.begun) {
			n++
		}
	}
	return n
}

func attempting(st *machine.State) bool {
	return slices.ContainsFunc(st.Steps, func(ss machine.StepState) bool {
		return ss.Forward.Phase == machine.Started || ss.Undo.Phase == machine.Started
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// progress reports how many works began within the last span, and how many wait to begin that a
// live process knows.
func (t *tap) progress(span time.Duration) (begun, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := time.Now().Add(-span)
	for _, at := range t.begun {
		if at.After(after) {
			begun++
		}
	}
	for _, w := range t.order {
		since, ok := t.s.known(ledger.Version{Saga: w.st.ID.Saga, Version: w.st.Version}, false)
		if ok && since.Before(after) && !w.begun && w.st.Status.Live() && w.stored.Before(after) {
			waiting++
		}
	}
	return begun, waiting
}
