package retention

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// planted are what a person left in a ledger, each in another place.
var planted = []string{"zqWork", "zqObject", "zqWebhook", "zqCustomer", "zqInput", "zqStarter", "zqMessage", "zqInvoice", "zqReason", "zqTag"}

// Erased: nothing of a person is found any more, wherever it was, and what was done for them is still known.
func TestErased(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "l.db")
		erased(t, open(t, path), func() string {
			db := sqlx.MustOpen("sqlite", path)
			defer db.Close()
			db.MustExec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			db.MustExec(`VACUUM`)
			db.MustExec(`PRAGMA wal_checkpoint(TRUNCATE)`)
			var all []byte
			for _, suffix := range []string{"", "-wal"} {
				b, err := os.ReadFile(path + suffix)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				all = append(all, b...)
			}
			return string(all)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := pgtest.URL(t)
		erased(t, open(t, address), func() string { return dump(t, address) })
	})
}

func open(t *testing.T, address string) store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), address, &store.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// dump is every row of every table, and what pg_dump writes.
func dump(t *testing.T, address string) string {
	t.Helper()
	db, err := sqlx.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var tables []string
	if err := db.Select(&tables, `SELECT tablename FROM pg_tables WHERE tablename LIKE 'amends%'`); err != nil || len(tables) < 20 {
		t.Fatal(tables, err)
	}
	var all strings.Builder
	for _, table := range tables {
		var rows []string
		if err := db.Select(&rows, `SELECT t::text || coalesce(encode(t::text::bytea, 'escape'), '') FROM `+table+` AS t`); err != nil {
			t.Fatal(table, err)
		}
		fmt.Fprintln(&all, table, strings.Join(rows, "\n"))
	}
	tools, err := pgtest.Find()
	if err != nil {
		t.Fatal(err)
	}
	dumped, err := exec.CommandContext(t.Context(), filepath.Join(tools, "pg_dump"), "--dbname", address).Output() //nolint:gosec // of the server
	if err != nil || !bytes.Contains(dumped, []byte("amends_records")) {
		t.Fatalf("pg_dump: %v, %s", err, dumped)
	}
	return all.String() + string(dumped)
}

type parcel struct{ Customer, Note string }

