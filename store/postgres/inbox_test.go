package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

func opened(t *testing.T) (*DB, string) {
	t.Helper()
	url := pgtest.URL(t)
	s, err := Open(t.Context(), url, &Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, url
}

func event(n int) intake.Event {
	return intake.Event{
		Object: intake.Object{Source: "shop", Type: "order", ID: fmt.Sprint(n)},
		Dedupe: intake.DigestOf(fmt.Sprint(n)), Payload: intake.Thin, Received: time.Now(),
	}
}

// busy locks the tables of the inbox as somebody's maintenance would, and returns what lets them
// go.
func busy(t *testing.T, url string) (release func()) {
	t.Helper()
	db, err := sqlx.ConnectContext(t.Context(), "postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE amends_digests`); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// Accept answers in time even when the database answers nobody, and what is sent again later is
// stored once.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s, url := opened(t)
	release := busy(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := s.Accept(ctx, []intake.Event{event(1)})
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > patience/2 {
		t.Errorf("after %v: %v; want the deadline", took, err)
	}
	release()
	if err := s.Accept(t.Context(), []intake.Event{event(1)}); err != nil {
		t.Fatal(err)
	}
	if ds, err := s.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 1 {
		t.Errorf("%d deliveries, %v", len(ds), err)
	}
}

// A row that Postgres refuses fails its own call and no other of the batch.
func TestRefusedRow(t *testing.T) {
	t.Parallel()
	s, url := opened(t)
	release := busy(t, url)
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
			errs[i] = s.incoming.Do(t.Context(), ins)
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

// A database without the tables is refused with what to do.
func TestNoSchema(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), nil)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, ledger.ErrSchema) {
		t.Errorf("got %v", err)
	}
}

// The statements of the write path find their rows by an index, however small the tables were when
// they were planned.
func TestPlans(t *testing.T) {
	t.Parallel()
	s, _ := opened(t)
	args := [][]any{{100}, {nil, "[]"}, {nil, "a", "b", "c", "d"}, {nil, "[]"}, {nil, 100}}
	for i, text := range sqlstore.Gated(words) {
		var plan []string
		if err := s.work.SelectContext(t.Context(), &plan, `EXPLAIN `+text, args[i]...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if p := fmt.Sprint(plan); !strings.Contains(p, "Index") || strings.Contains(p, "Seq Scan on amends") {
			t.Errorf("%s is planned as %s", text, p)
		}
	}
}
