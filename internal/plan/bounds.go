package plan

import (
	"cmp"
	"fmt"
	"math"

	"github.com/amends-dev/amends/internal/faults"
)

// Bounds are how much one run may do by itself. They are checked on the complete plan, before the
// first action. What is zero is the default.
type Bounds struct {
	Create  Bound // 1000, 20 %
	Update  Bound // 1000, 20 %
	Destroy Bound // 10, 1 %

	// Few actions are never too many of a percentage, nor few missing objects too many. 10.
	Few int64
	// Shrink: a source with less than this share of the objects of its last complete listing has
	// lost them, as far as we know, and nothing is concluded from what it does not list. 0.8.
	Shrink float64
	// SameField: when more than this share of comparable documents differ in one same field, the
	// differences are taken for the mapping's and not for edits at the destination. 0.5.
	SameField float64

	// Row failed actions in a row end a run, as do more than Rate of the last Window. 5, 0.2, 50.
	Row    int
	Rate   float64
	Window int
}

// Bound is a limit on one kind of action.
type Bound struct {
	Count   int64   // at most so many in one run
	Percent float64 // of the keys that any side has
	Ask     bool    // none without an approval of the plan
}

// OrDefaults returns b with the defaults where it says nothing.
func (b Bounds) OrDefaults() Bounds {
	b.Create = b.Create.or(1000, 20)
	b.Update = b.Update.or(1000, 20)
	b.Destroy = b.Destroy.or(10, 1)
	b.Few = cmp.Or(b.Few, 10)
	b.Shrink = cmp.Or(b.Shrink, 0.8)
	b.SameField = cmp.Or(b.SameField, 0.5)
	b.Row = cmp.Or(b.Row, 5)
	b.Rate = cmp.Or(b.Rate, 0.2)
	b.Window = cmp.Or(b.Window, 50)
	return b
}

func (b Bound) or(count int64, percent float64) Bound {
	return Bound{Count: cmp.Or(b.Count, count), Percent: cmp.Or(b.Percent, percent), Ask: b.Ask}
}

// Faults returns everything that is wrong with the bounds, in one error.
func (b Bounds) Faults() error {
	var wrong faults.List
	whole := func(name string, n int64) {
		wrong.Whenf(n < 0, "%s is %d: a number from 0 on; 0 is the default", name, n)
	}
	within := func(name string, v, most float64) {
		wrong.Whenf(!(v >= 0 && v <= most), "%s is %v: from 0 to %v; 0 is the default", name, v, most) // NaN is neither
	}
	for _, kind := range []struct {
		name  string
		bound Bound
	}{{"Create", b.Create}, {"Update", b.Update}, {"Destroy", b.Destroy}} {
		whole(kind.name+".Count", kind.bound.Count)
		within(kind.name+".Percent", kind.bound.Percent, 100)
	}
	whole("Few", b.Few)
	within("Shrink", b.Shrink, 1)
	within("SameField", b.SameField, 1)
	whole("Row", int64(b.Row))
	within("Rate", b.Rate, 1)
	whole("Window", int64(b.Window))
	if err := wrong.Err(); err != nil {
		return fmt.Errorf("bounds: %w", err)
	}
	return nil
}

// Check writes into a plan what the bounds say about it: OverLimit and RefusedReason.
func (b Bounds) Check(p *Plan) {
	b = b.OrDefaults()
	p.OverLimit, p.RefusedReason = nil, b.Diagnose(p)
	for _, r := range Risks {
		if e := b.excess(r, p); e != nil {
			p.OverLimit = append(p.OverLimit, *e)
		}
	}
}

// holdsNothing says why what is newer does not wait for what a plan leaves to people; "": it does.
func (b Bounds) holdsNothing(p *Plan) string {
	b = b.OrDefaults()
	switch n, most := p.Left(), b.most(b.Update, p); {
	case p.RefusedReason != "":
		return "the plan is refused"
	case n > most:
		return fmt.Sprintf("it leaves %s to people, which is more than the %s that it may change by itself", count(n, "difference"), thousands(most))
	default:
		return ""
	}
}

