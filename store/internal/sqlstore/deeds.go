package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Looked puts on record that a person looked at something. A random number tells two looks apart.
func (s *chains) Looked(ctx context.Context, what string, by saga.Actor) error {
	err := valid.Look(what, by)
	if err == nil {
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
			_, err := q.ExecContext(ctx, s.db.Text(addDeed), s.db.Clock(), 1+rand.Int64N(1<<62), ledger.DeedLooked, what, by.Name, Null(by.Reason))
			return err
		})
	}
	return s.failed(ctx, err, "put on record who looked at %s", what)
}

// Deeds returns what people did, the newest first.
func (s *chains) Deeds(ctx context.Context, before time.Time, limit int) ([]ledger.Deed, error) {
	if limit <= 0 {
		limit = pageSize
	}
	if before.IsZero() {
		before = time.Unix(1<<36, 0)
	}
	at := s.db.Moment(before)
	all, err := viewed(ctx, s, "list what people did", func(d *ledger.Deed) []rows.Field {
		return []rows.Field{
			{"at", &d.At}, {"kind", &d.Kind}, {"saga", &d.ID.Saga}, {"work", &d.ID.Work}, {"name", &d.Name},
			{"body", &d.Body}, {"actor", &d.Actor}, {"reason", &d.Reason},
		}
	}, deeds, at, limit, at, limit, at, limit, limit)
	for i := range all {
		if d := &all[i]; d.ID.Work != "" && d.Body != "" { // a signal
			if err := json.Unmarshal([]byte(d.Body), &d.Resolution); err != nil {
				return nil, s.failed(ctx, fmt.Errorf("%w: %w", ledger.ErrDamaged, err), "list what people said to %s", d.ID)
			}
			d.Body = ""
		}
	}
	return all, err
}

// decides are the kinds of which [ledger.Decides] says so.
const decides = `'` + string(machine.SignalResolve) + `', '` + string(machine.SignalRetry) + `', '` + string(machine.SignalSkip) + `'`

const (
	addDeed = `
		INSERT INTO amends_audit (version, at, session, nonce, kind, name, actor, reason)
		VALUES ($2, {now}, 0, 0, $3, $4, $5, $6)`

	deeds = `
		SELECT d.at, d.kind, d.saga, d.work, d.name, d.body, d.actor, d.reason FROM (
			SELECT * FROM (
				SELECT s.at, s.kind, i.saga, i.work_id AS work, '' AS name, CASE WHEN s.kind IN (` + decides + `) THEN COALESCE(s.doc, '') ELSE '' END AS body, s.actor, s.reason
				FROM amends_signals AS s JOIN amends_instances AS i ON i.ref = s.instance
				WHERE s.by_hand AND s.at < ? ORDER BY s.at DESC LIMIT ?) AS said
			UNION ALL SELECT * FROM (
				SELECT a.at, a.kind, '', '', a.name, a.body, a.actor, a.reason
				FROM amends_audit AS a WHERE a.at < ? ORDER BY a.at DESC LIMIT ?) AS done
			UNION ALL SELECT * FROM (
				SELECT r.created_at, '` + ledger.DeedRun + `', '', '', r.job, r.requested, r.requested_by, r.requested_reason
				FROM amends_runs AS r WHERE r.requested_by IS NOT NULL AND r.created_at < ? ORDER BY r.created_at DESC LIMIT ?) AS asked
		) AS d ORDER BY d.at DESC LIMIT ?`
)
