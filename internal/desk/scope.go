package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
)

// Scope is more than one instance: those that want a destination, those of a saga, or all.
type Scope struct {
	Destination string `path:"name" flag:"destination" doc:"instead of WORK: all that wants this destination"`
	Saga        string `path:"saga" flag:"saga" doc:"the saga, where several know the work id; without WORK all its works"`
	All         bool   `json:"-" flag:"all" doc:"instead of WORK: everything"`
}

// Named is how many scopes it names.
func (s *Scope) Named() (n int) {
	for _, is := range []bool{s.Destination != "", s.Saga != "", s.All} {
		if is {
			n++
		}
	}
	return n
}

// called is how the scope that was found is called: all, saga:NAME, or destination:NAME.
func (s *Scope) called(which coordinator.Scope) string {
	if s.Destination != "" {
		return "destination:" + which.String()
	}
	return which.String()
}

// in is the scope that is meant. One that the ledger never heard of is a mistake.
func (s *Scope) in(f *flow) (coordinator.Scope, error) {
	which := coordinator.OfSaga(s.Saga)
	switch {
	case s.All:
		which = coordinator.Everything()
	case s.Destination != "":
		which = coordinator.OfDestination(s.Destination)
		return which, f.knows(s.Destination)
	}
	return which, f.knows(which.String())
}

// ScopeIn is an act on a scope.
type ScopeIn struct {
	By
	Scope
	DryRun bool `json:"dry-run,omitempty" doc:"say what would happen and store nothing"`
}

// Scoped is what became of an act on more than one instance.
type Scoped struct {
	Scope  string `json:"scope"` // all, saga:NAME, or destination:NAME
	DryRun bool   `json:"dryRun"`
	Stored bool   `json:"stored"`
	Before *Held  `json:"before"` // who had paused it; null: not paused
	Paused *Held  `json:"paused"` // who has by now; null: not paused

	Pause   bool     `json:"-"` // it was to be paused
	Waiting int64    `json:"-"` // works that wait for it in the ledger
	Beware  []string `json:"-"` // what is paused besides
	Ends    string   `json:"-"` // the command that ends it
}

// Held is what a person holds: a saga, everything, or a destination.
type Held struct {
	Scope  string     `json:"scope"` // all, or saga:NAME
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// Words are what is held, by whom and why.
func (h *Held) Words() string { return fmt.Sprintf("paused, says %s: %s", h.Actor, h.Reason) }

func heldOf(p *coordinator.Paused) Held {
	return Held{p.Scope.String(), utc(p.At), p.By.Name, p.By.Reason}
}

// Hold pauses a scope.
func (d *Desk) Hold(ctx context.Context, in *ScopeIn) (*Scoped, error) {
	return d.setScope(ctx, in, true)
}

// Release resumes a scope.
func (d *Desk) Release(ctx context.Context, in *ScopeIn) (*Scoped, error) {
	return d.setScope(ctx, in, false)
}

func (d *Desk) setScope(ctx context.Context, in *ScopeIn, pause bool) (*Scoped, error) {
	if err := usage("", in.By.faults()); err != nil {
		return nil, err
	}
	f, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	which, err := in.Scope.in(f)
	if err != nil {
		return nil, err
	}
	name := in.called(which)
	out := &Scoped{Scope: name, DryRun: in.DryRun, Before: f.pauseOf(name), Pause: pause, Waiting: f.waiting[strings.TrimPrefix(name, "destination:")].Works}
	if !pause && out.Before == nil {
		return nil, &Failure{Code: Conflict, What: name + " is not paused", Why: errors.New("nothing was stored"), Next: "see what is: amends destination list"}
	}
	for i := range f.Paused {
		if p := &f.Paused[i]; !pause && p.Scope.String() != name {
			out.Beware = append(out.Beware, fmt.Sprintf("%s still paused, says %s: %s", finding.ScopeIs(p.Scope), p.By.Name, p.By.Reason))
		}
	}
	out.Ends = fmt.Sprintf("amends resume %s --reason WHY%s", finding.Flag(name), d.flag)
	if out.Paused = out.Before; in.DryRun {
		return out, nil
	}
	op := coordinator.NewOperator(d.db)
	do := op.ResumeScope
	if pause {
		do = op.PauseScope
	}
	if err := do(ctx, which, in.actor()); err != nil {
		return nil, err
	}
	now, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	out.Stored, out.Paused = true, now.pauseOf(name)
	return out, nil
}

// pauseOf is who has paused a scope, or nil.
func (f *flow) pauseOf(name string) *Held {
	if p := f.paused(name); p != nil {
		h := heldOf(p)
		h.Scope = name
		return &h
	}
	if d := f.of(strings.TrimPrefix(name, "destination:")); d != nil && d.State == "paused" {
		return &Held{name, utc(d.Since), d.Actor, d.Why}
	}
	return nil
}

// ScopeActs is who paused and resumed a scope, the newest first.
type ScopeActs struct {
	Scope string     `json:"scope"` // all, saga:NAME, or destination:NAME
	Acts  []ScopeAct `json:"acts"`
}

// ScopeAct is one of them.
type ScopeAct struct {
	At     *time.Time `json:"at"`
	Act    string     `json:"act"` // pause, resume or probe
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// ScopeActs reads who paused and resumed a scope, the newest 100 first.
func (d *Desk) ScopeActs(ctx context.Context, in *Scope) (*ScopeActs, error) {
	f, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	which, err := in.in(f)
	if err != nil {
		return nil, err
	}
	acts, err := coordinator.NewOperator(d.db).Acts(ctx, which, 0)
	if err != nil {
		return nil, err
	}
	return &ScopeActs{in.called(which), docs(acts, func(a *coordinator.Act) ScopeAct {
		is := ScopeAct{utc(a.At), "resume", a.By.Name, a.By.Reason}
		switch {
		case a.Paused:
			is.Act = "pause"
		case a.Probed:
			is.Act = "probe"
		}
		return is
	})}, nil
}
