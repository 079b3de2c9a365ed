package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/address/file"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

func opened(t *testing.T, path string) *DB {
	t.Helper()
	l, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func session(t *testing.T, l *DB) ledger.Lease {
	t.Helper()
	lease, err := l.OpenSession(t.Context(), time.Hour, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// start is a new work, held by its session.
func start(t machine.Token, work string) ledger.Entry {
	e := ledger.Entry{ID: saga.ID{Saga: "s", Work: work}, Schedule: &ledger.Schedule{Hold: true}}
	e.Record = machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running}
	e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, t)
	return e
}

// next is a record behind e.
func next(e ledger.Entry, head int64, t machine.Token, r machine.Record, s *ledger.Schedule) ledger.Entry {
	n := ledger.Entry{ID: e.ID, Number: head, Prev: e.Record.Hash, Record: r, Schedule: s}
	n.Record.Seal(e.ID, machine.Salt{}, e.Record.Seq, e.Record.Hash, t)
	return n
}

func appendOne(t *testing.T, l *DB, token machine.Token, e ledger.Entry, want ledger.Result) ledger.Answer {
	t.Helper()
	a, err := l.Append(t.Context(), token, []ledger.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	if a[0].Result != want {
		t.Fatalf("append record %d of %s: got %+v, want %s", e.Record.Seq, e.ID, a[0], want)
	}
	return a[0]
}

// One coordinator at a time: the second is told who has the file and what to do, reads and posts
// all the same, and takes over at once when the first is gone.
func TestOneCoordinator(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	first, second := opened(t, path), opened(t, path)
	lease := session(t, first)
	if !lease.Alone {
		t.Error("holding the lock proves every other session dead, the lease does not say so")
	}
	e := start(lease.Token, "w")
	appendOne(t, first, lease.Token, e, ledger.Appended)

	_, err := second.OpenSession(t.Context(), time.Hour, "second", nil)
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), path+".lock") {
		t.Fatalf("a second coordinator got %v, want ErrLocked and the name of the lock", err)
	}
	if _, err := second.Post(t.Context(), e.ID, machine.Signal{Kind: machine.SignalCancel, Key: "k"}); err != nil {
		t.Errorf("posting needs no lock: %v", err)
	}
	if heads, err := ledger.First(t.Context(), second, ledger.Filter{}); err != nil || len(heads) != 1 || heads[0].Session != lease.Token {
		t.Errorf("reading needs no lock: %+v, %v", heads, err)
	}

	if err := first.Close(); err != nil { // its session is not buried: as after kill -9
		t.Fatal(err)
	}
	successor := session(t, second)
	got, err := second.Claim(t.Context(), successor.Token, ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: "s", Version: 1}}})
	if err != nil || len(got.Instances) != 1 || got.Instances[0].Session != successor.Token {
		t.Errorf("the successor claims %+v, %v; want the work of the dead session, without waiting for its lease", got, err)
	}
	if _, err := second.Renew(t.Context(), lease.Token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrSessionDead) {
		t.Errorf("renewing the dead session: %v, want ErrSessionDead", err)
	}
}

// A second session of the same process, which has the lock already, does not bury the first.
func TestSecondSessionOfOneProcess(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	first := session(t, l)
	if second := session(t, l); second.Alone {
		t.Error("the second session claims that it is alone")
	}
	if _, err := l.Renew(t.Context(), first.Token, ledger.Renewal{TTL: time.Hour}); err != nil {
		t.Errorf("the first session: %v", err)
	}
}

// What cannot hold a ledger is refused with the reason and a way out.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise.db")
	if err := os.WriteFile(noise, []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	if err := opened(t, newer).Close(); err != nil {
		t.Fatal(err)
	}
	alter(t, newer, `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, 1)`)
	for _, c := range []struct {
		path string
		is   error
		says string
	}{
		{":memory:", nil, "store/memory"},
		{"", nil, "name of a file"},
		{"postgres://app@h/db", nil, "package store"},
		{"year=2026.db", nil, "./NAME"},
		{dir, nil, "is a directory"},
		{filepath.Join(dir, "missing", "ledger.db"), os.ErrNotExist, "directory"},
		{noise, nil, "not a SQLite database"},
		{newer, ledger.ErrSchema, "Use a newer program"},
	} {
		l, err := Open(t.Context(), c.path, nil)
		if err == nil {
			t.Errorf("%q was opened", c.path)
			_ = l.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%q: %v; want it to match %v and to say %q", c.path, err, c.is, c.says)
		}
	}
}

func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every answer is durable: the writer syncs the log at each commit, readers cannot write.
func TestDurability(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	for pragma, want := range map[string]string{
		"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "wal_autocheckpoint": "4000", "journal_size_limit": "67108864",
	} {
		var got string
		err := l.writer.plain(t.Context(), func(q sqlstore.Queries) error {
			return q.QueryRowxContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", pragma, got, err, want)
		}
	}
	if _, err := l.readers.ExecContext(t.Context(), `DELETE FROM amends_instances`); err == nil {
		t.Error("a reader may write")
	}
}

// A path is a path, whatever characters are in it, and what is there is for its owner.
func TestOddPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a ledger?mode=memory&x=%41#1.db")
	session(t, opened(t, path))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file is %v: others may read it", mode)
	}
}

