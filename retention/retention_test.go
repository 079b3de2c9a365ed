package retention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/memory"
)

const day = 24 * time.Hour

type order struct {
	Customer string
	Total    int
	Fails    bool
	Seen     string // by whom the order was last looked at: no part of its identity where a saga says so
}

type made struct{ ID, For string }

func (m made) ExternalID() string { return m.ID }

// outside counts what took effect.
type outside struct{ invoices, undone int }

func (o *outside) saga(t *testing.T, name string, more ...saga.Step[order]) saga.Program {
	t.Helper()
	steps := append(more,
		saga.Do("invoice", func(_ context.Context, c saga.Call[order]) (made, error) {
			if c.PreviousID() != "" {
				return made{c.PreviousID(), c.Input.Customer}, nil
			}
			o.invoices++
			return made{fmt.Sprintf("inv_%d", o.invoices), c.Input.Customer}, nil
		}).Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *made) error { o.undone++; return nil }),
		saga.Do("mail", func(_ context.Context, c saga.Call[order]) (string, error) {
			if c.Input.Fails {
				return "", errors.New("the line went dead")
			}
			return "", nil
		}).AtMostOnce().NoUndo("it cannot be unsent"),
		saga.Tags(func(order) map[string]string { return map[string]string{"shop": "at"} }),
		saga.Retain[order](saga.Retention{Bodies: 90 * day, Records: 700 * day, Key: 7 * 365 * day}))
	d, err := saga.Define(name, 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// machine/V20: bodies go, then records, then keys; a duplicate behind every stage gets its first status and external ids, another payload conflicts, and
// what is in review or held loses nothing. The ledger stays sound.
func TestWhatGoes(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) ledger.Ledger{
		"memory":   func(*testing.T) ledger.Ledger { return memory.New(nil) },
		"sqlite":   func(t *testing.T) ledger.Ledger { return open(t, filepath.Join(t.TempDir(), "l.db")) },
		"postgres": func(t *testing.T) ledger.Ledger { return open(t, pgtest.URL(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whatGoes(t, open(t))
		})
	}
}

// process runs a coordinator of the sagas until the test has done what it has to do with it.
func process(t *testing.T, l ledger.Ledger, programs []saga.Program, do func(c *coordinator.Coordinator)) {
	t.Helper()
	log, _ := test.NewNullLogger()
	c, err := coordinator.New(l, &coordinator.Options{Log: log})
	if err == nil {
		err = c.Register(t.Context(), programs...)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := c.Run(ctx)
		if ctx.Err() == nil {
			panic(fmt.Sprintf("it does not run: %v", err)) // else the test would wait for it
		}
		ended <- err
	}()
	defer func() {
		if stop(); <-ended != nil {
			t.Error("it did not stop")
		}
	}()
	do(c)
	for settled := false; !settled; { // what was said is read
		page, err := l.List(ctx, ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		settled = !slices.ContainsFunc(page.Instances, func(h ledger.Instance) bool { return h.Posted > h.Consumed })
	}
}

// later runs retention as if so much time had passed.
func later(t *testing.T, l ledger.Ledger, after time.Duration) Report {
	t.Helper()
	log, _ := test.NewNullLogger()
	o, err := l.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dry := run{ledger: l, dry: true, now: o.At.Add(after)}
	would, err := dry.walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(l, &Options{PerSecond: 1 << 20, Log: log})
	r.now = o.At.Add(after)
	report, err := r.walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(would.Lines) != fmt.Sprint(report.Lines) && report.Kept == 0 {
		t.Errorf("a plan said %v, and %v went", would.Lines, report.Lines)
	}
	found, err := ledger.Check(t.Context(), l, &ledger.CheckOptions{Work: func(head *ledger.Instance, records []machine.Record, moving bool) error {
		exported := *head
		exported.Remains = "" // as amends verify reads it
		if wrong := ledger.Examine(&exported, records, moving); len(wrong) > 0 {
			t.Errorf("behind %s, exported: %v", after, wrong)
		}
		return nil
	}})
	if err != nil || len(found.Findings) > 0 {
		t.Errorf("behind %s: %v, %v", after, found.Findings, err)
	}
	return report
}

func whatGoes(t *testing.T, l ledger.Ledger) { //nolint:thelper // it is the test itself, once for each ledger
	out := &outside{}
	whole, part := out.saga(t, "whole"), out.saga(t, "part", saga.Identity(func(o order) any { return o.Total }))
	programs := []saga.Program{whole, part}
	ann, ben := order{Customer: "Ann", Total: 7, Seen: "x"}, order{Customer: "Ann", Total: 8, Seen: "x"}
	by := saga.Actor{Name: "anna", Reason: "she asked"}
	start := func(c *coordinator.Coordinator, name, work, revision string, o order) (coordinator.Started, error) {
		return c.Start(t.Context(), name, work, o, &saga.StartOptions{Revision: revision, Source: "test"})
	}
	held := saga.ID{Saga: "whole", Work: "held"}
	process(t, l, programs, func(c *coordinator.Coordinator) {
		for _, name := range []string{"whole", "part"} {
			for _, work := range []string{"w", "held", "changed", "withdrawn", "review"} {
				o := ann
				o.Fails = work == "review"
				if _, err := start(c, name, work, "1", o); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Wait(t.Context(), name, work); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if _, err := l.SetControl(t.Context(), 0, ledger.Control{
		Kind: ledger.ControlHold, Name: ledger.HoldName(held), Body: []byte("{}"), Actor: "anna", Reason: "a lawyer asked", Nonce: 1,
	}); err != nil {
		t.Fatal(err)
	}
	process(t, l, programs, func(c *coordinator.Coordinator) { // its source cancelled it while all was there
		if _, err := start(c, "whole", "back", "1", ann); err != nil {
			t.Fatal(err)
		}
		if sum, err := c.Wait(t.Context(), "whole", "back"); err != nil || sum.Status != saga.Completed {
			t.Fatal(sum, err)
		}
		if err := c.Withdraw(t.Context(), "whole", "back", "2", by); err != nil {
			t.Fatal(err)
		}
		if sum, err := c.Wait(t.Context(), "whole", "back"); err != nil || sum.Status != saga.Compensated {
			t.Fatal(sum, err)
		}
		out.undone = 0
	})
	first := map[string]saga.Summary{}
	process(t, l, programs, func(c *coordinator.Coordinator) {
		for _, name := range []string{"whole", "part"} {
			s, err := start(c, name, "w", "1", ann)
			if err != nil || !s.Duplicate {
				t.Fatal(s, err)
			}
			first[name] = s.Summary
		}
	})
	// same is what every duplicate is told, at every stage.
	same := func(when string) {
		t.Helper()
		invoices := out.invoices
		process(t, l, programs, func(c *coordinator.Coordinator) {
			for _, name := range []string{"whole", "part"} {
				s, err := start(c, name, "w", "1", ann)
				was := first[name]
				if err != nil || !s.Duplicate || s.Status != was.Status || s.Steps["invoice"].ExternalID != was.Steps["invoice"].ExternalID || s.Input != was.Input && when != "a tombstone" || !s.Started.Truncate(time.Second).Equal(was.Started.Truncate(time.Second)) {
					t.Errorf("%s, %s: a duplicate is told %+v, %v", when, name, s, err)
				}
				if _, err := start(c, name, "w", "1", ben); !errors.Is(err, coordinator.ErrConflict) {
					t.Errorf("%s, %s: another payload: %v", when, name, err)
				}
				other := ann
				other.Seen = "y"
				if _, err := start(c, name, "w", "1", other); errors.Is(err, coordinator.ErrConflict) != (name == "whole") {
					t.Errorf("%s, %s: another payload of the same identity: %v", when, name, err)
				}
			}
		})
		if out.invoices != invoices {
			t.Errorf("%s: %d more invoices", when, out.invoices-invoices)
		}
		for _, name := range []string{"whole", "part"} {
			records, err := l.History(t.Context(), saga.ID{Saga: name, Work: "review"})
			if err != nil || !strings.Contains(string(records[0].Body), "Ann") {
				t.Errorf("%s: what is in review lost its input: %s, %v", when, records[0].Body, err)
			}
		}
		if records, err := l.History(t.Context(), held); err != nil || !strings.Contains(string(records[0].Body), "Ann") {
			t.Errorf("%s: what is held lost its input: %s, %v", when, records[0].Body, err)
		}
	}
	if r := later(t, l, 89*day); len(r.Lines) != 0 {
		t.Errorf("too early: %v", r)
	}
	same("whole")

	if r := later(t, l, 91*day); r.String() != "bodies of 8, records of 0, keys of 0; 0 erased; 1 held, to be erased or moved, 0 cannot be read" {
		t.Errorf("91 days: %v", r)
	}
	if r := later(t, l, 91*day); len(r.Lines) != 0 {
		t.Errorf("twice: %v", r)
	}
	same("without bodies")
	records, err := l.History(t.Context(), saga.ID{Saga: "whole", Work: "w"})
	text := ""
	for i := range records {
		text += string(records[i].Body) + string(records[i].Snapshot)
	}
	if err != nil || strings.Contains(text, "Ann") || len(records) < 2 {
		t.Errorf("a body is left: %s, %v", text, err)
	}
	process(t, l, programs, func(c *coordinator.Coordinator) {
		id := saga.ID{Saga: "whole", Work: "w"}
		if err := c.Undo(t.Context(), id, "", by); !errors.Is(err, coordinator.ErrInputGone) || out.undone > 0 {
			t.Errorf("what needs the input is undone: %v", err)
		}
		if _, err := c.Rerun(t.Context(), id, "r1", by); !errors.Is(err, coordinator.ErrInputGone) {
			t.Errorf("what needs the input is run again: %v", err)
		}
		s, err := start(c, "whole", "changed", "2", ben)
		if err != nil || !s.Revised {
			t.Errorf("a newer version: %+v, %v", s, err)
		}
		sum, err := c.Wait(t.Context(), "whole", "changed")
		if err != nil || sum.Status != saga.Completed || sum.Revision != "2" || sum.Steps["invoice"].ExternalID == "" {
			t.Errorf("a newer version: %+v, %v", sum, err)
		}
		if err := c.Withdraw(t.Context(), "whole", "withdrawn", "2", by); err != nil {
			t.Error(err)
		}
		if sum, err = c.Wait(t.Context(), "whole", "withdrawn"); err != nil || sum.Status != saga.Review || sum.Reason != saga.ReasonConflict || out.undone > 0 {
			t.Errorf("the source cancels what has no input any more: %+v, %v", sum, err)
		}
	})
	same("after a newer version")

	if r := later(t, l, 701*day); r.String() != "bodies of 0, records of 7, keys of 0; 0 erased; 1 held, to be erased or moved, 0 cannot be read" {
		t.Errorf("701 days: %v", r)
	}
	same("a tombstone")
	process(t, l, programs, func(c *coordinator.Coordinator) {
		id := saga.ID{Saga: "whole", Work: "w"}
		if s, err := start(c, "whole", "w", "2", ann); err != nil || !s.Duplicate {
			t.Errorf("a newer version that says the same: %+v, %v", s, err)
		}
		if err := c.Withdraw(t.Context(), "whole", "back", "2", by); err != nil {
			t.Errorf("a cancel that was done comes again: %v", err)
		}
		if _, err := start(c, "whole", "back", "3", ann); !errors.Is(err, coordinator.ErrForgotten) {
			t.Errorf("what was undone is wanted again: %v", err)
		}
		if _, err := start(c, "whole", "w", "2", ben); !errors.Is(err, coordinator.ErrForgotten) {
			t.Errorf("a newer version: %v", err)
		}
		_, posted := l.Post(t.Context(), id, machine.Signal{Kind: machine.SignalConflict, Key: "k", Actor: "test", Reason: "r"})
		for what, err := range map[string]error{
			"withdraw": c.Withdraw(t.Context(), "whole", "w", "3", by), "undo": c.Undo(t.Context(), id, "", by), "cancel": c.Cancel(t.Context(), id, by),
			"post": posted,
		} {
			if !errors.Is(err, coordinator.ErrForgotten) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if page, err := l.List(t.Context(), ledger.Filter{Tag: "shop=at", Saga: "whole"}); err != nil || len(page.Instances) != 3 { // held, in review, withdrawn
		t.Errorf("found by a tag are %v, %v", page.Instances, err)
	}

	if r := later(t, l, 8*365*day); r.String() != "bodies of 0, records of 0, keys of 7; 0 erased; 1 held, to be erased or moved, 0 cannot be read" {
		t.Errorf("8 years: %v", r)
	}
	process(t, l, programs, func(c *coordinator.Coordinator) {
		invoices := out.invoices
		if s, err := start(c, "whole", "w", "1", ann); err != nil || s.Duplicate {
			t.Errorf("behind its key: %+v, %v", s, err)
		}
		if sum, err := c.Wait(t.Context(), "whole", "w"); err != nil || sum.Status != saga.Completed || out.invoices != invoices+1 {
			t.Errorf("behind its key: %+v, %v", sum, err)
		}
	})
}

// A run that is cut off anywhere leaves each instance with all or with what is left, and the next run goes on.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]ledgertest.Fault{
		"before": ledgertest.CrashBefore(2, ledgertest.Reduce), "during": ledgertest.CrashDuring(2, ledgertest.Reduce), "after": ledgertest.CrashAfter(2, ledgertest.Reduce),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, out := memory.New(nil), &outside{}
			programs := []saga.Program{out.saga(t, "whole")}
			const works = 3*batch + 5
			process(t, l, programs, func(c *coordinator.Coordinator) {
				for i := range works {
					if _, err := c.Start(t.Context(), "whole", fmt.Sprint(i), order{Total: i}, nil); err != nil {
						t.Fatal(err)
					}
					if _, err := c.Wait(t.Context(), "whole", fmt.Sprint(i)); err != nil {
						t.Fatal(err)
					}
				}
			})
			r := newRun(ledgertest.Faulty(l, fault), &Options{PerSecond: 1 << 20})
			r.now = time.Now().Add(701 * day)
			if _, err := r.walk(t.Context()); err == nil {
				t.Fatal("it was not cut off")
			}
			later(t, l, 701*day)
			page, err := l.List(t.Context(), ledger.Filter{Left: ledger.LeftRemains, Limit: 1000})
			if err != nil || len(page.Instances) != works {
				t.Errorf("%d are reduced, %v", len(page.Instances), err)
			}
			process(t, l, programs, func(c *coordinator.Coordinator) {
				for i := range works {
					s, err := c.Start(t.Context(), "whole", fmt.Sprint(i), order{Total: i}, nil)
					if err != nil || !s.Duplicate || s.Steps["invoice"].ExternalID != fmt.Sprintf("inv_%d", i+1) {
						t.Fatalf("a duplicate is told %+v, %v", s, err)
					}
				}
			})
			if out.invoices != works {
				t.Errorf("%d invoices of %d", out.invoices, works)
			}
		})
	}
}

// Rule: a file of SQLite whose owner had it kept so that it can shrink gives back what retention has freed.
func TestAFileShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.db")
	_ = open(t, path).Close()
	file, err := sqlx.Open("sqlite", path)
	if err == nil {
		_, err = file.ExecContext(t.Context(), `PRAGMA auto_vacuum = INCREMENTAL; VACUUM`)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	d, err := saga.Define("large", 1, saga.Do("keep", func(_ context.Context, c saga.Call[string]) (string, error) { return c.Input[:1000], nil }).
		Idempotent().NoUndo("it is a test"), saga.Retain[string](saga.Retention{Bodies: 90 * day, Records: 700 * day}))
	if err != nil {
		t.Fatal(err)
	}
	process(t, db, []saga.Program{d}, func(c *coordinator.Coordinator) {
		for i := range 5 * batch {
			if _, err := c.Start(t.Context(), "large", fmt.Sprint(i), strings.Repeat("x", 20_000), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Wait(t.Context(), "large", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	})
	size := func(db store.DB) int64 {
		t.Helper()
		if err := db.Close(); err != nil { // what the log has is in the file then
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size(db)
	db = open(t, path)
	later(t, db, 100*day)
	if after := size(db); after > before/2 {
		t.Errorf("the file has %d bytes behind retention, and had %d", after, before)
	}
}
