package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
)

// What goes in and out is copied: a caller that reuses its slices must not edit history.

func copyRecord(r machine.Record) machine.Record {
	r.Body, r.Snapshot, r.Signals = slices.Clone(r.Body), slices.Clone(r.Snapshot), slices.Clone(r.Signals)
	if r.Dispatch != nil {
		a := *r.Dispatch
		r.Dispatch = &a
	}
	return r
}

func copyRecords(rs []machine.Record) []machine.Record { return each(rs, copyRecord) }

func copySignal(s machine.Signal) machine.Signal {
	s.Output, s.Input, s.Body = slices.Clone(s.Output), slices.Clone(s.Input), slices.Clone(s.Body)
	return s
}

func copySignals(ss []machine.Signal) []machine.Signal { return each(ss, copySignal) }

func copyHeads(hs []*ledger.Instance) []ledger.Instance {
	return each(hs, func(h *ledger.Instance) ledger.Instance { return *h })
}

// each is what one makes of every element. It is never nil.
func each[A, B any](of []A, one func(A) B) []B {
	out := make([]B, len(of))
	for i, a := range of {
		out[i] = one(a)
	}
	return out
}

// copyControl makes an empty body nil, as a database does.
func copyControl(c ledger.Control) ledger.Control {
	c.Body = slices.Clone(c.Body)
	if len(c.Body) == 0 {
		c.Body = nil
	}
	return c
}

// definition goes through JSON, as in a database, so that nothing of the caller's spec is shared.
func definition(spec *program.Spec, now time.Time) (ledger.Definition, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return ledger.Definition{}, fmt.Errorf("encode its structure: %w", err)
	}
	d := ledger.Definition{Structure: spec.Structure(), JSON: b, First: now}
	if err := json.Unmarshal(b, &d.Spec); err != nil {
		return ledger.Definition{}, fmt.Errorf("decode its structure: %w", err)
	}
	return d, nil
}

func copyDefinition(d ledger.Definition) ledger.Definition {
	d.JSON = slices.Clone(d.JSON)
	d.Spec.Steps = slices.Clone(d.Spec.Steps)
	return d
}
