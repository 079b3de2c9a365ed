package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What the death of a process says about the steps that were in flight (F10, F20). Most of them are
// bystanders.

// defaultMaxCrashes is how often a step may be in flight when its process dies before a person is
// asked. With the pauses between them that takes the better part of three hours.
const defaultMaxCrashes = 20

// toll is the body of a [KindLost] record.
type toll struct {
	ConcurrentSteps int `json:"concurrentSteps"` // other steps in flight
}

// lost records that the armed attempt's process is gone. A step that may be repeated pauses, longer
// each time: if it is what takes processes down, the others come first.
func (m *machine) lost(ss *StepState) error {
	dir := ss.open()
	body, err := json.Marshal(toll{m.ev.Bystanders})
	if err != nil {
		return err
	}
	r := &Record{
		Kind: KindLost, Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts, ErrorClass: saga.Unknown, Body: body,
		Error: fmt.Sprintf("the process that held the attempt ended, or its lease did, before an answer was recorded; "+
			"other steps in flight there: %d", m.ev.Bystanders),
	}
	if err := m.fold(r); err != nil {
		return err
	}
	s, e := m.step(ss.Name), m.st.Step(ss.Name).effort(dir)
	if s == nil {
		return nil
	}
	e.BackoffUntil = e.Deadline.Add(min(grace, s.Timeout) - s.Timeout)
	if e.Crashes > 1 { // the first time is the process's fault
		pause := program.Retry{}.Backoff(e.Key, e.Crashes-1) // 1 s, doubled each time, to 15 min
		e.BackoffUntil = later(e.BackoffUntil, m.ev.Now.Earliest.Add(pause))
	}
	return nil
}

// crashed counts a crash. It is no try: the process failed, and not the step.
func (e *Effort) crashed(r *Record) {
	e.Crashes++
	e.CountedAttempts--
	var t toll
	if len(r.Body) == 0 || json.Unmarshal(r.Body, &t) != nil {
		return // it is only told to a person
	}
	e.ConcurrentSteps = append(slices.Clip(e.ConcurrentSteps), t.ConcurrentSteps)
	if len(e.ConcurrentSteps) > defaultMaxCrashes {
		e.ConcurrentSteps = e.ConcurrentSteps[1:]
	}
}

// poisonous reports whether the step was in flight at so many crashes that a person is asked.
func (m *machine) poisonous(e *Effort) bool {
	return e.Crashes >= cmp.Or(max(m.ev.MaxCrashes, 0), defaultMaxCrashes)
}

// poison parks the work, and says which crashes the step may have had no part in.
func (m *machine) poison(e *Effort) Command {
	cmd := m.park(saga.ReasonPoison)
	beside := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.ConcurrentSteps), " ", ", "), "[]")
	m.rec.Error, m.rec.Note = "", fmt.Sprintf("the step was in flight at %d crashes of its process; other steps in flight beside it: %s", e.Crashes, beside)
	return cmd
}
