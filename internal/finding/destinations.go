package finding

import (
	"fmt"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
)

// destinations are about those that are not healthy or held up, and what is paused.
func (f *Facts) destinations(add adder) {
	for i := range f.Standing.Paused {
		p := &f.Standing.Paused[i]
		add("paused:"+p.Scope.String(), "when it may go on: amends resume "+Flag(p.Scope.String())+" --reason WHY",
			"%s paused since %s, says %s: %s%s", ScopeIs(p.Scope), ISO(p.At), p.By.Name, p.By.Reason, f.queue(p.Scope.String()))
	}
	for i := range f.Standing.Destinations {
		d := &f.Standing.Destinations[i]
		name := program.Word(d.Name)
		switch d.State {
		case "healthy":
			f.slots(add, d)
		case "paused":
			add("destination:"+d.Name, "when it may go on: amends resume --destination "+name+" --reason WHY", "destination %s%s", Stands(d), f.queue(d.Name))
		default:
			add("destination:"+d.Name, "it is tried by itself; when it is mended: amends destination probe "+name+" --reason WHY", "destination %s%s", Stands(d), f.queue(d.Name))
		}
	}
}

// slots is about a limit of which half or more serves none, at one that is not away.
func (f *Facts) slots(add adder, d *coordinator.DestinationStatus) {
	unanswered, left := d.Lasts(d.Parts, f.At)
	if unanswered {
		add("slots:"+d.Name, "see whether it answers. A shorter Timeout, and a Settle that is no longer than its requests can be at work, free slots sooner; "+
			"one that never returns is free when its process is restarted", "destination %s: %s%s", d.Name, Unanswered(d), f.queue(d.Name))
	}
	if left {
		add("slots:"+d.Name, "it ends by itself. See why the process ended; a shorter Timeout and Settle of what is sent there make the wait shorter",
			"destination %s: %s%s", d.Name, Left(d), f.queue(d.Name))
	}
}

// Unanswered says which slots of a destination requests without an answer hold.
func Unanswered(d *coordinator.DestinationStatus) string {
	words := "requests without an answer hold " + Count(d.Unanswered, "slot") + " of its limit, half or more of what a process may use"
	if d.UnansweredUntil.IsZero() {
		return words
	}
	return words + "; what is awaited no more is over at " + ISO(d.UnansweredUntil)
}

// Left says which parts of a destination's limit a process has left.
func Left(d *coordinator.DestinationStatus) string {
	return fmt.Sprintf("a process that ended left %d of %d parts of its limit, with requests that may be under way: they are free at %s at the latest", d.Left, d.Parts, ISO(d.LeftUntil))
}

// queue says how many works wait under a name.
func (f *Facts) queue(name string) string {
	var n int64
	for _, w := range f.Waiting {
		if w.Destination == name || w.Destination == coordinator.RetryPrefix+name {
			n += w.Works
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 work waits for it"
	default:
		return "; " + Works(n) + " works wait for it"
	}
}
