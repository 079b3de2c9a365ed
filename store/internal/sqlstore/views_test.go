package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// told is a row of amends_history.
type told struct {
	Saga        string
	WorkID      string `db:"work_id"`
	Seq         int64
	At          string
	Kind        string
	Step        sql.NullString
	Direction   sql.NullString
	Attempt     sql.NullInt64
	Status      string
	Reason      sql.NullString
	ExternalID  sql.NullString `db:"external_id"`
	Class       sql.NullString
	Error       sql.NullString
	Note, Actor sql.NullString
	Why, Cause  sql.NullString
	Erased      bool
	Revision    sql.NullString
	Version     sql.NullInt64
	Signals     sql.NullString
	WaitMS      sql.NullInt64  `db:"wait_ms"`
	ArmStep     sql.NullString `db:"dispatch_step"`
	ArmDir      sql.NullString `db:"dispatch_direction"`
	ArmAttempt  sql.NullInt64  `db:"dispatch_attempt"`
	ArmReissue  sql.NullInt64  `db:"dispatch_reissue"`
	ArmBudget   sql.NullInt64  `db:"dispatch_budget_ms"`
	ArmKey      sql.NullString `db:"dispatch_key"`
	Body        sql.NullString
	BodyDropped bool `db:"body_dropped"`
	HasSnapshot bool `db:"has_snapshot"`
	Session     string
	Hash        string
	Instance    int64
}

// overviewed is a row of amends_overview.
type overviewed struct {
	Saga     string
	WorkID   string `db:"work_id"`
	Version  int
	Revision string
	Status   string
	Reason   sql.NullString
	Step     sql.NullString
	WaitsFor sql.NullString `db:"waits_for"`
	Class    string
	Session  sql.NullString
	Due      sql.NullString `db:"due_at"`
	Created  string         `db:"created_at"`
	Updated  string         `db:"updated_at"`
	Finished sql.NullString `db:"finished_at"`
	Unread   int64          `db:"unread_signals"`
	Unsure   bool           `db:"unconfirmed"`
	Instance int64
}

// What the views tell people is what the ledger tells programs; on Postgres a role that may read
// the two views, and no table, reads it.
func TestViews(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "ledger.db")
		l, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		db := sqlx.MustConnect("sqlite", path)
		t.Cleanup(func() { _, _ = db.Close(), l.Close() })
		compareViews(t, l, db)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		db := sqlx.MustConnect("postgres", url)
		t.Cleanup(func() { _, _ = db.Close(), l.Close() })
		db.SetMaxOpenConns(1)
		role := "reader_" + fmt.Sprint(time.Now().UnixNano())
		db.MustExec(`CREATE ROLE ` + role)
		t.Cleanup(func() { db.MustExec(`RESET ROLE; DROP OWNED BY ` + role + `; DROP ROLE ` + role) })
		db.MustExec(`GRANT SELECT ON amends_history, amends_overview TO ` + role)
		db.MustExec(`SET ROLE ` + role)
		if _, err := db.ExecContext(t.Context(), `SELECT FROM amends_records`); err == nil {
			t.Error("the role reads the tables, too: the test proves nothing")
		}
		compareViews(t, l, db)
	})
}

