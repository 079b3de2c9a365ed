package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What must hold of every work of a simulated fleet once all is quiet.

func versionOf(st *machine.State) ledger.Version {
	return ledger.Version{Saga: st.ID.Saga, Version: st.Version}
}

// verify checks everything.
func (s *simulation) verify() {
	reader := ledger.Catalogue(s.tap)
	if s.broken[brokenChain] != "" {
		reader = forgetful{reader}
	}
	report, err := ledger.Check(context.Background(), reader, nil)
	if err != nil {
		s.faultf("check: %v", err)
	}
	for _, f := range report.Findings {
		s.faultf("check: %s", f)
	}
	found := s.audit()
	for _, w := range s.tap.order {
		rs, err := reader.History(context.Background(), w.st.ID)
		if err != nil {
			s.faultf("%s: %v", w.st.ID, err)
			continue
		}
		st, err := machine.Fold(w.st.ID, rs)
		if err != nil {
			s.faultf("%v", err)
			continue
		}
		s.verifyEffects(st, rs, found)
	}
	for _, a := range s.cancels {
		s.verifyCancel(a)
	}
}

// forgetful is a reader that misses a record.
type forgetful struct{ ledger.Catalogue }

func (f forgetful) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	rs, err := f.Catalogue.History(ctx, id)
	if len(rs) > 3 {
		rs = slices.Delete(rs, 2, 3)
	}
	return rs, err
}

// verifyEffects compares what a work left with what its kind of step may leave.
//
//	AtMostOnce      at most once, and once more for each word of a person that it did not happen, and for each that was
//	                undone, whatever lookups say and however late anything arrives
//	everything else never two at a time, where the destination kept its stated times; else the audit names each
//	compensated     nothing is alive that has an undo
//	completed       what the ledger names is alive
func (s *simulation) verifyEffects(st *machine.State, rs []machine.Record, found map[string]bool) {
	spec := s.spec(versionOf(st))
	for i := range spec.Steps {
		step := &spec.Steps[i]
		taint := s.sites.taintOf(st.ID, step.Repeat)
		all := s.sites.made(st.ID, step.Name)
		alive, twins := 0, 0
		for _, e := range all {
			if e.undone {
				continue
			}
			alive++
			if taint != "" && !s.recorded(st, step.Name, e.id) && !found[e.id] {
				s.faultf("audit: %s of %s is at its destination, not what the ledger names, and the audit did not report it (%s)", e.id, st.ID, taint)
			}
		}
		for _, e := range all {
			if e.twin {
				twins++
			}
		}
		licensed := 1 + licences(rs, step.Name) + undone(rs, step.Name)
		switch {
		case step.Repeat == program.RepeatAtMostOnce && len(all) > licensed:
			s.faultf("AtMostOnce: %s of %s took effect %d times, and %d were licensed\n%s", step.Name, st.ID, len(all), licensed, s.story(st.ID, step.Name, rs))
		case step.Repeat != program.RepeatAtMostOnce && twins > licences(rs, step.Name) && taint == "":
			s.faultf("%s: %d more of %s of %s were made beside one that stood\n%s", step.Repeat, twins, step.Name, st.ID, s.story(st.ID, step.Name, rs))
		case st.Status == saga.Compensated && step.Undo && alive > 0 && taint == "":
			s.faultf("compensated: %s is compensated, and %d of %s are alive\n%s", st.ID, alive, step.Name, s.story(st.ID, step.Name, rs))
		}
		if ss := st.Step(step.Name); st.Status == saga.Completed && taint == "" && (ss == nil || !slices.Contains(s.sites.standing(st.ID, step.Name), ss.ExternalID)) {
			s.faultf("completed: %s is completed, and what the ledger names as its %s is not there\n%s", st.ID, step.Name, s.story(st.ID, step.Name, rs))
		}
	}
}

// undone counts how often a step was undone, as far as its destination said so.
func undone(rs []machine.Record, step string) (n int) {
	for i := range rs {
		if r := &rs[i]; r.Step == step && r.Direction == saga.Undo && (r.Kind == machine.KindDone || r.Kind == machine.KindResolved && r.ErrorClass == "") {
			n++
		}
	}
	return n
}

