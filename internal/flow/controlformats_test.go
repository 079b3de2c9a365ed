package flow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// The bodies of controls stand in the ledger, where processes of other versions read them: their
// names never change.
func TestControlsAreAFormat(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	for want, v := range map[string]any{
		`{"pausedBy":"anna","pausedReason":"moving","limitedUntil":"2026-03-01T12:00:01Z","failureStartedAt":"2026-03-01T12:00:02Z",` +
			`"evidence":"it asked","lastError":"503","probe":{"failed":3,"nextAt":"2026-03-01T12:00:04Z","session":"00000000000000ff",` +
			`"until":"2026-03-01T12:00:05Z"},"retryProbe":{"failed":1},"recoveredAt":"2026-03-01T12:00:06Z","lastServedAt":"2026-03-01T12:00:07Z"}`: Health{
			PausedBy: "anna", PausedWhy: "moving", LimitedUntil: at(1), FailingSince: at(2), Evidence: "it asked", Why: "503",
			Probe: probe{Failed: 3, Next: at(4), By: "00000000000000ff", Ends: at(5)}, Retry: probe{Failed: 1}, BackSince: at(6), ServedAt: at(7),
		},
		`{"parts":[{"session":"ff","acquiredAt":"2026-03-01T12:00:01Z","releasedAt":"2026-03-01T12:00:02Z",` +
			`"availableAt":"2026-03-01T12:00:03Z","reservedFor":"d1"}],"sessions":{"ff":{"definitions":"d1","settle":"1m5s"}}}`: share{
			Parts: []part{{Owner: "ff", Since: at(1), Left: at(2), Free: at(3), For: "d1"}},
			Wants: map[string]want{"ff": {Runs: "d1", Settle: lasting(65 * time.Second)}},
		},
		`{"actor":"anna","reason":"moving"}`: saga.Actor{Name: "anna", Reason: "moving"},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("stored as %s (%v)\nwant      %s", got, err, want)
		}
	}
	var back want
	if err := json.Unmarshal([]byte(`{"definitions":"d1","settle":"1m5s"}`), &back); err != nil || back.Settle != lasting(65*time.Second) {
		t.Errorf("reads back as %+v (%v)", back, err)
	}
}
