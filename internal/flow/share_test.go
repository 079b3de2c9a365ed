package flow

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/machine"
)

// sharers is a model of sessions that share a limit. Each keeps what it may use as the coordinator
// does: it stops using at once what it is to give up, and gives it up when nothing that it sent is
// at work.
type sharers struct {
	limit  Limit
	settle time.Duration
	now    time.Time
	stored share
	live   map[string]*sharer
	dead   map[string]bool
	ghosts []ghost // requests of dead sessions
}

type sharer struct {
	runs string
	uses []int
	busy []time.Time // until when each of its requests may be at work
}

type ghost struct {
	until time.Time
}

func (s *sharers) member(token string) member {
	return member{
		now: machine.Moment{Earliest: s.now.Add(-time.Second), Latest: s.now.Add(time.Second)}, token: token, runs: s.live[token].runs,
		parts: s.limit.partsOf(), settle: s.settle, dead: func(t string) bool { return s.dead[t] },
		found: func(string) (time.Time, bool) { return time.Time{}, false }, // as where the dead one knew other definitions
	}
}

// beat is one look of a session at the share, stored at once.
func (s *sharers) beat(token string) {
	m, l := s.member(token), s.live[token]
	t, _ := s.stored.joined(m)
	owned := t.owned(token, m.parts)
	keep := min(len(owned), t.fair(m))
	l.uses = owned[:keep]
	switch {
	case keep == len(owned):
		t, _ = t.taken(m)
	case s.limit.Concurrent == 0 || len(l.busy) <= s.limit.portion(l.uses).Concurrent:
		t, _ = t.given(m, keep)
	}
	if s.stored = t; keep == len(owned) {
		l.uses = t.owned(token, m.parts)
	}
}

// send sends as much as the session may.
func (s *sharers) send(token string, takes time.Duration) {
	l := s.live[token]
	for s.limit.Concurrent > 0 && len(l.busy) < s.limit.portion(l.uses).Concurrent {
		l.busy = append(l.busy, s.now.Add(takes))
	}
}

// atWork is how many requests may be at work at the destination.
func (s *sharers) atWork() (n int) {
	for _, g := range s.ghosts {
		if g.until.After(s.now) {
			n++
		}
	}
	for _, l := range s.live {
		n += len(l.busy)
	}
	return n
}

func (s *sharers) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, l := range s.live {
		l.busy = slices.DeleteFunc(l.busy, func(until time.Time) bool { return !until.After(s.now) })
	}
}

func (s *sharers) kill(token string) {
	for _, until := range s.live[token].busy {
		s.ghosts = append(s.ghosts, ghost{until})
	}
	delete(s.live, token)
	s.dead[token] = true
}

// "Limits hold for all processes of a ledger": whatever sessions come, send, stop and die, no more
// requests are at work than the limit says; and in the end every session has its share, and every
// definition is served.
func TestALimitIsShared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const longest = 40 * time.Second // a request is at work
		s := &sharers{
			limit:  Limit{Concurrent: rapid.IntRange(1, 7).Draw(t, "concurrent")},
			settle: longest, now: time.Unix(1e9, 0), live: map[string]*sharer{}, dead: map[string]bool{},
		}
		tokens := func() []string { return slices.Sorted(maps.Keys(s.live)) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if n := s.atWork(); n > s.limit.Concurrent {
					t.Fatalf("%d requests are at work, of at most %d: %+v", n, s.limit.Concurrent, s.stored)
				}
			},
			"begin": func(t *rapid.T) {
				if len(s.live) == 5 {
					t.Skip("there are enough")
				}
				token := fmt.Sprintf("%016x", rapid.Uint64Min(1).Draw(t, "token"))
				if s.live[token] != nil || s.dead[token] {
					t.Skip("tokens are given once")
				}
				s.live[token] = &sharer{runs: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "runs")}
			},
			"beat": func(t *rapid.T) { s.beat(one(t, tokens())) },
			"send": func(t *rapid.T) {
				s.send(one(t, tokens()), time.Duration(rapid.IntRange(1, int(longest/time.Second)).Draw(t, "takes"))*time.Second)
			},
			"kill": func(t *rapid.T) { s.kill(one(t, tokens())) },
			"stop": func(t *rapid.T) {
				token := one(t, tokens())
				s.stored, _ = s.stored.left(s.member(token), len(s.live[token].busy) == 0)
				s.kill(token)
			},
			"pass": func(t *rapid.T) { s.pass(time.Duration(rapid.IntRange(1, 30).Draw(t, "seconds")) * time.Second) },
		})
		settles(t, s, tokens())
	})
}

func one(t *rapid.T, of []string) string {
	if len(of) == 0 {
		t.Skip("there is no session")
	}
	return rapid.SampledFrom(of).Draw(t, "session")
}

// settles judges what becomes of a share when nothing happens any more but time and heartbeats.
func settles(t *rapid.T, s *sharers, live []string) {
	served := map[string]bool{}
	for range 60 {
		s.pass(5 * time.Second)
		for _, token := range live {
			s.beat(token)
			if len(s.live[token].uses) > 0 {
				served[s.live[token].runs] = true
			}
		}
	}
	n, all := s.limit.partsOf(), 0
	for _, token := range live {
		l := s.live[token]
		all += len(l.uses)
		if has, floor := len(l.uses), n/len(live); has < floor || has > floor+1 {
			t.Errorf("one of %d sessions has %d of %d parts: %+v", len(live), has, n, s.stored)
		}
		if !served[l.runs] {
			t.Errorf("definitions %s were served by nobody: %+v", l.runs, s.stored)
		}
	}
	if turns := len(live) > n; len(live) > 0 && all < n && !turns {
		t.Errorf("%d of %d parts are used: %+v", all, n, s.stored)
	}
}

// What a part of a rate allows at once was perhaps sent by who had it last: it has saved what came
// since that one left, and what this process has saved already stays as it is when another part is
// added.
func TestAPartOfARateKeepsItsPast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := Limit{PerSecond: 2, Burst: 10}
		d := newDestination("books", limit, time.Hour, 100, func() {}, alone(), sharing{gone: func(string) bool { return false }, divide: func(func(share) (share, bool)) {}})
		me := d.who().String()
		send := func(when string, want int) {
			t.Helper()
			n := 0
			for d.Try(Rank{}) {
				n++
			}
			if n != want {
				t.Errorf("%s: %d at once, want %d", when, n, want)
			}
		}
		s := share{Sessions: map[string]want{me: {}, "other": {}}, Parts: make([]part, 10)}
		for k := range s.Parts {
			s.Parts[k] = part{Session: me, ReleasedAt: time.Now()}
			if k >= 5 {
				s.Parts[k].Session = "other"
			}
		}
		d.shares(s)
		send("just taken from others", 0)
		time.Sleep(time.Second) //nolint:forbidigo // virtual
		send("a second later, with half of the rate", 1)
		delete(s.Sessions, "other")
		s.Parts = slices.Clone(s.Parts)
		for k := 5; k < 10; k++ {
			s.Parts[k] = part{Session: me, ReleasedAt: time.Now()}
		}
		d.shares(s)
		send("with all of it", 0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // virtual
		send("two seconds later", 4)
		d.shares(share{Sessions: map[string]want{me: {}}, Parts: make([]part, 10)})
		send("without a part", 0)
		fresh := share{Sessions: map[string]want{me: {}}, Parts: make([]part, 10)}
		for k := range fresh.Parts {
			fresh.Parts[k].Session = me
		}
		d.shares(fresh)
		send("one that nobody ever had", 10)
	})
}
