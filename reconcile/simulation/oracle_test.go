package simulation

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// theirs is the rule of stripe-sync-engine, restated from its behaviour (version of April 2026) in
// our own words, as an oracle to differ from:
//
//	S1  a row is written only if its stamp is strictly older than the event's time, which has whole seconds
//	S2  a row that was asked for anew is stamped with the local time of the asking; events of a final state
//	    are never asked about
//	S4  a deletion removes the row, and with it everything that is known of it
//
// It is given the same knocks at the same times, and it is given more than it has: no crash, no
// failure and no wait of the source, and an inbox that loses nothing.
type theirs struct {
	world  *world
	asks   bool // ask the source for every event that is not of a final state
	rows   map[intake.Object]row
	clock  func(of time.Time) time.Time // what their clock shows
	fetchN int
}

type row struct {
	content string
	stamp   time.Time
}

// hear is one event at the moment it arrives.
func (x *theirs) hear(ev *intake.Event, arrived time.Time) {
	o := x.world.byName[ev.Object]
	n := slices.IndexFunc(o.states, func(s state) bool { return s.at.Equal(ev.At) })
	if ev.Deleted {
		delete(x.rows, ev.Object)
		return
	}
	fresh := row{content: o.states[n].content, stamp: ev.At.Truncate(time.Second)}
	if final := n == len(o.states)-1; x.asks && !final {
		seen := o.at(arrived)
		x.fetchN++
		if o.states[seen].deleted {
			return // the source has none: nothing is written
		}
		fresh = row{content: o.states[seen].content, stamp: x.clock(arrived)}
	}
	if known, ok := x.rows[ev.Object]; !ok || known.stamp.Before(fresh.stamp) {
		x.rows[ev.Object] = fresh
	}
}

// lost counts the objects of whose last change they were told and which their rows show otherwise.
func (x *theirs) lost() (lost, resurrected int) {
	for _, o := range x.world.objects {
		last := &o.states[len(o.states)-1]
		r, ok := x.rows[o.Object]
		switch {
		case !fits(o) || !o.told:
		case last.deleted && ok:
			resurrected++
		case !last.deleted && r.content != last.content:
			lost++
		}
	}
	return lost, resurrected
}

// fits chooses the sources whose events are whole objects with a time of whole seconds, without
// lag: what their rule was made for.
func fits(o *object) bool {
	return slices.Contains([]string{"seconds", "unversioned"}, o.kind.name)
}

// The same seeds, the same knocks: their rule loses updates and brings deleted objects back, ours
// does neither. (That ours does not is what TestSimulate asserts of every object; here the same
// objects are counted.)
func TestDifferentialOracle(t *testing.T) {
	size := sizeOf(t)
	for _, seed := range size.seeds {
		var lostBy [3][2]int
		objects := 0
		for i, rule := range []theirs{
			{clock: func(at time.Time) time.Time { return at }},
			{asks: true, clock: func(at time.Time) time.Time { return at }},
			{asks: true, clock: func(at time.Time) time.Time { return at.Add(2 * time.Second) }}, // their clock is ahead
		} {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(seed, size, time.Now())
				x := rule
				x.world, x.rows, objects = s.world, map[intake.Object]row{}, 0
				for j := range s.mail.deliveries {
					d := &s.mail.deliveries[j]
					if o := s.world.byName[d.event.Object]; fits(o) && !forgedEvent(&d.event) {
						x.hear(&d.event, d.at)
					}
				}
				lostBy[i][0], lostBy[i][1] = x.lost()
				for _, o := range s.world.objects {
					if fits(o) && o.told {
						objects++
					}
				}
			})
		}
		ours := oursLost(t, seed, size)
		t.Logf("seed %d, %d objects told of: events alone lose %d updates and resurrect %d; with re-asking %d and %d; with re-asking and a clock 2 s ahead %d and %d; ours %d",
			seed, objects, lostBy[0][0], lostBy[0][1], lostBy[1][0], lostBy[1][1], lostBy[2][0], lostBy[2][1], ours)
		for i := range lostBy {
			if cmp.Or(lostBy[i][0], lostBy[i][1]) == 0 {
				t.Errorf("seed %d: rule %d loses nothing: the comparison shows nothing", seed, i)
			}
		}
		if ours != 0 {
			t.Errorf("seed %d: ours differs for %d objects", seed, ours)
		}
	}
}

// forgedEvent leaves out what is stamped in the future: their rule has no defence, and it would not
// be fair.
func forgedEvent(ev *intake.Event) bool { return ev.Version.Time().After(ev.At.Add(time.Hour)) }

// oursLost runs the same world through our gate and counts the same objects.
func oursLost(t *testing.T, seed uint64, size size) int {
	t.Helper()
	v := simulate(t, seed, size, false)
	return len(v.different)
}
