package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/saga"
)

// node is a process of the model.
type node struct {
	name      string
	job       Job
	described bool
	row       *RunRow   // it works on this one
	trusted   time.Time // until then it may act
}

// model is two processes on one table, driven at random.
type model struct {
	*rapid.T
	table
	nodes [2]*node
	ended map[string]RunRow // as they were when they ended
	fence int64             // the highest that was seen
}

const modelLease = time.Minute

var modelTexts = []string{"*/5 * * * *", "@every 10m", "30 2 * * *", "0 */2 * * *", "@every 1m", "0 9 * * 1-5"}

func newModel(t *rapid.T) *model {
	// Around the days on which clocks change.
	day := rapid.SampledFrom([]string{"2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01", "2026-06-15"}).Draw(t, "day")
	start, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{T: t, table: table{now: start.Add(-time.Duration(rapid.IntRange(0, 86400).Draw(t, "before")) * time.Second)}, ended: map[string]RunRow{}}
	job := m.drawJob()
	for i := range m.nodes {
		m.nodes[i] = &node{name: fmt.Sprintf("node %d", i), job: job}
	}
	return m
}

func (m *model) drawJob() Job {
	return Job{
		Name: "sweep", Schedule: rapid.SampledFrom(modelTexts).Draw(m.T, "schedule"),
		Zone:    rapid.SampledFrom([]string{"", "Europe/Vienna", "America/New_York"}).Draw(m.T, "zone"),
		Overlap: rapid.SampledFrom([]Overlap{Skip, BufferOne, BufferAll}).Draw(m.T, "overlap"),
		CatchUp: time.Duration(rapid.IntRange(1, 2000).Draw(m.T, "catch up")) * time.Minute,
		Lease:   modelLease,
	}.withDefaults()
}

// turn is what worker.turn does, and what it leaves is checked.
func (m *model) turn(ctx context.Context, n *node, decide func(now time.Time, a *Agenda) error) error {
	return m.Turn(ctx, n.job.Name, func(now time.Time, a *Agenda) error {
		if !n.described {
			was := a.State
			if describe(now, &a.State, &n.job); was.Known() && was.Planned != a.State.Planned {
				m.Fatalf("a new schedule goes on at %s, the old one ended at %s", a.State.Planned, was.Planned)
			}
		}
		before := *a
		before.Open = append([]RunRow(nil), a.Open...)
		text, err := Parse(a.State.Schedule, a.State.Zone)
		if err != nil {
			m.Fatal(err)
		}
		plan(now, a, text)
		m.checkPlan(now, &before, a)
		if err := decide(now, a); err != nil {
			return err
		}
		n.described = true
		return nil
	})
}

// checkPlan holds the rules of planning against an enumeration, and that no instant is
// planned twice or left out.
func (m *model) checkPlan(now time.Time, before, a *Agenda) {
	text, err := Parse(a.State.Schedule, a.State.Zone)
	if err != nil {
		m.Fatal(err)
	}
	if before.State.Paused.Is() || before.Halt.Is() {
		if len(a.New) > 0 || a.State.Planned != before.State.Planned {
			m.Fatalf("planned while paused: %+v", a.New)
		}
		return
	}
	at, runs := before.State.Planned, 0
	horizon := now.Add(-a.State.CatchUp)
	for _, r := range a.New {
		count := int64(0)
		for first := true; at.Before(r.At); first = false {
			at, count = text.Next(at), count+1
			if first && !at.Equal(r.From) {
				m.Fatalf("the row %+v begins elsewhere than after the last one, at %s", r, at)
			}
		}
		if !at.Equal(r.At) || r.Instant != text.Instant(r.At) || r.Instants != min(count, countMost) {
			m.Fatalf("the row %+v does not stand for the %d instants up to %s", r, count, at)
		}
		if r.Open() {
			runs++
			if !r.From.After(horizon) {
				m.Fatalf("at %s %+v makes up for what is older than %s", now, r, a.State.CatchUp)
			}
		} else if r.Result != Skipped || r.Note == "" {
			m.Fatalf("a new row ended as %+v", r)
		}
	}
	begun, waiting := 0, 0
	for i := range a.Open {
		if r := &a.Open[i]; r.Open() && r.Attempt > 0 {
			begun++
		} else if r.Open() && !r.ByHand() {
			waiting++
		}
	}
	held := a.State.Overlap == BufferAll && begun+waiting > 0
	if next := text.Next(at); !next.After(now) && !held {
		m.Fatalf("at %s the instant %s was left out", now, next)
	}
	if !a.State.Planned.Equal(at) {
		m.Fatalf("planned up to %s, the rows say %s", a.State.Planned, at)
	}
	switch {
	case runs > 1:
		m.Fatalf("%d runs at once: %+v", runs, a.New)
	case runs == 1 && waiting > 0:
		m.Fatalf("a second run waits: %+v beside %+v", a.New, a.Open)
	case runs == 1 && begun > 0 && a.State.Overlap != BufferOne:
		m.Fatalf("a run waits for another: %+v beside %+v", a.New, a.Open)
	}
}

