package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// everySQL runs a test on both databases, with a second way into each.
func everySQL(t *testing.T, test func(t *testing.T, db store.DB, rows *sqlx.DB)) {
	t.Helper()
	t.Parallel()
	for name, address := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "l.db") },
		"postgres": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			db := open(t, at)
			rows := sqlx.MustOpen(name, at)
			defer rows.Close()
			test(t, db, rows)
		})
	}
}

// What people and jobs said of a work goes wherever they said it, also where JSON escapes its id, and what was decided on it; what has its id only in part stays.
// Duplicates that a process counted under both names are counted once. A reason that says what is erased is refused.
func TestErasedWhereItWasSaid(t *testing.T) {
	everySQL(t, func(t *testing.T, db store.DB, rows *sqlx.DB) {
		var sent atomic.Int64
		programs, by := []saga.Program{parcels(t, &sent)}, saga.Actor{Name: "eve", Reason: "a request"}
		id := ended(t, db, programs, "a&b:order")
		process(t, db, programs, func(c *coordinator.Coordinator) {
			if _, err := c.Start(t.Context(), "parcels", id.Work, parcel{Customer: "ann"}, nil); err != nil {
				t.Fatal(err)
			}
		})
		says := func(text string) string { return text + " a&b:order" }
		_, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlHold, Name: "parcels other", Body: json.RawMessage(`{"for":"a\u0026b:order"}`), Actor: "bob", Reason: "r", Nonce: 1})
		_, failed := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlHold, Name: "parcels another", Body: json.RawMessage(`{}`), Actor: "bob", Reason: says("as"), Nonce: 2})
		err = errors.Join(err, failed, db.Turn(t.Context(), "books", func(now time.Time, a *schedule.Agenda) error {
			a.State.Paused = schedule.Mark{At: now, By: "bob", Why: says("for")}
			a.State.Approved = schedule.Mark{At: now, By: "bob", Why: "not of a&b:orders"}
			run := schedule.RunRow{Instant: "manual:1", At: now, From: now, Instants: 1, Due: now, Created: now, By: "bob", Why: says("at")}
			run.Result, run.Ended, run.Note, run.Error = schedule.Failed, now, says("of"), says("by")
			run.Attempt, run.Began = 1, now
			a.New = append(a.New, run)
			return nil
		}))
		f := plan.Finding{Key: id.Work, Class: plan.Missing, Action: plan.Ask, Reason: "r"}
		ref, undrafted := db.Draft(t.Context(), "books")
		_, unfinished := db.Finish(t.Context(), ref, &plan.Plan{ID: "aa1", Job: "books", MappingVersion: "3"})
		err = errors.Join(err, undrafted, unfinished, db.Approve(t.Context(), "aa1", saga.Actor{Name: "bob", Reason: says("to")}), db.Remember(t.Context(), ref, plan.Part{}, []plan.Finding{f}),
			db.Decide(t.Context(), "books", []plan.Decision{{Finding: f, Verdict: plan.Hide, Until: time.Now().Add(time.Hour), By: by}}))
		if err != nil {
			t.Fatal(err)
		}
		rows.MustExec(rows.Rebind(`INSERT INTO amends_duplicates (saga, work_id, source, counter, count, first_at, last_at)
			SELECT saga, ?, source, 7, n.n, first_at, last_at FROM amends_duplicates, (SELECT 6 AS n) AS n WHERE work_id = ?`), db.Hide(id.Work), id.Work)
		rows.MustExec(rows.Rebind(`INSERT INTO amends_duplicates (saga, work_id, source, counter, count, first_at, last_at)
			SELECT saga, ?, source, 7, 5, first_at, last_at FROM amends_duplicates WHERE work_id = ?`), id.Work, db.Hide(id.Work))

		if _, err := Erase(t.Context(), db, Erasure{Work: id.Work, By: saga.Actor{Name: "eve", Reason: "a&b:order asked"}}); !errors.Is(err, ErrReason) {
			t.Errorf("with a reason that stays: %v", err)
		}
		if e, err := Erase(t.Context(), db, Erasure{Work: id.Work, By: by}); err != nil || len(e.Works) != 1 || e.Works[0].As == "" {
			t.Fatal(e, err)
		}
		for _, of := range []string{
			"amends_controls.reason", "amends_approvals.reason", "amends_jobs.paused_reason", "amends_jobs.approved_reason", "amends_runs.requested_reason", "amends_runs.note",
			"amends_runs.error", "amends_audit.reason", "amends_audit.body", "amends_uses.step_key",
		} {
			table, column, _ := strings.Cut(of, ".")
			var texts []string
			if err := rows.SelectContext(t.Context(), &texts, `SELECT coalesce(`+column+`, '') FROM `+table); err != nil || len(texts) == 0 {
				t.Fatal(of, texts, err)
			}
			for _, text := range texts {
				if named := strings.Contains(text, "a&b:order") || strings.Contains(text, `a\u0026b`); named != (column == "approved_reason" && text != "") {
					t.Errorf("%s is %q", of, text)
				}
				if column == "step_key" && !strings.HasPrefix(text, "erased-") {
					t.Errorf("%s is %q", of, text)
				}
			}
		}
		if ds, err := db.Decisions(t.Context(), plan.DecisionQuery{Job: "books"}); err != nil || len(ds) != 0 {
			t.Errorf("what was decided on it: %+v, %v", ds, err)
		}
		var n int64
		if err := rows.GetContext(t.Context(), &n, `SELECT sum(count) FROM amends_duplicates WHERE counter = 7`); err != nil || n != 6 {
			t.Errorf("one process counted %d duplicates, want 6, %v", n, err)
		}
		if found, err := ledger.Check(t.Context(), db, &ledger.CheckOptions{}); err != nil || len(found.Findings) > 0 {
			t.Errorf("the ledger: %v, %v", found.Findings, err)
		}
	})
}

