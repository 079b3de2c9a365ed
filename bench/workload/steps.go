package workload

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Steps performs the steps of the workload and counts how often each one ran. It is safe for
// concurrent use.
type Steps struct {
	first int
	runs  []atomic.Uint32 // per saga, one byte for each step
}

// allOnce is the counter of a saga whose four steps ran once each.
const allOnce = 0x01010101

// NewSteps returns counters for sagas numbered first to first+capacity-1, and what frees them.
func NewSteps(first, capacity int) (*Steps, func()) {
	runs, free := OffHeap[atomic.Uint32](capacity)
	return &Steps{first: first, runs: runs}, free
}

// OffHeap returns n values that the garbage collector does not see, and what frees them: a heap that is
// larger for the counters of the load would be collected less often, and the engine be faster for it.
// T holds no pointers.
func OffHeap[T any](n int) ([]T, func()) {
	var one T
	b, err := syscall.Mmap(-1, 0, max(1, n)*int(unsafe.Sizeof(one)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("no memory for %d counters: %v", n, err))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), func() { _ = syscall.Munmap(b) }
}

// Do performs one step of a saga and returns the external id, always 20 bytes.
func (s *Steps) Do(saga, step int) string {
	s.runs[saga-s.first].Add(1 << (8 * step))
	return fmt.Sprintf("ext_%02d_%013d", step, saga)
}

// Verify checks that each of n sagas from the first number on ran every step exactly once. Call it when
// the engine is closed, so that late repeats count.
func (s *Steps) Verify(n int) error {
	for i := range n {
		runs := s.runs[i].Load()
		if runs == allOnce {
			continue
		}
		for step, name := range StepNames {
			if n := runs >> (8 * step) & 0xff; n != 1 {
				return fmt.Errorf("saga %d is reported as finished, but its step %q ran %d times, want once", s.first+i, name, n)
			}
		}
	}
	return nil
}
