package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
)

// Each checker of the simulated fleet finds what it is there for: with one rule broken on purpose
// it reports just that.
func TestFleetCheckersCanFail(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		broken, finds string
		scene         scene
	}{
		{brokenMail, "AtMostOnce:", gentle(siteRules{})},
		{brokenKeys, "keyed:", gentle(siteRules{trouble: 0.5})},
		{brokenSettle, "find:", gentle(siteRules{trouble: 0.5})},
		{brokenUndo, "compensated:", gentle(siteRules{refuses: 0.5})},
		{brokenGhost, "completed:", gentle(siteRules{})},
		{brokenCancel, "cancel:", gentle(siteRules{trouble: 0.5}, event{"cancel", 5 * time.Second, cancelOne})},
		{brokenPoison, "review:", gentle(siteRules{})},
		{brokenChain, "check:", gentle(siteRules{})},
		{brokenAudit, "audit:", gentle(siteRules{trouble: 0.5, beyond: true})},
		{brokenRun, "Run of", gentle(siteRules{})},
		{brokenTimeout, "silence:", gentle(siteRules{}, event{"call silent", 20 * time.Second, blip(linkSilent)})},
		{brokenClaim, "liveness:", gentle(siteRules{}, event{"kill", 20 * time.Second, killOne})},
		{brokenStarts, "progress:", gentle(siteRules{})},
	} {
		t.Run(c.broken, func(t *testing.T) {
			t.Parallel()
			if i%3 > 0 {
				pace.Night(t)
			}
			seed := uint64(time.Now().UnixNano())
			for i := range uint64(5) {
				s := play(t, c.scene, seed+i, c.broken)
				for _, f := range s.faults {
					if strings.Contains(f, c.finds) {
						return
					}
				}
				t.Logf("seed %d: %s, %q", seed+i, s.figures(), s.faults)
			}
			t.Errorf("with %q no checker said %q", c.broken, c.finds)
		})
	}
}

// gentle is a short scene in which little goes wrong but what is given.
func gentle(rules siteRules, events ...event) scene {
	return scene{name: "proof", length: 4 * time.Minute, pace: 4 * time.Second, rules: rules, events: events}
}
