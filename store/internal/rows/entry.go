package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/column"
)

// KeyColumns name an entry, in the order of [Key].
var KeyColumns = []Column{{"source", Words}, {"tenant", Words}, {"type", Words}, {"id", Words}}

// Key returns the values of [KeyColumns].
func Key(o intake.Object) []any { return []any{o.Source, o.Tenant, o.Type, o.ID} }

// EntryColumns are the other columns of amends_objects, in the order of [Values].
var EntryColumns = []Column{
	{"version_epoch", Bigint}, {"version_kind", Words}, {"version_number", Bigint}, {"version_precision", Bigint},
	{"origin", Bigint}, {"fetch_seq", Bigint}, {"fingerprint", Bytes}, {"deleted", Flag}, {"body", Words},
	{"fetch_requested", Bigint}, {"fetch_completed", Bigint},
	{"newest_epoch", Bigint}, {"newest_kind", Words}, {"newest_number", Bigint}, {"newest_precision", Bigint},
	{"first_missing_at", Moment}, {"reread_at", Moment}, {"first_behind_at", Moment}, {"cause", Bigint},
	{"accepted_seq", Bigint}, {"delivered_seq", Bigint}, {"pending_events", Words},
	{"due_at", Moment}, {"lease_holder", Words}, {"leased_until", Moment}, {"fencing_token", Bigint},
	{"failed_attempts", Bigint}, {"last_error", Words}, {"blocked_reason", Words},
	{"held_seq", Bigint}, {"let_through_seq", Bigint}, {"withdrawn_at", Moment}, {"changed_at", Moment},
	{"first_seen_at", Moment}, {"updated_at", Moment},
}

// updated is the place of the last column, which every write changes.
var updated = len(EntryColumns) - 1

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
	parked, err := park(e.Parked)
	if err != nil {
		return nil, fmt.Errorf("entry %s: %w", e.Object, err)
	}
	return []any{
		number(e.Version.Epoch), text(string(e.Version.Clock)), number(e.Version.N), number(int64(e.Version.Step)),
		number(int64(e.Rank)), number(e.Ticket), digest(e.Fingerprint), flag(e.Deleted), long(e.Body),
		e.Dirty, e.Clean,
		number(e.Newest.Epoch), text(string(e.Newest.Clock)), number(e.Newest.N), number(int64(e.Newest.Step)),
		Micros(e.Missing), Micros(e.Reread), Micros(e.Behind), number(e.Cause),
		e.Accepted, e.Delivered, parked,
		Micros(e.Due), text(e.Holder), Micros(e.Until), number(e.Fence),
		number(int64(e.Attempts)), text(e.LastError), text(e.Blocked),
		number(e.Held), number(e.Let), Micros(e.Withdrawn), Micros(e.Changed),
		Micros(e.First), Micros(e.Updated),
	}, nil
}