func parcels(t *testing.T, sent *atomic.Int64) saga.Program {
	t.Helper()
	d, err := saga.Define("parcels", 1,
		saga.Do("invoice", func(_ context.Context, c saga.Call[parcel]) (made, error) {
			if c.Work != "order:live" { // which a killed process may send again
				sent.Add(1)
			}
			return made{"zqInvoice" + c.Input.Customer, c.Input.Customer}, nil
		}).Idempotent().UndoMaybe(func(context.Context, saga.Call[parcel], *made) error { return nil }),
		saga.Await("paid", func(saga.Call[parcel], saga.Message) (string, error) { return "zqMessage", nil }).
			On("payment", func(c saga.Call[parcel]) string { return c.Work }).EachRun().Within(day, saga.Compensate),
		saga.Subject(func(p parcel) string { return "customer:" + p.Customer }),
		saga.Tags(func(p parcel) map[string]string { return map[string]string{"note": p.Note + "zqTag"} }))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func erased(t *testing.T, db store.DB, files func() string) { //nolint:thelper // it is the test itself, once for each database
	var sent atomic.Int64
	programs := []saga.Program{parcels(t, &sent)}
	id, live := saga.ID{Saga: "parcels", Work: "order:zqWork"}, saga.ID{Saga: "parcels", Work: "order:live"}
	ann := parcel{Customer: "zqCustomer", Note: "zqInput"}
	by := saga.Actor{Name: "bob", Reason: "zqReason"}
	cause := heard(t, db, "e1")
	start := func(c *coordinator.Coordinator, work string, p parcel) (coordinator.Started, error) {
		return c.Start(t.Context(), "parcels", work, p, &saga.StartOptions{Cause: cause, Starter: "zqStarter", Source: "shop"})
	}
	pay := func(c *coordinator.Coordinator, id saga.ID) {
		t.Helper()
		if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: id.Work, ID: id.Work[:6] + id.Work[len(id.Work)-1:], Body: []byte(`{"from":"zqMessage"}`)}); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Wait(t.Context(), id.Saga, id.Work); err != nil || s.Status != saga.Completed {
			t.Fatal(s, err)
		}
	}
	process(t, db, programs, func(c *coordinator.Coordinator) {
		for range 2 {
			for _, work := range []string{id.Work, live.Work} {
				if _, err := start(c, work, ann); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(c.Pause(t.Context(), id, by), c.Resume(t.Context(), id, by)); err != nil {
			t.Fatal(err)
		}
		pay(c, id)
	})
	for nonce, body := range []string{"{}", ""} {
		var version int64
		all, _, err := db.Controls(t.Context())
		for _, c := range all {
			if c.Kind == ledger.ControlHold {
				version = c.Version
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlHold, Name: ledger.HoldName(id), Version: version, Body: json.RawMessage(body), Actor: "bob", Reason: "of order:zqWork", Nonce: int64(nonce) + 1}); err != nil {
			t.Fatal(err)
		}
		if body == "" {
			break
		}
		if e, err := Erase(t.Context(), db, Erasure{Work: id.Work, By: saga.Actor{Name: "eve", Reason: "a request"}}); err != nil || len(e.Works) != 1 || e.Works[0].As != "" || !e.Works[0].Later {
			t.Errorf("what is held is erased: %+v, %v", e, err)
		}
		acts, err := db.Deeds(t.Context(), time.Time{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := Erase(t.Context(), db, Erasure{}); err != nil || len(e.Works) != 1 || !e.Works[0].Later { // a run of retention
			t.Errorf("what is marked, and held, is %+v, %v", e, err)
		}
		if again, err := db.Deeds(t.Context(), time.Time{}, 100); err != nil || len(again) != len(acts) {
			t.Errorf("that it was erased is on record, and it was not: %d acts of %d, %v", len(again), len(acts), err)
		}
	}
	if err := db.Did(t.Context(), ledger.DeedLooked, "bodies of parcels order:zqWork", saga.Actor{Name: "bob", Reason: "asked by order:zqWork"}); err != nil {
		t.Fatal(err)
	}
	if was := files(); was != "" {
		for _, word := range planted {
			if !strings.Contains(was, word) {
				t.Errorf("%s was not planted", word)
			}
		}
	}

	would, err := Erase(t.Context(), db, Erasure{Subject: "customer:zqCustomer", DryRun: true})
	if err != nil || len(would.Works) != 2 {
		t.Fatalf("it would erase %+v, %v", would, err)
	}
	did, err := Erase(t.Context(), db, Erasure{Subject: "customer:zqCustomer", By: saga.Actor{Name: "eve", Reason: "a request"}})
	if err != nil || len(did.Works) != 2 || did.Named != 0 {
		t.Fatalf("it erased %+v, %v", did, err)
	}
	for _, w := range did.Works {
		switch {
		case w.ID == live && w.As == "" && w.Later:
		case w.ID == id && strings.HasPrefix(w.As, "erased-") && w.Records > 3 && fmt.Sprint(w.Objects) == "[shop:order:zqObject]" && w.Left == "":
		default:
			t.Errorf("it erased %+v", w)
		}
	}
	known := func() {
		t.Helper()
		before := sent.Load()
		process(t, db, programs, func(c *coordinator.Coordinator) {
			s, err := start(c, id.Work, ann)
			if err != nil || !s.Duplicate || s.Status != saga.Completed || !strings.HasPrefix(s.Steps["invoice"].ExternalID, "erased-") {
				t.Errorf("a duplicate is told %+v, %v", s, err)
			}
			if _, err := start(c, id.Work, parcel{Customer: "other"}); !errors.Is(err, coordinator.ErrConflict) {
				t.Errorf("another payload: %v", err)
			}
			for what, err := range map[string]error{"undone": c.Undo(t.Context(), id, "", by), "withdrawn": c.Withdraw(t.Context(), id.Saga, id.Work, "3", by)} {
				if !errors.Is(err, coordinator.ErrForgotten) {
					t.Errorf("what was erased is %s: %v", what, err)
				}
			}
		})
		if sent.Load() != before {
			t.Errorf("%d more were sent", sent.Load()-before)
		}
	}
	known()
	gone := ledger.Wait{Name: "payment", Key: "k", ID: saga.ID{Saga: "parcels", Work: "of which nothing is left"}, Step: "paid", StepKey: "k"}
	if err := db.Await(t.Context(), []ledger.Wait{gone}); err != nil {
		t.Fatal(err)
	}
	if n, err := db.ForgetWaits(t.Context()); err != nil || n != 1 {
		t.Errorf("%d waits went, %v", n, err)
	}
	process(t, db, programs, func(c *coordinator.Coordinator) { pay(c, live) }) // its own is there
	log, logged := test.NewNullLogger()
	log.SetLevel(logrus.TraceLevel)
	if r, err := Run(t.Context(), db, &Options{Log: log}); err != nil || r.Erased != 1 {
		t.Errorf("behind its end: %+v, %v", r, err)
	}
	for _, entry := range logged.AllEntries() {
		line, err := entry.String()
		if err != nil || strings.Contains(line, "zq") || strings.Contains(line, "order:live") {
			t.Errorf("it is logged: %s, %v", line, err)
		}
	}
	if again, err := Erase(t.Context(), db, Erasure{Subject: "customer:zqCustomer", By: saga.Actor{Name: "eve", Reason: "a request"}}); err != nil || len(again.Works) != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	known()
	if found, err := ledger.Check(t.Context(), db, &ledger.CheckOptions{}); err != nil || len(found.Findings) > 0 {
		t.Errorf("the ledger: %v, %v", found.Findings, err)
	}
	if acts, err := db.Deeds(t.Context(), time.Time{}, 100); err != nil || len(acts) != 7 { // a hold and its end, a look, and four times that something was erased, or to be
		t.Errorf("acts: %+v, %v", acts, err)
	}
	left := files()
	for _, word := range append(planted, "order:live") {
		for _, form := range []string{word, fmt.Sprintf("%x", word)} {
			if i := strings.Index(left, form); i >= 0 {
				t.Errorf("%s is left: %q", word, left[max(0, i-80):min(len(left), i+80)])
			}
		}
	}
}

var theObject = intake.Object{Source: "shop", Type: "order", ID: "zqObject"}

// hearing is an event.
func hearing(id string) []intake.Event {
	return []intake.Event{{
		Object: theObject, Topic: "order.updated", ID: id, Dedupe: intake.DigestOf(id), Payload: intake.Whole, Body: json.RawMessage(`{"name":"zqWebhook"}`),
		Fingerprint: intake.Digest{2}, Received: time.Now(),
	}}
}

// heard is the name of a delivery that was judged.
func heard(t *testing.T, db store.DB, event string) string {
	t.Helper()
	o, err := theObject, db.Accept(t.Context(), hearing(event))
	if err == nil {
		_, err = db.Judge(t.Context(), 1, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			ds[0].Outcome, es[o].Body = intake.Applied, json.RawMessage(`{"name":"zqWebhook"}`)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	ds, err := db.Deliveries(t.Context(), intake.DeliveryFilter{})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	return ds[0].Name()
}

// A work that is erased keeps its id until no transaction is open that may start it: one that has seen neither would do it again.
func TestErasedBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	db := open(t, address)
	var sent atomic.Int64
	programs := []saga.Program{parcels(t, &sent)}
	process(t, db, programs, func(c *coordinator.Coordinator) {
		if _, err := c.Start(t.Context(), "parcels", "w", parcel{Customer: "ann"}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: "w", ID: "1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context(), "parcels", "w"); err != nil {
			t.Fatal(err)
		}
	})
	users, err := sqlx.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	tx, err := users.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err == nil {
		_, err = tx.ExecContext(t.Context(), `SELECT count(*) FROM amends_instances`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e, err := Erase(t.Context(), db, Erasure{Work: "w", By: saga.Actor{Name: "bob", Reason: "r"}}); err != nil || e.Named != 1 || e.Works[0].As == "" {
		t.Errorf("beside an open transaction: %+v, %v", e, err)
	}
	hold := ledger.Control{Kind: ledger.ControlHold, Name: "parcels w", Body: json.RawMessage(`{}`), Actor: "bob", Reason: "a court asks", Nonce: 1}
	if _, err := db.SetControl(t.Context(), 0, hold); err != nil {
		t.Fatal(err)
	}
	log, _ := test.NewNullLogger()
	c, err := coordinator.New(db, &coordinator.Options{Log: log})
	if err == nil {
		err = c.Register(t.Context(), programs...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if isNew, err := c.StartTx(t.Context(), tx, "parcels", "w", parcel{Customer: "ann"}, nil); isNew { // it is a duplicate, or the transaction has to be repeated
		t.Errorf("in a transaction that has not seen it erased it is new: %t, %v", isNew, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if e, err := Erase(t.Context(), db, Erasure{}); err != nil || e.Named != 0 {
		t.Errorf("behind it: %+v, %v", e, err)
	}
	if all := dump(t, address); strings.Contains(all, "(w,") || strings.Contains(all, "hold,\"parcels w\"") {
		t.Error("its id is left")
	}
	if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(`{"key":"1h"}`), Actor: "eve", Reason: "r", Nonce: 1}); err != nil {
		t.Fatal(err)
	}
	later(t, db, 2*time.Hour) // what was held before it lost its id is held
	if s, err := c.Start(t.Context(), "parcels", "w", parcel{Customer: "ann"}, nil); err != nil || !s.Duplicate {
		t.Errorf("behind it: %+v, %v", s, err)
	}
}

// ended runs a parcel to its end.
func ended(t *testing.T, db store.DB, programs []saga.Program, work string) saga.ID {
	t.Helper()
	process(t, db, programs, func(c *coordinator.Coordinator) {
		if _, err := c.Start(t.Context(), "parcels", work, parcel{Customer: "ann"}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: work, ID: rand.Text()}); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Wait(t.Context(), "parcels", work); err != nil || s.Status != saga.Completed {
			t.Fatal(s, err)
		}
	})
	return saga.ID{Saga: "parcels", Work: work}
}

// What a short id has in common with others is not theirs; what cannot be erased yet is tried again; and behind its key an erased work is new.
func TestErasedAndNothingElse(t *testing.T) {
	everySQL(t, func(t *testing.T, db store.DB, rows *sqlx.DB) {
		by := saga.Actor{Name: "eve", Reason: "a request"}
		var sent atomic.Int64
		programs := []saga.Program{parcels(t, &sent)}
		id := ended(t, db, programs, "7")
		for key, answer := range map[string]string{"mine": `{"work":"7"}`, "kept": `{"doc":"{\"workId\":\"7\"}"}`, "other": `{"works":7,"at":"2027"}`} {
			q, err := db.Request(t.Context(), ledger.Request{Key: key, Nonce: 1, Asks: "a"})
			if err == nil {
				err = db.Answer(t.Context(), key, q.Nonce, json.RawMessage(answer))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		reasons := []string{"erased: parcels 7", "on 7 December", "about parcels/7"}
		for _, reason := range reasons {
			if err := db.Did(t.Context(), ledger.DeedLooked, "bodies", saga.Actor{Name: "bob", Reason: reason}); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := Erase(t.Context(), db, Erasure{Work: "7", By: by}); err != nil || e.Works[0].As == "" {
			t.Fatal(e, err)
		}
		for key, stays := range map[string]bool{"mine": false, "kept": false, "other": true} {
			if q, err := db.Request(t.Context(), ledger.Request{Key: key, Nonce: 2, Asks: "a"}); err != nil || (len(q.Answer) > 0) != stays {
				t.Errorf("the answer to %s is %s, %v", key, q.Answer, err)
			}
		}
		acts, err := db.Deeds(t.Context(), time.Time{}, 100)
		said := ""
		for _, a := range acts {
			said += a.Name + a.Reason + "\n"
		}
		if err != nil || strings.Contains(said, reasons[0]) || !strings.Contains(said, reasons[1]) || strings.Contains(said, reasons[2]) {
			t.Errorf("acts say %q, %v", said, err)
		}
		if _, err := db.Keep(t.Context(), program.Message{Name: "payment", Key: "8", ID: "none waits for it", Body: []byte(`{}`)}, 0); err != nil {
			t.Fatal(err)
		}
		var left int
		_, err = db.ForgetWaits(t.Context())
		if err := errors.Join(err, rows.GetContext(t.Context(), &left, `SELECT count(*) FROM amends_messages WHERE id = 'none waits for it'`)); err != nil || left != 0 {
			t.Errorf("%d messages have expired and stay, %v", left, err)
		}
		if r := later(t, db, 8*365*day); r.Damaged > 0 { // nothing is set: nothing goes
			t.Errorf("%+v", r)
		}
		log, _ := test.NewNullLogger()
		r := newRun(db, &Options{PerSecond: 1 << 20, Log: log})
		o, err := db.Overview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.now = o.At.Add(400 * day)
		if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(`{"key":"9000h"}`), Actor: "eve", Reason: "r", Nonce: 1}); err != nil {
			t.Fatal(err)
		}
		if report, err := r.walk(t.Context()); err != nil || len(report.Lines) != 1 || report.Lines[0].What != Keys {
			t.Errorf("its key: %+v, %v", report, err)
		}
		before := sent.Load()
		if ended(t, db, programs, id.Work); sent.Load() != before+1 {
			t.Errorf("behind its key it is no new work: %d were sent", sent.Load()-before)
		}
	})
}

// An object that is still worked on holds up the erasure of its work, which is told, and done by a later run.
func TestErasedWithItsObject(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "l.db"))
	var sent atomic.Int64
	id := ended(t, db, []saga.Program{parcels(t, &sent)}, "shop:order:zqObject")
	cause := heard(t, db, "e1")
	for _, r := range []machine.Record{{Cause: cause}, {Why: cause}} { // that led to it, or to a newer version
		if found, err := objectsOf(t.Context(), db, "invoice:1", []machine.Record{r}); err != nil || len(found) != 1 || found[0] != theObject {
			t.Errorf("by %+v: %v, %v", r, found, err)
		}
	}
	o, _ := intake.ParseObject(id.Work)
	blocked := func(why string) {
		t.Helper()
		if err := db.Update(t.Context(), o, func(_ time.Time, e *intake.Entry) error { e.Blocked = why; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	blocked("a person looks")
	e, err := Erase(t.Context(), db, Erasure{Work: id.Work, By: saga.Actor{Name: "eve", Reason: "a request"}})
	if err != nil || e.Works[0].As != "" || !e.Works[0].Later || !strings.Contains(e.Works[0].Left, id.Work) {
		t.Errorf("while a person looks: %+v, %v", e, err)
	}
	if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(`{"records":"1h","key":"2h"}`), Actor: "eve", Reason: "r", Nonce: 1}); err != nil {
		t.Fatal(err)
	}
	if r := later(t, db, 90*time.Minute); r.Kept != 1 { // what leads to the object stays, and that it is to be erased
		t.Errorf("its records went: %+v", r)
	}
	if r := later(t, db, 3*time.Hour); r.Kept != 1 {
		t.Errorf("its key went: %+v", r)
	}
	blocked("")
	if e, err = Erase(t.Context(), db, Erasure{}); err != nil || len(e.Works) != 1 || len(e.Works[0].Objects) != 1 {
		t.Errorf("behind that: %+v, %v", e, err)
	}
	heard(t, db, "e2") // what comes since goes when it is said again
	if e, err = Erase(t.Context(), db, Erasure{Work: id.Work, By: saga.Actor{Name: "eve", Reason: "a request"}}); err != nil || len(e.Works) != 1 || e.Works[0].Left == "" {
		t.Errorf("once more: %+v, %v", e, err)
	}
	if ds, err := db.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) > 0 {
		t.Errorf("its deliveries: %+v, %v", ds, err)
	}
}

// What a witness saw last is not taken for lost when retention took it: a process opens its session behind that.
func TestWhatWentWasNotLost(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "l.db") },
		"postgres": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		for _, goes := range []string{Records, Keys} {
			t.Run(name+"/"+goes, func(t *testing.T) {
				t.Parallel()
				where, seen := address(t), store.WitnessIn(t.TempDir())
				var sent atomic.Int64
				programs := []saga.Program{parcels(t, &sent)}
				opened := func() store.DB {
					db, err := store.Open(t.Context(), where, &store.Options{Migrate: true, Witness: seen})
					if err != nil {
						t.Fatal(err)
					}
					return db
				}
				db := opened()
				ended(t, db, programs, "w")
				keep := map[string]string{Records: `{"records":"1h"}`, Keys: `{"key":"1h"}`}[goes]
				if _, err := db.SetControl(t.Context(), 0, ledger.Control{
					Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(keep), Actor: "eve", Reason: "r", Nonce: 1,
				}); err != nil {
					t.Fatal(err)
				}
				if r := later(t, db, 2*time.Hour); len(r.Lines) != 1 || r.Lines[0].What != goes {
					t.Errorf("%+v", r)
				}
				if err := db.Close(); err != nil { // the witness has all that was seen
					t.Fatal(err)
				}
				db = opened()
				defer db.Close()
				ended(t, db, programs, "x")
			})
		}
	}
}

// What is rebuilt behind a lost ledger has its subject and its tags again: who asked to be forgotten is found.
func TestAdoptedHaveTheirSubject(t *testing.T) {
	t.Parallel()
	db, by := open(t, filepath.Join(t.TempDir(), "l.db")), saga.Actor{Name: "eve", Reason: "a request"}
	var sent atomic.Int64
	process(t, db, []saga.Program{parcels(t, &sent)}, func(c *coordinator.Coordinator) {
		got, err := c.Adopt(t.Context(), []coordinator.Adoption{{
			Saga: "parcels", Work: "order:7", Input: parcel{Customer: "ann", Note: "n"}, By: by, Quarantine: "its invoice was edited",
			Effects: map[string]coordinator.Effect{"invoice": {ExternalID: "inv_7"}},
		}})
		if err != nil || got[0].Err != nil {
			t.Fatal(got, err)
		}
	})
	if e, err := Erase(t.Context(), db, Erasure{Subject: "customer:ann", DryRun: true}); err != nil || len(e.Works) != 1 || e.Works[0].ID.Work != "order:7" {
		t.Errorf("of ann it would erase %+v, %v", e, err)
	}
	if page, err := db.List(t.Context(), ledger.Filter{Tag: "note=nzqTag"}); err != nil || len(page.Instances) != 1 {
		t.Errorf("by its tag there is %+v, %v", page, err)
	}
}