func compareViews(t *testing.T, l ledger.Ledger, db *sqlx.DB) {
	t.Helper()
	ctx := t.Context()
	lease, err := l.OpenSession(ctx, time.Hour, "views", nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := writeAll(ctx, t, l, lease.Token)
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
	for _, id := range ids {
		records, err := l.History(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var rows []told
		if err := db.Select(&rows, `SELECT * FROM amends_history WHERE work_id = $1 ORDER BY seq`, id.Work); err != nil || len(rows) != len(records) {
			t.Fatalf("the view has %d of %d records of %s: %v", len(rows), len(records), id, err)
		}
		heads, err := ledger.First(ctx, l, ledger.Filter{Work: id.Work})
		if err != nil || len(heads) != 1 {
			t.Fatal(heads, err)
		}
		for i, row := range rows {
			row.At = moment(t, row.At)
			if want := tell(heads[0].Number, id, &records[i], stamp(records[i].At)); row != want {
				t.Errorf("record %d of %s:\nthe view    %+v\nthe program %+v", i+1, id, row, want)
			}
		}
		var is overviewed
		if err := db.Get(&is, `SELECT * FROM amends_overview WHERE work_id = $1`, id.Work); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*string{&is.Due.String, &is.Created, &is.Updated, &is.Finished.String} {
			*at = moment(t, *at)
		}
		h := &heads[0]
		want := overviewed{
			Saga: id.Saga, WorkID: id.Work, Version: h.Version, Revision: h.Revision, Status: string(h.Status), Reason: text(string(h.Reason)),
			Step: text(h.Step), WaitsFor: text(h.WaitsFor), Class: []string{"compensating", "begun", "unbegun"}[h.Class],
			Created: stamp(h.Created), Updated: stamp(h.Updated), Unread: h.Posted - h.Consumed, Unsure: h.Unconfirmed, Instance: h.Number,
		}
		if h.Session != 0 {
			want.Session = text(h.Session.String())
		}
		if !h.Due.IsZero() {
			want.Due = text(stamp(h.Due))
		}
		if !h.Finished.IsZero() {
			want.Finished = text(stamp(h.Finished))
		}
		if is != want {
			t.Errorf("%s:\nthe view    %+v\nthe program %+v", id, is, want)
		}
	}
}

// moment brings a time as a view or a driver writes it into one form.
func moment(t *testing.T, s string) string {
	t.Helper()
	if s == "" {
		return ""
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatalf("a view tells the time as %q: %v", s, err)
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func text(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

func number(n int64, there bool) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: there} }

// tell is what the view must tell of a record.
func tell(ref int64, id saga.ID, r *machine.Record, at string) told {
	row := told{
		Saga: id.Saga, WorkID: id.Work, Seq: r.Seq, At: at, Kind: string(r.Kind), Step: text(r.Step), Direction: text(string(r.Direction)),
		Attempt: number(int64(r.Attempt), r.Step != ""), Status: string(r.Status), Reason: text(string(r.Reason)), ExternalID: text(r.ExternalID),
		Class: text(string(r.ErrorClass)), Error: text(r.Error), Note: text(r.Note), Actor: text(r.Actor), Why: text(r.Why), Cause: text(r.Cause), Erased: r.Digests != (machine.Erased{}), Revision: text(r.Revision), Version: number(int64(r.Version), r.Version != 0),
		WaitMS: number(r.Wait.Milliseconds(), r.Wait != 0), Body: text(string(r.Body)), BodyDropped: r.BodyDropped, HasSnapshot: len(r.Snapshot) > 0,
		Session: r.Session.String(), Hash: r.Hash.String(), Instance: ref,
	}
	if len(r.Signals) > 0 {
		row.Signals = text(strings.ReplaceAll(fmt.Sprint(r.Signals), " ", ","))
	}
	if a := r.Dispatch; a != nil {
		row.ArmStep, row.ArmDir, row.ArmAttempt = text(a.Step), text(string(a.Direction)), number(int64(a.Attempt), true)
		row.ArmReissue, row.ArmBudget = number(int64(a.Reissue), true), number(a.Budget.Milliseconds(), true)
		if derived := machine.StepKey(machine.RootKey(id.Saga, id.Work, "v7"), a.Step, a.Direction, a.Reissue); a.Key != derived {
			row.ArmKey = text(a.Key)
		}
	}
	return row
}

// writeAll writes works in every state of the views, and returns their names.
func writeAll(ctx context.Context, t *testing.T, l ledger.Ledger, token machine.Token) (ids []saga.ID) {
	t.Helper()
	begin := func(work string) *ledger.Entry {
		e := &ledger.Entry{ID: saga.ID{Saga: "order-to-invoice", Work: work}, Revision: "v7", Schedule: &ledger.Schedule{Hold: true, Class: ledger.ClassUnbegun}}
		e.Record = machine.Record{Kind: machine.KindStarted, Version: 3, Revision: "v7", Nonce: -5, Status: saga.Running, Body: []byte(`{"order":1}`)}
		e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, token)
		ids = append(ids, e.ID)
		return e
	}
	put := func(e *ledger.Entry) {
		t.Helper()
		as, err := l.Append(ctx, token, []ledger.Entry{*e})
		if err != nil || as[0].Result != ledger.Appended {
			t.Fatalf("append: %+v, %v", as, err)
		}
		e.Number = as[0].Number
	}
	follow := func(e *ledger.Entry, r machine.Record, s *ledger.Schedule) {
		t.Helper()
		seq, prev := e.Record.Seq, e.Record.Hash
		r.Seal(e.ID, machine.Salt{}, seq, prev, token)
		e.Prev, e.Record, e.Schedule = prev, r, s
		put(e)
	}
	a := begin("in review")
	put(a)
	derived := machine.StepKey(machine.RootKey(a.ID.Saga, a.ID.Work, "v7"), "invoice", saga.Forward, 1)
	follow(a, machine.Record{Kind: machine.KindDone, Step: "customer", Direction: saga.Forward, Attempt: 1, ExternalID: "cus_1", Body: []byte(`{"id": "cus_1"}`), Status: saga.Running,
		Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 1, Reissue: 1, Key: derived, Budget: 30 * time.Second}}, nil)
	follow(a, machine.Record{Kind: machine.KindUnknown, Step: "invoice", Direction: saga.Forward, Attempt: 2, ErrorClass: saga.Unknown, Error: "it's \"late\" – é", Note: "look", Actor: "anna", Why: "she called", Cause: "x",
		BodyDropped: true, Status: saga.Retrying, Wait: 1500 * time.Millisecond, Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Undo, Attempt: 3, Key: "am-k"}},
		&ledger.Schedule{Class: ledger.ClassBegun})
	for _, k := range []string{"one", "two"} {
		if _, err := l.Post(ctx, a.ID, machine.Signal{Kind: machine.SignalWake, Key: k}); err != nil {
			t.Fatal(err)
		}
	}
	follow(a, machine.Record{Kind: machine.KindParked, Step: "invoice", Direction: saga.Forward, Attempt: 2, Status: saga.Review, Reason: saga.ReasonInDoubt, Signals: []int64{2},
		Snapshot: []byte(`{}`)}, &ledger.Schedule{Class: ledger.ClassCompensating})
	b := begin("ended, unconfirmed")
	put(b)
	follow(b, machine.Record{Kind: machine.KindAdopted, Step: "mail", Direction: saga.Forward, Attempt: 1, ErrorClass: saga.Unknown, Status: saga.Running}, nil)
	follow(b, machine.Record{Kind: machine.KindNoted, Status: saga.Completed}, &ledger.Schedule{Class: ledger.ClassBegun})
	c := begin("waiting")
	put(c)
	if err := l.GiveBack(ctx, token, []ledger.Return{{Number: c.Number, Due: time.Now().Add(time.Hour), WaitsFor: "books"}}); err != nil {
		t.Fatal(err)
	}
	put(begin("held"))
	return ids
}