// look claims what is due.
func (m *model) look(ctx context.Context, n *node) {
	var claimed *RunRow
	err := m.turn(ctx, n, func(now time.Time, a *Agenda) error {
		if c := claim(now, a, n.name, n.job.Lease); c != nil {
			row := *c
			claimed = &row
		}
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
	if claimed == nil {
		return
	}
	if claimed.Fence <= m.fence {
		m.Fatalf("the fence %d comes after %d", claimed.Fence, m.fence)
	}
	m.fence = claimed.Fence
	if m.halt.Is() || m.state.Paused.Is() {
		m.Fatalf("%s was begun while paused", claimed.Instant)
	}
	if claimed.Due.After(m.now) {
		m.Fatalf("%s was begun at %s, before it was due", claimed.Instant, m.now)
	}
	if _, over := m.ended[claimed.Instant]; over {
		m.Fatalf("%s was begun after it had ended", claimed.Instant)
	}
	n.row, n.trusted = claimed, m.now.Add(n.job.Lease-margin(n.job.Lease))
}

// beat renews, if the node still believes in its lease.
func (m *model) beat(ctx context.Context, n *node) {
	if !m.now.Before(n.trusted) {
		n.row = nil
		return
	}
	err := m.turn(ctx, n, func(now time.Time, a *Agenda) error {
		r, err := a.held(n.row.Instant, n.name, n.row.Fence)
		if err == nil {
			renew(now, r, n.job.Lease, Outcome{Seen: int64(n.row.Attempt)})
		}
		return err
	})
	if err != nil {
		m.Fatalf("a trusted lease could not be renewed: %v", err)
	}
	n.trusted = m.now.Add(n.job.Lease - margin(n.job.Lease))
}

// end is the end of an attempt, in time or long after.
func (m *model) end(ctx context.Context, n *node, cut bool, v Result) {
	was := n.row
	err := m.turn(ctx, n, func(now time.Time, a *Agenda) error {
		r, err := a.held(was.Instant, n.name, was.Fence)
		switch {
		case err != nil:
			return err
		case cut:
			release(now, r, Outcome{})
		default:
			finish(now, a, r, Outcome{Result: v}, nil)
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrLost) {
		m.Fatal(err)
	}
	if err != nil && m.now.Before(n.trusted) {
		m.Fatalf("what a trusted attempt brought was thrown away: %v", err)
	}
	n.row = nil
}

// check holds what is true at every moment.
func (m *model) check() {
	held := 0
	for _, r := range m.rows {
		if r.Running() {
			held++
		}
		if r.Crashes >= crashesMost && r.Open() {
			m.Fatalf("%d processes died over %+v, and it goes on", r.Crashes, r)
		}
		was, over := m.ended[r.Instant]
		switch {
		case over && was != r:
			m.Fatalf("%+v had ended, and is now %+v", was, r)
		case !over && !r.Open():
			m.ended[r.Instant] = r
		}
	}
	if held > 1 {
		m.Fatalf("%d runs are at work", held)
	}
	working := 0
	for _, n := range m.nodes {
		if n.row == nil || !m.now.Before(n.trusted) {
			continue
		}
		working++
		if _, over := m.ended[n.row.Instant]; over {
			m.Fatalf("%s works on %s, which has ended", n.name, n.row.Instant)
		}
	}
	if working > 1 {
		m.Fatalf("two processes work at once")
	}
}

// Two processes with one database and one clock, that crash, stall, stop, are paused and deployed
// anew with another schedule: no two are at work at once, what ended never begins again, and every
// instant is run, or skipped with the reason, once.
func TestModelOfRunning(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		pick := func() *node { return m.nodes[rapid.IntRange(0, 1).Draw(t, "node")] }
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.check() },
			"a while": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			},
			"long": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "hours")) * time.Hour)
			},
			"work": func(t *rapid.T) {
				if n := pick(); n.row == nil {
					m.look(ctx, n)
				} else if rapid.Bool().Draw(t, "ends") {
					m.end(ctx, n, rapid.IntRange(0, 3).Draw(t, "cut") == 0, rapid.SampledFrom([]Result{OK, Partial, Failed, ""}).Draw(t, "result"))
				} else {
					m.beat(ctx, n)
				}
			},
			"crash": func(*rapid.T) {
				n := pick()
				n.row, n.described = nil, false
			},
			"deploy": func(t *rapid.T) {
				n := pick()
				n.row, n.described, n.job = nil, false, m.drawJob()
			},
			"operator": func(t *rapid.T) {
				if !m.state.Known() {
					t.Skip("there is no job yet")
				}
				job := rapid.SampledFrom([]string{"sweep", Everything}).Draw(t, "which")
				switch rapid.IntRange(0, 3).Draw(t, "does") {
				case 0:
					_ = Pause(ctx, &m.table, job, saga.Actor{Name: "ann", Reason: "a drill"})
				case 1, 2:
					_ = Unpause(ctx, &m.table, job)
				default:
					_, _ = Request(ctx, &m.table, "sweep", "plan", saga.Actor{Name: "ann", Reason: "to see"})
				}
			},
		})
		m.calm(ctx)
	})
}

