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

// knowledge is what the processes that run now can do: only one that knows an instance's definition
// takes it up.
type knowledge struct {
	live     int // sessions
	versions map[ledger.Version]bool
	flow     *flow // why instances wait; nil: none that was read does
	specs    map[ledger.Version]*program.Spec
	paused   map[saga.ID]string // of instances that a person holds: who, and why
}

func (d *Desk) whoKnows(ctx context.Context) (*knowledge, error) {
	sessions, err := d.db.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	k := knowledgeOf(sessions)
	ds, err := d.db.Definitions(ctx)
	for i := range ds {
		k.specs[ledger.Version{Saga: ds[i].Spec.Saga, Version: ds[i].Spec.Version}] = &ds[i].Spec
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
	return k.flow.because(name)
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
		known := make([]string, len(vs))
		for i, v := range vs {
			known[i] = strconv.Itoa(v)
		}
		return fmt.Sprintf("%s, and of this saga they know only version %s", running, strings.Join(known, ", "))
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
