package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// HeadRow is a row of amends_instances. Its fields are those of [ledger.Instance], by their names; the
// columns of [HeadColumns] are those before Since.
type HeadRow struct {
	Number      Number `db:"ref"`
	Saga        Text
	WorkID      Text `db:"work_id"`
	Salt        []byte
	Version     Number
	Revision    Text
	Status      Text
	Reason      Text
	Class       Number
	Step        Text
	Session     Number
	Due         Moment `db:"due_at"`
	WaitsFor    Text   `db:"waits_for"`
	Base        Number `db:"snapshot_seq"`
	Posted      Number `db:"received"`
	Consumed    Number
	Unconfirmed Flag
	Remains     Text
	Deadline    Moment `db:"deadline_at"`
	Created     Moment `db:"created_at"`
	Updated     Moment `db:"updated_at"`
	Finished    Moment `db:"finished_at"`

	Since  Moment // Claim: since when it was due; null: the session held it already
	Waited Text   // Claim: the destination it waited for
	Now    Moment // Load: when it was read
	Last   Moment // Overview: of its latest record
}

// firstExtra is the first field of a HeadRow that is no column of an instance.
const firstExtra = "Since"

// head takes the row as it is: a status that this program does not know must not keep the others
// from being listed.
func (r *HeadRow) head() ledger.Instance {
	h := ledger.Instance{ID: saga.ID{Saga: string(r.Saga), Work: string(r.WorkID)}}
	copy(h.Salt[:], r.Salt)
	from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(&h).Elem()
	for _, f := range alike {
		to := to.Field(f.to)
		to.Set(from.Field(f.from).Convert(to.Type()))
	}
	return h
}

// alike are the fields of a HeadRow that an instance has under the same name.
var alike = func() (fields []struct{ from, to int }) {
	row, head := reflect.TypeFor[HeadRow](), reflect.TypeFor[ledger.Instance]()
	for from := range row.NumField() {
		f := row.Field(from)
		if to, ok := head.FieldByName(f.Name); ok && f.Type.ConvertibleTo(to.Type) && f.Name != "Salt" {
			fields = append(fields, struct{ from, to int }{from, to.Index[0]})
		}
	}
	return fields
}()

func heads(rows []HeadRow) []ledger.Instance {
	hs := make([]ledger.Instance, len(rows))
	for i := range rows {
		hs[i] = rows[i].head()
	}
	return hs
}

// recordRow is a row of amends_records.
type recordRow struct {
	Instance   int64
	Seq        int64
	At         Moment
	Session    int64
	Hash       []byte
	ExternalID Text `db:"external_id"`
	Doc        string
	Body       Text
	Snapshot   Text
}

// next returns the record of the next row of a chain.
func (c *reading) next(row *recordRow) (machine.Record, error) {
	r := machine.Record{
		Seq:        row.Seq,
		Session:    machine.Token(row.Session),
		At:         row.At.Time(),
		ExternalID: string(row.ExternalID),
		Body:       raw(row.Body),
		Snapshot:   raw(row.Snapshot),
	}
	var err error
	if copy(r.Hash[:], row.Hash) != machine.HashSize || len(row.Hash) != machine.HashSize {
		err = fmt.Errorf("%w: its hash has %d bytes", ledger.ErrDamaged, len(row.Hash))
	} else {
		err = c.record(&r, row.Doc)
	}
	if err == nil {
		var lost error
		lost, err = c.db.unseal(c.id, &r)
		if c.lost = cmp.Or(c.lost, lost); r.Status.Terminal() { // what lies behind an end has gone, as by retention
			c.lost = nil
		}
	}
	if err != nil {
		return r, fmt.Errorf("record %d of %s: %w", row.Seq, c.id, err)
	}
	return r, nil
}

// signalRow is a row of amends_signals.
type signalRow struct {
	Number   int64
	Instance int64
	At       Moment
	Kind     string
	Key      string
	Actor    string
	Reason   string
	Doc      Text
	ByHand   Flag `db:"by_hand"`
}

func (d *Dialect) signal(id saga.ID, r *signalRow) (machine.Signal, error) {
	s := machine.Signal{
		ID:     r.Number,
		At:     r.At.Time(),
		Kind:   machine.SignalKind(r.Kind),
		Key:    r.Key,
		Actor:  r.Actor,
		Reason: r.Reason,
		ByHand: bool(r.ByHand),
	}
	if r.Doc != "" {
		var said utterance
		doc, _, err := open(d, string(r.Doc), ofSignal(id, r.Kind))
		if err != nil {
			return s, fmt.Errorf("signal %d: %w", r.Number, err)
		}
		if err := json.Unmarshal([]byte(doc), &said); err != nil {
			return s, fmt.Errorf("signal %d: %w: %w", r.Number, ledger.ErrDamaged, err)
		}
		s.Resolution, s.News, s.Said = said.Resolution, said.News, said.Said
	}
	return s, nil
}

func raw(t Text) json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}
