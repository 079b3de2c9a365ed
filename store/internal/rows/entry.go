package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/column"
)

// KeyColumns name an entry, in the order of [Key].
var KeyColumns = []Column{{"source", Words}, {"tenant", Words}, {"type", Words}, {"id", Words}}

// Key returns the values of [KeyColumns].
func Key(o reconcile.Object) []any { return []any{o.Source, o.Tenant, o.Type, o.ID} }

// EntryColumns are the other columns of amends_entries, in the order of [Values].
var EntryColumns = []Column{
	{"epoch", Bigint}, {"clock", Words}, {"n", Bigint}, {"step", Bigint},
	{"rank", Bigint}, {"ticket", Bigint}, {"fingerprint", Bytes}, {"deleted", Flag}, {"body", Words},
	{"dirty", Bigint}, {"clean", Bigint},
	{"newest_epoch", Bigint}, {"newest_clock", Words}, {"newest_n", Bigint}, {"newest_step", Bigint},
	{"missing", Moment}, {"reread", Moment}, {"behind", Moment}, {"cause", Bigint},
	{"accepted", Bigint}, {"delivered", Bigint}, {"parked", Words},
	{"due", Moment}, {"holder", Words}, {"until", Moment}, {"fence", Bigint},
	{"attempts", Bigint}, {"last_error", Words}, {"blocked", Words},
	{"first", Moment}, {"updated", Moment},
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
func Values(e *reconcile.Entry) ([]any, error) {
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

// Entry is a row of amends_entries.
type Entry struct {
	Source, Tenant, Type, ID          string
	Epoch, N, Step, Rank, Ticket      column.Number
	Clock                             column.Text
	Fingerprint                       []byte
	Deleted                           column.Flag
	Body, Parked                      column.Text
	Dirty, Clean, Accepted, Delivered column.Number
	NewestEpoch                       column.Number `db:"newest_epoch"`
	NewestClock                       column.Text   `db:"newest_clock"`
	NewestN                           column.Number `db:"newest_n"`
	NewestStep                        column.Number `db:"newest_step"`
	Missing, Reread, Behind           column.Moment
	Due, Until, First, Updated        column.Moment
	Cause                             column.Number
	Holder, Blocked                   column.Text
	LastError                         column.Text `db:"last_error"`
	Fence, Attempts                   column.Number
	Now                               column.Moment // of statements that tell it
}

// Entry returns what the row says.
func (r *Entry) Entry() (reconcile.Entry, error) {
	e := reconcile.Entry{
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
func (r *Entry) Object() reconcile.Object {
	return reconcile.Object{Source: r.Source, Tenant: r.Tenant, Type: r.Type, ID: r.ID}
}

// Entries returns what rows say.
func Entries(rows []Entry) ([]reconcile.Entry, error) {
	es := make([]reconcile.Entry, len(rows))
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

// parked is an event that waits within its entry. Its object is the entry's. The body is a string there: what was
// sent comes back byte for byte.
type parked struct {
	Topic       string `json:",omitempty"`
	ID          string `json:",omitempty"`
	Dedupe      []byte `json:",omitempty"`
	Payload     reconcile.Payload
	Deleted     bool `json:",omitempty"`
	Version     reconcile.Version
	Body        string            `json:",omitempty"`
	Fingerprint []byte            `json:",omitempty"`
	At          time.Time         `json:",omitzero"`
	Received    time.Time         `json:",omitzero"`
	SignedBy    string            `json:",omitempty"`
	Verdict     reconcile.Verdict `json:",omitempty"`
	Why         string            `json:",omitempty"`
}

func park(events []reconcile.Event) (any, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ps := make([]parked, len(events))
	for i := range events {
		e := &events[i]
		ps[i] = parked{
			e.Topic, e.ID, e.Dedupe[:], e.Payload, e.Deleted, e.Version, string(e.Body), e.Fingerprint[:],
			known(e.At), known(e.Received), e.Secret, e.Verdict, e.Why,
		}
	}
	list, err := json.Marshal(ps)
	if err != nil {
		return nil, fmt.Errorf("park %d events: %w", len(events), err)
	}
	return string(list), nil
}

func unpark(list string, o reconcile.Object) ([]reconcile.Event, error) {
	if list == "" {
		return nil, nil
	}
	var ps []parked
	if err := json.Unmarshal([]byte(list), &ps); err != nil {
		return nil, fmt.Errorf("its parked events cannot be read: %w", err)
	}
	events := make([]reconcile.Event, len(ps))
	for i, p := range ps {
		events[i] = reconcile.Event{
			Object: o, Topic: p.Topic, ID: p.ID, Dedupe: asDigest(p.Dedupe), Payload: p.Payload, Deleted: p.Deleted,
			Version: p.Version, Body: body(column.Text(p.Body)), Fingerprint: asDigest(p.Fingerprint), At: p.At, Received: p.Received,
			Secret: p.SignedBy, Verdict: p.Verdict, Why: p.Why,
		}
	}
	return events, nil
}
