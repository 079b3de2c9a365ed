package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// inboxStore is what was heard, with all its sides.
type inboxStore interface {
	intake.Reader
	intake.Inbox
	intake.Gate
}

// shopPolicy is what the gate believes of the shop: its counters grow by one, and it sends changes,
// too.
var shopPolicy = inbox.Policy{Dense: true, Merge: func(_, delta json.RawMessage) (json.RawMessage, error) { return delta, nil }}

var gatePolicy = intake.Policy(shopPolicy)

// noon is when the first delivery was received, on a day that scripts can name.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// delivery is the n-th event of the shop: about an order, at a version, an hour after the one
// before.
func delivery(n, order, version int, payload intake.Payload) intake.Event {
	e := intake.Event{
		Object: intake.Object{Source: "shop", Type: "order", ID: strconv.Itoa(order)}, Topic: "order.updated", ID: fmt.Sprintf("evt_%d", n),
		Dedupe: intake.DigestOf("evt", strconv.Itoa(n)), Payload: payload, Version: intake.Counter(int64(version)),
		Received: noon.Add(time.Duration(n) * time.Hour), Secret: "2026-03",
		Body: fmt.Appendf(nil, `{"id":%d,"version":%d,"card":%q}`, order, version, canary),
	}
	if payload == intake.Whole {
		e.Fingerprint = intake.DigestOf(string(e.Body))
	}
	return e
}

// hearsay is what the shop sent, in the order in which it came; the numbers in the inbox are those
// in front.
func hearsay() []intake.Event {
	gone := delivery(6, 9, 19, intake.Thin)
	gone.Deleted, gone.Topic, gone.Body = true, "order.cancelled", nil
	unreadable := delivery(9, 0, 0, intake.Thin)
	unreadable.Object.ID, unreadable.Version, unreadable.Body = "", intake.Version{}, []byte(`{"order":{}}`)
	unreadable.Disposition, unreadable.Why = intake.Malformed, "the body names no order"
	foreign := delivery(10, 1, 1, intake.Whole)
	foreign.Object.Source, foreign.Object.Tenant = "outlet", "eu"
	foreign.Disposition, foreign.Why = intake.Unknown, "tenant eu is not set up here"
	other := delivery(1, 1, 1, intake.Whole) // the id of the first, and another body
	other.Body = []byte(`{"id":1,"version":1}`)
	other.Fingerprint = intake.DigestOf(string(other.Body))
	other.Received = noon.Add(11 * time.Hour)
	return []intake.Event{
		delivery(1, 1, 1, intake.Whole),
		delivery(2, 8, 8, intake.Whole),
		delivery(3, 8, 18, intake.Whole),
		delivery(4, 8, 17, intake.Whole),
		delivery(5, 3, 4, intake.Thin),
		gone,
		delivery(7, 12, 5, intake.Delta),
		delivery(8, 13, 13, intake.Whole),
		unreadable,
		foreign,
		other,
	}
}

// listen fills an inbox with deliveries that the gate made everything of, and with objects of every
// state.
func listen(ctx context.Context, s inboxStore) error {
	for _, e := range hearsay() { // one by one, so that they are numbered in their order
		if err := s.Accept(ctx, []intake.Event{e}); err != nil {
			return err
		}
	}
	_, err := s.Judge(ctx, 100, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		for i := range ds {
			d := &ds[i]
			e := es[d.Object]
			*e, d.Outcome, d.Because = intake.Judge(*e, d, now, &gatePolicy)
		}
		return nil
	})
	if err != nil {
		return err
	}
	late := delivery(13, 1, 2, intake.Whole)  // nobody has judged it
	copied := delivery(1, 1, 1, intake.Whole) // last: a copy may use up a number
	return errors.Join(worked(ctx, s), s.Accept(ctx, []intake.Event{late}), s.Accept(ctx, []intake.Event{copied}))
}

// worked leaves the entries as a process that hears would: delivered, asked in vain, blocked.
func worked(ctx context.Context, s intake.Gate) error {
	then := func(order int, change func(now time.Time, e *intake.Entry)) error {
		o := intake.Object{Source: "shop", Type: "order", ID: strconv.Itoa(order)}
		return s.Update(ctx, o, func(now time.Time, e *intake.Entry) error {
			change(now, e)
			return nil
		})
	}
	delivered := func(_ time.Time, e *intake.Entry) { e.Delivered, e.Due = e.Accepted, time.Time{} }
	return errors.Join(
		then(8, delivered),
		then(9, delivered),
		then(12, func(now time.Time, e *intake.Entry) { e.Due = now.Add(time.Hour) }),
		then(3, func(now time.Time, e *intake.Entry) {
			e.Attempts, e.LastError, e.Due = 3, "the shop answers 503 \x1b[2K", now.Add(time.Hour)
		}),
		then(13, func(_ time.Time, e *intake.Entry) {
			e.Attempts, e.LastError, e.Due = 1, "the books know no such customer", time.Time{}
			e.Blocked = e.LastError
		}),
	)
}

// hearUntilQuiet runs a process that hears until nothing is left to do now: every source has every
// order at version 20.
func hearUntilQuiet(ctx context.Context, s inboxStore) error {
	source := inbox.Source{
		Name: "shop", Saga: "order-to-invoice", Policy: shopPolicy,
		Fetch: func(_ context.Context, o intake.Object) (inbox.Fetched, error) {
			body := fmt.Appendf(nil, `{"id":%q,"version":20}`, o.ID)
			return inbox.Fetched{Version: intake.Counter(20), Body: body}, nil
		},
		Decide: func(c inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: c.Body}, nil },
		Apply:  func(context.Context, saga.Change) error { return nil },
	}
	other := source
	other.Name = "outlet"
	h, err := inbox.New(s, []*inbox.Source{&source, &other}, &inbox.Options{Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(inner) }()
	err = untilQuiet(ctx, s)
	stop()
	return errors.Join(err, <-ended)
}

func untilQuiet(ctx context.Context, s intake.Reader) error {
	for {
		pending, err := s.Deliveries(ctx, intake.DeliveryFilter{Unjudged: true, Limit: 1})
		owing, oerr := s.Entries(ctx, intake.EntryFilter{Owing: true})
		if err := errors.Join(err, oerr); err != nil {
			return err
		}
		busy := len(pending) > 0
		for i := range owing {
			busy = busy || owing[i].Blocked == "" && owing[i].Due.Before(time.Now())
		}
		if !busy {
			return nil
		}
		if err := moment(ctx); err != nil {
			return err
		}
	}
}
