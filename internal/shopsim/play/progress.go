package play

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how many orders each sync has done: one bar for both on a terminal, a line for
// each fifth otherwise.
type progress struct {
	out   io.Writer
	total int
	bar   *progressbar.ProgressBar // nil: lines

	mu       sync.Mutex
	done     [2]int
	reported int
}

func newProgress(out io.Writer, total int) *progress {
	p := &progress{out: out, total: total}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(2*total,
			progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionClearOnFinish())
	}
	return p
}

// amends says how many orders are done with a ledger, naive how many without.
func (p *progress) amends(done int) { p.set(0, done) }
func (p *progress) naive(done int)  { p.set(1, done) }

func (p *progress) set(which, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[which] = min(done, p.total)
	sum := p.done[0] + p.done[1]
	state := fmt.Sprintf("orders done: %d with amends, %d without a ledger", p.done[0], p.done[1])
	if p.bar != nil {
		p.bar.Describe(state)
		_ = p.bar.Set(sum) // a bar that cannot be drawn stops nothing
		return
	}
	const parts = 5
	if part := parts * sum / (2 * p.total); part > p.reported {
		p.reported = part
		fmt.Fprintln(p.out, state)
	}
}

// end makes room for what is said next.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		return
	}
	fmt.Fprintln(p.out)
}
