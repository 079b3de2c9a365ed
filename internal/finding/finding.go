// Package finding says what of a ledger does not move, and what to do about it. The command, the console and metrics tell the same.
package finding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Kinds are those of all findings. docs/situations.md has a section for each.
var Kinds = []string{
	"no-coordinator", "unknown-definition", "witness", "still", "ahead", "reader", "destination", "slots", "paused", "overdue",
	"unreadable", "nameless", "clock", "held", "shared",
}

// Finding is one thing that does not move, and what to do about it.
type Finding struct {
	Kind   string `json:"kind"` // amends help situations has a section on each
	Words  string `json:"words"`
	Next   string `json:"next"`
	Source string `json:"source"` // the one whose withdrawals are held; "" for all else

	About string `json:"-"` // what of its kind it is about, the same as long as it lasts: a destination, a source; "": all of its kind are one
}

// Database is what is read of a store.
type Database interface {
	ledger.Ledger
	intake.Reader
}

// Facts are what is found from, as of Overview.At.
type Facts struct {
	ledger.Overview

	Standing coordinator.Standing
	Review   []ledger.Instance // at most [ledger.MaxBacklog], as of those that are
	Paused   []ledger.Instance
	Counts   []intake.Count
	Nameless []intake.Delivery // the latest of each source of which none of the latest names an object
	Future   []intake.Entry    // of which the source says a time that has not come; at most [ledger.MaxBacklog]
	Holdings []intake.Holding
	Several  []ledger.Shared
}

// Still is for how long a live work has not moved that is a finding, where a person says nothing else.
const Still = 10 * time.Minute

// Read asks a database.
func Read(ctx context.Context, db Database) (*Facts, error) {
	f := &Facts{}
	held := func(of saga.Status) (all []ledger.Instance, err error) {
		return ledger.First(ctx, db, ledger.Filter{Status: of, Limit: ledger.MaxBacklog})
	}
	for _, read := range []func() error{
		func() (err error) { f.Overview, err = db.Overview(ctx); return err },
		func() (err error) { f.Standing, err = coordinator.NewOperator(db).Standing(ctx, f.At); return err },
		func() (err error) { f.Review, err = held(saga.Review); return err },
		func() (err error) { f.Paused, err = held(saga.Paused); return err },
		func() (err error) { f.Counts, err = db.Counts(ctx); return err },
		func() (err error) { f.Nameless, err = nameless(ctx, db, f.Counts, f.At); return err },
		func() (err error) {
			f.Future, err = db.Entries(ctx, intake.EntryFilter{Future: true, Limit: ledger.MaxBacklog})
			return err
		},
		func() (err error) { f.Holdings, err = db.Holdings(ctx); return err },
		func() (err error) { f.Several, err = db.Shared(ctx); return err },
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("look for what does not move: %w", err)
		}
	}
	return f, nil
}

// adder notes a finding. Behind its kind and a colon is what of that kind it is about.
type adder func(kind, next, format string, args ...any)

// All says what does not move.
func (f *Facts) All(still time.Duration) []Finding {
	all := []Finding{}
	add := func(kind, next, format string, args ...any) {
		kind, about, _ := strings.Cut(kind, ":")
		all = append(all, Finding{Kind: kind, Words: fmt.Sprintf(format, args...), Next: next, About: about})
	}
	f.processes(add, still)
	for _, look := range []func(adder){f.reader, f.destinations, f.overdue, f.unreadable, f.mappings, f.clocks} {
		look(add)
	}
	all = append(all, f.heldBack()...)
	f.shared(add)
	return all
}

