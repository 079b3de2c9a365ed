package desk

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	k, err := d.whoKnows(ctx, false)
	if err != nil {
		return nil, err
	}
	all := &All[Saga]{Items: []Saga{}}
	for i := range definitions {
		spec := &definitions[i].Spec
		if newest := First(all.Items, func(s *Saga) bool { return s.Saga == spec.Saga }); newest == nil {
			all.Items = append(all.Items, k.sagaOf(spec))
		} else if newest.Version < spec.Version {
			*newest = k.sagaOf(spec)
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
	return all, nil
}

func (k *knowledge) sagaOf(spec *program.Spec) Saga {
	known := k.versions[ledger.Version{Saga: spec.Saga, Version: spec.Version}]
	s := Saga{Definition: Definition{spec.Saga, spec.Version}, Known: known, Steps: []Step{}, Counts: []Standing{}}
	for i := range spec.Steps {
		of := &spec.Steps[i]
		s.Steps = append(s.Steps, Step{
			Step: of.Name, Destination: When(!of.Waits(), spec.Destination(of.Name)), Waits: string(of.Wait), Undo: Either(of.Undo, "undo", of.NoUndoReason),
			Pivot: of.Pivot, Counts: []Standing{},
		})
	}
	return s
}

// stands counts an instance where it stands.
func stands(all []Saga, h *ledger.Instance) {
	of := First(all, func(s *Saga) bool { return s.Saga == h.ID.Saga })
	if of == nil {
		return
	}
	counts := &of.Counts
	if step := First(of.Steps, func(s *Step) bool { return s.Step == h.Step }); step != nil {
		counts = &step.Counts
	}
	if n := First(*counts, func(s *Standing) bool { return s.Status == h.Status }); n != nil {
		n.Works++
	} else {
		*counts = append(*counts, Standing{h.Status, 1})
	}
}

// knowledge is what the processes that run now can do: only one that knows an instance's definition
// takes it up.
type knowledge struct {
	live     int // sessions
	versions map[ledger.Version]bool
	flow     *flow // why instances wait; nil: none that was read does
	specs    map[ledger.Version]*program.Spec
	paused   map[saga.ID]string // of instances that a person holds: who, and why
}

// whoKnows reads it, and where instances wait, why.
func (d *Desk) whoKnows(ctx context.Context, wait bool) (*knowledge, error) {
	sessions, err := d.db.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	k := knowledgeOf(sessions)
	ds, err := d.db.Definitions(ctx)
	for i := range ds {
		k.specs[ledger.Version{Saga: ds[i].Spec.Saga, Version: ds[i].Spec.Version}] = &ds[i].Spec
	}
	if err == nil && wait {
		k.flow, err = d.flow(ctx)
	}
	return k, err
}

func knowledgeOf(sessions []ledger.Session) *knowledge {
	k := &knowledge{versions: map[ledger.Version]bool{}, specs: map[ledger.Version]*program.Spec{}}
	for i := range sessions {
		if sessions[i].Dead {
			continue
		}
		k.live++
		for _, v := range sessions[i].Knows {
			k.versions[v] = true
		}
	}
	return k
}

// lacking is the definition that an instance waits for and no live process knows; "" when one does, or
// when it waits for none. What is said to one that has ended is read by a process that knows its
// version or a newer one. A nil k was not asked.
func (k *knowledge) lacking(h *ledger.Instance) string {
	ended := h.Status.Terminal()
	if k == nil || ended && h.Posted == h.Consumed || k.versions[ledger.Version{Saga: h.ID.Saga, Version: h.Version}] {
		return ""
	}
	if known := k.of(h.ID.Saga); ended && len(known) > 0 && known[len(known)-1] > h.Version {
		return ""
	}
	return definition(h.ID.Saga, h.Version, ended)
}

// because says why an instance waits under a name.
func (k *knowledge) because(name string) string {
	if k == nil || k.flow == nil {
		return "for " + name
	}
	why, _ := k.flow.waits(name)
	return why
}

// of are the versions of a saga that live processes know, in order.
func (k *knowledge) of(name string) (versions []int) {
	for v := range k.versions {
		if v.Saga == name {
			versions = append(versions, v.Version)
		}
	}
	slices.Sort(versions)
	return versions
}

// runs says who runs, where none of them knows the definition that an instance of saga name waits for.
func (k *knowledge) runs(name string) string {
	running := Counted(k.live, "coordinator runs", "coordinators run")
	switch vs := k.of(name); {
	case k.live == 0:
		return "no coordinator runs"
	case len(vs) > 0:
		known := strings.Join(docs(vs, func(v *int) string { return strconv.Itoa(*v) }), ", ")
		return fmt.Sprintf("%s, and of this saga they know only version %s", running, known)
	default:
		return running + ", and none of them knows this saga"
	}
}

// startOne is what is safe to do next about an instance that lacks a definition.
func startOne(lacking string) string {
	return fmt.Sprintf("Start a program that registers %s: it takes up the work, and reads what was posted. Until then nothing happens to it, and nothing posted is lost.", lacking)
}

// stays says what becomes of a signal to an instance that lacks a definition.
func stays(lacking string) string {
	return fmt.Sprintf("it stays posted until a process that registers %s reads it, and none runs now", lacking)
}
