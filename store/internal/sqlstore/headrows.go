package sqlstore

import (
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// HeadColumns are the columns of a [HeadRow], of amends_instances AS h.
const HeadColumns = `h.ref, h.saga, h.work_id, h.version, h.revision, h.status, h.reason, h.class, h.step, h.session, h.due_at,
	h.snapshot_seq, h.received, h.consumed, h.created_at, h.updated_at, h.finished_at, h.waits_for, h.unconfirmed, h.salt`

// HeadRow is a row of amends_instances.
type HeadRow struct {
	Ref         int64
	Saga        string
	WorkID      string `db:"work_id"`
	Version     int
	Revision    Text
	Status      string
	Reason      Text
	Class       int64
	Step        Text
	Session     Number
	DueAt       Moment `db:"due_at"`
	SnapshotSeq int64  `db:"snapshot_seq"`
	Received    int64
	Consumed    int64
	CreatedAt   Moment `db:"created_at"`
	UpdatedAt   Moment `db:"updated_at"`
	FinishedAt  Moment `db:"finished_at"`
	WaitsFor    Text   `db:"waits_for"`
	Unconfirmed Flag
	Salt        []byte
	Since       Moment // Claim: since when it was due; null: the session held it already
	Waited      Text   // Claim: the destination it waited for
	Now         Moment // Load: when it was read
	Last        Moment // Overview: of its latest record
}

// head takes the row as it is: a status that this program does not know must not keep the others
// from being listed.
func (r *HeadRow) head() ledger.Instance {
	var salt machine.Salt
	copy(salt[:], r.Salt)
	return ledger.Instance{
		Number:      r.Ref,
		Salt:        salt,
		ID:          saga.ID{Saga: r.Saga, Work: r.WorkID},
		Version:     r.Version,
		Revision:    string(r.Revision),
		Status:      saga.Status(r.Status),
		Reason:      saga.Reason(r.Reason),
		Class:       ledger.Class(r.Class),
		Step:        string(r.Step),
		Session:     machine.Token(r.Session),
		Due:         r.DueAt.Time(),
		WaitsFor:    string(r.WaitsFor),
		Base:        r.SnapshotSeq,
		Posted:      r.Received,
		Consumed:    r.Consumed,
		Unconfirmed: bool(r.Unconfirmed),
		Created:     r.CreatedAt.Time(),
		Updated:     r.UpdatedAt.Time(),
		Finished:    r.FinishedAt.Time(),
	}
}

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
}

func (r *signalRow) signal() (machine.Signal, error) {
	s := machine.Signal{
		ID:     r.Number,
		At:     r.At.Time(),
		Kind:   machine.SignalKind(r.Kind),
		Key:    r.Key,
		Actor:  r.Actor,
		Reason: r.Reason,
	}
	if r.Doc != "" {
		var said utterance
		if err := json.Unmarshal([]byte(r.Doc), &said); err != nil {
			return s, fmt.Errorf("signal %d: %w: %w", r.Number, ledger.ErrDamaged, err)
		}
		s.Resolution, s.News = said.Resolution, said.News
	}
	return s, nil
}

func raw(t Text) json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}
