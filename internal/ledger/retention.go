package ledger

import (
	"context"
	"encoding/json"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Retention lets go of what is kept of works that have ended, in three steps: bodies and snapshots, then records, then the work itself.
type Retention interface {
	// Reduce lets go of what each reduction says, and answers at its own index whether it did. A work that is not as it was read, has not
	// ended, is in a session's hands, has an unread signal, or is held ([ControlHold]) is left as it is. What is done is done as a whole. An
	// error may have done it: reduce what a new listing shows.
	Reduce(ctx context.Context, all []Reduction) (done []bool, err error)
}

// Left says what is left of a work.
type Left string

// The states of a work that has ended.
const (
	LeftAll     Left = "all"
	LeftRecords Left = "records" // their bodies and snapshots have gone
	LeftRemains Left = "remains" // a tombstone: all records have gone
)

// BodiesGone is [Instance.Remains] of a work whose bodies have gone.
const BodiesGone = "-"

// Left is what is left of the work.
func (h *Instance) Left() Left {
	switch h.Remains {
	case "":
		return LeftAll
	case BodiesGone:
		return LeftRecords
	default:
		return LeftRemains
	}
}

// Reduction is what a work is to lose.
type Reduction struct {
	Head Instance // as it was read
	Tail int64    // the number of its last record; 0: it has none any more
	To   Left     // [LeftRecords] or [LeftRemains]; empty: the work goes, and all that counts it
	// Records are those that lose something, by [machine.Record.Reduce], with the keys that they arm. Signals are all of the work's that say more than
	// who and why.
	Records []machine.Record
	Signals []machine.Signal
	Tags    []string        // that it was started with, when its records go
	Remains machine.Remains // what is left when its records go
}

// NowRemains is what the head shows from then on.
func (r *Reduction) NowRemains() string {
	if r.To == LeftRecords {
		return BodiesGone
	}
	b, _ := json.Marshal(r.Remains) //nolint:errchkjson // texts always encode
	return string(b)
}

// Remembered is the one record that is read of a work whose records have gone: it folds to what is left of it.
func Remembered(h *Instance) machine.Record {
	return machine.Record{
		Seq: 1, At: h.Updated, Until: h.Created, Kind: machine.KindRemembered, Version: h.Version, Revision: h.Revision, Status: h.Status, Body: json.RawMessage(h.Remains),
		Note: "its records have gone by retention",
	}
}

// HoldName is the name of the control that holds a work.
func HoldName(id saga.ID) string { return id.Saga + " " + id.Work }
