package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

func fresh(t *testing.T) *DB {
	t.Helper()
	return opened(t, filepath.Join(t.TempDir(), "ledger.db"))
}

func event(n int) intake.Event {
	return intake.Event{
		Object: intake.Object{Source: "shop", Type: "order", ID: fmt.Sprint(n)},
		Dedupe: intake.DigestOf(fmt.Sprint(n)), Payload: intake.Thin, Received: time.Now(),
	}
}

// busy holds the file's write lock as another process would, and returns what lets it go.
func busy(t *testing.T, s *DB) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// Accept answers in time even when another process keeps the file from everybody, and what is sent
// again later is stored once.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	release := busy(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := s.Accept(ctx, []intake.Event{event(1)})
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 4*time.Second {
		t.Errorf("after %v: %v; want the deadline, long before the busy timeout", took, err)
	}
	release()
	if err := s.Accept(t.Context(), []intake.Event{event(1)}); err != nil {
		t.Fatal(err)
	}
	if ds, err := s.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 1 {
		t.Errorf("%d deliveries, %v", len(ds), err)
	}
}

// A row that SQLite refuses fails its own call and no other of the batch.
func TestRefusedRow(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	release := busy(t, s)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			ins, err := rows.Receive([]intake.Event{event(i)})
			if err != nil {
				t.Error(err)
				return
			}
			if i == 3 {
				ins[0].Values[0] = "not a time"
			}
			errs[i] = s.changes.Do(t.Context(), change{size: 1, run: func(ctx context.Context, b *shared) error { return s.accept(ctx, b, ins) }})
		})
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if (err != nil) != (i == 3) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if ds, err := s.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 7 {
		t.Errorf("%d deliveries, %v; want the other seven", len(ds), err)
	}
}

// The panic of a callback comes out in its caller, and the store goes on.
func TestPanicOfACallback(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	o := event(1).Object
	if err := s.Accept(t.Context(), []intake.Event{event(1)}); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"update": func() { _ = s.Update(t.Context(), o, func(time.Time, *intake.Entry) error { panic("no") }) },
		"judge": func() {
			_, _ = s.Judge(t.Context(), 1, func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error { panic("no") })
		},
	} {
		func() {
			defer func() {
				if p := recover(); p != "no" {
					t.Errorf("%s: recovered %v", name, p)
				}
			}()
			call()
		}()
	}
	if err := s.Update(t.Context(), o, func(time.Time, *intake.Entry) error { return nil }); err != nil {
		t.Error(err)
	}
}

// What a killed process had of the inbox is due at once for the next one that has the file's lock. What a process without a
// session has stays its own.
func TestWhatAKilledProcessHeardIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	killed := opened(t, path)
	if _, err := killed.OpenSession(t.Context(), time.Hour, "", nil); err != nil {
		t.Fatal(err)
	}
	for id, holder := range map[string]string{"killed": killed.Holder(), "living": "without a session"} {
		err := killed.Update(t.Context(), intake.Object{Source: "shop", Type: "order", ID: id}, func(now time.Time, e *intake.Entry) error {
			e.Due = now
			intake.Lease(e, holder, now, time.Hour, &intake.Policy{})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := killed.owner.Close(); err != nil { // as the end of its process
		t.Fatal(err)
	}
	next := opened(t, path)
	if _, err := next.OpenSession(t.Context(), time.Hour, "", nil); err != nil {
		t.Fatal(err)
	}
	leased, err := next.Lease(t.Context(), 10, func(now time.Time, e *intake.Entry) error {
		e.Holder, e.Until = next.Holder(), now.Add(time.Hour)
		return nil
	})
	if err != nil || len(leased) != 1 || leased[0].Object.ID != "killed" {
		t.Errorf("leased %+v, %v; want what the killed process had", leased, err)
	}
}
