package coordinator

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// What does not move is said, by name: definitions of due works that no process
// knows, the oldest work that ought to have a new record by now, and what waits for a clock that
// was further once. What waits for its time, or moves, is not.
func TestWhatDoesNotMoveIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logrus.New()
		log.SetOutput(&out)
		w := watch{log: log, within: 90 * time.Second, seen: map[int64]sighting{}}
		began := time.Now()
		head := func(work string, number int64, updated time.Time) ledger.Instance {
			return ledger.Instance{Number: number, ID: saga.ID{Saga: "billing", Work: work}, Status: saga.Running, Updated: updated}
		}
		look := func(o ledger.Overview) string {
			out.Reset()
			o.At = time.Now()
			w.look(&o)
			time.Sleep(time.Minute) //nolint:forbidigo // virtual
			return out.String()
		}
		stuck, old := head("stuck", 1, began), head("moving", 2, began.Add(-time.Hour))
		for minute, want := range []string{"", "", "work=stuck", "work=stuck"} {
			moving := head("moving", 2, time.Now())
			if minute == 0 {
				moving = old // it has waited for an hour and was claimed just now
			}
			got := look(ledger.Overview{Oldest: []ledger.Instance{moving, stuck}})
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("minute %d: %q, want %q", minute, got, want)
			}
		}
		if got := look(ledger.Overview{Unknown: []ledger.Backlog{
			{Saga: "billing", Version: 3, Works: 7, Oldest: began}, {Saga: "later", Version: 1, Works: 1, Oldest: began.Add(time.Hour)},
		}}); !strings.Contains(got, "billing version 3 (7 works") || strings.Contains(got, "later") {
			t.Errorf("%q", got)
		}
		if got := look(ledger.Overview{Ahead: ledger.Ahead{Works: []ledger.Instance{stuck}}}); !strings.Contains(got, "works=1") {
			t.Errorf("%q", got)
		}
		if got := look(ledger.Overview{}); got != "" {
			t.Errorf("%q", got)
		}
	})
}
