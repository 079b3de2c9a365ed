package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Accept stores events and has them on disk when it returns. Calls that come at the same time share
// a commit.
func (s *inboxRole) Accept(ctx context.Context, events []intake.Event) error {
	ins, err := s.db.Receive(events)
	if err == nil && len(ins) > 0 {
		err = s.db.Accept(ctx, ins)
	}
	return wrap(err, "accept %d events", len(events))
}

// Judge hands out deliveries that have not been judged yet. It stores dispositions and entries in
// one transaction.
func (s *inboxRole) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (n int, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return 0, err
	}
	err = s.locking(ctx, s.db.Gate, func(ctx context.Context, g *gate) error {
		var ds []intake.Delivery
		n = 0
		if err := rows.Select(ctx, g.q, rows.Deliveries(&ds), g.Text(unjudged), limit); err != nil || len(ds) == 0 {
			return err
		}
		if err := g.openDeliveries(ds); err != nil {
			return err
		}
		if err := g.lock(ctx, objectsOf(ds)); err != nil {
			return err
		}
		before := slices.Clone(ds)
		if err := g.decided(decide(g.now, ds, g.entries)); err != nil {
			return err
		}
		if err := g.store(ctx); err != nil {
			return err
		}
		n = len(ds)
		return g.judged(ctx, before, ds)
	}, "judge deliveries")
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Lease hands out entries that are due and whose lease, if any, is over.
func (s *inboxRole) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) (leased []intake.Entry, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, err
	}
	err = s.locking(ctx, s.db.Gate, func(ctx context.Context, g *gate) error {
		due, err := g.read(ctx, dueEntries, limit)
		if err != nil {
			return err
		}
		for i := range due {
			if err := g.decided(decide(g.now, &due[i])); err != nil {
				return err
			}
		}
		if err := g.store(ctx); err != nil {
			return err
		}
		leased = slices.DeleteFunc(due, func(e intake.Entry) bool { return e.Holder == "" || !e.Until.After(g.now) })
		return nil
	}, "lease entries")
	if err != nil {
		return nil, err
	}
	return leased, nil
}

// Update hands out one entry.
func (s *inboxRole) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return s.update(ctx, o, func(context.Context, Queries) error { return nil }, decide)
}

