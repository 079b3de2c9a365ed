package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// HistoryIn says of which instance.
type HistoryIn struct {
	Which
	Bodies bool `json:"-" flag:"bodies" doc:"show inputs and results, too"`
}

// History is everything that happened to an instance.
type History struct {
	WorkID  string   `json:"workId"`
	Saga    string   `json:"saga"`
	Records []Record `json:"records"`
}

// Record is one record of a chain. Bodies are named by size and hash; their content only when asked
// for.
type Record struct {
	Seq         int64          `json:"seq"`
	Hash        machine.Hash   `json:"hash"`
	Session     string         `json:"session"` // the writer
	At          *time.Time     `json:"at"`
	Kind        machine.Kind   `json:"kind"`
	Words       string         `json:"words"`                  // what happened, for people
	Version     int            `json:"version,omitempty"`      // of the definition: started, heard and revised
	Revision    string         `json:"revision,omitempty"`     // where a version of the source is spoken of
	Nonce       int64          `json:"nonce,string,omitempty"` // of the first record
	Step        string         `json:"step"`
	Direction   saga.Direction `json:"direction"`
	Attempt     int            `json:"attempt"`
	ExternalID  string         `json:"externalId"`
	Body        *Body          `json:"body"`
	BodyDropped bool           `json:"bodyDropped"`
	ErrorClass  saga.Class     `json:"errorClass"`
	Error       string         `json:"error"`   // what went wrong, and nothing else
	Note        string         `json:"note"`    // what the coordinator has to say
	Actor       string         `json:"actor"`   // who said what it follows
	Why         string         `json:"why"`     // in which words
	Cause       string         `json:"cause"`   // of a start
	Signals     []string       `json:"signals"` // the ids of those that it consumed
	Status      saga.Status    `json:"status"`
	Reason      saga.Reason    `json:"reason"`
	Due         *time.Time     `json:"dueAt"`
	Until       *time.Time     `json:"until"`    // of a wait its end, of a start for later its beginning
	Dispatch    *Dispatch      `json:"dispatch"` // the attempt that it set in motion; null: none
	Snapshot    *Body          `json:"snapshot"`
}

// Body is a body by its size and hash.
type Body struct {
	SHA256  string          `json:"sha256"`
	Bytes   int             `json:"bytes"`
	Content json.RawMessage `json:"content,omitempty"` // with --bodies
}

// String is the name of a body that is not shown.
func (b *Body) String() string {
	if b == nil {
		return "none is kept"
	}
	return strconv.Itoa(b.Bytes) + " bytes, sha256 " + b.SHA256
}

// Dispatch is an attempt that a record set in motion.
type Dispatch struct {
	Step      string         `json:"step"`
	Direction saga.Direction `json:"direction"`
	Attempt   int            `json:"attempt"`
	Key       string         `json:"key"`
	Reissue   int            `json:"reissue"`
	Deadline  *time.Time     `json:"deadlineAt"`
}

// History reads the chain of an instance.
func (d *Desk) History(ctx context.Context, in *HistoryIn) (*History, error) {
	head, err := d.find(ctx, &in.Which)
	if err != nil {
		return nil, err
	}
	records, err := d.db.History(ctx, head.ID)
	return answer(History{head.ID.Work, head.ID.Saga, docs(records, func(r *machine.Record) Record { return recordOf(r, in.Bodies) })}, err)
}

// Started reports whether a person started an instance.
func (d *Desk) Started(ctx context.Context, id saga.ID, by string) (bool, error) {
	records, err := d.db.History(ctx, id)
	return First(records, func(r *machine.Record) bool { return r.Kind == machine.KindStarted && r.Actor == by }) != nil, err
}

