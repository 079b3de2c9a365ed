package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/valid"
)

// deed is what a person did that is no control. A random number tells two of them apart: draw it before a
// transaction that may be done again.
func deed(kind ledger.ControlKind, name string, by saga.Actor) ledger.Control {
	return ledger.Control{Version: 1 + rand.Int64N(1<<62), Kind: kind, Name: name, Actor: by.Name, Reason: by.Reason}
}

// act puts what a person did behind the last act, in the transaction that q is, at its time or, without
// one, now. What an attempt whose answer was lost has put there is not put twice. The row of amends_meta is
// locked behind all else that the transaction locks: who has it waits for a control and its session at most.
func (d *Dialect) act(ctx context.Context, q Queries, c ledger.Control) error {
	a := ledger.Act{Control: c}
	var last []byte
	var now Moment
	head := d.Text(`WITH head AS MATERIALIZED (SELECT acts, acts_hash FROM amends_meta` + d.Lock + `) SELECT acts + 1, acts_hash, {now} FROM head`)
	if err := q.QueryRowxContext(ctx, head, d.Clock()).Scan(&a.Number, &last, &now); err != nil {
		return err
	}
	if a.At = a.At.Truncate(time.Microsecond); a.At.IsZero() {
		a.At = now.Time()
	}
	a.Hash = a.Sum(last)
	n, err := affected(q.ExecContext(ctx, addAct, a.Number, a.Hash, a.Version, d.Moment(a.At), int64(a.Session), a.Nonce,
		string(a.Kind), a.Name, Null(string(a.Body)), a.Actor, Null(a.Reason)))
	if err != nil || n == 0 {
		return err
	}
	_, err = q.ExecContext(ctx, `UPDATE amends_meta SET acts = $1, acts_hash = $2`, a.Number, a.Hash)
	return err
}

// ActChain returns acts in the order of their numbers, and the head of their chain at that moment.
func (s *chains) ActChain(ctx context.Context, after int64, limit int) (acts []ledger.Act, head ledger.Act, err error) {
	err = s.db.View(ctx, func(ctx context.Context, q Queries) error {
		if err := q.QueryRowxContext(ctx, `SELECT acts, acts_hash FROM amends_meta`).Scan(&head.Number, &head.Hash); err != nil {
			return err
		}
		return rows.Select(ctx, q, rows.Into(&acts, func(a *ledger.Act) []rows.Field {
			return append(controlFields(&a.Control), rows.Field{Name: "number", At: &a.Number}, rows.Field{Name: "hash", At: &a.Hash})
		}), actChain, after, cmp.Or(max(limit, 0), pageSize))
	})
	return acts, head, s.failed(ctx, err, "read the chain of acts")
}

// Did puts on record what a person did.
func (s *chains) Did(ctx context.Context, kind ledger.ControlKind, what string, by saga.Actor) error {
	err := valid.Look(what, by)
	if err == nil {
		did := deed(kind, what, by)
		err = s.db.Whole(Again(ctx), func(ctx context.Context, q Queries) error { return s.db.act(ctx, q, did) })
	}
	return s.failed(ctx, err, "put on record: %s %s", kind, what)
}

// Deeds returns what people did, the newest first.
func (s *chains) Deeds(ctx context.Context, before time.Time, limit int) ([]ledger.Deed, error) {
	limit = cmp.Or(max(limit, 0), pageSize)
	if before.IsZero() {
		before = time.Unix(1<<36, 0)
	}
	at := s.db.Moment(before)
	all, err := viewed(ctx, s, "list what people did", func(d *ledger.Deed) []rows.Field {
		return []rows.Field{
			{"at", &d.At}, {"kind", &d.Kind}, {"saga", &d.ID.Saga}, {"work", &d.ID.Work}, {"name", &d.Name},
			{"body", &d.Body}, {"actor", &d.Actor}, {"reason", &d.Reason},
		}
	}, deeds, at, limit, at, limit, limit)
	for i := range all {
		if d := &all[i]; d.ID.Work != "" && d.Body != "" { // a signal
			doc, _, err := open(s.db, d.Body, ofSignal(d.ID, string(d.Kind)))
			if err != nil && !errors.Is(err, ledger.ErrKeys) {
				return nil, s.failed(ctx, err, "list what people said to %s", d.ID)
			}
			if err := json.Unmarshal([]byte(cmp.Or(doc, "{}")), &d.Resolution); err != nil {
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
	addAct = `
		INSERT INTO amends_audit (number, hash, version, at, session, nonce, kind, name, body, actor, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (kind, name, version) DO NOTHING`

	deeds = `
		SELECT d.at, d.kind, d.saga, d.work, d.name, d.body, d.actor, d.reason FROM (
			SELECT * FROM (
				SELECT s.at, s.kind, i.saga, i.work_id AS work, '' AS name, CASE WHEN s.kind IN (` + decides + `) THEN COALESCE(s.doc, '') ELSE '' END AS body, s.actor, s.reason
				FROM amends_signals AS s JOIN amends_instances AS i ON i.ref = s.instance
				WHERE s.by_hand AND s.at < ? ORDER BY s.at DESC LIMIT ?) AS said
			UNION ALL SELECT * FROM (
				SELECT a.at, a.kind, '', '', a.name, a.body, a.actor, a.reason
				FROM amends_audit AS a WHERE a.at < ? ORDER BY a.at DESC LIMIT ?) AS done
		) AS d ORDER BY d.at DESC LIMIT ?`
)
