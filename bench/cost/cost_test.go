package cost_test

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/internal/pgtest"
)

// body is what each of the 14 rows holds: several pages, not compressible.
var body = func() string {
	b := make([]byte, 10_000)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}()

// spend runs seven transactions that write two rows each and three that only
// read, and returns what the meter saw.
func spend(t *testing.T, db *sqlx.DB, meter cost.Meter) cost.Reading {
	t.Helper()
	before, err := meter.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		tx := db.MustBegin()
		tx.MustExec(`insert into t values ($1)`, body)
		tx.MustExec(`insert into t values ($1)`, body)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		var n int
		if err := db.Get(&n, `select count(*) from t`); err != nil {
			t.Fatal(err)
		}
	}
	after, err := meter.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := meter.Close(); err != nil {
		t.Fatal(err)
	}
	return after.Sub(before)
}

// A commit is a transaction that wrote; reading costs none.
func TestSQLiteCommitsAndBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	db := sqlx.MustConnect("sqlite", path)
	defer db.Close()
	db.SetMaxOpenConns(1)
	db.MustExec(`pragma journal_mode = wal`)
	db.MustExec(`create table t(body text)`)
	meter, err := cost.OpenSQLite(path)
	if err != nil {
		t.Fatal(err)
	}
	r := spend(t, db, meter)
	if r.Commits != 7 {
		t.Errorf("%d commits, want 7", r.Commits)
	}
	logHolds(t, r.LogBytes)
}

// A database that is not in WAL mode cannot be measured, and the meter says so.
func TestSQLiteWithoutLog(t *testing.T) {
	if _, err := cost.OpenSQLite(filepath.Join(t.TempDir(), "none.db")); err == nil {
		t.Error("the meter opened on a database without a log")
	}
}

// A commit is a transaction that wrote; reading costs none.
func TestPostgresCommitsAndBytes(t *testing.T) {
	cluster := pgtest.Own(t, pgtest.Settings{"autovacuum": "off"}) // it commits, too
	postmaster, err := cluster.PID()
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.MustConnect("postgres", cluster.URL())
	defer db.Close()
	db.MustExec(`create table t(body text)`)
	meter, err := cost.OpenPostgres(t.Context(), cluster.URL(), postmaster)
	if err != nil {
		t.Fatal(err)
	}
	r := spend(t, db, meter)
	if r.Commits != 7 {
		t.Errorf("%d commits, want 7", r.Commits)
	}
	logHolds(t, r.LogBytes)
}

// logHolds checks that all rows went through the log, and little else.
func logHolds(t *testing.T, logBytes int64) {
	t.Helper()
	if rows := int64(14 * len(body)); logBytes < rows || logBytes > 3*rows {
		t.Errorf("%d bytes of log for rows of %d bytes", logBytes, rows)
	}
}

// The processor time of Postgres is that of its backends, living and ended.
func TestPostgresProcessorTime(t *testing.T) {
	cluster := pgtest.Own(t, nil)
	postmaster, err := cluster.PID()
	if err != nil {
		t.Fatal(err)
	}
	meter, err := cost.OpenPostgres(t.Context(), cluster.URL(), postmaster)
	if err != nil {
		t.Fatal(err)
	}
	defer meter.Close()
	before, err := meter.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.MustConnect("postgres", cluster.URL())
	defer db.Close()
	db.MustExec(`select sum(sqrt(n)) from generate_series(1, 1000000) n`)
	after, err := meter.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if spent := after.Sub(before); spent.DatabaseCPU <= 0 || spent.DatabaseCPU < spent.EngineCPU {
		t.Errorf("a million square roots took Postgres %s and us %s", spent.DatabaseCPU, spent.EngineCPU)
	}
}

func TestPeakMemory(t *testing.T) {
	before, err := cost.PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += os.Getpagesize() {
		block[i] = 1
	}
	after, err := cost.PeakMemory()
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < int64(len(block))*3/4 {
		t.Errorf("touching %d bytes raised the peak by %d", len(block), grown)
	}
}

func TestSyncLatency(t *testing.T) {
	if d, err := cost.SyncLatency(t.TempDir()); err != nil || d <= 0 {
		t.Errorf("got %s, %v", d, err)
	}
}
