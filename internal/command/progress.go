package command

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows on stderr how far a command has come: one line that counts on a terminal, now and
// then a new line elsewhere. With -o json it shows nothing.
type progress struct {
	app  *app
	bar  *progressbar.ProgressBar // nil: there is no terminal
	last time.Time                // that a line was written
}

// between is how long nothing is said at least where there is no terminal.
const between = 10 * time.Second

// progress begins to count something.
func (a *app) progress(what string) *progress {
	p := &progress{app: a, last: a.now()}
	if !a.json && screenOf(a.err, a.env).terminal {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

// at says that n of it are done; line says it in words.
func (p *progress) at(n int64, line func() string) {
	if p.bar != nil {
		_ = p.bar.Set64(n)
		return
	}
	if now := p.app.now(); now.Sub(p.last) >= between {
		p.last = now
		p.app.sayf("%s", line())
	}
}

// is says what is being counted by now.
func (p *progress) is(what string) {
	if p.bar != nil {
		p.bar.Describe(visible(what))
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
