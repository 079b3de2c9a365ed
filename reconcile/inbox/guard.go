package inbox

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// panics remembers where functions of the user's have panicked.
type panics struct {
	mu   sync.Mutex
	seen map[string]bool
}

// maxPanics bounds how many places are told apart.
const maxPanics = 1000

// first reports whether this is the first panic at place.
func (p *panics) first(place string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	if p.seen[place] || len(p.seen) >= maxPanics {
		return false
	}
	p.seen[place] = true
	return true
}

// guard calls a function of the user's. A panic is an error like any other; its stack is told once
// for each place.
func (h *Processor) guard(o Object, call func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		place, stack := panickedAt(), ""
		err = fmt.Errorf("panic at %s: %v", place, r)
		if h.panics.first(place) {
			stack = string(debug.Stack())
		}
		h.tell.Panicked(o, err.Error(), stack)
	}()
	return call()
}

// panickedAt is the line whose panic is being recovered.
func panickedAt() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		if panicking && !inRuntime(f.Function) {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}

func inRuntime(function string) bool { return len(function) > 8 && function[:8] == "runtime." }
