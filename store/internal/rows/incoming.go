package rows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// Column is a column of a table and its type in a statement. A moment is a number of microseconds
// there, and a time in the table.
type Column struct{ Name, Kind string }

// The kinds of columns.
const (
	Moment = "moment"
	Bigint = "bigint"
	Flag   = "boolean"
	Bytes  = "bytea"
	Words  = "text"
)

// Incoming is an event on its way into the inbox.
type Incoming struct {
	Key     intake.Digest // of its source and dedupe digest
	Twin    intake.Digest // its key when it conflicts with the event that has Key
	Content intake.Digest // what two deliveries of one event have in common
	Copies  int64
	Judged  bool         // before the gate
	Census  intake.Count // what a count learns of it when it is judged
	Values  []any        // of InboxColumns
	Body    string       // "" for none
}

// InboxColumns are the columns of amends_inbox that come from the event, in the order of
// [Incoming.Values].
var InboxColumns = columns(eventFields(&intake.Event{}))

// Disposition is the place of the column receiver_disposition in [InboxColumns], Why of
// receiver_reason.
const (
	Disposition = 17
	Why         = 18
)

func eventFields(e *intake.Event) []Field {
	return slices.Concat([]Field{
		{"received_at", &e.Received}, {"occurred_at", &e.At},
		{"version_epoch", sparse(&e.Version.Epoch)}, {"version_kind", (*string)(&e.Version.Clock)},
		{"version_number", sparse(&e.Version.N)}, {"version_precision", sparse((*int64)(&e.Version.Step))},
		{"deleted", &e.Deleted}, {"dedupe_key", &e.Dedupe}, {"fingerprint", &e.Fingerprint},
	}, keyFields(&e.Object), []Field{
		{"topic", &e.Topic}, {"event_id", &e.ID}, {"payload_kind", (*string)(&e.Payload)}, {"signed_by", &e.Secret},
		{"receiver_disposition", (*label)(&e.Disposition)}, {"receiver_reason", &e.Why},
	})
}

var errNoDedupe = errors.New("it has no dedupe digest, so a copy of it could not be told from another event")

// Receive makes rows of events. It copies what it needs of them.
func Receive(events []intake.Event) ([]*Incoming, error) {
	all := make([]*Incoming, len(events))
	for i := range events {
		if events[i].Dedupe.IsZero() {
			return nil, fmt.Errorf("event %d of %d (%s): %w", i+1, len(events), events[i].Object, errNoDedupe)
		}
		all[i] = incoming(&events[i])
	}
	return all, nil
}

func incoming(e *intake.Event) *Incoming {
	o := Object(e.Object)
	in := &Incoming{
		Key:     intake.DigestOf(o.Source, string(e.Dedupe[:])),
		Content: content(o, e),
		Copies:  1,
		Judged:  e.Disposition != "" && e.Disposition != intake.Conflict,
		Body:    printable(string(e.Body)),
	}
	in.Twin = intake.DigestOf(string(in.Key[:]), string(in.Content[:]))
	in.Values = values(eventFields(e), Micros)
	received, _ := in.Values[0].(int64)
	in.Values[0] = received // never NULL
	in.Census = intake.Count{Source: o.Source, Disposition: counted(e.Disposition), Count: 1, Last: time.UnixMicro(received)}
	return in
}

// content digests what two deliveries of one event have in common: the object, and the body without
// what changes by itself.
func content(o intake.Object, e *intake.Event) intake.Digest {
	if !e.Fingerprint.IsZero() {
		return intake.DigestOf(o.Type, o.ID, string(e.Fingerprint[:]))
	}
	return intake.DigestOf(o.Type, o.ID, "", string(e.Body))
}

// Rounds splits a batch so that within a round every event has a key of its own, in the order in
// which they came. Copies of one event become one. Only a second event of the same key with another
// content needs another round.
func Rounds(batch []*Incoming) [][]*Incoming {
	var rounds [][]*Incoming
	for len(batch) > 0 {
		seen := make(map[intake.Digest]*Incoming, len(batch))
		var round, later []*Incoming
		for _, in := range batch {
			switch first := seen[in.Key]; {
			case first == nil:
				once := *in
				seen[in.Key] = &once
				round = append(round, &once)
			case first.Content == in.Content:
				first.Copies += in.Copies
			default:
				later = append(later, in)
			}
		}
		rounds = append(rounds, round)
		batch = later
	}
	return rounds
}

// SortObjects puts objects into the order in which their entries are locked.
func SortObjects(os []intake.Object) { slices.SortFunc(os, compare) }

func compare(a, b intake.Object) int {
	return cmp.Or(
		cmp.Compare(a.Source, b.Source), cmp.Compare(a.Tenant, b.Tenant),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID),
	)
}
