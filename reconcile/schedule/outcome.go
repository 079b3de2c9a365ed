package schedule

// Outcome is what a run came to, or has done so far. Numbers mean what the job says they mean; the
// words are those of a reconciliation.
type Outcome struct {
	Result Result `json:"result"` // of the whole run; nothing else ends well by default

	Before string `json:"cursorBefore,omitempty"` // where the job's cursor stood
	After  string `json:"cursorAfter,omitempty"`  // where it stands now: the watermark

	Seen      int64 `json:"seen"`    // objects looked at
	Planned   int64 `json:"planned"` // actions
	Applied   int64 `json:"applied"`
	OverLimit int64 `json:"overLimit"` // actions that were withheld
	Errors    int64 `json:"errors"`
	Calls     int64 `json:"calls"` // to other systems

	Plan string `json:"plan,omitempty"` // the name of the plan that was made or applied
	Note string `json:"note,omitempty"` // for people
}

// Result is what became of a run. A run without one has not ended.
type Result string

// The results. Only OK counts as success.
const (
	OK      Result = "ok"      // everything was done that was to be done
	Partial Result = "partial" // a part was left undone; the cursor is not past it
	Refused Result = "refused" // a bound was hit; a person decides
	Failed  Result = "failed"  // an error, a panic, too many crashes, or no result of the job's
	Stopped Result = "stopped" // an operator paused it while it ran
	Skipped Result = "skipped" // it never began; the note says why
)

// final reports whether a job may end with v.
func (v Result) final() bool {
	return v == OK || v == Partial || v == Refused || v == Failed || v == Stopped
}
