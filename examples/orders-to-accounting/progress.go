package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how many orders are done: a bar on a terminal, a line for each fifth otherwise. A zero progress
// shows nothing.
type progress struct {
	bar   *progressbar.ProgressBar
	out   io.Writer
	label string
	total int
	last  *int
}

func newProgress(out io.Writer, label string, total int) progress {
	p := progress{out: out, label: label, total: total, last: new(int)}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(label), progressbar.OptionSetWidth(40),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p progress) set(done int) {
	if p.out == nil {
		return
	}
	done = min(done, p.total)
	if p.bar != nil {
		_ = p.bar.Set(done) // a bar that cannot be drawn stops nothing
		return
	}
	const parts = 5
	if part := parts * done / p.total; part > *p.last {
		*p.last = part
		fmt.Fprintf(p.out, "%s  %d of %d orders\n", p.label, done, p.total)
	}
}

func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
