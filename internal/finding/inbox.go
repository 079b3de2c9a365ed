package finding

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/program"
)

const (
	recent = 24 * time.Hour // for how long a delivery of which nothing follows is a finding: nothing takes it back
	inARow = 10             // so many deliveries of a source that name no object are no greetings
)

// nameless looks at the latest deliveries of each source whose last one came to nothing.
func nameless(ctx context.Context, db intake.Reader, counts []intake.Count, now time.Time) (found []intake.Delivery, err error) {
	for _, c := range counts {
		later := func(o intake.Count) bool { return o.Source == c.Source && o.Disposition != "" && o.Last.After(c.Last) }
		if c.Disposition != intake.Unknown || c.Count < inARow || now.Sub(c.Last) >= recent || slices.ContainsFunc(counts, later) {
			continue
		}
		ds, err := db.Deliveries(ctx, intake.DeliveryFilter{Source: c.Source, Limit: inARow})
		if err != nil {
			return nil, err
		}
		names := func(d intake.Delivery) bool { return d.Object.ID != "" || d.Outcome != intake.Unknown }
		if len(ds) == inARow && !slices.ContainsFunc(ds, names) {
			found = append(found, ds[0])
		}
	}
	return found, nil
}

// unreadable are the sources whose genuine deliveries could not be read lately: their senders were
// told that they arrived, and will not speak of it again.
func (f *Facts) unreadable(add adder) {
	for _, c := range f.Counts {
		if c.Disposition == intake.Malformed && f.At.Sub(c.Last) < recent {
			add("unreadable:"+c.Source, "look: amends inbox list --disposition malformed --source "+program.Word(c.Source),
				"%s of %s could not be read, the latest at %s: nothing follows from what it said", Count(int(c.Count), "genuine webhook"), c.Source, ISO(c.Last))
		}
	}
}

// mappings are the sources of which no delivery names an object.
func (f *Facts) mappings(add adder) {
	for i := range f.Nameless {
		d := &f.Nameless[i]
		add("nameless:"+d.Object.Source, "see where the Mapping looks, correct it and start the program; then let it read them again: amends inbox replay --disposition unknown --source "+
			program.Word(d.Object.Source)+" --reason WHY",
			"none of the latest %d genuine webhooks of %s named an object, so nothing follows from them: %s", inARow, d.Object.Source, cmp.Or(d.Why, d.Because))
	}
}

// clocks are the sources that say times which have not come: their changes wait until they have.
func (f *Facts) clocks(add adder) {
	for i := 0; i < len(f.Future); {
		source, n, ahead, next := f.Future[i].Object.Source, 0, time.Duration(0), time.Time{}
		for ; i < len(f.Future) && f.Future[i].Object.Source == source; i++ { // they come in the order of their sources
			e := &f.Future[i]
			if of := e.Future(); of.After(f.At) {
				n++
				ahead = max(ahead, of.Sub(f.At))
				if next.IsZero() || e.Due.Before(next) {
					next = e.Due
				}
			}
		}
		if n > 0 {
			add("clock:"+source, "compare the clocks. Whole hours are mostly a time without its zone: let Fetch read it in the shop's zone, as the Mapping must",
				"source %s: %s changed up to %s ahead of our clock, and each waits until its time has come; the next is asked about at %s",
				source, Count(n, "object"), Span(ahead), ISO(next))
		}
	}
}

// heldBack are the sources that withdraw more than their bounds.
func (f *Facts) heldBack() (findings []Finding) {
	for _, h := range f.Holdings {
		source := program.Word(h.Source)
		findings = append(findings, Finding{
			Kind: "held", Source: h.Source, About: h.Source, Words: fmt.Sprintf("withdrawals of %s that are held: %d; it cancelled or removed more at once than its bound lets through, and nothing of that is undone", h.Source, h.Count),
			Next: "look: amends inbox objects --held --source " + source + "; if the source is right, undo it all: amends inbox release " + source +
				" --reason WHY; if it is wrong, leave all as it is: amends inbox drop " + source + " --reason WHY",
		})
	}
	return findings
}
