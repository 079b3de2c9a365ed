package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// Of a work that turned back it is said what stands all the same, and what may.
func TestWhatIsLeft(t *testing.T) {
	t.Parallel()
	effort := func(p Phase) Effort { return Effort{Phase: p} }
	st := State{Steps: []StepState{
		{Name: "undone", Forward: effort(Done), Undo: effort(Done), ExternalID: "1"},
		{Name: "left", Forward: effort(Done), ExternalID: "cus_7"},
		{Name: "bare", Forward: effort(Done)},
		{Name: "adopted", Forward: effort(Done), ExternalID: "mail_1", Unconfirmed: true},
		{Name: "doubtful", Forward: effort(InDoubt)},
		{Name: "refused", Forward: effort(Refused)},
		{Name: "refused-later", Forward: effort(Refused), Previous: &program.Result{ExternalID: "inv_1"}},
		{Name: "skipped", Forward: Effort{Phase: Skipped, OutcomeUnknownUntil: time.Unix(1, 0)}},
		{Name: "never"},
	}}
	want := []string{"left (cus_7)", "bare", "adopted (mail_1), which may have happened", "doubtful, which may have happened", "refused-later (inv_1)"}
	if got := st.leftAsItIs(); !slices.Equal(got, want) {
		t.Errorf("left are\n%q; want\n%q", got, want)
	}
}
