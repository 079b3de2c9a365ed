package schedule

// Outcome is what a run came to, or has done so far. Numbers mean what the job says they mean; the words are those of
// a reconciliation.
type Outcome struct {
	Verdict Verdict // of the whole run; nothing else ends well by default

	Before, After string // where the job's cursor stood, and where it stands now; After is the watermark that is watched

	Seen    int64 // objects looked at
	Planned int64 // actions
	Applied int64
	Refused int64 // actions that were withheld
	Errors  int64
	Calls   int64 // to other systems

	Plan string // the name of the plan that was made or applied
	Note string // for people
}

// Verdict is what became of a run. A run without one has not ended.
type Verdict string

// The verdicts. Only OK counts as success.
const (
	OK      Verdict = "ok"      // everything was done that was to be done
	Partial Verdict = "partial" // a part was left undone; the cursor is not past it
	Refused Verdict = "refused" // a bound was hit; a person decides
	Failed  Verdict = "failed"  // an error, a panic, too many crashes, or no verdict of the job's
	Stopped Verdict = "stopped" // an operator paused it while it ran
	Skipped Verdict = "skipped" // it never began; the note says why
)

// final reports whether a job may end with v.
func (v Verdict) final() bool {
	return v == OK || v == Partial || v == Refused || v == Failed || v == Stopped
}
