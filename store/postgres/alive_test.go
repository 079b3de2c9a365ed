//go:build linux

package postgres_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/postgres"
)

// A process that starts on the host of one that was killed has its works, and what it had of the inbox, at once. A
// process that lives, and one of which nothing proves that it ended, keep theirs.
func TestWhatAKilledProcessHadIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	url, dir := migrated.URL(t), t.TempDir()
	begin := func(dir, work string) (*postgres.DB, machine.Token) {
		db, err := postgres.Open(t.Context(), url, &postgres.Options{LockDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := db.OpenSession(t.Context(), time.Hour, work, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), intake.Object{Source: "shop", Type: "order", ID: work}, func(now time.Time, e *intake.Entry) error {
			e.Due = now
			intake.Lease(e, db.Holder(), now, time.Hour, &intake.Policy{})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		as, err := db.Append(t.Context(), lease.Token, []ledger.Entry{start(lease.Token, work)})
		if err != nil || as[0].Result != ledger.Appended {
			t.Fatal(as, err)
		}
		return db, lease.Token
	}
	killed, lost := begin(dir, "killed")
	second, err := killed.OpenSession(t.Context(), time.Hour, "killed", nil) // it had lost the first
	if err != nil {
		t.Fatal(err)
	}
	dead := second.Token
	living, alive := begin(dir, "living")
	defer func() { _ = living.Close() }()
	elsewhere, far := begin(t.TempDir(), "elsewhere")
	defer func() { _ = elsewhere.Close() }()
	unlocked, none := begin("/proc/self/none", "unlocked")
	defer func() { _ = unlocked.Close() }()
	if err := postgres.Die(killed); err != nil {
		t.Fatal(err)
	}
	files := func() int {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := files(); n != 2 {
		t.Errorf("%d files, want one for each process", n)
	}

	next, err := postgres.Open(t.Context(), url, &postgres.Options{LockDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := next.OpenSession(t.Context(), time.Hour, "next", nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string]struct {
		token machine.Token
		live  bool
	}{"killed": {dead, false}, "killed, and had lost this one": {lost, false}, "living": {alive, true}, "elsewhere": {far, true}, "unlocked": {none, true}} {
		_, err := next.Renew(t.Context(), is.token, ledger.Renewal{TTL: time.Hour})
		if lives := !errors.Is(err, ledger.ErrSessionDead); lives != is.live {
			t.Errorf("the session of the process that is %s lives: %t (%v)", what, lives, err)
		}
	}
	if n := files(); n != 2 {
		t.Errorf("%d files behind the burial, want those of the two that live", n)
	}
	got, err := next.Claim(t.Context(), lease.Token, ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: "s", Version: 1}}})
	if err != nil || len(got.Instances) != 1 || got.Instances[0].ID.Work != "killed" {
		t.Errorf("claimed %+v, %v; want what the killed process had", got.Instances, err)
	}
	leased, err := next.Lease(t.Context(), 10, func(now time.Time, e *intake.Entry) error {
		e.Holder, e.Until = next.Holder(), now.Add(time.Hour)
		return nil
	})
	if err != nil || len(leased) != 1 || leased[0].Object.ID != "killed" {
		t.Errorf("leased %+v, %v; want what the killed process had", leased, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if n := files(); n != 1 {
		t.Errorf("%d files behind a stop, want that of the one that lives", n)
	}
	_ = killed.Close()
}

// What keeps a process from having a lock is said, and keeps it from nothing else.
func TestWithoutALock(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), migrated.URL(t), &postgres.Options{LockDir: "/proc/self/none"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if lease, err := db.OpenSession(t.Context(), time.Minute, "", nil); err != nil || lease.Lock != "" || lease.Unlocked == nil {
		t.Errorf("opened %+v, %v; want it to say why there is no lock", lease, err)
	}
}
