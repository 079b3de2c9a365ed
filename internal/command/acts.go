package command

import (
	"context"
	"fmt"
	"time"

	"github.com/amends-dev/amends/coordinator"
)

// actsJSON is who paused and resumed a scope, the newest first.
type actsJSON struct {
	Scope string    `json:"scope"` // all, saga:NAME, or destination:NAME
	Acts  []actJSON `json:"acts"`
}

type actJSON struct {
	At     *time.Time `json:"at"`
	Act    string     `json:"act"` // pause, resume or probe
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// runActs shows who paused and resumed a scope.
func (a *app) runActs(ctx context.Context, s *scope) error {
	return a.with(ctx, func(st store) error {
		f, err := flowOf(ctx, st)
		if err != nil {
			return err
		}
		which, err := s.find(f)
		if err != nil {
			return err
		}
		acts, err := coordinator.NewOperator(st).Acts(ctx, which, 0)
		if err != nil {
			return err
		}
		out := actsJSON{s.called(which), make([]actJSON, len(acts))}
		for i := range acts {
			out.Acts[i] = actJSON{utc(acts[i].At), "resume", acts[i].By.Name, acts[i].By.Reason}
			switch {
			case acts[i].Paused:
				out.Acts[i].Act = "pause"
			case acts[i].Probed:
				out.Acts[i].Act = "probe"
			}
		}
		if a.json {
			return a.printJSON(out)
		}
		a.printActs(&out)
		return nil
	})
}

func (a *app) printActs(out *actsJSON) {
	a.field("scope", out.Scope)
	fmt.Fprintln(a.out)
	if len(out.Acts) == 0 {
		a.paragraph("", "It was never paused or resumed as a whole. Those who paused a work are in the history of that work.")
		return
	}
	g := grid{header: []string{"at", "act", "who", "why"}}
	for i := range out.Acts {
		act := &out.Acts[i]
		g.add(exact(*act.At), act.Act, act.Actor, act.Reason)
	}
	a.print(&g)
}