// most is how many actions a bound allows.
func (b *Bounds) most(bound Bound, p *Plan) int64 {
	share := int64(math.Floor(bound.Percent * float64(p.Counts.Keys) / 100))
	return max(0, min(bound.Count, max(share, b.Few)))
}

func (b *Bounds) of(r Risk) Bound {
	switch r {
	case Create:
		return b.Create
	case Update:
		return b.Update
	default:
		return b.Destroy
	}
}

// excess says why the actions of one risk are too many, or nil.
func (b *Bounds) excess(r Risk, p *Plan) *Excess {
	n, bound := p.Acts(r), b.of(r)
	if n == 0 {
		return nil
	}
	e := &Excess{Risk: r, Count: n, Limit: b.most(bound, p)}
	gone := ""
	if r == Destroy {
		gone = b.Shrunk(&p.Counts)
	}
	switch {
	case bound.Ask:
		e.Limit, e.Reason = 0, fmt.Sprintf("%s; none is done without an approval", kinds(n, r))
	case gone != "":
		e.Limit, e.Reason = 0, gone
	case n <= e.Limit:
		return nil
	case n > bound.Count:
		e.Reason = fmt.Sprintf("%s; at most %s", kinds(n, r), thousands(bound.Count))
	default:
		e.Reason = fmt.Sprintf("%s %s %s of %s; at most %s", kinds(n, r), are(n), percentUp(n, p.Counts.Keys), count(p.Counts.Keys, "object"), share100(bound.Percent))
	}
	return e
}

// Shrunk says that, and why, nothing may be concluded from what the source does not list. "" when
// it may.
func (b Bounds) Shrunk(c *Census) string {
	b = b.OrDefaults()
	switch {
	case c.Source <= 0 && (c.PreviousSource > 0 || c.Destination > 0):
		return fmt.Sprintf("the source lists nothing, and there %s %s of it; that it is empty is less likely than that it cannot be seen", are(max(c.PreviousSource, c.Destination)), count(max(c.PreviousSource, c.Destination), "object"))
	case c.PreviousSource > 0 && c.PreviousSource-c.Source > b.Few && float64(c.Source) < b.Shrink*float64(c.PreviousSource):
		return fmt.Sprintf("the source lists %s, %s of the %s of its last complete listing; under %s nothing is concluded from what is not there", count(c.Source, "object"), percent(c.Source, c.PreviousSource), thousands(c.PreviousSource), share100(100*b.Shrink))
	default:
		return ""
	}
}

// Diagnose returns the reason when the differences are the mapping's and not edits at the
// destination, else "". It reads only Differences, MappingVersion and PreviousMappingVersion of the plan, so a caller can ask
// it before any finding is looked at closely.
func (b Bounds) Diagnose(p *Plan) string {
	b = b.OrDefaults()
	why, mapped := fmt.Sprintf("the mapping is %q as before: look at what the destination does with the field", p.MappingVersion), false
	if p.PreviousMappingVersion != "" && p.PreviousMappingVersion != p.MappingVersion {
		why, mapped = fmt.Sprintf("the mapping was %q and is %q", p.PreviousMappingVersion, p.MappingVersion), true
	}
	field, most := "", int64(0)
	for _, s := range p.Differences.Fields {
		n := s.Count
		if mapped {
			n += s.NewerAtSource
		}
		if n > most {
			field, most = s.Field, n
		}
	}
	if most <= b.Few || float64(most) <= b.SameField*float64(p.Differences.Compared) {
		return ""
	}
	return fmt.Sprintf("%s of %s differ in one field, %q; that is too many for edits by hand; %s. If it is meant, raise SameField over %s for one run",
		percentUp(most, p.Differences.Compared), count(p.Differences.Compared, "document"), field, why, share100(100*b.SameField))
}
