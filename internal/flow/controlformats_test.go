package flow

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// The bodies of controls stand in the ledger, where processes of other versions read them: their
// names never change.
func TestControlsAreAFormat(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	for want, v := range map[string]any{
		`{"pausedBy":"anna","pausedReason":"moving","limitedUntil":"2026-03-01T12:00:01Z","failureStartedAt":"2026-03-01T12:00:02Z",` +
			`"evidence":"it asked","lastError":"503","failsAlone":{"number":"5","since":"2026-03-01T12:00:08Z","at":"2026-03-01T12:00:09Z"},"probe":{"failed":3,"nextAt":"2026-03-01T12:00:04Z","session":"00000000000000ff",` +
			`"until":"2026-03-01T12:00:05Z"},"retryProbe":{"failed":1},"recoveredAt":"2026-03-01T12:00:06Z","lastServedAt":"2026-03-01T12:00:07Z"}`: Health{
			PausedBy: "anna", PausedReason: "moving", LimitedUntil: at(1), FailureStartedAt: at(2), Evidence: "it asked", LastError: "503",
			Probe: probe{Failed: 3, Next: at(4), Session: "00000000000000ff", Until: at(5)}, RetryProbe: probe{Failed: 1}, RecoveredAt: at(6), LastServedAt: at(7),
			FailsAlone: lone{5, at(8), at(9)},
		},
		`{"parts":[{"session":"ff","acquiredAt":"2026-03-01T12:00:01Z","releasedAt":"2026-03-01T12:00:02Z",` +
			`"availableAt":"2026-03-01T12:00:03Z","reservedFor":"d1","leftBy":"fe"}],` +
			`"sessions":{"ff":{"definitions":"d1","settle":"1m5s","heldWithoutAnswer":2,"unansweredUntil":"2026-03-01T12:00:04Z"}},` +
			`"deadSessions":{"fe":{"definitions":"d1","underWayUntil":"2026-03-01T12:00:05Z","searchedBy":["ff"],"searchLost":true}}}`: share{
			Parts:        []part{{Session: "ff", AcquiredAt: at(1), ReleasedAt: at(2), AvailableAt: at(3), ReservedFor: "d1", LeftBy: "fe"}},
			Sessions:     map[string]want{"ff": {Definitions: "d1", Settle: lasting(65 * time.Second), HeldWithoutAnswer: 2, UnansweredUntil: at(4)}},
			DeadSessions: map[string]dead{"fe": {Definitions: "d1", UnderWayUntil: at(5), SearchedBy: []string{"ff"}, SearchLost: true}},
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

// What of a limit serves none is read from its control: slots without an answer, and what a dead session left.
func TestWhatIsKeptOfALimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	body, err := json.Marshal(share{
		Parts:    []part{{Session: "a"}, {LeftBy: "dead", AvailableAt: now.Add(time.Minute)}, {LeftBy: "dead", AvailableAt: now.Add(2 * time.Minute)}, {AvailableAt: now}},
		Sessions: map[string]want{"a": {HeldWithoutAnswer: 2, UnansweredUntil: now.Add(time.Minute)}, "b": {UnansweredUntil: now.Add(time.Hour)}, "c": {HeldWithoutAnswer: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	parts, of, kept := SharesOf(&ledger.Control{Body: body}, now)
	if want := (Kept{3, now.Add(time.Minute), 2, now.Add(2 * time.Minute)}); parts != 4 || of["a"] != 1 || kept != want {
		t.Errorf("%d parts, %v; kept are %+v, want %+v", parts, of, kept, want)
	}
	if unanswered, left := kept.Lasts(parts, now); !unanswered || !left {
		t.Errorf("it lasts: %v, %v", unanswered, left)
	}
}
