package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// inboxRole implements [intake.Store] and [intake.Reader].
type inboxRole struct{ db *Dialect }

// pageSize is the length of a list when the caller sets no limit.
const pageSize = 100

func (s *inboxRole) selected(f *intake.DeliveryFilter) *where {
	var w where
	if f.Numbers != nil {
		w.and("d.number IN "+s.db.Numbers, numberList(f.Numbers))
	}
	w.object("d", intake.Object{Source: f.Source})
	w.object("d", f.Object)
	if f.Disposition != "" {
		w.and("d.disposition = ?", string(f.Disposition))
	}
	if f.Unjudged {
		w.and("d.processed_at IS NULL")
	}
	if !f.From.IsZero() {
		w.and("d.received_at >= ?", s.db.Moment(f.From))
	}
	if !f.Until.IsZero() {
		w.and("d.received_at < ?", s.db.Moment(f.Until))
	}
	if f.Before > 0 {
		w.and("d.number < ?", f.Before)
	}
	return &w
}

func numberList(numbers []int64) string {
	b, _ := json.Marshal(append([]int64{}, numbers...)) //nolint:errchkjson // numbers always marshal
	return string(b)
}

// Deliveries returns deliveries, the newest first.
func (s *inboxRole) Deliveries(ctx context.Context, f intake.DeliveryFilter) ([]intake.Delivery, error) {
	w := s.selected(&f)
	var found []intake.Delivery
	// The page is chosen before anything is joined to it.
	err := s.db.get(ctx, rows.Deliveries(&found), `SELECT `+rows.DeliveryColumns+`
		FROM (SELECT * FROM amends_inbox AS d`+w.String()+` ORDER BY d.number DESC LIMIT ?) AS d`+rows.BesideDelivery+`
		ORDER BY d.number DESC`, append(w.args, cmp.Or(f.Limit, pageSize))...)
	if err == nil {
		err = readable(s.db.openDeliveries(found))
	}
	return orNone(found, wrap(err, "list deliveries"))
}

// Delivery returns one.
func (s *inboxRole) Delivery(ctx context.Context, number int64) (intake.Delivery, error) {
	found, err := s.Deliveries(ctx, intake.DeliveryFilter{Numbers: []int64{number}})
	d, err := one(found, err, intake.ErrNotFound)
	return d, wrap(err, "delivery %d", number)
}

// Entry returns what is known of an object, nil when nothing is.
func (s *inboxRole) Entry(ctx context.Context, o intake.Object) (*intake.Entry, error) {
	var w where
	for i, value := range rows.Key(rows.Object(o)) {
		w.and("e."+rows.KeyColumns[i].Name+" = ?", value)
	}
	found, err := s.entries(ctx, &w, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Entries returns entries in the order of their objects.
func (s *inboxRole) Entries(ctx context.Context, f intake.EntryFilter) ([]intake.Entry, error) {
	var w where
	w.object("e", f.Object)
	if f.Owing {
		w.and("(" + owing + ")")
	}
	if f.Blocked {
		w.and("e.blocked_reason IS NOT NULL")
	}
	if f.Held {
		w.and("e.held_seq IS NOT NULL")
	}
	if f.Future {
		w.and(Future, intake.NotYet+"%", cmp.Or(f.Limit, pageSize), intake.NotYet+"%")
	}
	if f.After != (intake.Object{}) {
		w.and("("+rows.Names("e.", rows.KeyColumns)+") > (?, ?, ?, ?)", rows.Key(rows.Object(f.After))...)
	}
	return s.entries(ctx, &w, cmp.Or(f.Limit, pageSize))
}

// Future selects those by the index of what is due some time, which few are.
const Future = `e.due_at IN (SELECT due_at FROM amends_objects WHERE due_at IS NOT NULL AND last_error LIKE ? ORDER BY due_at LIMIT ?) AND e.last_error LIKE ?`

const owing = `e.fetch_requested > e.fetch_completed OR e.accepted_seq > e.delivered_seq`

func (s *inboxRole) entries(ctx context.Context, w *where, limit int) ([]intake.Entry, error) {
	key := rows.Names("e.", rows.KeyColumns)
	var found []intake.Entry
	err := s.db.get(ctx, rows.Entries(&found), `SELECT `+key+`, `+rows.Names("e.", rows.EntryColumns)+`
		FROM amends_objects AS e`+w.String()+` ORDER BY `+key+` LIMIT ?`, append(w.args, limit)...)
	for i := range found {
		if err == nil {
			err = readable(s.db.openEntry(&found[i]))
		}
	}
	return orNone(found, wrap(err, "list entries"))
}
