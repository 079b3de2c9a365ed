package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Append stores records and "answers each at its own index".
func (db *DB) Append(ctx context.Context, t machine.Token, entries []ledger.Entry) ([]ledger.Answer, error) {
	return in(ctx, db, func(now time.Time) ([]ledger.Answer, error) {
		if err := db.same(t); err != nil {
			return nil, err
		}
		answers := make([]ledger.Answer, len(entries))
		for i := range entries {
			if answers[i] = db.append(t, &entries[i], now); answers[i].Result == ledger.Appended {
				db.mail.await(entries[i].Waits)
			}
		}
		return answers, nil
	}, "append %d records", len(entries))
}

// append judges one entry. The order matters: what is already there is looked at before the lease,
// so that [ledger.NoLease] means that nothing but the lease is missing.
func (db *DB) append(t machine.Token, e *ledger.Entry, now time.Time) ledger.Answer {
	if err := valid.Entry(e); err != nil {
		return ledger.Answer{Result: ledger.Invalid, Err: err} // "the others were stored"
	}
	if e.Record.Seq == 1 {
		return db.start(t, e, now)
	}
	w, seq := db.number(e.Number), e.Record.Seq
	switch {
	case w == nil:
		return ledger.Answer{Result: ledger.Missing} // "the predecessor is gone"
	case w.length() >= seq && w.at(seq).Hash == e.Record.Hash:
		return w.answer(ledger.Mine, seq) // "this very record was there already"
	case w.length() >= seq:
		return ledger.Answer{Result: ledger.Stale} // "another record is at this place"
	case w.length() < seq-1 || w.at(seq-1).Hash != e.Prev:
		return ledger.Answer{Result: ledger.Missing} // the chain is shorter than it was, or another
	case w.head.Consumed+int64(len(e.Record.Signals)) > w.head.Posted:
		return ledger.Answer{Result: ledger.Invalid, Err: errors.New("it consumes more signals than were posted")}
	case e.Record.Dispatch != nil && !db.live(t, now):
		return ledger.Answer{Result: ledger.NoLease} // "nothing was stored"
	}
	w.store(e, later(now, w.at(seq-1).At))
	return w.answer(ledger.Appended, seq)
}

// start accepts a work once: unique on (saga, work).
func (db *DB) start(t machine.Token, e *ledger.Entry, now time.Time) ledger.Answer {
	if w := db.byID[e.ID]; w != nil {
		if w.at(1).Hash == e.Record.Hash {
			return w.answer(ledger.Mine, 1)
		}
		return ledger.Answer{Result: ledger.Exists}
	}
	if e.Record.Dispatch != nil && !db.live(t, now) {
		return ledger.Answer{Result: ledger.NoLease}
	}
	w := &work{read: make(map[int64]bool), head: ledger.Instance{Salt: e.Salt,
		Number:   db.newest() + 1,
		ID:       e.ID,
		Version:  e.Record.Version,
		Revision: e.Record.Revision,
		Base:     1,
		Created:  now,
	}}
	start := *e
	if start.Schedule == nil { // a new work has no holder and no due time to keep
		start.Schedule = &ledger.Schedule{}
	}
	w.store(&start, now)
	db.works = append(db.works, w)
	db.byID[e.ID] = w
	return w.answer(ledger.Appended, 1)
}

// store adds the record at the tail and projects it onto the head.
func (w *work) store(e *ledger.Entry, at time.Time) {
	r := copyRecord(e.Record)
	r.At = at
	w.records = append(w.records, r)
	if e.Schedule != nil || len(r.Signals) > 0 || len(r.Snapshot) > 0 || r.Kind == machine.KindRevised ||
		ledger.Unconfirmed(&r) || ledger.AtIssue(&r, "") != "" {
		w.project(&r, e.Schedule)
	}
}

// project brings the head up to date with the record: "status, reason, wait, signals consumed,
// snapshot", and with a schedule also holder, due time and end.
func (w *work) project(r *machine.Record, s *ledger.Schedule) {
	h := &w.head
	h.Updated = r.At
	h.Step, h.Unconfirmed = ledger.AtIssue(r, h.Step), h.Unconfirmed || ledger.Unconfirmed(r)
	h.Consumed += int64(len(r.Signals))
	for _, id := range r.Signals {
		w.read[id] = true
	}
	if len(r.Snapshot) > 0 {
		h.Base = r.Seq
	}
	if len(r.Signals) > 0 || r.Kind == machine.KindRevised {
		h.Remains = "" // bodies may have come
	}
	if r.Kind == machine.KindRevised {
		h.Revision, h.Version = r.Revision, r.Version
	}
	if s != nil || r.Limit > 0 || r.Kind == machine.KindOverdue {
		h.Deadline = ledger.Deadline(h, r)
	}
	if s == nil {
		return // "neither status, holder nor due time change"
	}
	h.Status, h.Reason = r.Status, r.Reason
	h.Class, h.Session, h.Due, h.WaitsFor = s.Class, 0, time.Time{}, ""
	switch {
	case !r.Status.Terminal():
		h.Finished = time.Time{}
	case h.Finished.IsZero():
		h.Finished = r.At
	}
	switch {
	case s.Hold && ledger.GoesOn(r.Status, r.Reason):
		h.Session = r.Session // the holder wakes it by itself, and Claim tells it of signals
	case h.Posted > h.Consumed:
		h.Due = r.At // a signal came while the work was held: it must not be lost now
	case r.Status.Live():
		h.Due = r.Due()
	}
}

func (db *DB) number(n int64) *work {
	i, found := slices.BinarySearchFunc(db.works, n, func(w *work, n int64) int { return cmp.Compare(w.head.Number, n) })
	if !found {
		return nil
	}
	return db.works[i]
}

// newest is the number of the work that was started last, of those that are there.
func (db *DB) newest() int64 {
	if len(db.works) == 0 {
		return 0
	}
	return db.works[len(db.works)-1].head.Number
}

func (w *work) length() int64                { return int64(len(w.records)) }
func (w *work) at(seq int64) *machine.Record { return &w.records[seq-1] }

func (w *work) answer(r ledger.Result, seq int64) ledger.Answer {
	return ledger.Answer{Result: r, At: w.at(seq).At, Number: w.head.Number}
}

// later keeps the times of a chain in order even when the clock was set back.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