// processes is about those that run, and what they run.
func (f *Facts) processes(add adder, still time.Duration) {
	if len(f.Sessions) == 0 {
		add("no-coordinator", "start the program that runs the sagas", "no coordinator runs: no session is live")
	}
	if words, next := unwitnessed(f.Sessions); words != "" {
		add("witness", next, "%s", words)
	}
	for i := range f.Unknown {
		b := &f.Unknown[i]
		name := Definition(b.Saga, b.Version, b.Ended)
		add("unknown-definition:"+name, "start a program that registers "+name, "no live process knows %s: %s", name, backlogWorks(b, f.At))
	}
	for i := range f.Oldest {
		h := &f.Oldest[i]
		if d := f.At.Sub(h.Updated); d >= still {
			add("still", "look: "+show(h.ID), "%s %s (%s) has not moved for %s", h.ID.Saga, h.ID.Work, Status(h.Status, h.Reason), Span(d))
		}
	}
	const next = "see that the database's clock is right; then make it due: amends catch-up"
	for i := range f.Ahead.Works {
		h := &f.Ahead.Works[i]
		add("ahead", next, "%s %s is due at %s, in %s, later than the ledger's clock can explain: it was further once", h.ID.Saga, h.ID.Work, ISO(h.Due), Span(h.Due.Sub(f.At)))
	}
	for i := range f.Ahead.Sessions {
		s := &f.Ahead.Sessions[i]
		add("ahead", next, "session %s (%s) was renewed at %s, %s later than the ledger's clock: its lease ends late", s.Token, s.Label, ISO(s.Renewed), Span(s.Renewed.Sub(f.At)))
	}
}

// unwitnessed says that no process which runs has a witness of the ledger.
func unwitnessed(sessions []ledger.Session) (words, next string) {
	for i := range sessions {
		switch w := sessions[i].Witness; w {
		case ledger.WitnessKept, ledger.WitnessTemp, "":
			return "", ""
		case ledger.WitnessNew:
			words = "the witness of what runs knew nothing of this ledger before: whether the database was put back from a backup, it cannot tell"
			next = "if it was: stop every process, then amends recover --restored --reason WHY. If not, the next start has a witness"
		default:
			if words == "" {
				words = "the ledger has no witness: that its database was put back from a backup would not be noticed (" + w + ")"
				next = "give the process a folder that outlives it, or a store.Witness of your own"
			}
		}
	}
	return words, next
}

// How far a reader may keep the database from cleaning up. SQLite's log is copied into the file every 16 MB, and cut back to 64.
const (
	largeLog = 80 << 20
	longRead = time.Hour
)

// reader is about what keeps a database from cleaning up.
func (f *Facts) reader(add adder) {
	if f.Log > largeLog {
		add("reader", "end what has the file open and reads: a transaction in sqlite3, a copy, a backup that hangs; the log is then cut back by itself",
			"the log beside the ledger's file has grown to %d MB, as it does while a reader stays: it grows with every record, and reading becomes slower", f.Log>>20)
	}
	if open := f.At.Sub(f.Reading); !f.Reading.IsZero() && open > longRead {
		add("reader", "look: SELECT pid, usename, application_name, state, query FROM pg_stat_activity ORDER BY xact_start; if it hangs: SELECT pg_terminate_backend(PID)",
			"a transaction has been open on the database for %s, since %s: what is deleted meanwhile is not cleaned away", Span(open), ISO(f.Reading))
	}
}

// overdue are the works that a person has, and whose deadline has passed meanwhile. Nothing follows from it by itself.
func (f *Facts) overdue(add adder) {
	n := 0
	for _, h := range slices.Concat(f.Review, f.Paused) { // what waits is looked at by itself
		if !h.Deadline.IsZero() && !h.Deadline.After(f.At) && n < 10 {
			n++
			add("overdue", "decide about it: "+show(h.ID), "%s %s (%s): its deadline passed at %s, and a person has it", h.ID.Saga, h.ID.Work, Status(h.Status, h.Reason), ISO(h.Deadline))
		}
	}
}

// shared are the messages for which several works of a saga wait.
func (f *Facts) shared(add adder) {
	for _, s := range f.Several {
		add("shared:"+s.Saga, "if each of them has a message of its own, give them keys that differ, such as the work id",
			"works of %s wait for the same message, %s about %q: one that comes is for the work that has waited for longest", s.Saga, s.Name, s.Key)
	}
}

// backlogWorks says how many works wait, and for how long.
func backlogWorks(b *ledger.Backlog, now time.Time) string {
	what := "work"
	if b.Ended { // they have a signal to be read
		what = "ended work"
	}
	n := Count(int(b.Works), what)
	if b.Works >= ledger.MaxBacklog {
		n = "at least " + n
	}
	switch late := now.Sub(b.Oldest); {
	case b.Oldest.IsZero():
		return n
	case late <= 0:
		return fmt.Sprintf("%s, the first due in %s", n, Span(-late))
	default:
		return fmt.Sprintf("%s, the first due for %s", n, Span(late))
	}
}

func show(id saga.ID) string {
	return program.Command("show", id.Work, " --saga "+program.Word(id.Saga))
}
