package flow

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// follows is the sequential model of a destination's health, as docs/destinations.md draws it: the states that an event may lead to.
var follows = map[string]map[string][]string{
	Healthy: {"served": {Healthy}, "failed": {Healthy, Failing}, "held back": {Limited}, "paused": {Paused}, "resumed": {Healthy}, "tried": {Healthy}, "time": {Healthy, Failing}},
	Limited: {"served": {Limited}, "failed": {Limited}, "held back": {Limited}, "paused": {Paused}, "resumed": {Limited}, "tried": {Failing}, "time": {Limited, Healthy, Failing}},
	Failing: {"served": {Healthy}, "failed": {Failing}, "held back": {Limited}, "paused": {Paused}, "resumed": {Failing}, "tried": {Failing}, "time": {Failing}},
	Paused:  {"served": {Paused}, "failed": {Paused}, "held back": {Paused}, "paused": {Paused}, "resumed": {Healthy, Limited, Failing}, "tried": {Paused}, "time": {Paused}},
}

const (
	modelTimeout = 5 * time.Second
	modelSettle  = 15 * time.Second
	modelLease   = 5 * time.Second
)

// event is one of a history: what happens, to which process or request, and a number more.
type event struct {
	what string
	who  int
	n    int
}

var events = []string{"want", "want", "want", "served", "served", "failed", "failed", "hangs", "hangs", "held back", "claim", "claim", "claim", "beat", "time", "paused", "resumed", "tried", "kill", "kill", "stop", "begin"}

// fleet is processes that send to one destination with a limit, and what is at work there.
type fleet struct {
	t      *testing.T
	ledger *memory.DB
	limit  Limit
	number int64 // of instances, and of what people said
	alive  []*process
	begun  int
	wants  []*wish
	ghosts []time.Time // until when what dead processes sent may be at work
	silent []time.Time // and what had no answer, and is not awaited any more
}

// process is one process of a fleet.
type process struct {
	flow  *Flow
	lease *lease
	to    *Destination
	loads []func() // what is told of chains that were claimed, when they are loaded
}

// wish is an instance that wants to send: it stands in a process's line, waits in the ledger, or has been sent.
type wish struct {
	of     *process // nil: it waits in the ledger
	turn   *turn
	rank   Rank
	sent   time.Time
	due    time.Time
	came   time.Time // in line
	orphan bool      // its process is dead, and its chain was not claimed yet
	by     string    // the dead session that its chain says armed it last
	until  time.Time // when that has settled
}

