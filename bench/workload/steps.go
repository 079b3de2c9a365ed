package workload

import (
	"fmt"
	"sync/atomic"
)

// Steps performs the steps of the workload and counts how often each one ran.
// It is safe for concurrent use.
type Steps struct {
	first int
	runs  []atomic.Uint32 // per saga, one byte for each step
}

// allOnce is the counter of a saga whose four steps ran once each.
const allOnce = 0x01010101

// NewSteps returns counters for sagas numbered first to first+capacity-1.
func NewSteps(first, capacity int) *Steps {
	return &Steps{first: first, runs: make([]atomic.Uint32, capacity)}
}

// Do performs one step of a saga and returns the external id, always 20 bytes.
func (s *Steps) Do(saga, step int) string {
	s.runs[saga-s.first].Add(1 << (8 * step))
	return fmt.Sprintf("ext_%02d_%013d", step, saga)
}

// Capacity is the number of sagas that can be counted.
func (s *Steps) Capacity() int { return len(s.runs) }

// done reports how the steps of one saga ran: nil when each ran once.
func (s *Steps) done(saga int) error {
	runs := s.runs[saga-s.first].Load()
	if runs == allOnce {
		return nil
	}
	for step, name := range StepNames {
		if n := runs >> (8 * step) & 0xff; n != 1 {
			return fmt.Errorf("saga %d is reported as finished, but its step %q ran %d times, want once", saga, name, n)
		}
	}
	return nil
}

// Verify checks that each of n sagas from the first number on ran every step
// exactly once. Call it when the engine is closed, so that late repeats count.
func (s *Steps) Verify(n int) error {
	for saga := s.first; saga < s.first+n; saga++ {
		if err := s.done(saga); err != nil {
			return err
		}
	}
	return nil
}