// calm lets one process alone, with everything unpaused: all that is open ends, and then the next
// instant is run.
func (m *model) calm(ctx context.Context) {
	n := m.nodes[0]
	m.nodes[1].row, n.row, n.described = nil, nil, false
	m.look(ctx, n) // there may be no job yet
	_, _ = Unpause(ctx, &m.table, "sweep"), Unpause(ctx, &m.table, Everything)
	text, err := Parse(n.job.Schedule, n.job.Zone)
	if err != nil {
		m.Fatal(err)
	}
	for round := 0; ; round++ {
		open := 0
		for _, r := range m.rows {
			if r.Open() {
				open++
			}
		}
		if open == 0 && round > 0 {
			break
		}
		if round > 500 {
			m.Fatalf("after %d rounds there are still open runs, at last %+v", round, m.rows[len(m.rows)-1])
		}
		for range 2 { // what was planned is claimed at the next turn, at once
			if n.row == nil {
				m.look(ctx, n)
			}
		}
		if n.row != nil {
			m.end(ctx, n, false, OK)
		}
		m.check()
		m.now = m.now.Add(time.Second)
		if round > 1 {
			m.now = m.now.Add(modelLease)
		}
	}
	next := text.Next(m.state.Planned)
	m.now = next
	m.look(ctx, n)
	m.now = m.rows[len(m.rows)-1].Due
	m.look(ctx, n)
	if n.row == nil || n.row.At.Before(next) {
		m.Fatalf("at %s nobody runs %s but %+v", m.now, next, n.row)
	}
}