func (f *fleet) begin() {
	if len(f.alive) == 3 {
		return
	}
	l, err := f.ledger.OpenSession(f.t.Context(), 1000*time.Hour, "", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	s := newLease(f.t, l.Token)
	m := &process{lease: s}
	m.flow = New(Config{
		Ledger: f.ledger, Asked: func(error) {}, Limits: map[string]Limit{"books": f.limit}, Hold: 3 * time.Second, Room: 20, Wake: func() {}, Recall: func(string, bool) {},
		Now:     func() machine.Moment { return machine.Moment{Earliest: time.Now(), Latest: time.Now()} },
		Changed: func(string, string, string, Health) {}, Paused: func(string, *saga.Actor) {},
	})
	m.flow.Sends("books", "sync/1", modelTimeout, modelTimeout+modelSettle)
	m.to = m.flow.Destination("books")
	m.flow.Opened(s)
	f.alive, f.begun = append(f.alive, m), f.begun+1
	synctest.Wait()
	f.beat()
}

// beat is a heartbeat of each process.
func (f *fleet) beat() {
	var live []machine.Token
	for _, m := range f.alive {
		live = append(live, m.lease.token)
	}
	for _, m := range f.alive {
		m.load()
		m.flow.Lives(m.flow.Sharers(), live)
		f.hear()
	}
}

// hear has each process read what the others set.
func (f *fleet) hear() {
	for range 3 {
		pass(15 * time.Millisecond) // who loses a compare-and-set tries again after ten
		synctest.Wait()
		_, newest, err := f.ledger.Controls(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, m := range f.alive {
			m.flow.Heard(m.lease, newest)
		}
	}
	f.sort()
}

// end ends a process: what it had sent goes on without it.
func (f *fleet) end(m *process, stops bool) {
	if stops {
		for _, w := range slices.Clone(f.wants) {
			if w.of == m && !w.sent.IsZero() {
				f.answer(w, "served")
			}
		}
		m.flow.Depart(f.t.Context(), m.lease)
	}
	m.lease.end()
	f.alive = slices.DeleteFunc(f.alive, func(o *process) bool { return o == m })
	for _, w := range f.wants {
		if w.of == m {
			if w.orphan = true; !w.sent.IsZero() {
				w.by, w.until = m.lease.token.String(), w.sent.Add(modelTimeout+modelSettle)
				f.ghosts = append(f.ghosts, w.until)
			}
			w.of, w.turn, w.sent = nil, nil, time.Time{}
		}
	}
	f.pass(modelLease) // until then its session lives
	f.beat()
}

// want has a new instance want to send.
func (f *fleet) want(m *process, n int) {
	f.number++
	w := &wish{rank: Rank{Number: f.number, Of: new(int), Left: n % 3, Back: n%7 == 0, Came: n%2 == 0}}
	f.wants = append(f.wants, w)
	f.join(m, w)
}

func (f *fleet) join(m *process, w *wish) {
	w.of, w.turn, w.came = m, m.to.join(w.rank), time.Now()
	f.sort()
}

// sort looks whose turn has come, and who was turned away.
func (f *fleet) sort() {
	synctest.Wait()
	for _, w := range f.wants {
		if w.turn == nil {
			continue
		}
		select {
		case <-w.turn.over:
			if w.turn.taken {
				w.sent, w.by = time.Now(), ""
			} else if w.of = nil; w.rank.Hung {
				w.due = time.Now().Add(30 * time.Second)
			}
			w.turn = nil
		default:
		}
	}
}

// load loads what was claimed.
func (m *process) load() {
	for _, told := range m.loads {
		told()
	}
	m.loads = nil
}

// claim has a process take what waits in the ledger, as much as it has room for. A slow one loads it later.
func (f *fleet) claim(m *process, slow bool) {
	rooms, dead := m.flow.Rooms(10), m.flow.Dead()
	before, orphans := len(f.wants), 0
	for _, w := range f.wants {
		if w.orphan && orphans < 10 {
			if by, until := w.by, w.until; by != "" {
				m.loads = append(m.loads, func() { m.flow.UnderWay("books", by, until) })
			}
			w.orphan = false
			f.join(m, w)
			orphans++
		}
	}
	for _, k := range []kind{fresh, again} {
		n := rooms[lineOf("books", k)]
		for _, w := range f.wants {
			if w.of == nil && !w.orphan && !time.Now().Before(w.due) && w.rank.kind() == k && n > 0 {
				f.join(m, w)
				n--
				before--
			}
		}
	}
	if before == len(f.wants) {
		m.flow.NothingWaits(rooms)
	}
	m.loads = append(m.loads, func() {
		if orphans < 10 {
			m.flow.Searched(dead, true)
		}
	})
	if !slow {
		m.load()
		f.hear()
	}
}

// answer ends a request: it is served, it fails, it has no answer, or the destination wants to be left alone.
func (f *fleet) answer(w *wish, how string) {
	d := w.of.to
	used := time.Since(w.sent)
	switch how {
	case "served":
		d.Answered(used)
		f.wants = slices.DeleteFunc(f.wants, func(o *wish) bool { return o == w })
	case "held back":
		d.Hush(20*time.Second, "429")
	case "hangs":
		d.FailedBy(Failure{Number: w.rank.Number, Rank: w.rank, Why: "no answer"})
		d.Linger(time.Now().Add(modelSettle))
		f.silent = append(f.silent, time.Now().Add(modelSettle))
		w.rank.Hung = true
	default:
		d.FailedBy(Failure{Number: w.rank.Number, Rank: w.rank, Why: "500"})
	}
	d.Release(w.rank, used)
	w.of, w.sent, w.rank.Again = nil, time.Time{}, true
	f.sort()
}

// person has a person say something.
func (f *fleet) person(what string) {
	for {
		f.number++
		all, _, err := f.ledger.Controls(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		c := ledger.Control{Kind: ledger.ControlDestination, Name: "books"}
		for i := range all {
			if all[i].Kind == c.Kind {
				c = all[i]
			}
		}
		by := saga.Actor{Name: "anna", Reason: "a test"}
		if h, _ := HealthOf(&c); what == "tried" && h.PausedBy != "" {
			return
		}
		if what == "tried" {
			err = SetProbe(&c, time.Now())
		} else {
			err = SetPause(&c, by, what == "paused")
		}
		c.Actor, c.Reason, c.Nonce = by.Name, by.Reason, f.number
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err = f.ledger.SetControl(context.Background(), 0, c); err == nil {
			break
		}
	}
	f.hear()
}

// state is where the destination stands, for all processes.
func (f *fleet) state() string {
	all, _, _ := f.ledger.Controls(f.t.Context())
	for i := range all {
		if h, err := HealthOf(&all[i]); err == nil && all[i].Kind == ledger.ControlDestination {
			return h.State(machine.Moment{Earliest: time.Now(), Latest: time.Now()})
		}
	}
	return Healthy
}

// pass lets time pass, virtually.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // virtual

// do has one event happen. It returns the event of the table that it was; empty: none.
func (f *fleet) do(e event) string {
	var sent []*wish
	for _, w := range f.wants {
		if w.of != nil && !w.sent.IsZero() {
			sent = append(sent, w)
		}
	}
	if e.what == "begin" || len(f.alive) == 0 {
		f.begin()
		return ""
	}
	m := f.alive[e.who%len(f.alive)]
	switch e.what {
	case "want":
		f.want(m, e.n)
	case "claim":
		f.claim(m, e.n%2 == 1)
	case "beat":
		f.beat()
	case "kill", "stop":
		f.end(m, e.what == "stop")
		if e.what == "stop" { // what it had under way is served
			return "served"
		}
		return "time"
	case "paused", "resumed", "tried":
		f.person(e.what)
		return e.what
	case "time":
		f.pass(time.Duration(e.n%10+1) * time.Second)
		return "time"
	default:
		if len(sent) == 0 {
			return ""
		}
		f.answer(sent[e.who%len(sent)], e.what)
		f.hear()
		if e.what == "hangs" {
			return "failed"
		}
		return e.what
	}
	return ""
}

// pass lets time pass; what has no answer at its deadline has none.
func (f *fleet) pass(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		pass(time.Second)
		for _, w := range slices.Clone(f.wants) {
			if w.of != nil && !w.sent.IsZero() && time.Since(w.sent) >= modelTimeout {
				f.answer(w, "hangs")
			}
		}
		f.hear()
		f.weary()
	}
}

// weary has those ask who wait in line for long.
func (f *fleet) weary() {
	for _, w := range f.wants {
		if w.turn != nil && time.Since(w.came) >= 3*time.Second {
			w.of.to.weary(w.turn)
			w.came = time.Now()
		}
	}
	f.sort()
}

// open counts what goes on.
func open(until []time.Time) (n int) {
	for _, t := range until {
		if t.After(time.Now()) {
			n++
		}
	}
	return n
}

// judge says which rule is broken.
func (f *fleet) judge(was string, e event, as string) string {
	running := 0
	for _, w := range f.wants {
		if w.of != nil && !w.sent.IsZero() {
			running++
		}
	}
	running += open(f.ghosts)
	settling, n := open(f.silent), f.limit.Concurrent
	quarter := (n + 3) / 4
	if f.begun > 1 && n > 1 { // each holds no more than its own parts say
		quarter = 0
	}
	if n > 0 && running+min(settling, quarter) > n {
		return fmt.Sprintf("%d run and %d settle, where %d are borne", running, settling, n)
	}
	is := f.state()
	if may := follows[was][as]; as != "" && !slices.Contains(may, is) && !(e.what == "stop" && slices.Contains(follows[was]["time"], is)) || as == "" && is != was && !slices.Contains(follows[was]["time"], is) {
		return fmt.Sprintf("%s (%s) led from %s to %s; it may lead to %q", e.what, as, was, is, may)
	}
	return ""
}

// play plays a history, and says what went wrong; empty: nothing.
func play(t *testing.T, limit Limit, history []event) (fault string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, ledger: memory.New(nil), limit: limit}
		f.begin()
		for i, e := range history {
			was := f.state()
			sent := map[*wish]bool{}
			for _, w := range f.wants {
				sent[w] = !w.sent.IsZero()
			}
			as := f.do(e)
			if fault = f.judge(was, e, as); fault == "" && was == Paused && f.state() == Paused {
				for _, w := range f.wants {
					if w.of != nil && !w.sent.IsZero() && !sent[w] {
						fault = fmt.Sprintf("something was sent while a person holds it: %+v", w.of.to.health)
					}
				}
			}
			if fault != "" {
				fault = fmt.Sprintf("event %d: %s", i, fault)
				return
			}
		}
		if fault = f.heals(); fault != "" {
			return
		}
		for _, m := range f.alive {
			m.lease.end()
		}
	})
	return fault
}