// Weigh hands out one entry, with what was withdrawn of its source lately.
func (s *inboxRole) Weigh(ctx context.Context, o intake.Object, id saga.ID, b intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	return s.update(ctx, o, func(ctx context.Context, q Queries) (err error) {
		t, err = s.db.weigh(ctx, q, o.Source, id, &b)
		return err
	}, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}

// update does first, and hands out one entry, in one transaction.
func (s *inboxRole) update(ctx context.Context, o intake.Object, first func(context.Context, Queries) error, decide func(time.Time, *intake.Entry) error) error {
	return s.locking(ctx, s.db.Change, func(ctx context.Context, g *gate) error {
		if err := first(ctx, g.q); err != nil {
			return err
		}
		key := rows.Object(o)
		if err := g.lock(ctx, []intake.Object{key}); err != nil {
			return err
		}
		if err := g.decided(decide(g.now, g.entries[key])); err != nil {
			return err
		}
		return g.store(ctx)
	}, "update %s", o)
}

// attempts is how often a transaction is tried that others were first to hear of an object before.
const attempts = 10

// errMeanwhile ends a transaction that was the first to hear of an object, as another one was. By
// the next attempt the other's entry is there.
var errMeanwhile = errors.New("another process heard of the same new object at the same time, again and again")

// ErrRefused ends a transaction whose callback returned an error. One that others share goes on: nothing
// was written for the callback yet.
var ErrRefused = errors.New("the callback refused")

// gate is a transaction, and the entries that it has locked.
type gate struct {
	*Dialect

	q       Queries
	now     time.Time
	held    []held // in the order in which they were locked
	entries map[intake.Object]*intake.Entry
	refusal error // the callback's
}

// held is an entry as the callback has it, and what the database says; nil when it has none.
type held struct {
	object intake.Object
	entry  *intake.Entry
	before []any
}

// hold takes in an entry.
func (g *gate) hold(o intake.Object, e *intake.Entry, before []any) {
	g.held = append(g.held, held{o, e, before})
	g.entries[o] = e
}

// locking runs fn in a transaction, and once more when another one was first to hear of an object.
// An error of the callback is returned as it is; of others what says what was tried.
func (s *inboxRole) locking(ctx context.Context, lane Lane, fn func(context.Context, *gate) error, what string, args ...any) (err error) {
	var g gate
	for range attempts {
		err = lane(ctx, func(ctx context.Context, q Queries) error {
			g = gate{Dialect: s.db, q: q, entries: make(map[intake.Object]*intake.Entry)}
			return fn(ctx, &g)
		})
		if !errors.Is(err, errMeanwhile) {
			break
		}
	}
	if g.refusal != nil {
		return g.refusal
	}
	return wrap(s.db.Explain(ctx, err), what, args...)
}

// decided takes what a callback returned.
func (g *gate) decided(err error) error {
	if g.refusal = err; err != nil {
		return ErrRefused
	}
	return nil
}

func objectsOf(ds []intake.Delivery) (objects []intake.Object) {
	seen := make(map[intake.Object]bool, len(ds))
	for i := range ds {
		if o := ds[i].Object; !seen[o] {
			seen[o] = true
			objects = append(objects, o)
		}
	}
	return objects
}

// lock locks the entries of objects, in the order of their names. An object that the store does not
// have gets an entry that is not stored yet: [gate.store] finds out whether another transaction
// was first.
func (g *gate) lock(ctx context.Context, objects []intake.Object) error {
	rows.SortObjects(objects)
	keys := make([][]any, len(objects))
	for i, o := range objects {
		keys[i] = rows.Key(o)
	}
	query, args := entryOf, keys[0]
	if len(keys) > 1 {
		list, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		query, args = entriesOf, []any{string(list)}
	}
	_, err := g.read(ctx, query, args...)
	if err == nil && g.now.IsZero() {
		g.now, err = g.Now(ctx, g.q)
	}
	if err != nil {
		return err
	}
	for _, o := range objects {
		if g.entries[o] == nil {
			g.hold(o, &intake.Entry{Object: o, First: g.now}, nil)
		}
	}
	return nil
}

// read locks entries, and reads the clock behind that.
func (g *gate) read(ctx context.Context, query string, args ...any) (es []intake.Entry, err error) {
	err = rows.Select(ctx, g.q, rows.Entries(&es, rows.Field{Name: "now", At: &g.now}), g.Text(query), append([]any{g.Calendar()}, args...)...)
	for i := range es {
		var values []any
		if err == nil {
			err = g.openEntry(&es[i])
		}
		if err == nil {
			values, err = rows.Values(&es[i])
		}
		g.hold(es[i].Object, &es[i], values)
	}
	return es, err
}

// store writes the entries that have changed or are new. New ones are written in the order of their
// names, so that two batches that meet wait and do not deadlock.
func (g *gate) store(ctx context.Context) error {
	var changed, fresh [][]any
	for _, h := range g.held {
		h.entry.Object = h.object
		after, err := rows.Values(h.entry)
		if err != nil {
			return err
		}
		if h.before != nil && rows.Same(h.before, after) {
			continue
		}
		h.entry.Updated = g.now
		if after, err = g.sealedValues(h.entry, after); err != nil {
			return err
		}
		after[len(after)-1] = rows.Micros(g.now)
		row := append(after, rows.Key(h.object)...)
		if h.before == nil {
			fresh = append(fresh, row)
		} else {
			changed = append(changed, row)
		}
	}
	if len(changed) > 0 {
		if _, err := g.SetEntries(ctx, g.q, changed); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if n, err := g.AddEntries(ctx, g.q, fresh); err != nil || int(n) == len(fresh) {
		return err
	}
	return errMeanwhile
}

// judged stores what became of deliveries, and counts it.
func (g *gate) judged(ctx context.Context, before, ds []intake.Delivery) error {
	outcomes := make([][]any, len(ds))
	for i := range ds {
		outcomes[i] = rows.Outcome(&ds[i])
	}
	list, err := json.Marshal(outcomes)
	if err == nil {
		_, err = g.q.ExecContext(ctx, g.Text(judge), rows.Micros(g.now), string(list))
	}
	if err == nil {
		err = countJudged(ctx, g.Dialect, g.q, rows.Judgements(ds))
	}
	if err == nil {
		err = countBlocked(ctx, g.Dialect, g.q, ledger.ByVersion, turnedAway(before, ds), g.now)
	}
	return err
}

// EntryColumns are those of a row of an entry.
var EntryColumns = slices.Concat(rows.EntryColumns, rows.KeyColumns)

// The statements of the gate take the reconciler's clock where they have {now}. What another
// transaction has locked is passed by, but for the entries of what is judged or updated.
var (
	unjudged = `
		WITH d AS (SELECT * FROM amends_inbox WHERE processed_at IS NULL ORDER BY number LIMIT $1 {passing})
		SELECT ` + rows.DeliveryColumns + ` FROM d` + rows.BesideDelivery + ` ORDER BY d.number`

	judge = `
		UPDATE amends_inbox AS d SET processed_at = {now}, disposition = e.value ->> 1, reason = e.value ->> 2
		FROM {elements:2} AS e WHERE d.number = CAST(e.value ->> 0 AS bigint)`

	entryNames = rows.Names("e.", slices.Concat(rows.KeyColumns, rows.EntryColumns))

	entryOf = `
		SELECT ` + entryNames + `, {now} AS now FROM amends_objects AS e
		WHERE e.source = $2 AND e.tenant = $3 AND e.type = $4 AND e.id = $5 {inorder}`

	// entriesOf reads the entries of many objects, a JSON list of their keys. One statement for all
	// of them costs far less than one for each.
	entriesOf = `
		SELECT ` + entryNames + `, {now} AS now FROM {elements:2} AS k CROSS JOIN amends_objects AS e
		WHERE e.source = k.value ->> 0 AND e.tenant = k.value ->> 1 AND e.type = k.value ->> 2 AND e.id = k.value ->> 3 {inorder}`

	// dueEntries reads the clock once: an index takes no other.
	dueEntries = `
		SELECT ` + entryNames + `, (SELECT {now}) AS now FROM amends_objects AS e
		WHERE e.due_at <= (SELECT {now}) AND (e.leased_until IS NULL OR e.leased_until <= (SELECT {now}))
		ORDER BY e.due_at LIMIT $2 {passing}`
)

// Gated are the statements of the gate in the words of a database, which may prepare them.
func Gated(words map[string]string) []string {
	d := &Dialect{Words: words}
	return []string{d.Text(unjudged), d.Text(judge), d.Text(entryOf), d.Text(entriesOf), d.Text(dueEntries)}
}