func recordOf(r *machine.Record, bodies bool) Record {
	j := Record{
		Seq: r.Seq, Hash: r.Hash, Session: session(r.Session), At: utc(r.At), Kind: r.Kind, Words: told(r), Version: r.Version,
		Revision: r.Revision, Nonce: r.Nonce, Step: r.Step, Direction: r.Direction, Attempt: r.Attempt,
		ExternalID: r.ExternalID, Body: bodyOf(r.Body, bodies), BodyDropped: r.BodyDropped, ErrorClass: r.ErrorClass,
		Error: r.Error, Note: r.Note, Actor: r.Actor, Why: r.Why, Cause: r.Cause, Status: r.Status, Reason: r.Reason,
		Signals: docs(r.Signals, func(id *int64) string { return strconv.FormatInt(*id, 10) }), Snapshot: bodyOf(r.Snapshot, bodies), Until: utc(r.Until),
		Due: utc(Either(r.Wait > 0, r.At.Add(r.Wait), time.Time{})),
	}
	if m := r.Dispatch; m != nil {
		j.Dispatch = &Dispatch{m.Step, m.Direction, m.Attempt, m.Key, m.Reissue, utc(r.Deadline())}
	}
	return j
}

func bodyOf(b json.RawMessage, content bool) *Body {
	if len(b) == 0 {
		return nil
	}
	sum := sha256.Sum256(b)
	return &Body{hex.EncodeToString(sum[:]), len(b), Either(content, b, nil)}
}

// told is a record in words: what was learned, and behind the arrow what it set in motion.
func told(r *machine.Record) string {
	words := learned(r) + With(" = ", r.ExternalID) + When(r.BodyDropped, " (the result was too large and is not kept)")
	said := r.Said()
	if by := "started by " + r.Actor; r.Cause == by && said == "says "+r.Actor {
		words, said = words+", "+by, ""
	} else {
		words += With(", caused by ", r.Cause)
	}
	waits := r.Kind == machine.KindWaiting || r.Kind == machine.KindExtended || r.Kind == machine.KindOpened
	words += When(waits && !r.Until.IsZero(), ", until "+iso(r.Until)) + With(": ", said) + When(r.Digests != (machine.Erased{}), " (what it said was erased, or the key to it is not here)")
	if r.Wait > 0 {
		words += fmt.Sprintf(" (due again at %s)", Either(r.Wait > 12*time.Hour, iso, clock)(r.At.Add(r.Wait)))
	}
	if m := r.Dispatch; m != nil {
		words += fmt.Sprintf(" → %s until %s, key %s", effect(m.Step, m.Direction, m.Attempt), clock(r.Deadline()), m.Key)
	}
	return words
}

// learned is the first half of a record: who did what, in the words of the ledger.
func learned(r *machine.Record) string {
	switch {
	case r.Kind == machine.KindAdopted && r.Step == "":
		return "adopted"
	case r.Kind == machine.KindAdopted && r.ErrorClass == saga.Unsent:
		return "adopted: " + r.Step + " does not stand"
	case r.Kind == machine.KindAdopted && r.ErrorClass == saga.Refused:
		return "not adopted: " + r.Step
	case r.Kind == machine.KindAdopted:
		return "adopted: " + r.Step + With(" of revision ", r.Revision)
	case r.Kind == machine.KindStarted:
		given := When(r.Digests.Body == (machine.Hash{}), fmt.Sprintf(" with %d bytes of input", len(r.Body))) // else the body is what is left of it
		return fmt.Sprintf("started%s%s, by definition version %d", given, With(", revision ", r.Revision), r.Version)
	case r.Kind == machine.KindRevised:
		return fmt.Sprintf("begun again for revision %s, by definition version %d", r.Revision, r.Version)
	case r.Kind == machine.KindHeard:
		return "heard of revision " + r.Revision + When(len(r.Body) > 0, fmt.Sprintf(", %d bytes of input", len(r.Body)))
	case r.Step == "":
		return string(r.Kind) + With(" at revision ", r.Revision)
	default:
		return effect(r.Step, r.Direction, r.Attempt) + " " + string(r.Kind)
	}
}
