package machine

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is allowed, though it looks unusual.
func TestDefineAllows(t *testing.T) {
	t.Parallel()
	for what, lines := range map[string]string{
		"no pivot":                            "a idempotent undo\nb find undo",
		"a pivot with undo":                   "a idempotent undo pivot",
		"a pivot at most once":                "a idempotent undo\nb at-most-once pivot",
		"two unguardable steps at the end":    "a idempotent undo\nb at-most-once pivot\nc at-most-once",
		"an unguardable step that has a Find": "a at-most-once lookup undo\nb idempotent undo",
		"no-undo behind the pivot":            "a idempotent undo pivot\nb idempotent no-undo",
		"a step whose policy compensates":     "a idempotent undo compensate",
		"no settle time":                      "a find undo settle=0s",
	} {
		if _, err := define("s", 1, lines); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A definition fills in what a step does not say.
func TestDefineDefaults(t *testing.T) {
	t.Parallel()
	s := structure(t, "a find undo").Steps[0]
	if s.Repeat != program.RepeatFind || !s.Find || s.Timeout != saga.DefaultTimeout || s.Settle != saga.DefaultSettle {
		t.Errorf("%+v", s)
	}
	if s := structure(t, "a idempotent undo timeout=1500us settle=2500us").Steps[0]; s.Timeout != time.Millisecond || s.Settle != 2*time.Millisecond {
		t.Errorf("times are not whole milliseconds: %+v", s)
	}
}