// heals says whether everything ends once the destination serves again.
func (f *fleet) heals() string {
	if f.state() == Paused {
		f.person("resumed")
	}
	for round := 0; len(f.wants) > 0; round++ {
		if round > 2000 {
			w := f.wants[0]
			what := fmt.Sprintf("%d of which nothing comes, though it would be served: %s, %+v", len(f.wants), f.state(), w.rank)
			for _, m := range f.alive {
				what += fmt.Sprintf("\n%t %s: parts %v, %d run, %d settle, more %v, %d in line, share %+v", w.of == m, m.lease.token, m.to.parts, m.to.running, m.to.settling, m.to.more, len(m.to.line), m.to.share)
			}
			return what
		}
		if len(f.alive) == 0 {
			f.begin()
		}
		if round%5 == 0 {
			f.beat()
		}
		for _, m := range f.alive {
			f.claim(m, false)
		}
		for _, w := range slices.Clone(f.wants) {
			if w.of != nil && !w.sent.IsZero() {
				f.answer(w, "served")
			}
		}
		f.hear()
		f.weary()
		pass(time.Second)
	}
	return ""
}

// Rule: whatever history, a destination's health follows the table; what may be at work is within the limit, of all processes and
// of those that died; what a person holds is not sent; and once it serves, everything that waits is sent.
func TestFlowFollowsItsModel(t *testing.T) {
	t.Parallel()
	for range 10 { // times the checks that rapid makes
		rapid.Check(t, func(rt *rapid.T) {
			history := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
				return event{rapid.SampledFrom(events).Draw(t, "what"), rapid.IntRange(0, 5).Draw(t, "who"), rapid.IntRange(0, 9).Draw(t, "n")}
			}), 1, 60).Draw(rt, "history")
			limit := Limit{Concurrent: rapid.SampledFrom([]int{1, 1, 2, 3, 4, 0}).Draw(rt, "limit")}
			if fault := play(t, limit, history); fault != "" {
				rt.Fatal(fault)
			}
		})
	}
}

// Rule: docs/destinations.md says what the model says.
func TestThePageSaysWhatTheModelSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/destinations.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+) \| ([\w ]+) \| ([\w, ]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		if follows[row[1]] == nil {
			continue
		}
		if said[row[1]] == nil {
			said[row[1]] = map[string][]string{}
		}
		said[row[1]][row[2]] = strings.Split(row[3], ", ")
	}
	for from, events := range follows {
		for event, to := range events {
			want := to
			if got := said[from][event]; event == "paused" && slices.Equal(to, []string{Paused}) || got == nil && slices.Equal(to, []string{from}) {
				continue
			} else if !slices.Equal(got, want) {
				t.Errorf("%s, %s: the page says %q, the model %q", from, event, got, want)
			}
		}
	}
}
