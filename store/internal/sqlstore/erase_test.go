package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// Issue Formats: what may hold a person's data of an instance can be erased, and its salt with it.
// The ledger stays sound, and nothing that is left in a table tells what was there.
func TestErasedInstancesStaySound(t *testing.T) {
	t.Parallel()
	onEach(t, erased)
}

type guest struct {
	Name string `json:"name"`
}

// private is what the instance of the test has of a person.
var private = []string{"Ada", "anna", "inv_ada", "evt_ada"}

func erased(t *testing.T, l ledger.Ledger, db *sqlx.DB) { //nolint:thelper // it is the test itself, once for each database
	id := runGuest(t, l)
	for _, s := range private {
		if !strings.Contains(dump(t, db), s) {
			t.Errorf("%q is nowhere in the ledger: the test proves nothing", s)
		}
	}
	sound := func(when string) {
		t.Helper()
		report, err := ledger.Check(t.Context(), l, nil)
		if err != nil || len(report.Findings) > 0 || report.Records < 4 {
			t.Errorf("%s: %+v, %v", when, report, err)
		}
	}
	sound("before")
	head, err := ledger.First(t.Context(), l, ledger.Filter{Saga: id.Saga, Work: id.Work})
	if err != nil {
		t.Fatal(err)
	}
	erase(t, l, db, &head[0])
	sound("erased")
	left := dump(t, db)
	for _, s := range append(private, fmt.Sprintf("%x", head[0].Salt)) {
		if strings.Contains(left, s) {
			t.Errorf("%q is left in the ledger", s)
		}
	}
	again, err := ledger.First(t.Context(), l, ledger.Filter{Saga: id.Saga, Work: id.Work})
	if err != nil || again[0].Salt == head[0].Salt {
		t.Errorf("its salt is left: %+v, %v", again, err)
	}

	db.MustExec(`UPDATE amends_records SET doc = replace(doc, '"b":"', '"s":"') WHERE seq = 1`)
	if report, err := ledger.Check(t.Context(), l, nil); err != nil || len(report.Findings) != 1 || !strings.Contains(report.Findings[0].What, "it was edited") {
		t.Errorf("what stands for a body was edited: %+v, %v", report.Findings, err)
	}
}

// runGuest runs an instance that a person speaks to, and returns its name.
func runGuest(t *testing.T, l ledger.Ledger) saga.ID {
	t.Helper()
	d, err := saga.Define("welcome", 1,
		saga.Do("invoice", func(context.Context, saga.Call[guest]) (string, error) { return "inv_ada", nil }).
			Idempotent().NoUndo("it stays"),
		saga.Do("letter", func(_ context.Context, c saga.Call[guest]) (string, error) {
			return "", errors.New("no answer for " + c.Input.Name)
		}).AtMostOnce().NoUndo("it cannot be unsent"))
	if err != nil {
		t.Fatal(err)
	}
	log, _ := test.NewNullLogger()
	c, err := coordinator.New(l, &coordinator.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	defer func() {
		if stop(); <-ended != nil {
			t.Error("it did not stop")
		}
	}()
	id := saga.ID{Saga: "welcome", Work: "guest:1"}
	if _, err := c.Start(t.Context(), id.Saga, id.Work, guest{"Ada"}, &saga.StartOptions{Cause: "webhook evt_ada"}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Wait(t.Context(), id.Saga, id.Work)
	if err != nil || s.Status != saga.Review {
		t.Fatal(s.Status, err)
	}
	err = c.Resolve(t.Context(), id, "letter", saga.Resolution{Attempt: 1, Happened: true, ExternalID: "letter for Ada"}, saga.Actor{Name: "anna", Reason: "Ada called"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = c.Wait(t.Context(), id.Saga, id.Work); err != nil || s.Status != saga.Completed {
		t.Fatal(s.Status, err)
	}
	return id
}

// erase takes everything of an instance out of its rows that may hold a person's data.
func erase(t *testing.T, l ledger.Ledger, db *sqlx.DB, h *ledger.Instance) {
	t.Helper()
	records, err := l.History(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		r := &records[i]
		r.Erase(h.Salt)
		doc := sqlstore.Document(nil, &ledger.Entry{ID: h.ID, Record: *r})
		db.MustExec(db.Rebind(`UPDATE amends_records SET doc = ?, external_id = NULL, body = NULL, snapshot = NULL WHERE instance = ? AND seq = ?`), string(doc), h.Number, r.Seq)
	}
	db.MustExec(db.Rebind(`UPDATE amends_signals SET key = '', actor = '', reason = '', doc = NULL WHERE instance = ?`), h.Number)
	db.MustExec(db.Rebind(`UPDATE amends_instances SET salt = NULL, snapshot_seq = 1 WHERE ref = ?`), h.Number)
}

// dump is everything that stands in the tables of instances, bytes in hexadecimal.
func dump(t *testing.T, db *sqlx.DB) string {
	t.Helper()
	var b strings.Builder
	for _, table := range []string{"amends_instances", "amends_records", "amends_signals"} {
		rows, err := db.Queryx(`SELECT * FROM ` + table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				if raw, ok := v.([]byte); ok {
					fmt.Fprintf(&b, "%s %x\n", raw, raw)
					continue
				}
				fmt.Fprintln(&b, v)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
