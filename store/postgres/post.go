package postgres

import (
	"context"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/batch"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// posting is a signal on its way.
type posting struct {
	sqlstore.PostArgs
	answer sqlstore.PostAnswer
}

const (
	mostPosted  = 128              // the size of one statement, see size
	postingFor  = 10 * time.Second // for which a statement may be under way that is for several callers
	postWriters = 2
)

// size is one for a signal, and one more for each 64 KiB that it says.
func (p *posting) size() int {
	doc, _ := p.Doc.(string)
	return 1 + len(doc)>>16
}

// post stores a signal and wakes its work, in one statement. Signals that come at the same time share one, and its commit, but
// those of works that another transaction has locked, and of works that are not there: each of them is posted by itself, and holds up
// no other.
func (db *DB) post(ctx context.Context, p sqlstore.PostArgs) (a sqlstore.PostAnswer, err error) {
	w := &posting{PostArgs: p}
	if err = db.posts.Do(ctx, w); err != nil || w.answer.Found {
		return w.answer, err
	}
	err = db.posting.do(ctx, func(ctx context.Context) error {
		return db.postOne.QueryRowxContext(ctx, append([]any{db.now()}, w.row()...)...).StructScan(&a)
	})
	return a, err
}

// row is the signal as [postColumns] have it.
func (p *posting) row() []any {
	return []any{p.ID.Saga, p.ID.Work, p.Kind, p.Key, p.Actor, p.Reason, p.Doc, p.ByHand, p.Number}
}

// postTogether stores the first signal of each work.
func (db *DB) postTogether(calls []*batch.Call[*posting]) {
	ctx, cancel := batch.Context(calls, postingFor)
	defer cancel()
	var table []*posting
	known := make(map[saga.ID]bool, len(calls))
	for _, c := range calls {
		if id := c.Work.ID; !known[id] {
			known[id] = true
			table = append(table, c.Work)
		}
	}
	args := []any{db.now()}
	for n, c := range postColumns {
		args = append(args, pgdb.Array(c.kind, len(table), func(i int) any { return table[i].row()[n] }))
	}
	var stored []struct {
		I int
		sqlstore.PostAnswer
	}
	err := db.posting.do(sqlstore.Again(ctx), func(ctx context.Context) error {
		stored = nil
		return db.postMany.SelectContext(ctx, &stored, args...)
	})
	if refused(err) || contended(err) || undone(err) { // each for itself
		err, stored = nil, nil
	}
	for _, s := range stored {
		table[s.I-1].answer = s.PostAnswer
	}
	for _, c := range calls {
		c.Answer(err)
	}
}

// forPosts are for signals.
func (w *writing) forPosts() []statement {
	return []statement{{&w.postMany, postManyText}, {&w.postOne, postOneText}}
}

var postColumns = []column{
	{"saga", "text"}, {"work", "text"}, {"kind", "text"}, {"key", "text"}, {"actor", "text"}, {"reason", "text"}, {"doc", "text"},
	{"by_hand", "boolean"}, {"wanted", "bigint"},
}

// postOneText stores a signal, once for each key, and makes its work due. A held work keeps its
// holder: Claim tells that holder. The work is locked first, so that its signals are numbered one
// by one; a key that is there already takes no number. It answers a [sqlstore.PostAnswer]: one that wants a number
// that another has is not there.
var postOneText = postText(`(SELECT 1 AS i, `+columnsFrom(2, postColumns, "$%d::%s AS %s")+`)`, ``) + `
	SELECT said.i IS NOT NULL AS found, coalesce(said.there, false) AS there, number, at FROM (SELECT) AS one LEFT JOIN said ON true`

// postManyText does so for signals of several works, in the order in which appends lock them, and passes over what another transaction
// has locked. It answers for each that is stored, by its place.
var postManyText = postText(`(SELECT * FROM unnest(`+columnsFrom(2, postColumns, "$%[1]d::%[2]s[]")+`) WITH ORDINALITY AS u (`+names(postColumns)+`, i))`, ` SKIP LOCKED`) + `
	SELECT i, true AS found, there, number, at FROM said`

func postText(rows, locked string) string {
	return `WITH
	clock AS MATERIALIZED (SELECT ` + clock + ` AS now),
	p AS MATERIALIZED (SELECT * FROM ` + rows + ` AS p),
	work AS MATERIALIZED (
		SELECT p.i, h.ref, h.received FROM p JOIN amends_instances AS h ON h.work_id = p.work AND h.saga = p.saga AND ` + sqlstore.Hears + `
		ORDER BY h.ref FOR NO KEY UPDATE OF h` + locked + `),
	signal AS (
		INSERT INTO amends_signals (instance, number, at, kind, key, actor, reason, doc, by_hand)
		SELECT work.ref, work.received + 1, clock.now, p.kind, p.key, p.actor, p.reason, p.doc, p.by_hand FROM work JOIN p USING (i) CROSS JOIN clock
		WHERE p.wanted = 0 OR work.received + 1 = p.wanted
		ON CONFLICT (instance, key) DO NOTHING
		RETURNING instance, number, at),
	counted AS (
		UPDATE amends_instances AS h SET received = signal.number,
			due_at = CASE WHEN h.session IS NULL THEN least(h.due_at, signal.at) ELSE h.due_at END, waits_for = NULL
		FROM signal WHERE h.ref = signal.instance),
	said AS (
		SELECT work.i, p.wanted = 0 OR signal.number IS NOT NULL
			OR EXISTS (SELECT FROM amends_signals AS s WHERE s.instance = work.ref AND s.key = p.key) AS there, signal.number, signal.at
		FROM work JOIN p USING (i) LEFT JOIN signal ON signal.instance = work.ref)`
}
