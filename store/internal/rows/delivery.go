package rows

import (
	"encoding/json"
	"slices"

	"github.com/amends-dev/amends/internal/intake"
)

// DeliveryColumns are what [Deliveries] reads: the tables as d, their payloads as p, their digests as
// g.
var DeliveryColumns = Names("d.", columns(outcomeFields(&intake.Delivery{}))) + ", d.processed_at, " + Names("d.", InboxColumns) + ", p.body, g.copies, g.last_at"

// BesideDelivery joins what [DeliveryColumns] needs beside d. A digest that was given to a later
// event is not d's.
const BesideDelivery = `
	LEFT JOIN amends_payloads AS p ON p.delivery = d.number` + DigestOfDelivery

// DigestOfDelivery joins the digest of d.
const DigestOfDelivery = `
	LEFT JOIN amends_digests AS g ON g.key = d.digest AND g.delivery = d.number`

// Deliveries returns what reads rows of the inbox.
func Deliveries(list *[]intake.Delivery) Reader {
	return Into(list, func(d *intake.Delivery) []Field {
		return slices.Concat(eventFields(&d.Event), outcomeFields(d), []Field{
			{"processed_at", &d.Judged}, {"body", &d.Body}, {"copies", &d.Copies}, {"last_at", &d.Last},
		})
	}, func(d *intake.Delivery) {
		if d.Copies = max(1, d.Copies); d.Last.IsZero() { // the digest is gone
			d.Last = d.Received
		}
	})
}

// outcomeFields are what Judge changes in a row of the inbox, and its number.
func outcomeFields(d *intake.Delivery) []Field {
	return []Field{{"number", &d.Number}, {"disposition", (*label)(&d.Outcome)}, {"reason", &d.Because}}
}

// Outcome returns the number of a delivery, its disposition and the reason.
func Outcome(d *intake.Delivery) []any { return values(outcomeFields(d), Micros) }

// CountFields are a row that counts deliveries by disposition.
func CountFields(c *intake.Count) []Field {
	return []Field{{"source", &c.Source}, {"disposition", (*string)(&c.Disposition)}, {"count", &c.Count}, {"last_at", &c.Last}}
}

// Judgements are deliveries that were judged just now, each as a count of one.
func Judgements(ds []intake.Delivery) []intake.Count {
	cs := make([]intake.Count, len(ds))
	for i := range ds {
		d := &ds[i]
		cs[i] = intake.Count{Source: d.Object.Source, Disposition: counted(d.Outcome), Count: 1, Last: d.Received}
	}
	return cs
}

// Stopped returns a reader of rows that count, for an object, the deliveries that changed nothing.
func Stopped(list *[]intake.Stopped) Reader {
	return Into(list, func(s *intake.Stopped) []Field {
		return append(keyFields(&s.Object), Field{"copies", &s.Copies}, Field{"known", &s.Known}, Field{"first_at", &s.First}, Field{"last_at", &s.Last})
	})
}

func body(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
