package coordinator_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// Real processes on real databases that fall silent, turn read-only, fill up, or change their
// clocks. Whatever happened, everything comes to its end, the invariants hold, and the processes
// live on.

// apart returns the address for the test's own eyes, told apart from those of the processes. They
// see what is there also while the database takes no writes.
func apart(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", "onlooker")
	q.Set("default_transaction_read_only", "off")
	u.RawQuery = q.Encode()
	return u.String()
}

// leave stops a worker and wants it to end well.
func (a *arena) leave(w *worker) {
	a.t.Helper()
	w.signal(syscall.SIGTERM)
	a.poll(func() bool {
		select {
		case <-w.gone:
			return true
		default:
			return false
		}
	})
	if code := w.ProcessState.ExitCode(); code != 0 {
		a.t.Errorf("a worker ended with %d", code)
	}
}

// "A connection that dies silently costs its own time-out and no more",
// whichever it is, one of several or all of them, and whatever it held locked. Without time-outs of
// its own a process waits for a quarter of an hour here, longer than this test does.
func TestSilentConnections(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	silences, works := 4, 24
	address := pgtest.URL(t)
	if pace.AtNight() {
		silences, works = 80, 400
		// A server learns nothing of clients behind a silent connection, and keeps a place for
		// each.
		address = pgtest.Own(t, pgtest.Settings{"max_connections": "2000"}).URL()
	}
	a := newArena(t, apart(t, address), works)
	w := pgtest.NewWire(t, address)
	a.ledger = w.URL()
	one, other := a.launch(), a.launch()
	a.poll(func() bool { return a.sessions() == 2 }) // whose first call is silent does not start, and says so
	silent := 0
	for range silences {
		a.after(1 + a.r.IntN(2*4*works/silences))
		silent += w.SilenceSome(a.r, a.r.IntN(4))
	}
	reviews := a.finish()
	t.Logf("%d works, %d silences, %d silent connections, %d requests, %d reviews", works, silences, silent, a.arrivals(), reviews)
	if silent < silences {
		t.Errorf("%d connections fell silent, want %d or more: the test proves little", silent, silences)
	}
	w.SilenceSome(a.r, 0) // a stop comes to its end in silence, too
	a.leave(one)
	a.leave(other)
}

// "A read-only moment ends no process". For twice a lease every new connection finds a
// server that takes no writes, as a standby does, or one whose disk is full.
func TestAReadOnlyMoment(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	moments, works := 1, 16
	if pace.AtNight() {
		moments, works = 20, 200
	}
	address := pgtest.URL(t)
	a := newArena(t, apart(t, address), works)
	a.ledger = address
	db, err := sqlx.Open("postgres", apart(t, address))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one, other := a.launch(), a.launch()
	a.poll(func() bool { return a.sessions() == 2 }) // the first session of a process wants a ledger that can be written
	for range moments {
		a.after(1 + a.r.IntN(2*works))
		a.readOnly(db, true)
		since := time.Now()
		a.poll(func() bool { return time.Since(since) > 2*fast().Lease })
		a.readOnly(db, false)
	}
	reviews := a.finish()
	t.Logf("%d works, %d moments, %d requests, %d reviews", works, moments, a.arrivals(), reviews)
	a.leave(one)
	a.leave(other)
}

// sessions counts the living.
func (a *arena) sessions() (n int) {
	a.t.Helper()
	all, err := a.look.Sessions(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, s := range all {
		if !s.Dead {
			n++
		}
	}
	return n
}

// readOnly makes a database read-only for every new connection, or writable again, and ends those
// of the processes.
func (a *arena) readOnly(db *sqlx.DB, on bool) {
	a.t.Helper()
	for _, statement := range []string{
		"SET default_transaction_read_only = off",
		fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET default_transaction_read_only = %t', current_database()); END $$", on),
		`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'amends'`,
	} {
		if _, err := db.ExecContext(a.t.Context(), statement); err != nil {
			a.t.Fatal(err)
		}
	}
}

// smallDisk mounts a file system of the given size for the length of the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "amends-disk-") //nolint:usetesting // a server that runs as another user must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := mount(dir, size); err != nil {
		t.Skipf("skipped: a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all the room on a disk, and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// A full disk costs the time it is full and nothing else. On SQLite the process keeps its file and
// its lock.
func TestAFullDiskOnSQLite(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	times, works := 1, 16
	if pace.AtNight() {
		times, works = 30, 200
	}
	dir := smallDisk(t, "64m") // the log alone may have 16 before it is copied into the file
	a := newArena(t, filepath.Join(dir, "ledger.db"), works)
	w := a.launch()
	a.poll(func() bool { return a.sessions() == 1 })
	for range times {
		a.after(1 + a.r.IntN(2*works))
		free := fill(t, dir)
		since := time.Now()
		a.poll(func() bool { return time.Since(since) > 2*fast().Lease })
		free()
	}
	reviews := a.finish()
	t.Logf("%d works, %d times full, %d requests, %d reviews", works, times, a.arrivals(), reviews)
	a.leave(w)
}

// On Postgres the server itself may go down over a full disk.
func TestAFullDiskOnPostgres(t *testing.T) {
	t.Parallel()
	pace.Night(t)
	dir := smallDisk(t, "192m")
	if err := os.Chmod(dir, 0o777); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	cluster, err := pgtest.Start(t.Context(), dir, pgtest.Settings{"min_wal_size": "32MB", "max_wal_size": "48MB", "max_connections": "50"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	a := newArena(t, apart(t, cluster.URL()), 200)
	a.ledger, a.w.judge = cluster.URL(), nil // it could not ask
	one, other := a.launch(), a.launch()
	a.poll(func() bool { return a.sessions() == 2 })
	downs := 0
	for range 10 {
		a.after(1 + a.r.IntN(100))
		free := fill(t, dir)
		since := time.Now()
		a.poll(func() bool { return time.Since(since) > 3*fast().Lease })
		free()
		if err := cluster.Up(t.Context()); err == nil { // it was down
			downs++
		}
	}
	reviews := a.finish()
	t.Logf("200 works, 10 times full, %d times down, %d requests, %d reviews", downs, a.arrivals(), reviews)
	a.leave(one)
	a.leave(other)
}
