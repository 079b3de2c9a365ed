package sqlstore

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// HeadColumns are the columns of a [HeadRow], of amends_heads AS h.
const HeadColumns = `h.number, h.saga, h.work, h.version, h.revision, h.status, h.reason, h.rank, h.session, h.due,
	h.base, h.posted, h.consumed, h.created, h.updated, h.finished, h.waits_for`

// HeadRow is a row of amends_heads.
type HeadRow struct {
	Number   int64
	Saga     string
	Work     string
	Version  int
	Revision Text
	Status   string
	Reason   Text
	Rank     int64
	Session  Number
	Due      Moment
	Base     int64
	Posted   int64
	Consumed int64
	Created  Moment
	Updated  Moment
	Finished Moment
	WaitsFor Text   `db:"waits_for"`
	Since    Moment // Claim: since when the work was due; null: the session held it already
	Waited   Text   // Claim: the destination it waited for
	Now      Moment // Load: when it was read
	Last     Moment // Overview: of its latest record
}

// head refuses a status this program does not know rather than taking it for another.
func (r *HeadRow) head() (ledger.Head, error) {
	h := ledger.Head{
		Number:   r.Number,
		ID:       saga.ID{Saga: r.Saga, Work: r.Work},
		Version:  r.Version,
		Revision: string(r.Revision),
		Status:   saga.Status(r.Status),
		Reason:   saga.Reason(r.Reason),
		Class:    ledger.Class(r.Rank),
		Session:  saga.Token(r.Session),
		Due:      r.Due.Time(),
		WaitsFor: string(r.WaitsFor),
		Base:     r.Base,
		Posted:   r.Posted,
		Consumed: r.Consumed,
		Created:  r.Created.Time(),
		Updated:  r.Updated.Time(),
		Finished: r.Finished.Time(),
	}
	if !h.Status.Valid() {
		return h, fmt.Errorf("%s (head %d) has status %q, which this program does not know", h.ID, h.Number, h.Status)
	}
	return h, nil
}

func heads(rows []HeadRow) ([]ledger.Head, error) {
	hs := make([]ledger.Head, len(rows))
	for i := range rows {
		var err error
		if hs[i], err = rows[i].head(); err != nil {
			return nil, err
		}
	}
	return hs, nil
}

// recordRow is a row of amends_records as it is read.
type recordRow struct {
	Head         int64
	At           Moment
	Session      int64
	Nonce        Number
	Seq          int64
	Version      Number
	Attempt      Number
	ArmAttempt   *int64 `db:"arm_attempt"` // there: the record arms something
	ArmReissue   Number `db:"arm_reissue"`
	ArmBudget    Number `db:"arm_budget_ms"`
	Wait         Number `db:"wait_ms"`
	BodyDropped  Flag   `db:"body_dropped"`
	Hash         []byte
	Kind         string
	Status       string
	Reason       Text
	Revision     Text
	Step         Text
	Direction    Text
	ExternalID   Text `db:"external_id"`
	Class        Text
	Error        Text
	Signals      Text
	ArmStep      Text `db:"arm_step"`
	ArmDirection Text `db:"arm_direction"`
	ArmKey       Text `db:"arm_key"`
	Body         Text
	Snapshot     Text
}

func (r *recordRow) record() (saga.Record, error) {
	out := saga.Record{
		Seq:         r.Seq,
		Session:     saga.Token(r.Session),
		At:          r.At.Time(),
		Kind:        saga.Kind(r.Kind),
		Nonce:       int64(r.Nonce),
		Version:     int(r.Version),
		Revision:    string(r.Revision),
		Step:        string(r.Step),
		Direction:   saga.Direction(r.Direction),
		Attempt:     int(r.Attempt),
		ExternalID:  string(r.ExternalID),
		Body:        raw(r.Body),
		BodyDropped: bool(r.BodyDropped),
		Class:       saga.Class(r.Class),
		Error:       string(r.Error),
		Status:      saga.Status(r.Status),
		Reason:      saga.Reason(r.Reason),
		Wait:        time.Duration(r.Wait) * time.Millisecond,
		Snapshot:    raw(r.Snapshot),
	}
	if copy(out.Hash[:], r.Hash) != saga.HashSize {
		return out, fmt.Errorf("record %d of head %d has a hash of %d bytes", r.Seq, r.Head, len(r.Hash))
	}
	if r.Signals != "" {
		if err := json.Unmarshal([]byte(r.Signals), &out.Signals); err != nil {
			return out, fmt.Errorf("record %d of head %d names signals as %q: %w", r.Seq, r.Head, r.Signals, err)
		}
	}
	if r.ArmAttempt != nil {
		out.Arm = &saga.Arm{
			Step:      string(r.ArmStep),
			Direction: saga.Direction(r.ArmDirection),
			Attempt:   int(*r.ArmAttempt),
			Key:       string(r.ArmKey),
			Reissue:   int(r.ArmReissue),
			Budget:    time.Duration(r.ArmBudget) * time.Millisecond,
		}
	}
	return out, nil
}

// signalRow is a row of amends_signals.
type signalRow struct {
	ID      int64
	Head    int64
	At      Moment
	Kind    string
	Key     string
	Actor   string
	Reason  string
	Verdict Text
}

func (r *signalRow) signal() (saga.Signal, error) {
	s := saga.Signal{
		ID:     r.ID,
		At:     r.At.Time(),
		Kind:   saga.SignalKind(r.Kind),
		Key:    r.Key,
		Actor:  r.Actor,
		Reason: r.Reason,
	}
	if r.Verdict != "" {
		var said utterance
		if err := json.Unmarshal([]byte(r.Verdict), &said); err != nil {
			return s, fmt.Errorf("signal %d of head %d is unreadable: %w", r.ID, r.Head, err)
		}
		s.Verdict, s.News = said.Verdict, said.News
	}
	return s, nil
}

func raw(t Text) json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}
