package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// A setting of a role, a trigger or a proxy may change what is written without an error, and a chain
// whose hash does not fit is found when a work is run again, with its effects made. So before the
// first session on a database records with every kind of value are written as a batch is, read back,
// compared, and rolled back.

// errTried rolls a trial back that has gone well.
var errTried = errors.New("the trial is over")

// try makes the trial, once for each database that answers.
func (db *DB) try(ctx context.Context) error {
	now := db.server.Identity()
	if tried := db.tried.Load(); tried != nil && *tried == now {
		return nil
	}
	err := db.others.transaction(sqlstore.Again(ctx), func(tx *sqlx.Tx) error { return db.trial(ctx, tx) })
	if !errors.Is(err, errTried) {
		return err
	}
	db.tried.Store(&now)
	return nil
}

func (db *DB) trial(ctx context.Context, tx *sqlx.Tx) error {
	name := rand.Text()
	es := []ledger.Entry{tryStart(name+"/full", true), tryStart(name+"/empty", false)}
	starts, err := db.tryBatch(ctx, tx, es, startText(many(startColumns), false, 0, ""), startsOf)
	if err != nil {
		return err
	}
	for i := range es {
		es = append(es, tryNext(&es[i], starts[i].Number, i == 0))
	}
	if _, err := db.tryBatch(ctx, tx, es[2:], followText(many(followColumns), false, false), followsOf); err != nil {
		return err
	}
	for i := range starts {
		written := []machine.Record{es[i].Record, es[i+2].Record}
		written[0].At = starts[i].At
		read, err := sqlstore.Chain(ctx, db.store, tx, es[i].ID)
		if err != nil {
			return err
		}
		if changed := differences(es[i].ID, written, read); changed != "" {
			return fmt.Errorf("%w: records of a trial were written, and came back with another %s; look for a setting of the role or the database "+
				"(\\drds in psql), a trigger on the tables named amends_, or a proxy that changes values", ledger.ErrUnsupported, changed)
		}
	}
	return errTried
}

func startsOf(b appending) []*pending  { return b.starts }
func followsOf(b appending) []*pending { return b.follows }

// tryBatch stores entries by the statement of a batch and answers the starts among them.
func (db *DB) tryBatch(ctx context.Context, tx *sqlx.Tx, es []ledger.Entry, text string, of func(appending) []*pending) ([]ledger.Answer, error) {
	answers := make([]ledger.Answer, len(es))
	ps := of(db.collect(es, answers))
	if len(ps) != len(es) {
		return nil, fmt.Errorf("the records of the trial are invalid: %w", errors.Join(answers[0].Err, answers[len(es)-1].Err))
	}
	starting := ps[0].Record.Seq == 1
	if starting {
		var own refs // those of works go on from each other
		for _, p := range ps {
			p.row[0] = own.draw(sqlstore.Bucket(p.ID.Work, db.meta.Buckets))
		}
	}
	row := tx.QueryRowxContext(ctx, text, appendArrays([]any{db.now(), int64(0)}, ps)...)
	if !starting {
		var live bool
		var from, to sqlstore.Moment
		var stored pq.Int64Array
		return nil, row.Scan(&live, &from, &to, &stored)
	}
	if _, err := accept(row, ps); err != nil {
		return nil, err
	}
	if len(unanswered(ps)) > 0 {
		return nil, errors.New("a start of the trial was not taken, and its name is new")
	}
	return answers, nil
}

// odd is a text that some reader of literals takes for something else.
const odd = `NULL {"a",b} \x41 ' " $1 :x %s ` + "\t\n Grüße, 日本 😀"

func tryStart(work string, full bool) ledger.Entry {
	r := machine.Record{Kind: machine.KindStarted, Version: 1, Nonce: -9007199254740993, Body: json.RawMessage(`{}`), Status: saga.Running}
	if full {
		r.Revision, r.Nonce, r.Body = odd, 9007199254740993, tryBody()
	}
	e := ledger.Entry{ID: saga.ID{Saga: "amends trial", Work: work}, Record: r, Schedule: &ledger.Schedule{}}
	e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, 0)
	return e
}

// tryNext is the record behind a start. One of the two has everything, so that every column of the
// other is a NULL beside a value.
func tryNext(first *ledger.Entry, number int64, full bool) ledger.Entry {
	r := machine.Record{Kind: machine.KindNoted, Status: saga.Running}
	if full {
		r = machine.Record{
			Kind: machine.KindDone, Step: odd, Direction: saga.Forward, Attempt: 1, ExternalID: "NULL", Error: odd, Body: tryBody(), Snapshot: tryBody(),
			Status: saga.Review, Reason: saga.ReasonInDoubt, Wait: 1500 * time.Millisecond,
		}
	}
	e := ledger.Entry{ID: first.ID, Number: number, Prev: first.Record.Hash, Record: r, Schedule: &ledger.Schedule{}}
	e.Record.Seal(e.ID, machine.Salt{}, 1, e.Prev, 0)
	return e
}

func tryBody() json.RawMessage {
	text, _ := json.Marshal(odd) // a text can be marshalled
	return json.RawMessage(`{"text":` + string(text) + `,"float":0.1,"big":9007199254740993,"none":null}`)
}

// differences names what is not as it was written. The time of the second record is the database's.
func differences(id saga.ID, written, read []machine.Record) string {
	if len(read) != len(written) {
		return fmt.Sprintf("number of records (%d, and %d were written)", len(read), len(written))
	}
	var names []string
	var prev machine.Hash
	for i := range read {
		w, r := reflect.ValueOf(written[i]), reflect.ValueOf(read[i])
		for f := range w.NumField() {
			name := w.Type().Field(f).Name
			if name == "At" && (i > 0 || read[i].At.Equal(written[i].At)) {
				continue
			}
			if !same(w.Field(f), r.Field(f)) {
				names = append(names, name)
			}
		}
		if read[i].Sum(id, machine.Salt{}, prev) != read[i].Hash && len(names) == 0 {
			names = append(names, "content than its hash says")
		}
		prev = read[i].Hash
	}
	return strings.Join(names, ", ")
}

// same takes bytes that are not there for none.
func same(a, b reflect.Value) bool {
	x, ok := a.Interface().(json.RawMessage)
	y, _ := b.Interface().(json.RawMessage)
	if ok {
		return bytes.Equal(x, y)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface()) || a.Kind() == reflect.Slice && a.Len()+b.Len() == 0
}