// The times of a chain are in order even when the computer's clock is set back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	s := session(t, l)
	e := start(s.Token, "w")
	a := appendOne(t, l, s.Token, e, ledger.Appended)
	l.now = func() time.Time { return a.At.Add(-time.Minute) }
	n := next(e, a.Number, s.Token, machine.Record{Kind: machine.KindNoted, Status: saga.Completed}, &ledger.Schedule{})
	if b := appendOne(t, l, s.Token, n, ledger.Appended); !b.At.Equal(a.At) {
		t.Errorf("the second record is of %v, the first of %v", b.At, a.At)
	}
	heads, err := ledger.First(t.Context(), l, ledger.Filter{})
	if err != nil || heads[0].Status != saga.Completed || !heads[0].Finished.Equal(a.At) {
		t.Errorf("the head is %+v, %v", heads, err)
	}
	appendOne(t, l, s.Token, n, ledger.Mine)
}

// An older file is migrated when it is opened, and keeps its identity from then on.
func TestMigratesAndKnowsItself(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	alter(t, path, `CREATE TABLE somebody_elses (x)`)
	l := opened(t, path)
	if v, err := migrations.Version(t.Context(), l.readers.DB, migrations.SQLite); err != nil || v != migrations.Latest(migrations.SQLite) {
		t.Errorf("version %d, %v", v, err)
	}
	s := session(t, l)
	alter(t, path, `UPDATE amends_meta SET ledger_id = 'another'`)
	if _, err := l.Renew(t.Context(), s.Token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrDatabaseChanged) {
		t.Errorf("renewing on another file: %v, want ErrDatabaseChanged", err)
	}
}

// A symbolic link is no way around the lock: the second coordinator is told, by whatever
// name it comes.
func TestOneCoordinatorBySymbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link, there := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "there")
	for from, to := range map[string]string{link: path, there: dir} {
		if err := os.Symlink(to, from); err != nil {
			t.Skipf("symbolic links cannot be made here: %v", err)
		}
	}
	session(t, opened(t, path))
	for _, name := range []string{link, filepath.Join(there, "ledger.db")} {
		if _, err := opened(t, name).OpenSession(t.Context(), time.Hour, "second", nil); !errors.Is(err, ledger.ErrLocked) {
			t.Errorf("by %s a second coordinator got %v, want ErrLocked", name, err)
		}
	}
}

// The ledger's clock is the computer's, read once: a step of it while the ledger is open changes
// nothing.
func TestClockIsAnchored(t *testing.T) {
	t.Parallel()
	var readings atomic.Int64
	day := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
	l, err := open(t.Context(), file.Address{File: filepath.Join(t.TempDir(), "ledger.db")}, (*Options)(nil).withDefaults(), func() time.Time {
		return day.Add(time.Duration(readings.Add(1)) * 24 * time.Hour)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	s := session(t, l)
	for range 3 {
		lease, err := l.Renew(t.Context(), s.Token, ledger.Renewal{TTL: time.Hour})
		if err != nil || lease.At.Before(s.At) || readings.Load() != 1 {
			t.Errorf("renewed at %v behind %v, %v, after %d readings of the time of day", lease.At, s.At, err, readings.Load())
		}
	}
}

// A signal that another process posts is due by the coordinator's clock, however far the other's is
// ahead.
func TestPostByAnotherClock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, other := opened(t, path), opened(t, path)
	s := session(t, l)
	e := start(s.Token, "w")
	r := machine.Record{Kind: machine.KindNotSent, Status: saga.Retrying, Wait: time.Hour}
	a := appendOne(t, l, s.Token, e, ledger.Appended)
	appendOne(t, l, s.Token, next(e, a.Number, s.Token, r, &ledger.Schedule{}), ledger.Appended)
	other.now = func() time.Time { return time.Now().Add(30 * 24 * time.Hour) }
	if _, err := other.Post(t.Context(), e.ID, machine.Signal{Kind: machine.SignalCancel, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	got, err := l.Claim(t.Context(), s.Token, ledger.Claim{Limit: 1, Known: []ledger.Version{{Saga: "s", Version: 1}}})
	if err != nil || len(got.Instances) != 1 {
		t.Errorf("claimed %+v, %v, want the work that was spoken to", got, err)
	}
}

// "Ahead is what the clock cannot explain". That a session was renewed while an operator
// looked explains it: the clock is read behind what was seen.
func TestOverviewBesideARenewal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, other := opened(t, path), opened(t, path)
	s := session(t, l)
	var seconds atomic.Int64
	begun := l.now()
	l.now = func() time.Time { return begun.Add(time.Duration(seconds.Add(1)) * time.Second) }
	other.now = func() time.Time {
		now := l.now()
		if _, err := l.Renew(t.Context(), s.Token, ledger.Renewal{TTL: time.Hour}); err != nil {
			t.Error(err)
		}
		return now
	}
	o, err := other.Overview(t.Context())
	if err != nil || len(o.Sessions) != 1 || len(o.Ahead.Sessions) > 0 {
		t.Errorf("at %s it sees %+v, of which it says %+v are ahead: %v", o.At, o.Sessions, o.Ahead.Sessions, err)
	}
}
