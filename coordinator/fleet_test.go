package coordinator_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/pace"
)

// scenes are the conditions a fleet is simulated under.
var scenes = []scene{
	{
		name: "processes", length: 15 * time.Minute, pace: 6 * time.Second, rules: siteRules{trouble: 0.1, refuses: 0.1},
		events: []event{
			{"graceful stop", 60 * time.Second, stopOne}, {"kill", 60 * time.Second, killOne}, {"stall", 45 * time.Second, stallOne},
			{"cancel", 30 * time.Second, cancelOne},
		},
	},
	{
		name: "deploy", length: 20 * time.Minute, pace: 6 * time.Second, rules: siteRules{trouble: 0.1, refuses: 0.1},
		events: []event{
			{"deploy", 2 * time.Minute, deploy}, {"no process knows parcels", 5 * time.Minute, forget}, {"cancel", 20 * time.Second, cancelOne},
			{"outage", 2 * time.Minute, outage},
		},
	},
	{
		name: "links", length: 15 * time.Minute, pace: 6 * time.Second, rules: siteRules{trouble: 0.1, refuses: 0.1},
		events: []event{
			{"call cut", 20 * time.Second, blip(linkCut)}, {"call silent", 20 * time.Second, blip(linkSilent)}, {"call deaf", time.Minute, blip(linkDeaf)},
			{"way cut", time.Minute, parted(linkCut)}, {"way silent", time.Minute, parted(linkSilent)}, {"standby", 3 * time.Minute, standby},
			{"no session for a while", time.Minute, parted(linkReadOnly)},
			{"kill", 3 * time.Minute, killOne}, {"cancel", 30 * time.Second, cancelOne},
		},
	},
	{
		name: "clocks", length: 15 * time.Minute, pace: 6 * time.Second, rules: siteRules{trouble: 0.15, refuses: 0.1},
		events: []event{
			{"clock back", 2 * time.Minute, clockBack}, {"clock forward", 2 * time.Minute, clockForward}, {"kill", 2 * time.Minute, killOne},
			{"cancel", 30 * time.Second, cancelOne},
		},
	},
	{
		name: "sites", length: 15 * time.Minute, pace: 6 * time.Second, rules: siteRules{trouble: 0.35, refuses: 0.1, lag: true},
		limits: map[string]coordinator.Limit{"books": {Concurrent: 2}, "shop": {Concurrent: 2, PerSecond: 2, Burst: 2}},
		events: []event{
			{"outage", time.Minute, outage}, {"graceful stop", 2 * time.Minute, stopOne}, {"cancel", 20 * time.Second, cancelOne},
		},
	},
	{
		name: "lookups that lag beyond settle", length: 10 * time.Minute, pace: 5 * time.Second, rules: siteRules{trouble: 0.3, lag: true, beyond: true},
		events: []event{{"kill", 60 * time.Second, killOne}, {"cancel", 30 * time.Second, cancelOne}},
	},
	{
		name: "lookups that lie", length: 10 * time.Minute, pace: 5 * time.Second, rules: siteRules{trouble: 0.3, lies: true},
		events: []event{{"kill", 60 * time.Second, killOne}, {"cancel", 30 * time.Second, cancelOne}},
	},
	{
		name: "overload", length: 10 * time.Minute, pace: 500 * time.Millisecond, overload: true, maxWorks: 16, rules: siteRules{trouble: 0.05, refuses: 0.05},
		limits: map[string]coordinator.Limit{"books": {Concurrent: 1}, "shop": {Concurrent: 1}},
		prepare: func(s *simulation) {
			s.sites.byName["books"].think = 2 * time.Second
			s.sites.byName["books"].capacity = 2
			s.join(orders1, parcels1)
			s.join(orders1, parcels1)
		},
		events: []event{{"kill", 3 * time.Minute, killOne}, {"cancel", 10 * time.Second, cancelOne}},
	},
}

// TestFleet plays the beginning of three scenes from a fresh seed, and at night all of each from
// twenty. AMENDS_SEED repeats one; with AMENDS_NIGHTLY it is a seed of the night.
func TestFleet(t *testing.T) {
	t.Parallel()
	seed, rounds := uint64(time.Now().UnixNano()), 1
	played := slices.Clone(scenes)
	if s, err := strconv.ParseUint(os.Getenv("AMENDS_SEED"), 10, 64); err == nil {
		seed = s
	} else if pace.AtNight() {
		rounds = 20
	} else {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(played), func(i, j int) { played[i], played[j] = played[j], played[i] })
		played = played[:3]
	}
	for i := range uint64(rounds) {
		for _, sc := range played {
			if !pace.AtNight() {
				sc.length /= 2
			}
			t.Run(fmt.Sprintf("%s/%d", sc.name, seed+i), func(t *testing.T) {
				t.Parallel()
				s := play(t, sc, seed+i)
				s.report(t)
			})
		}
	}
}

// report says what was played and fails with what was found.
func (s *simulation) report(t *testing.T) {
	t.Helper()
	t.Log(s.figures())
	for _, f := range s.faults {
		t.Error(f)
	}
	for _, f := range s.sites.over {
		t.Error(f)
	}
	if len(s.tap.order) == 0 {
		t.Error("nothing was started: the checkers saw nothing")
	}
	if len(s.faults) > 0 {
		again := fmt.Sprintf("AMENDS_SEED=%d go test ./coordinator -run 'TestFleet/%s'", s.seed, strings.ReplaceAll(s.scene.name, " ", "_"))
		if pace.AtNight() {
			again = "AMENDS_NIGHTLY=1 " + again
		}
		t.Log("again: " + again)
	}
}

func (s *simulation) figures() string {
	var b strings.Builder
	c := s.sites.counts
	fmt.Fprintf(&b, "%d works, %d processes, %d requests (%d hurt, %d late, %d beyond settle), %d effects, %d lookups (%d lied), %d cancels", len(s.tap.order), s.born,
		c.requests, c.hurt, c.late, c.beyond, c.effects, c.lookups, c.lied, len(s.cancels))
	for _, k := range slices.Sorted(maps.Keys(s.deeds)) {
		fmt.Fprintf(&b, ", %d × %s", s.deeds[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&b, ", %d calls %s", s.counts[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(s.reviews)) {
		fmt.Fprintf(&b, ", %d reviews %s", s.reviews[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(s.tap.worst)) {
		fmt.Fprintf(&b, ", longest untouched %s: %.2f of its bound", k, s.tap.worst[k])
	}
	return b.String()
}

// The rules that a simulation can break on purpose, so that each checker is seen to find what it is
// there for.
const (
	brokenKeys    = "a destination forgets keys"
	brokenMail    = "a client sends mails twice"
	brokenUndo    = "undos do nothing"
	brokenSettle  = "settle is a lie"
	brokenPoison  = "a definition is at fault"
	brokenRun     = "no session is opened"
	brokenTimeout = "calls have no time-out"
	brokenClaim   = "claims leave parcels out"
	brokenCancel  = "cancels are dropped"
	brokenChain   = "a record is lost"
	brokenAudit   = "the audit is blind"
	brokenGhost   = "a destination answers what it does not have"
	brokenStarts  = "nothing new is claimed"
)
