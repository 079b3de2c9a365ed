package plan

import (
	"fmt"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Class names a difference.
type Class string

// The classes; the table is in the package comment.
const (
	InSync          Class = "in-sync"
	Missing         Class = "missing"
	LedgerLost      Class = "ledger-lost"
	AdoptMismatch   Class = "adopt-mismatch"
	InDoubt         Class = "in-doubt"
	PhantomDone     Class = "phantom-done"
	Stale           Class = "stale"
	Diverged        Class = "diverged"
	DivergedForeign Class = "diverged-foreign"
	Locked          Class = "locked"
	Duplicate       Class = "duplicate"
	Orphan          Class = "orphan"
	Foreign         Class = "foreign"
	SourceGone      Class = "source-gone"
	Stuck           Class = "stuck"
	DupLedger       Class = "dup-ledger"
	Unreadable      Class = "unreadable"
	NoSource        Class = "no-source"
	Accepted        Class = "accepted"
)

// Verb is what to do about a difference.
type Verb string

// The verbs.
const (
	Nothing  Verb = "nothing"
	Start    Verb = "start"    // the saga, for an object that has none
	Revise   Verb = "revise"   // the saga, at the object's version
	Again    Verb = "rerun"    // run the ended work once more, at the revision it has
	Adopt    Verb = "adopt"    // record in the ledger what the destination has
	Resume   Verb = "resume"   // wake a work that should have moved
	Withdraw Verb = "withdraw" // undo what was done for a cancelled object
	Look     Verb = "verify"   // ask the destination once more before anything is said
	Ask      Verb = "review"   // a person decides
	Halt     Verb = "stop"     // stop the job: what was found cannot be
)

// Acts reports whether the verb is carried out by itself. The others are words to a person, or
// nothing.
func (v Verb) Acts() bool {
	switch v {
	case Start, Revise, Again, Adopt, Resume, Withdraw:
		return true
	default:
		return false
	}
}

// Finding is what was found about one natural key.
type Finding struct {
	Key     string   `json:"key"`
	Class   Class    `json:"class"`
	Action  Verb     `json:"action"`
	Reason  string   `json:"reason"`
	Changes []Change `json:"changes,omitempty"`
	// Evidence: the versions and ids the finding rests on. An action is dropped when they are
	// others by then.
	SourceRevision string   `json:"sourceRevision,omitempty"` // at the source
	LedgerRevision string   `json:"ledgerRevision,omitempty"` // in the ledger
	Documents      []string `json:"documents,omitempty"`      // live, at the destination
	Suggestion     string   `json:"suggestion,omitempty"`     // to the person who is asked
}

// Rule says what is done about fields of ours that were changed at the destination.
type Rule string

// The rules.
const (
	Review  Rule = ""        // a person decides
	Enforce Rule = "enforce" // write ours again
	Ignore  Rule = "ignore"  // leave it
)

// Policy is what a job may do beyond its defaults.
type Policy struct {
	// Fields says what is done about each field of ours that was changed at the destination.
	// Review.
	Fields map[string]Rule
	// Recreate makes a document again that the ledger knows and the destination has lost.
	Recreate bool
}

// Looks is how often the destination must have been asked in vain before "there is none" counts.
const Looks = 2

// Classify says what there is to say about one key. It is total: every combination of the three
// sides has a class.
func Classify(i *Item, p *Policy) Finding {
	c := classifier{item: i, policy: p, live: i.live()}
	f := c.classify()
	f.Key = i.Key
	if i.Truth != nil {
		f.SourceRevision = i.Truth.Revision
	}
	if i.Known != nil {
		f.LedgerRevision = i.Known.Revision
	}
	for _, d := range c.live {
		f.Documents = append(f.Documents, d.ID)
	}
	return f
}

type classifier struct {
	item   *Item
	policy *Policy
	live   []Document
}

func (c *classifier) classify() Finding {
	t, k := c.item.Truth, c.item.Known
	switch {
	case c.item.Key == "":
		return Finding{Class: Foreign, Action: Nothing, Reason: "it does not carry our mark"}
	case k != nil && k.Works > 1:
		return Finding{Class: DupLedger, Action: Halt, Reason: fmt.Sprintf("the ledger has %d works for one natural key", k.Works)}
	case k != nil && (k.InDoubt || k.Status == saga.Review):
		return c.unsettled()
	case k != nil && k.Overdue:
		return Finding{Class: Stuck, Action: Resume, Reason: "the work is " + string(k.Status) + " and should have moved by now"}
	case k != nil && k.Held:
		return c.held()
	case k != nil && k.Status == saga.Paused:
		return Finding{Class: Stuck, Action: Ask, Reason: "a person holds the work", Suggestion: program.Command("show", c.item.Key, "") + " says who and why; amends resume lets it go on"}
	case k != nil && k.Status == saga.Adopting:
		return Finding{Class: Stuck, Action: Ask, Reason: "a rebuild is taking the work over, and has not come to its end", Suggestion: "rebuild again: it goes on where it was"}
	case k != nil && k.Status.Live():
		return Finding{Class: InSync, Action: Nothing, Reason: "it is being worked on"}
	case t != nil && t.Unreadable != "":
		return Finding{Class: Unreadable, Action: Ask, Reason: t.Unreadable, Suggestion: "correct the object at the source, or how it is read; its document is left alone"}
	case len(c.live)+c.item.Unnamed > 1:
		return c.several()
	case t == nil:
		return c.unspoken()
	case t.Held && (k != nil || len(c.live) == 0):
		return Finding{Class: InSync, Action: Nothing, Reason: notYet}
	case !t.Wanted:
		return c.unwanted()
	case len(c.live) == 0:
		return c.absent()
	default:
		return c.compare(&c.live[0])
	}
}

const notYet = "its source says: not yet"

// held: the source has paused the work.
func (c *classifier) held() Finding {
	switch t := c.item.Truth; {
	case t == nil || t.Held:
		return Finding{Class: InSync, Action: Nothing, Reason: notYet}
	case t.Unreadable != "" || !t.Wanted:
		return Finding{Class: Stuck, Action: Ask, Reason: "its source held it, and does not want it any more, or cannot be read", Suggestion: program.Command("show", c.item.Key, "") + " says what can be done"}
	default:
		return Finding{Class: Stale, Action: Revise, Reason: "its source held it, and does not any more"}
	}
}

// unsettled: the saga has not said its last word; nothing is planned over its head.
func (c *classifier) unsettled() Finding {
	k := c.item.Known
	if k.Status == saga.Review {
		return Finding{Class: InDoubt, Action: Ask, Reason: "the work is in review: " + string(k.Reason), Suggestion: program.Command("show", c.item.Key, "")}
	}
	return Finding{Class: InDoubt, Action: Nothing, Reason: "a step may have happened; the saga asks the destination once it has settled"}
}

func (c *classifier) several() Finding {
	keep, why, plain := c.live[0].ID, "it is the oldest", true
	if c.live[0].Created.IsZero() {
		why = "the destination does not say which is older"
	}
	for _, d := range c.live {
		if d.Locked && !c.live[0].Locked && plain {
			keep, why, plain = d.ID, "it is the oldest that is posted", false
		}
		if k := c.item.Known; k != nil && k.Made == d.ID {
			keep, why = d.ID, "the ledger knows it"
		}
	}
	return Finding{
		Class: Duplicate, Action: Ask, Reason: fmt.Sprintf("the destination has %d of them under one mark", len(c.live)+c.item.Unnamed),
		Suggestion: "keep " + keep + ": " + why + ". Nothing is voided by itself",
	}
}

// unspoken: the source says nothing about the key.
func (c *classifier) unspoken() Finding {
	switch {
	case len(c.live) == 0 && c.item.Known == nil:
		return Finding{Class: InSync, Action: Nothing, Reason: "the source was not asked about it, and nothing stands"}
	case len(c.live) == 0:
		return Finding{Class: NoSource, Action: Nothing, Reason: "the source was not asked about it, and no document stands"}
	default:
		return Finding{Class: NoSource, Action: Nothing, Reason: "the source was not asked about it; silence proves nothing"}
	}
}

// unwanted: the object is cancelled or gone.
func (c *classifier) unwanted() Finding {
	t, k := c.item.Truth, c.item.Known
	switch {
	case t.Revision == "" && !t.Proven && k != nil && len(c.item.Documents) == 0:
		return Finding{Class: NoSource, Action: Nothing, Reason: "neither the source nor the destination has it: it was compared with nothing"}
	case len(c.live) == 0:
		return Finding{Class: InSync, Action: Nothing, Reason: "it is cancelled or gone, and nothing stands"}
	case t.Revision == "" && !t.Proven:
		return Finding{Class: Orphan, Action: Nothing, Reason: "the source did not list it; that is not proven yet"}
	case t.Revision == "":
		return Finding{Class: Orphan, Action: Ask, Reason: "the source does not have it, which was proven, and its document stands", Suggestion: "compensate it: void or credit " + c.live[0].ID}
	case c.live[0].Locked:
		return Finding{Class: SourceGone, Action: Ask, Reason: "the source cancelled it, and its document is posted or paid", Suggestion: "credit " + c.live[0].ID + "; it cannot be voided"}
	case k == nil:
		return Finding{Class: Orphan, Action: Ask, Reason: "the source cancelled it, and the ledger does not know who made " + c.live[0].ID, Suggestion: "void " + c.live[0].ID}
	case k.Status != saga.Completed:
		return Finding{Class: Orphan, Action: Ask, Reason: "the work is " + string(k.Status) + ", and " + c.live[0].ID + " stands", Suggestion: "void " + c.live[0].ID}
	default:
		return Finding{Class: SourceGone, Action: Withdraw, Reason: "the source cancelled it at " + t.Revision}
	}
}

// absent: the object is wanted, and there is no document.
func (c *classifier) absent() Finding {
	k := c.item.Known
	switch {
	case c.item.Looked < Looks:
		return Finding{Class: c.absence(), Action: Look, Reason: "the destination has none; one miss proves nothing"}
	case k == nil:
		return Finding{Class: Missing, Action: Start, Reason: "the ledger has no work for it"}
	case k.Status != saga.Completed:
		return c.reopened()
	case c.policy.Recreate:
		return Finding{Class: PhantomDone, Action: Again, Reason: "its document is gone; the policy says to make it again"}
	default:
		return Finding{Class: PhantomDone, Action: Ask, Reason: "the ledger says done, and the document is not there", Suggestion: "was it deleted on purpose? If not, make it again"}
	}
}

func (c *classifier) absence() Class {
	if k := c.item.Known; k != nil && k.Status == saga.Completed {
		return PhantomDone
	}
	return Missing
}

// reopened: the work was undone, and the object is wanted. What a person undid a comparison does not make again for a version that says the
// same: to undo it may itself have raised the version, such as by a mark that was taken away.
func (c *classifier) reopened() Finding {
	t, k := c.item.Truth, c.item.Known
	newer := saga.CompareRevisions(t.Revision, k.Revision) > 0
	_, byHand := saga.SplitRevision(k.Revision)
	same := byHand > 0 && k.Fields != nil && len(diff(k.Fields, t.Fields)) == 0
	if newer && !same {
		return Finding{Class: Stale, Action: Revise, Reason: "it was undone at " + k.Revision + ", and the source has " + t.Revision}
	}
	at, besides := "at that version", ". A version newer than "+k.Revision+" at its source is started by itself"
	if newer {
		at, besides = "at "+t.Revision+", which says the same", ""
	}
	return Finding{
		Class: Missing, Action: Ask, Reason: "the work was undone at " + k.Revision + ", and the source still wants it " + at,
		Suggestion: program.Command("history", c.item.Key, "") + " says why it was undone. To run it again: " + program.Command("rerun", c.item.Key, " --reason WHY") + besides,
	}
}

// compare: the object is wanted, and there is one document.
func (c *classifier) compare(d *Document) Finding {
	t, k := c.item.Truth, c.item.Known
	changes := diff(d.Fields, t.Fields)
	if k == nil || k.Status != saga.Completed {
		return c.unknown(d, changes)
	}
	newer := saga.CompareRevisions(t.Revision, k.Revision) > 0 && (k.Fields == nil || len(diff(k.Fields, t.Fields)) > 0)
	switch {
	case len(changes) == 0 && d.Foreign:
		return Finding{Class: DivergedForeign, Action: Nothing, Reason: "only fields differ that are not ours"}
	case len(changes) == 0:
		return Finding{Class: InSync, Action: Nothing, Reason: "it says what it should"}
	case newer && d.Locked:
		return posted(d, changes)
	case newer:
		return Finding{Class: Stale, Action: Revise, Changes: changes, Reason: "the source has " + t.Revision + ", and " + k.Revision + " was applied"}
	default:
		return c.diverged(d, changes)
	}
}

// posted: the document is older than the object, and must not be edited.
func posted(d *Document, changes []Change) Finding {
	return Finding{Class: Locked, Action: Ask, Changes: changes, Reason: "the source changed it, and the document is posted or paid", Suggestion: "credit " + d.ID + " and issue a new one"}
}

// unknown: the ledger does not say that the document was made.
func (c *classifier) unknown(d *Document, changes []Change) Finding {
	k := c.item.Known
	switch {
	case k != nil:
		return Finding{Class: Orphan, Action: Ask, Changes: changes, Reason: "the work is " + string(k.Status) + ", and " + d.ID + " stands", Suggestion: "void it, or begin the work again"}
	case len(changes) > 0 && d.Intact && d.Revision != "" && saga.CompareRevisions(d.Revision, c.item.Truth.Revision) < 0:
		if d.Locked { // adopting it would bring it up to date
			return posted(d, changes)
		}
		return Finding{Class: LedgerLost, Action: Adopt, Changes: changes, Reason: "the destination has it as it was at " + d.Revision + ", untouched, and the ledger does not know"}
	case len(changes) > 0:
		return Finding{Class: AdoptMismatch, Action: Ask, Changes: changes, Reason: "the mark matches and the content does not", Suggestion: "correct " + d.ID + " or the source, then adopt"}
	default:
		return Finding{Class: LedgerLost, Action: Adopt, Reason: "the destination has it, exactly, and the ledger does not know"}
	}
}

// diverged: fields of ours were changed at the destination.
func (c *classifier) diverged(d *Document, changes []Change) Finding {
	var rules struct{ review, enforce, ignore bool }
	for _, ch := range changes {
		switch c.policy.Fields[ch.Field] {
		case Ignore:
			rules.ignore = true
		case Enforce:
			rules.enforce = true
		default:
			rules.review = true
		}
	}
	f := Finding{Class: Diverged, Action: Ask, Changes: changes, Reason: "fields of ours were changed at the destination", Suggestion: "keep the change and correct the source, or write ours again"}
	switch k := c.item.Known; {
	case k.Fields != nil && len(diff(d.Fields, k.Fields)) == 0: // to write the old input again would change nothing
		f.Reason = AsApplied + k.Revision + ", and the source says something else at " + c.item.Truth.Revision + ", which is not newer"
		f.Suggestion = "change the object at the source, so that its version grows"
		if d.Locked { // a newer version must not edit it either
			f.Reason = "the document is posted or paid: " + f.Reason
		}
	case rules.review:
	case !rules.enforce:
		f.Action, f.Reason, f.Suggestion = Nothing, f.Reason+"; the policy leaves them", ""
	case d.Locked:
		f.Reason += ", and the document is posted or paid"
	case rules.ignore:
		f.Reason += "; to write some again would also write those that the policy leaves"
	default:
		f.Action, f.Reason, f.Suggestion = Again, f.Reason+"; the policy writes them again", ""
	}
	return f
}