// Behind its records an instance is found by its subject, until it is erased or its key goes.
func TestTombstonesHaveTheirSubject(t *testing.T) {
	everySQL(t, func(t *testing.T, db store.DB, rows *sqlx.DB) {
		var sent atomic.Int64
		programs := []saga.Program{parcels(t, &sent)}
		for _, work := range []string{"first", "second"} {
			ended(t, db, programs, work)
		}
		tags := func() (all []string) {
			if err := rows.SelectContext(t.Context(), &all, `SELECT tag FROM amends_tags ORDER BY tag`); err != nil {
				t.Fatal(err)
			}
			return all
		}
		set := func(nonce, version int64, keep string) (now int64) {
			c, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Version: version, Body: json.RawMessage(keep), Actor: "eve", Reason: "r", Nonce: nonce})
			if err != nil {
				t.Fatal(err)
			}
			return c.Version
		}
		v := set(1, 0, `{"records":"1h"}`)
		later(t, db, 2*time.Hour)
		if got := tags(); len(got) != 2 || got[0] != "subject=customer:ann" {
			t.Fatalf("behind their records they have %q", got)
		}
		page, err := db.List(t.Context(), ledger.Filter{Tag: saga.SubjectTag("customer:ann"), Work: "first"})
		if err != nil || len(page.Instances) != 1 {
			t.Fatal(page, err)
		}
		if w, err := eraseOne(t.Context(), db, &page.Instances[0], &Erasure{Subject: "customer:ann", By: saga.Actor{Name: "eve", Reason: "a request"}}); err != nil || w.As == "" {
			t.Fatal(w, err)
		}
		if _, err := db.Unname(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tags(); len(got) != 1 {
			t.Errorf("with one erased there are %q", got)
		}
		if page, err := db.List(t.Context(), ledger.Filter{Work: db.Hide("first")}); err != nil || len(page.Instances) != 1 || strings.Contains(page.Instances[0].Remains, "ann") {
			t.Errorf("of it is left %+v, %v", page, err)
		}
		set(2, v, `{"records":"1h","key":"3h"}`)
		later(t, db, 4*time.Hour)
		if got := tags(); len(got) != 0 {
			t.Errorf("behind their keys there are %q", got)
		}
	})
}

// pauses is a store that a person pauses the job at, when it has let go of something.
type pauses struct {
	store.DB

	paused error
}

func (p *pauses) Reduce(ctx context.Context, all []ledger.Reduction) ([]bool, error) {
	done, err := p.DB.Reduce(ctx, all)
	p.paused = schedule.Pause(ctx, p.DB, "retention", saga.Actor{Name: "anna", Reason: "9 days were 90"})
	return done, err
}

// A pause of the job stops the run that goes on, between two batches.
func TestAPauseStopsARun(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "l.db"))
	var sent atomic.Int64
	process(t, db, []saga.Program{parcels(t, &sent)}, func(c *coordinator.Coordinator) {
		for i := range batch + 1 {
			work := fmt.Sprint(i)
			if _, err := c.Start(t.Context(), "parcels", work, parcel{Customer: "ann"}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: work, ID: work}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Wait(t.Context(), "parcels", work); err != nil {
				t.Fatal(err)
			}
		}
	})
	if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(`{"bodies":"1ns"}`), Actor: "eve", Reason: "r", Nonce: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watched := &pauses{DB: db}
	var went error
	jobs, err := schedule.New(db, []schedule.Job{{Name: "retention", Schedule: "0 0 1 1 *", Approved: true, Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
		defer stop()
		_, went = Work(watched, nil)(ctx, r)
		return schedule.Outcome{Result: schedule.OK}, nil
	}}}, &schedule.Options{Poll: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan error, 1)
	go func() { begun <- jobs.Run(ctx) }()
	failed := schedule.ErrUnknown
	for errors.Is(failed, schedule.ErrUnknown) { // until it has described the job
		_, failed = schedule.Request(t.Context(), db, "retention", "", saga.Actor{Name: "anna", Reason: "now"})
	}
	if failed != nil {
		t.Fatal(failed)
	}
	if err := <-begun; err != nil || watched.paused != nil || !errors.Is(went, schedule.ErrPaused) {
		t.Fatal(err, watched.paused, went)
	}
	if page, err := db.List(t.Context(), ledger.Filter{Left: ledger.LeftAll}); err != nil || len(page.Instances) != 1 {
		t.Errorf("behind the pause %d are whole, %v", len(page.Instances), err)
	}
}

