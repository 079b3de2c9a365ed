package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/column"
)

// KeyColumns name an entry, in the order of [Key].
var KeyColumns = columns(keyFields(&intake.Object{}))

// Key returns the values of [KeyColumns].
func Key(o intake.Object) []any { return []any{o.Source, o.Tenant, o.Type, o.ID} }

func keyFields(o *intake.Object) []Field {
	return []Field{{"source", (*key)(&o.Source)}, {"tenant", (*key)(&o.Tenant)}, {"type", (*key)(&o.Type)}, {"id", (*key)(&o.ID)}}
}

// EntryColumns are the other columns of amends_objects, in the order of [Values].
var EntryColumns = columns(entryFields(&intake.Entry{}))

// entryFields begin with the one that may fail. The last one is changed by every write.
func entryFields(e *intake.Entry) []Field {
	return []Field{
		{"pending_events", (*pending)(e)},
		{"version_epoch", sparse(&e.Version.Epoch)}, {"version_kind", (*string)(&e.Version.Clock)},
		{"version_number", sparse(&e.Version.N)}, {"version_precision", sparse((*int64)(&e.Version.Step))},
		{"origin", sparse(&e.Origin)}, {"fetch_seq", sparse(&e.FetchSeq)}, {"fingerprint", &e.Fingerprint}, {"deleted", &e.Deleted}, {"body", &e.Body},
		{"fetch_requested", &e.FetchRequested}, {"fetch_completed", &e.FetchCompleted},
		{"newest_epoch", sparse(&e.Newest.Epoch)}, {"newest_kind", (*string)(&e.Newest.Clock)},
		{"newest_number", sparse(&e.Newest.N)}, {"newest_precision", sparse((*int64)(&e.Newest.Step))},
		{"first_missing_at", &e.Missing}, {"reread_at", &e.Reread}, {"first_behind_at", &e.Behind}, {"cause", sparse(&e.Cause)},
		{"accepted_seq", &e.Accepted}, {"delivered_seq", &e.Delivered},
		{"due_at", &e.Due}, {"lease_holder", &e.Holder}, {"leased_until", &e.Until}, {"fencing_token", sparse(&e.Fence)},
		{"failed_attempts", sparse(&e.Attempts)}, {"last_error", &e.LastError}, {"blocked_reason", &e.Blocked},
		{"held_seq", sparse(&e.Held)}, {"let_through_seq", sparse(&e.Let)}, {"withdrawn_at", &e.Withdrawn}, {"changed_at", &e.Changed},
		{"first_seen_at", &e.First}, {"updated_at", &e.Updated},
	}
}

// Names lists columns with what comes before each.
func Names(prefix string, columns []Column) string {
	var b bytes.Buffer
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prefix + c.Name)
	}
	return b.String()
}

// Values returns the values of [EntryColumns].
func Values(e *intake.Entry) ([]any, error) {
	vs := values(entryFields(e), Micros)
	if err, failed := vs[0].(error); failed {
		return nil, fmt.Errorf("entry %s: %w", e.Object, err)
	}
	return vs, nil
}

// Same reports whether two entries say the same, but for when they were written.
func Same(a, b []any) bool {
	for i := range len(a) - 1 {
		x, ok := a[i].([]byte)
		if y, too := b[i].([]byte); ok && too {
			if !bytes.Equal(x, y) {
				return false
			}
		} else if ok || too || a[i] != b[i] {
			return false
		}
	}
	return true
}

// Entries returns what reads rows of amends_objects, and fields beside them.
func Entries(list *[]intake.Entry, beside ...Field) Reader {
	return Into(list, func(e *intake.Entry) []Field {
		return slices.Concat(keyFields(&e.Object), entryFields(e), beside)
	}, func(e *intake.Entry) {
		for i := range e.Parked { // the key may have been read behind them
			e.Parked[i].Object = e.Object
		}
	})
}

// long is a body, or what else programs read, NULL for none.
func long[T ~string | ~[]byte](b T) any {
	if len(b) == 0 {
		return nil
	}
	return printable(string(b))
}

// pending is an entry as the column of its parked events has it.
type pending intake.Entry

func (p *pending) value() any {
	list, err := park(p.Parked)
	if err != nil {
		return err
	}
	return list
}

// Scan implements [sql.Scanner].
func (p *pending) Scan(v any) error {
	var list column.Text
	err := list.Scan(v)
	if err == nil {
		p.Parked, err = unpark(string(list), p.Object)
	}
	if err != nil {
		return fmt.Errorf("entry %s: %w", p.Object, err)
	}
	return nil
}

// parked is an event that waits within the row of its object. The body is a string there: what was
// sent comes back byte for byte.
type parked struct {
	Topic               string             `json:"topic,omitempty"`
	EventID             string             `json:"eventId,omitempty"`
	DedupeKey           intake.Digest      `json:"dedupeKey,omitzero"`
	PayloadKind         intake.Payload     `json:"payloadKind"`
	Deleted             bool               `json:"deleted,omitempty"`
	Version             parkedVersion      `json:"version"`
	Body                string             `json:"body,omitempty"`
	Fingerprint         intake.Digest      `json:"fingerprint,omitzero"`
	OccurredAt          time.Time          `json:"occurredAt,omitzero"`
	Received            time.Time          `json:"receivedAt,omitzero"`
	SignedBy            string             `json:"signedBy,omitempty"`
	ReceiverDisposition intake.Disposition `json:"receiverDisposition,omitempty"`
	ReceiverReason      string             `json:"receiverReason,omitempty"`
}

// parkedVersion is a version there. Its numbers may be nanoseconds since 1970: they are texts in
// JSON.
type parkedVersion struct {
	Epoch int64         `json:"epoch,string,omitempty"`
	Clock intake.Clock  `json:"kind,omitempty"`
	N     int64         `json:"number,string,omitempty"`
	Step  time.Duration `json:"precision,string,omitempty"`
}

func park(events []intake.Event) (any, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ps := make([]parked, len(events))
	for i := range events {
		e := &events[i]
		ps[i] = parked{
			e.Topic, e.ID, e.Dedupe, e.Payload, e.Deleted, parkedVersion(e.Version), string(e.Body), e.Fingerprint,
			known(e.At), known(e.Received), e.Secret, e.Disposition, e.Why,
		}
	}
	list, err := json.Marshal(ps)
	if err != nil {
		return nil, fmt.Errorf("park %d events: %w", len(events), err)
	}
	return string(list), nil
}

func unpark(list string, o intake.Object) ([]intake.Event, error) {
	if list == "" {
		return nil, nil
	}
	var ps []parked
	if err := json.Unmarshal([]byte(list), &ps); err != nil {
		return nil, fmt.Errorf("its pending events cannot be read: %w", err)
	}
	events := make([]intake.Event, len(ps))
	for i, p := range ps {
		events[i] = intake.Event{
			Object: o, Topic: p.Topic, ID: p.EventID, Dedupe: p.DedupeKey, Payload: p.PayloadKind, Deleted: p.Deleted,
			Version: intake.Version(p.Version), Body: body(p.Body), Fingerprint: p.Fingerprint, At: p.OccurredAt, Received: p.Received,
			Secret: p.SignedBy, Disposition: p.ReceiverDisposition, Why: p.ReceiverReason,
		}
	}
	return events, nil
}
