package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
)

// Hears are instances to which something may be said: they have records.
const Hears = `coalesce(remains, '` + ledger.BodiesGone + `') = '` + ledger.BodiesGone + `'`

var (
	// reduceHeads marks the works that are as they were read; a work that another transaction has locked was passed over. What has no records
	// has nothing unread.
	reduceHeads = `
		UPDATE amends_instances AS h SET remains = w.value ->> 3, snapshot_seq = 1,
			received = CASE WHEN w.value ->> 3 = '` + ledger.BodiesGone + `' THEN h.received ELSE 0 END,
			consumed = CASE WHEN w.value ->> 3 = '` + ledger.BodiesGone + `' THEN h.consumed ELSE 0 END,
			salt = CASE WHEN w.value ->> 3 = '` + ledger.BodiesGone + `' THEN h.salt END
		FROM {elements:1} AS w WHERE h.ref = CAST(w.value ->> 0 AS bigint) AND ` + asRead + `
		RETURNING ref`

	// forgetHeads deletes them.
	forgetHeads = `
		DELETE FROM amends_instances AS h WHERE EXISTS (
			SELECT 1 FROM {elements:1} AS w WHERE h.ref = CAST(w.value ->> 0 AS bigint) AND ` + asRead + `)
			AND h.ref IN (SELECT CAST(value ->> 0 AS bigint) FROM {elements:1} AS refs)
		RETURNING ref`

	asRead = resting + ` AND coalesce(h.remains, '') = w.value ->> 2 AND h.consumed = CAST(w.value ->> 4 AS bigint) AND h.work_id = w.value ->> 5
		AND coalesce((SELECT max(r.seq) FROM amends_records AS r WHERE r.instance = h.ref), 0) = CAST(w.value ->> 1 AS bigint)
		AND NOT EXISTS (SELECT 1 FROM amends_controls AS c WHERE c.kind = 'hold' AND c.name = h.saga || ' ' || h.work_id AND c.body IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM amends_tags AS t WHERE t.tag = w.value ->> 6 AND t.instance = h.ref)`

	// lockHeads comes before, so that they see a hold that another transaction had ready.
	lockHeads = `SELECT ref FROM amends_instances WHERE ref IN {numbers:1} ORDER BY ref {passing}`

	reduceRecords = `
		UPDATE amends_records AS r SET doc = w.value ->> 2, body = w.value ->> 3, snapshot = NULL
		FROM {elements:1} AS w WHERE r.instance = CAST(w.value ->> 0 AS bigint) AND r.seq = CAST(w.value ->> 1 AS bigint)`

	reduceSignals = `
		UPDATE amends_signals AS s SET doc = w.value ->> 2
		FROM {elements:1} AS w WHERE s.instance = CAST(w.value ->> 0 AS bigint) AND s.number = CAST(w.value ->> 1 AS bigint)`

	forgetRecords = `DELETE FROM amends_records WHERE instance IN {numbers:1}`
	forgetSignals = `DELETE FROM amends_signals WHERE instance IN {numbers:1}`
	forgetTags    = `DELETE FROM amends_tags WHERE (tag, instance) IN (SELECT value ->> 1, CAST(value ->> 0 AS bigint) FROM {elements:1} AS t)`
	forgetCounts  = `DELETE FROM amends_duplicates WHERE (saga, work_id) IN (SELECT value ->> 0, value ->> 1 FROM {elements:1} AS d)`
	forgetErased  = `DELETE FROM amends_erased WHERE instance IN {numbers:1}`
)

// Reduce lets go of what each reduction says. Those of one kind are one transaction.
func (s *chains) Reduce(ctx context.Context, all []ledger.Reduction) ([]bool, error) {
	done := make([]bool, len(all))
	for _, goes := range []bool{false, true} {
		at := make(map[int64]int)
		for i := range all {
			if (all[i].To == "") == goes {
				at[all[i].Head.Number] = i
			}
		}
		if len(at) == 0 {
			continue
		}
		var refs []int64
		err := s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) (err error) {
			if sealed, err := s.isSealed(ctx, q); err != nil || sealed && s.db.Keys == nil { // what it does not read it does not take out
				return cmp.Or(err, errNoKeys)
			}
			refs, err = s.reduceHeads(ctx, q, all, at, goes)
			if err != nil || len(refs) == 0 {
				return err
			}
			if err := s.reduceRest(ctx, q, all, at, refs); err != nil {
				return err
			}
			return s.db.shrink(ctx, q)
		})
		if err != nil {
			return nil, s.failed(ctx, err, "reduce %d works", len(at))
		}
		for _, ref := range refs {
			done[at[ref]] = true
		}
	}
	return done, nil
}

