package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/internal/pgtest"
)

// The two ledgers.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres"
)

var ledgers = []string{onSQLite, onPostgres}

// settings of Postgres are those of the published figures; fsync and synchronous_commit are what the
// comparison is about.
var settings = pgtest.Settings{
	"fsync":              "on",
	"synchronous_commit": "on",
	"shared_buffers":     "512MB",
	"max_connections":    "200",
	"max_wal_size":       "8GB",
}

// place is where ledgers lie: a folder, and a Postgres that serves nothing else from the first
// benchmark on that asks for it. Both are on the disk of the temporary folder.
var place struct {
	dir     string
	cluster *pgtest.Cluster
	admin   *sqlx.DB
	pid     int
	files   int
}

// TestMain makes the place and removes it. It lets the test binary be a process that is killed.
func TestMain(m *testing.M) {
	var err error
	code := 0
	if p := os.Getenv(processEnv); p != "" {
		err = beProcess(context.Background(), p)
	} else if place.dir, err = os.MkdirTemp("", "amends-bench-"); err == nil {
		err = heading()
		code = m.Run()
		if place.cluster != nil {
			err = errors.Join(err, place.admin.Close(), place.cluster.Stop())
		}
		err = errors.Join(err, os.RemoveAll(place.dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

// heading says on what disk the figures are taken, as benchmarks say on what processor.
func heading() error {
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" {
		return nil
	}
	disk, err := cost.SyncLatency(place.dir)
	fmt.Printf("fdatasync: %s\n", disk.Round(time.Microsecond))
	return err
}

// must ends a benchmark at an error.
func must(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// server starts Postgres.
func server(tb testing.TB) *pgtest.Cluster {
	tb.Helper()
	if place.cluster != nil {
		return place.cluster
	}
	cluster, err := pgtest.Start(context.Background(), "", settings) // not in our own folder, which another user may not enter
	must(tb, err)
	place.cluster = cluster
	var failed [2]error
	place.pid, failed[0] = cluster.PID()
	place.admin, failed[1] = sqlx.Connect("postgres", cluster.URL())
	must(tb, failed[:]...)
	return cluster
}

// kept returns the address of an empty ledger that stays until the program ends.
func kept(tb testing.TB, ledger string) string {
	tb.Helper()
	address, _ := empty(tb, ledger)
	return address
}

// fresh returns the address of an empty ledger.
func fresh(tb testing.TB, ledger string) string {
	tb.Helper()
	address, remove := empty(tb, ledger)
	tb.Cleanup(func() { must(tb, remove(context.Background())) })
	return address
}

func empty(tb testing.TB, ledger string) (address string, remove func(context.Context) error) {
	tb.Helper()
	if ledger == onPostgres {
		address, remove, err := pgtest.Database(context.Background(), server(tb).URL())
		must(tb, err)
		return address, remove
	}
	place.files++
	path := filepath.Join(place.dir, fmt.Sprintf("ledger-%d.db", place.files))
	return path, func(context.Context) error {
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	}
}

// copyOf returns the address of a copy of a database on Postgres that has no connections.
func copyOf(tb testing.TB, database string) string {
	tb.Helper()
	from, err := url.Parse(database)
	must(tb, err)
	place.files++
	name := fmt.Sprintf("copy_%d", place.files)
	_, err = place.admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + strings.TrimPrefix(from.Path, "/"))
	must(tb, err)
	tb.Cleanup(func() {
		_, err := place.admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		must(tb, err)
	})
	from.Path = "/" + name
	return from.String()
}

// settle leaves nothing of what was before for the next to write.
func settle(tb testing.TB) {
	tb.Helper()
	runtime.GC()
	if place.admin != nil {
		_, err := place.admin.Exec("checkpoint")
		must(tb, err)
	}
}

// meter opens the meter of a ledger that is open.
func meter(tb testing.TB, ledger, address string) cost.Meter {
	tb.Helper()
	var m cost.Meter
	var err error
	if ledger == onPostgres {
		m, err = cost.OpenPostgres(context.Background(), address, place.pid)
	} else {
		m, err = cost.OpenSQLite(address)
	}
	must(tb, err)
	return m
}

// database opens the database of a ledger without the ledger, as its writer or to read beside it.
func database(tb testing.TB, ledger, address, pragmas string) *sqlx.DB {
	tb.Helper()
	if ledger == onSQLite {
		address = "file:" + filepath.ToSlash(address) + "?" + pragmas
	}
	db, err := sqlx.Connect(ledger, address)
	must(tb, err)
	return db
}

// number is how many of something there are: n, or what the environment says.
func number(tb testing.TB, name string, n int) int {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	must(tb, err)
	return n
}

// report adds figures by unit, and takes away the time of an operation, which means nothing where
// many are in flight.
func report(b *testing.B, figures map[string]float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	for unit, v := range figures {
		b.ReportMetric(v, unit)
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