// Same reports whether two entries say the same, but for when they were written.
func Same(a, b []any) bool {
	for i := range updated {
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

// Entry is a row of amends_objects.
type Entry struct {
	Source, Tenant, Type, ID string
	Epoch                    column.Number `db:"version_epoch"`
	Clock                    column.Text   `db:"version_kind"`
	N                        column.Number `db:"version_number"`
	Step                     column.Number `db:"version_precision"`
	Rank                     column.Number `db:"origin"`
	Ticket                   column.Number `db:"fetch_seq"`
	Fingerprint              []byte
	Deleted                  column.Flag
	Body                     column.Text
	Parked                   column.Text   `db:"pending_events"`
	Dirty                    column.Number `db:"fetch_requested"`
	Clean                    column.Number `db:"fetch_completed"`
	Accepted                 column.Number `db:"accepted_seq"`
	Delivered                column.Number `db:"delivered_seq"`
	NewestEpoch              column.Number `db:"newest_epoch"`
	NewestClock              column.Text   `db:"newest_kind"`
	NewestN                  column.Number `db:"newest_number"`
	NewestStep               column.Number `db:"newest_precision"`
	Missing                  column.Moment `db:"first_missing_at"`
	Reread                   column.Moment `db:"reread_at"`
	Behind                   column.Moment `db:"first_behind_at"`
	Cause                    column.Number
	Due                      column.Moment `db:"due_at"`
	Holder                   column.Text   `db:"lease_holder"`
	Until                    column.Moment `db:"leased_until"`
	Fence                    column.Number `db:"fencing_token"`
	Attempts                 column.Number `db:"failed_attempts"`
	LastError                column.Text   `db:"last_error"`
	Blocked                  column.Text   `db:"blocked_reason"`
	Held                     column.Number `db:"held_seq"`
	Let                      column.Number `db:"let_through_seq"`
	Withdrawn                column.Moment `db:"withdrawn_at"`
	Changed                  column.Moment `db:"changed_at"`
	First                    column.Moment `db:"first_seen_at"`
	Updated                  column.Moment `db:"updated_at"`
	Now                      column.Moment // of statements that tell it
}

// Entry returns what the row says.
func (r *Entry) Entry() (intake.Entry, error) {
	e := intake.Entry{
		Object:      r.Object(),
		Version:     version(r.Epoch, r.Clock, r.N, r.Step),
		Rank:        int(r.Rank),
		Ticket:      int64(r.Ticket),
		Fingerprint: asDigest(r.Fingerprint),
		Deleted:     bool(r.Deleted),
		Body:        body(r.Body),
		Dirty:       int64(r.Dirty),
		Clean:       int64(r.Clean),
		Newest:      version(r.NewestEpoch, r.NewestClock, r.NewestN, r.NewestStep),
		Missing:     r.Missing.Time(),
		Reread:      r.Reread.Time(),
		Behind:      r.Behind.Time(),
		Cause:       int64(r.Cause),
		Accepted:    int64(r.Accepted),
		Delivered:   int64(r.Delivered),
		Due:         r.Due.Time(),
		Holder:      string(r.Holder),
		Until:       r.Until.Time(),
		Fence:       int64(r.Fence),
		Attempts:    int(r.Attempts),
		LastError:   string(r.LastError),
		Blocked:     string(r.Blocked),
		Held:        int64(r.Held),
		Let:         int64(r.Let),
		Withdrawn:   r.Withdrawn.Time(),
		Changed:     r.Changed.Time(),
		First:       r.First.Time(),
		Updated:     r.Updated.Time(),
	}
	var err error
	if e.Parked, err = unpark(string(r.Parked), e.Object); err != nil {
		return e, fmt.Errorf("entry %s: %w", e.Object, err)
	}
	return e, nil
}

// Object returns whose row it is.
func (r *Entry) Object() intake.Object {
	return intake.Object{Source: r.Source, Tenant: r.Tenant, Type: r.Type, ID: r.ID}
}

// Entries returns what rows say.
func Entries(rows []Entry) ([]intake.Entry, error) {
	es := make([]intake.Entry, len(rows))
	for i := range rows {
		var err error
		if es[i], err = rows[i].Entry(); err != nil {
			return nil, err
		}
	}
	return es, nil
}

// long is a body, NULL for none.
func long(b json.RawMessage) any {
	if len(b) == 0 {
		return nil
	}
	return printable(string(b))
}

// parked is an event that waits within the row of its object. The body is a string there: what was
// sent comes back byte for byte.
type parked struct {
	Topic       string             `json:"topic,omitempty"`
	ID          string             `json:"eventId,omitempty"`
	Dedupe      intake.Digest      `json:"dedupeKey,omitzero"`
	Payload     intake.Payload     `json:"payloadKind"`
	Deleted     bool               `json:"deleted,omitempty"`
	Version     parkedVersion      `json:"version"`
	Body        string             `json:"body,omitempty"`
	Fingerprint intake.Digest      `json:"fingerprint,omitzero"`
	At          time.Time          `json:"occurredAt,omitzero"`
	Received    time.Time          `json:"receivedAt,omitzero"`
	SignedBy    string             `json:"signedBy,omitempty"`
	Disposition intake.Disposition `json:"receiverDisposition,omitempty"`
	Why         string             `json:"receiverReason,omitempty"`
}

// parkedVersion is a version there. Its numbers may be nanoseconds since 1970: they are texts in
// JSON (K18).
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
			Object: o, Topic: p.Topic, ID: p.ID, Dedupe: p.Dedupe, Payload: p.Payload, Deleted: p.Deleted,
			Version: intake.Version(p.Version), Body: body(column.Text(p.Body)), Fingerprint: p.Fingerprint, At: p.At, Received: p.Received,
			Secret: p.SignedBy, Disposition: p.Disposition, Why: p.Why,
		}
	}
	return events, nil
}