func (s *simulation) recorded(st *machine.State, step, id string) bool {
	ss := st.Step(step)
	return ss != nil && ss.Forward.Phase == machine.Done && ss.Undo.Phase != machine.Done && ss.ExternalID == id
}

// audit compares the ledger with the destinations as a program does that knows nothing but both
// listings: it reports everything that stands at a destination and is not what the ledger says
// stands there.
func (s *simulation) audit() map[string]bool {
	found := map[string]bool{}
	if s.broken[brokenAudit] != "" {
		return found
	}
	says := map[string]bool{}
	for f := (ledger.Filter{}); ; {
		page, err := s.tap.List(context.Background(), f)
		for _, h := range page.Instances {
			if st := s.stand(h.ID); st != nil {
				for i := range st.Steps {
					if ss := &st.Steps[i]; s.recorded(st, ss.Name, ss.ExternalID) {
						says[ss.ExternalID] = true
					}
				}
			}
		}
		if f.After = page.Next; err != nil || page.Next == "" {
			break
		}
	}
	for _, e := range s.sites.effects {
		if !e.undone && !says[e.id] {
			found[e.id] = true
		}
	}
	return found
}

// verifyCancel holds that a cancel which was acknowledged is followed, or noted as too late, and
// never dropped.
func (s *simulation) verifyCancel(a *asked) {
	sigs, err := s.tap.Signals(context.Background(), a.id)
	if err != nil {
		s.faultf("cancel: %v", err)
		return
	}
	i := slices.IndexFunc(sigs, func(sig machine.Signal) bool { return sig.Kind == machine.SignalCancel && sig.Reason == a.reason })
	if i < 0 {
		// The same record may have been cancelled already: one cancel of a place is enough.
		if !slices.ContainsFunc(sigs, func(sig machine.Signal) bool { return sig.Kind == machine.SignalCancel && sig.Revision == "" }) {
			s.faultf("cancel: %q of %s was acknowledged, and the ledger does not have it", a.reason, a.id)
		}
		return
	}
	rs, err := s.tap.History(context.Background(), a.id)
	if err != nil {
		s.faultf("cancel: %v", err)
		return
	}
	j := slices.IndexFunc(rs, func(r machine.Record) bool { return slices.Contains(r.Signals, sigs[i].ID) })
	switch {
	case j < 0:
		s.faultf("cancel: %q of %s was acknowledged, and no record names it", a.reason, a.id)
	case rs[j].Kind == machine.KindNoted && !strings.Contains(rs[j].Said(), "too late") && !strings.Contains(rs[j].Said(), "being undone already"):
		s.faultf("cancel: %q of %s was not followed: %s", a.reason, a.id, rs[j].Said())
	case rs[j].Kind == machine.KindCancelled:
		for _, r := range rs[j:] {
			if r.Kind == machine.KindRevised {
				return
			}
			if r.Dispatch != nil && r.Dispatch.Direction == saga.Forward {
				s.faultf("cancel: %q of %s was followed, and %s was sent forward behind it", a.reason, a.id, r.Dispatch.Step)
			}
		}
	}
}

// story tells what is known of one step of a work.
func (s *simulation) story(id saga.ID, step string, rs []machine.Record) string {
	var b strings.Builder
	for i := range rs {
		r := &rs[i]
		fmt.Fprintf(&b, "    %s %3d %s %s %s %d %s %q", clock(r.At), r.Seq, r.Session, r.Kind, r.Step, r.Attempt, r.ExternalID, r.Said())
		if r.Dispatch != nil {
			fmt.Fprintf(&b, ", arms %s %s %d until %s", r.Dispatch.Step, r.Dispatch.Direction, r.Dispatch.Attempt, clock(r.Deadline()))
		}
		b.WriteString("\n")
	}
	for _, r := range s.sites.sent(id, step) {
		fmt.Fprintf(&b, "    at %s: %s (%s), for %q, key %s\n", clock(r.at), r.String(), clock(r.told), r.target, r.key)
	}
	for _, e := range s.sites.made(id, step) {
		fmt.Fprintf(&b, "    %s took effect %s, undone %t, twin %t, shows %s\n", e.id, clock(e.at), e.undone, e.twin, clock(e.shows))
	}
	return b.String()
}
