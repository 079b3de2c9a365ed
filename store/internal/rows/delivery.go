package rows

import (
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/column"
)

// DeliveryColumns are what a [Delivery] is read from: the tables as d, their payloads as p, their
// digests as g.
const DeliveryColumns = `d.number, d.received_at, d.occurred_at, d.processed_at,
	d.version_epoch, d.version_kind, d.version_number, d.version_precision, d.deleted, d.dedupe_key, d.fingerprint,
	d.source, d.tenant, d.type, d.id, d.topic, d.event_id, d.payload_kind, d.signed_by,
	d.receiver_disposition, d.receiver_reason, d.disposition, d.reason,
	p.body, g.copies, g.last_at`

// BesideDelivery joins what [DeliveryColumns] needs beside d. A digest that was given to a later
// event is not d's.
const BesideDelivery = `
	LEFT JOIN amends_payloads AS p ON p.delivery = d.number` + DigestOfDelivery

// DigestOfDelivery joins the digest of d.
const DigestOfDelivery = `
	LEFT JOIN amends_digests AS g ON g.key = d.digest AND g.delivery = d.number`

// Delivery is a row of the inbox.
type Delivery struct {
	Number                   int64
	Source, Tenant, Type, ID string
	Received                 column.Moment `db:"received_at"`
	At                       column.Moment `db:"occurred_at"`
	Judged                   column.Moment `db:"processed_at"`
	Epoch                    column.Number `db:"version_epoch"`
	Clock                    column.Text   `db:"version_kind"`
	N                        column.Number `db:"version_number"`
	Step                     column.Number `db:"version_precision"`
	Deleted                  column.Flag
	Dedupe                   []byte `db:"dedupe_key"`
	Fingerprint              []byte
	Topic                    column.Text
	Event                    column.Text `db:"event_id"`
	Payload                  column.Text `db:"payload_kind"`
	Secret                   column.Text `db:"signed_by"`
	Disposition              column.Text `db:"receiver_disposition"`
	Why                      column.Text `db:"receiver_reason"`
	Outcome                  column.Text `db:"disposition"`
	Because                  column.Text `db:"reason"`
	Body                     column.Text
	Copies                   column.Number
	Last                     column.Moment `db:"last_at"`
}

// Delivery returns what the row says.
func (r *Delivery) Delivery() intake.Delivery {
	d := intake.Delivery{
		Number:  r.Number,
		Copies:  max(1, int(r.Copies)),
		Last:    r.Last.Time(),
		Judged:  r.Judged.Time(),
		Outcome: intake.Disposition(r.Outcome),
		Because: string(r.Because),
		Event: intake.Event{
			Object:      intake.Object{Source: r.Source, Tenant: r.Tenant, Type: r.Type, ID: r.ID},
			Topic:       string(r.Topic),
			ID:          string(r.Event),
			Dedupe:      asDigest(r.Dedupe),
			Payload:     intake.Payload(r.Payload),
			Deleted:     bool(r.Deleted),
			Version:     version(r.Epoch, r.Clock, r.N, r.Step),
			Body:        body(r.Body),
			Fingerprint: asDigest(r.Fingerprint),
			At:          r.At.Time(),
			Received:    r.Received.Time(),
			Secret:      string(r.Secret),
			Disposition: intake.Disposition(r.Disposition),
			Why:         string(r.Why),
		},
	}
	if d.Last.IsZero() { // the digest is gone
		d.Last = d.Received
	}
	return d
}

// Deliveries returns what rows say.
func Deliveries(rows []Delivery) []intake.Delivery {
	ds := make([]intake.Delivery, len(rows))
	for i := range rows {
		ds[i] = rows[i].Delivery()
	}
	return ds
}

// Census is a row that counts deliveries by disposition.
type Census struct {
	Source      string
	Disposition column.Text `db:"disposition"`
	Count       int64
	Last        column.Moment `db:"last_at"`
}

// Row returns what the row says.
func (c *Census) Row() intake.Count {
	return intake.Count{Source: c.Source, Disposition: intake.Disposition(c.Disposition), Count: c.Count, Last: c.Last.Time()}
}

// Judgements are deliveries that were judged just now, each as a count of one.
func Judgements(ds []intake.Delivery) []Census {
	cs := make([]Census, len(ds))
	for i := range ds {
		d := &ds[i]
		cs[i] = Census{Source: d.Object.Source, Disposition: disposition(d.Outcome), Count: 1, Last: column.Moment(d.Received)}
	}
	return cs
}

// Stopped is a row that counts deliveries of an object that came to nothing.
type Stopped struct {
	Source, Tenant, Type, ID string
	Copies, Known            int64
	First                    column.Moment `db:"first_at"`
	Last                     column.Moment `db:"last_at"`
}

// Row returns what the row says.
func (s *Stopped) Row() intake.Stopped {
	return intake.Stopped{
		Object: intake.Object{Source: s.Source, Tenant: s.Tenant, Type: s.Type, ID: s.ID},
		Copies: s.Copies, Known: s.Known, First: s.First.Time(), Last: s.Last.Time(),
	}
}

// OutcomeColumns are what Judge changes in a row of the inbox, in the order of [Outcome].
var OutcomeColumns = []Column{{"number", Bigint}, {"disposition", Words}, {"reason", Words}}

// Outcome returns the values of [OutcomeColumns].
func Outcome(d *intake.Delivery) []any {
	return []any{d.Number, orNull(disposition(d.Outcome)), text(d.Because)}
}

func version(epoch column.Number, clock column.Text, n, step column.Number) intake.Version {
	return intake.Version{
		Epoch: int64(epoch), Clock: intake.Clock(clock), N: int64(n), Step: time.Duration(step),
	}
}

func body(t column.Text) json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}