// A run that comes near the end of its time ends by itself, as a partial one, and the next one goes on.
func TestARunEndsInTime(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "l.db"))
	var sent atomic.Int64
	ended(t, db, []saga.Program{parcels(t, &sent)}, "w")
	if _, err := db.SetControl(t.Context(), 0, ledger.Control{Kind: ledger.ControlRetention, Name: DefaultName, Body: json.RawMessage(`{"bodies":"1ns"}`), Actor: "eve", Reason: "r", Nonce: 1}); err != nil {
		t.Fatal(err)
	}
	r := newRun(db, nil)
	r.until = time.Now()
	for _, want := range []string{"bodies of 0, records of 0, keys of 0; 0 erased; 0 held, to be erased or moved, 0 cannot be read; more are due: the next run goes on", "bodies of 1, records of 0, keys of 0; 0 erased; 0 held, to be erased or moved, 0 cannot be read"} {
		if report, err := r.both(t.Context(), db); err != nil || report.String() != want {
			t.Errorf("%s, %v; want %s", report, err, want)
		}
		r = newRun(db, nil)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	if out, err := Work(db, nil)(ctx, &schedule.Run{Approved: true}); err != nil || out.Result != schedule.OK {
		t.Errorf("with time enough: %+v, %v", out, err)
	}
}

// A message that one instance has used, and another saga's of the same id will wait for, and what was decided on the difference that this has, is not taken from that by the erasure of the first.
func TestErasedBesideAnotherSagasMessage(t *testing.T) {
	everySQL(t, func(t *testing.T, db store.DB, _ *sqlx.DB) {
		var sent atomic.Int64
		var open atomic.Bool
		slow, err := saga.Define("slow", 1,
			saga.Do("first", func(context.Context, saga.Call[parcel]) (struct{}, error) {
				if !open.Load() {
					return struct{}{}, errors.New("not yet")
				}
				return struct{}{}, nil
			}).Idempotent().NoID().NoUndo("a test"),
			saga.Await("paid", func(_ saga.Call[parcel], m saga.Message) (string, error) { return string(m.Body), nil }).
				On("payment", func(c saga.Call[parcel]) string { return c.Work }).NoID().EachRun().NoUndo("a test").Within(day, saga.Compensate))
		if err != nil {
			t.Fatal(err)
		}
		programs := []saga.Program{parcels(t, &sent), slow}
		process(t, db, programs, func(c *coordinator.Coordinator) {
			for _, name := range []string{"parcels", "slow"} {
				if _, err := c.Start(t.Context(), name, "w", parcel{Customer: "ann"}, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: "w", ID: "1", Body: []byte(`"paid"`)}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Wait(t.Context(), "parcels", "w"); err != nil {
				t.Fatal(err)
			}
		})
		f := plan.Finding{Key: "w", Class: plan.Missing, Action: plan.Ask, Reason: "r"}
		ref, err := db.Draft(t.Context(), "books")
		if err = errors.Join(err, db.Remember(t.Context(), ref, plan.Part{}, []plan.Finding{f}),
			db.Decide(t.Context(), "books", []plan.Decision{{Finding: f, Verdict: plan.Hide, Until: time.Now().Add(time.Hour), By: saga.Actor{Name: "bob", Reason: "r"}}})); err != nil {
			t.Fatal(err)
		}
		if e, err := Erase(t.Context(), db, Erasure{Work: "w", Saga: "parcels", By: saga.Actor{Name: "eve", Reason: "a request"}}); err != nil || e.Works[0].As == "" {
			t.Fatal(e, err)
		}
		if ms, err := db.Messages(t.Context(), "payment", "w", "slow"); err != nil || len(ms) != 1 || string(ms[0].Body) != `"paid"` {
			t.Fatal(ms, err)
		}
		if ds, err := db.Decisions(t.Context(), plan.DecisionQuery{Job: "books"}); err != nil || len(ds) != 1 {
			t.Errorf("what was decided on the other's difference: %+v, %v", ds, err)
		}
		open.Store(true)
		process(t, db, programs, func(c *coordinator.Coordinator) {
			if s, err := c.Wait(t.Context(), "slow", "w"); err != nil || s.Status != saga.Completed {
				t.Errorf("%+v, %v", s, err)
			}
		})
	})
}
