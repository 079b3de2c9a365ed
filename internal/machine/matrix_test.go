package machine

import (
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// The table of protocol rules F3 to F23 as a whole: every way an attempt can end, for every kind of
// step, before, at and behind the pivot, with and without an earlier attempt that may have
// happened.
//
// A maybe can only stand before a later attempt where a step in doubt is sent again unasked:
// Idempotent, and Keyed inside its window. Every other kind asks first (F13, F17, F19), which ends
// the maybe.

type place string

const (
	before place = "before the pivot"
	atIt   place = "at the pivot"
	behind place = "behind the pivot"
)

// around is a definition with step x of a kind at a place. Step a before it is done and owed an
// undo.
func around(kind string, p place) string {
	switch p {
	case before:
		return "a idempotent undo\nx " + kind + " undo\np at-most-once pivot"
	case atIt:
		return "a idempotent undo\nx " + kind + " undo pivot\nr at-most-once"
	default:
		return "a idempotent undo\np idempotent pivot\nx " + kind
	}
}

// ends are the ways an attempt can end.
var ends = map[string]func(*desk) *desk{
	"done":               func(d *desk) *desk { return d.succeed("2") },
	"not sent":           func(d *desk) *desk { return d.fail(saga.Unsent) },
	"refused":            func(d *desk) *desk { return d.fail(saga.Refused) },
	"unknown":            func(d *desk) *desk { return d.fail(saga.Unknown) },
	"at fault":           func(d *desk) *desk { return d.fail(saga.Fault) },
	"lost":               func(d *desk) *desk { return d.crash() },
	"stopped at gate":    func(d *desk) *desk { return d.outcome(program.Outcome{Class: saga.Unsent, Shutdown: true}) },
	"stopped behind it":  func(d *desk) *desk { return d.outcome(program.Outcome{Class: saga.Unknown, Shutdown: true}) },
	"a class of nowhere": func(d *desk) *desk { return d.fail("sideways") },
}

// follows says what the rules want next: a command, and the status of the work with its reason.
func follows(end string, resend, ask bool, p place, maybe bool) (cmd string, status string) {
	doubt := func() (string, string) {
		if !resend && !ask {
			return "rest", "review in-doubt" // F19
		}
		return "wait", "retrying" // F11, F13
	}
	again := func() (string, string) { // no wait: the process is to blame, not the step
		if resend {
			return "act x forward", "running"
		}
		return doubt()
	}
	switch end {
	case "done": // F3
		return map[place]string{before: "act p forward", atIt: "act r forward", behind: "rest"}[p],
			map[place]string{before: "running", atIt: "running", behind: "completed"}[p]
	case "not sent": // F4, F5
		return "wait", "retrying"
	case "stopped at gate": // F20
		return "act x forward", "running"
	case "refused":
		switch {
		case p == behind: // F8
			return "rest", "review after-pivot"
		case maybe: // F7, C4
			return "wait", "compensating"
		default: // F6
			return "act a undo", "compensating"
		}
	case "at fault": // F21
		return "rest", "review poison"
	case "lost", "stopped behind it": // F10, F20
		return again()
	default: // F9
		return doubt()
	}
}

func TestEveryEndOfAnAttempt(t *testing.T) {
	for _, kind := range []struct {
		says        string
		resend, ask bool
	}{
		{"idempotent", true, false},
		{"idempotent lookup", true, true},
		{"keyed=24h", true, false},
		{"keyed=24h lookup", true, true},
		{"find", false, true},
		{"at-most-once", false, false},
		{"at-most-once lookup", false, true},
	} {
		for _, p := range []place{before, atIt, behind} {
			for end, do := range ends {
				for _, maybe := range []bool{false, true} {
					if maybe && !kind.resend {
						continue
					}
					t.Run(fmt.Sprintf("%s %s, %s, maybe %v", kind.says, p, end, maybe), func(t *testing.T) {
						d := begin(t, around(kind.says, p)).succeed("1")
						if p == behind {
							d.succeed("p1")
						}
						if maybe {
							d.fail(saga.Unknown).due().wants("act x forward", saga.Running)
						}
						do(d)
						cmd, status := follows(end, kind.resend, kind.ask, p, maybe)
						got := string(d.st.Status)
						if d.st.Reason != "" {
							got += " " + string(d.st.Reason)
						}
						if got != status {
							t.Errorf("the work is %s, want %s", got, status)
						}
						d.wants(cmd, d.st.Status)
						kept := !d.st.Step("x").Forward.OutcomeUnknownUntil.IsZero()
						ended := end == "unknown" || end == "lost" || end == "stopped behind it" || end == "a class of nowhere"
						if kept != (maybe || ended) {
							t.Errorf("an attempt may have happened: %v, want %v", kept, maybe || ended)
						}
					})
				}
			}
		}
	}
}
