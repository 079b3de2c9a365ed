package desk

import (
	"context"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Saga is a definition as it was registered last, and where its instances stand that have not ended.
type Saga struct {
	Definition
	Known bool   `json:"known"` // a live process knows this version
	Steps []Step `json:"steps"`
	// Counts are of instances at no step of this version: those that run, and those of other versions' steps.
	Counts []Standing `json:"counts"`
}

// Step is a step of a definition.
type Step struct {
	Step        string     `json:"step"`
	Destination string     `json:"destination"` // "": it waits
	Waits       string     `json:"waits"`       // for a delay, a time (until), an answer or votes; "": it acts
	Undo        string     `json:"undo"`        // how it is undone: undo; why it is not; "": nothing says
	Pivot       bool       `json:"pivot"`       // behind it nothing is undone
	Counts      []Standing `json:"counts"`
}

// Standing is how many instances have a status; of one status at most 1000 are counted.
type Standing struct {
	Status saga.Status `json:"status"`
	Works  int         `json:"works"`
}

// live are the statuses of instances that have not ended.
var live = []saga.Status{saga.Running, saga.Retrying, saga.Waiting, saga.Compensating, saga.Review, saga.Paused, saga.Adopting}

// Sagas lists the definitions of a ledger, each in its newest version.
func (d *Desk) Sagas(ctx context.Context, _ *Nothing) (*All[Saga], error) {
	definitions, err := d.db.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	k, err := d.whoKnows(ctx)
	if err != nil {
		return nil, err
	}
	all := &All[Saga]{Items: []Saga{}}
	for i := range definitions {
		spec := &definitions[i].Spec
		at := slices.IndexFunc(all.Items, func(s Saga) bool { return s.Saga == spec.Saga })
		switch {
		case at < 0:
			all.Items = append(all.Items, sagaOf(spec))
		case all.Items[at].Version < spec.Version:
			all.Items[at] = sagaOf(spec)
		}
	}
	slices.SortFunc(all.Items, func(a, b Saga) int { return strings.Compare(a.Saga, b.Saga) })
	for _, status := range live {
		heads, err := ledger.First(ctx, d.db, ledger.Filter{Status: status, Limit: ledger.MaxBacklog})
		if err != nil {
			return nil, err
		}
		for i := range heads {
			stands(all.Items, &heads[i])
		}
	}
	for i := range all.Items {
		s := &all.Items[i]
		s.Known = k.versions[ledger.Version{Saga: s.Saga, Version: s.Version}]
	}
	return all, nil
}

func sagaOf(spec *program.Spec) Saga {
	s := Saga{Definition: Definition{spec.Saga, spec.Version}, Steps: []Step{}, Counts: []Standing{}}
	for i := range spec.Steps {
		of := &spec.Steps[i]
		step := Step{Step: of.Name, Waits: string(of.Wait), Undo: of.NoUndo, Pivot: of.Pivot, Counts: []Standing{}}
		if of.Undo {
			step.Undo = "undo"
		}
		if !of.Waits() {
			step.Destination = spec.Destination(of.Name)
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}

// stands counts an instance where it stands.
func stands(all []Saga, h *ledger.Instance) {
	i := slices.IndexFunc(all, func(s Saga) bool { return s.Saga == h.ID.Saga })
	if i < 0 {
		return
	}
	counts := &all[i].Counts
	if n := slices.IndexFunc(all[i].Steps, func(s Step) bool { return s.Step == h.Step }); n >= 0 {
		counts = &all[i].Steps[n].Counts
	}
	n := slices.IndexFunc(*counts, func(s Standing) bool { return s.Status == h.Status })
	if n < 0 {
		n, *counts = len(*counts), append(*counts, Standing{Status: h.Status})
	}
	(*counts)[n].Works++
}
