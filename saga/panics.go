package saga

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/amends-dev/amends/internal/program"
)

const (
	maxStack  = 16 << 10 // bytes of a stack that are kept for the log
	maxFrames = 3        // of a stack, in the words that go on record
)

// recovered turns a panic into an outcome: a fault when nothing was sent, unknown otherwise. An
// action that never touched its gate may have sent; only our own faults are known to come before
// anything was.
func recovered(g *program.Gate, p any) program.Outcome {
	if f, ok := p.(*faultError); ok && !g.Passed() {
		return program.Outcome{Class: Fault, Error: f.Error()}
	}
	o := program.Outcome{Class: Unknown}
	if o.Error, o.Stack = panicked(p); g.Unsent() {
		o.Class = Unsent
	}
	return o
}

// panicked describes a panic, in the function that recovers from it: the first line of what was
// said and the nearest functions of the action for the record, the whole stack for the log.
func panicked(p any) (words, stack string) {
	said, _, _ := strings.Cut(fmt.Sprint(p), "\n")
	words = "panic: " + program.Clean(said, 300)
	if at := blamed(); len(at) > 0 {
		words += "; at " + strings.Join(at, ", ")
	}
	return words, program.Clean(string(debug.Stack()), maxStack)
}

// guarded makes a panic in what a step says an error. It is deferred itself: elsewhere nothing can be recovered.
func guarded(step string, err *error) {
	if p := recover(); p != nil {
		words, _ := panicked(p)
		*err = fmt.Errorf("step %q: %s", step, words)
	}
}

// blamed names the functions in which the panic happened, the innermost first.
func blamed() (at []string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for inAction, more := false, true; more && len(at) < maxFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			inAction = inAction || f.Function == "runtime.gopanic"
		case strings.Contains(f.Function, "/saga.(*Action["), strings.Contains(f.Function, "/saga.(*Definition["):
			more = more && !inAction
		case inAction:
			at = append(at, fmt.Sprintf("%s (%s:%d)", f.Function, filepath.Base(f.File), f.Line))
		}
	}
	return at
}