func (s *chains) reduceHeads(ctx context.Context, q Queries, all []ledger.Reduction, at map[int64]int, goes bool) (refs []int64, err error) {
	b, err := json.Marshal(slices.Collect(maps.Keys(at)))
	if err != nil {
		return nil, err
	}
	var locked []int64
	if err := sqlx.SelectContext(ctx, q, &locked, s.db.Text(lockHeads), string(b)); err != nil || len(locked) == 0 {
		return nil, err
	}
	list := make([][7]any, 0, len(locked))
	for _, ref := range locked {
		r := &all[at[ref]]
		marked := "" // what leads to what is to be erased stays until it is
		if r.As == "" && r.To != ledger.LeftRecords {
			marked = ledger.ToErase
		}
		list = append(list, [7]any{ref, r.Tail, r.Head.Remains, r.NowRemains(), r.Head.Consumed, r.Head.ID.Work, marked})
	}
	if b, err = json.Marshal(list); err != nil {
		return nil, err
	}
	text := reduceHeads
	if goes {
		text = forgetHeads
	}
	err = sqlx.SelectContext(ctx, q, &refs, s.db.Text(text), string(b))
	return refs, err
}

// reduceRest does to the other tables what was done to the heads of refs.
func (s *chains) reduceRest(ctx context.Context, q Queries, all []ledger.Reduction, at map[int64]int, refs []int64) error {
	var gone, lost []int64
	var letGo time.Time
	var records, signals, tags, works, erased [][]any
	for _, ref := range refs {
		r := &all[at[ref]]
		for i := range r.Records {
			e := ledger.Entry{ID: r.Head.ID, Record: r.Records[i]}
			records = append(records, []any{ref, e.Record.Seq, string(Document(nil, &e)), Null(string(e.Record.Body))})
		}
		for i := range r.Signals {
			doc, err := s.db.encodeResolution(r.Head.ID, &r.Signals[i])
			if err != nil {
				return err
			}
			signals = append(signals, []any{ref, r.Signals[i].ID, doc})
		}
		for _, tag := range r.Tags {
			tags = append(tags, []any{ref, tag})
		}
		if r.To == "" {
			if lost = append(lost, ref); r.Head.Updated.After(letGo) {
				letGo = r.Head.Updated
			}
			works = append(works, []any{r.Head.ID.Saga, r.Head.ID.Work}, []any{r.Head.ID.Saga, s.Hide(r.Head.ID.Work)})
		}
		if r.To != ledger.LeftRecords {
			gone = append(gone, ref)
		}
		if r.As != "" {
			tags = append(tags, []any{ref, ledger.ToErase})
			erased = append(erased, []any{ref, r.Head.ID.Saga, r.Head.ID.Work, r.As})
		}
	}
	for _, step := range []struct {
		text string
		n    int
		list any
	}{
		{reduceRecords, len(records), records}, {reduceSignals, len(signals), signals}, {forgetTags, len(tags), tags},
		{forgetCounts, len(works), works}, {forgetErased, len(lost), lost}, {rememberErased, len(erased), erased}, {forgetRecords, len(gone), gone},
		{forgetSignals, len(gone), gone},
	} {
		if step.n == 0 {
			continue
		}
		if err := s.with(ctx, q, step.text, step.list); err != nil {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	// What a witness saw last may be of them: they were let go, and not forgotten.
	latest := s.db.Moment(letGo)
	_, err := q.ExecContext(ctx, s.db.Bind(`UPDATE amends_meta SET let_go_at = ? WHERE let_go_at IS NULL OR let_go_at < ?`), latest, latest)
	return err
}

// with runs a statement that takes one list.
func (s *chains) with(ctx context.Context, q Queries, text string, list any) error {
	b, err := json.Marshal(list)
	if err == nil {
		_, err = q.ExecContext(ctx, s.db.Text(text), string(b))
	}
	return err
}
