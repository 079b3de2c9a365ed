package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// paying are sagas with a payment that must not be repeated: behind a step that fails until it may pass, and behind a delay.
type paying struct {
	open atomic.Bool
	paid diary
}

func (p *paying) sagas(t *testing.T) []saga.Program {
	t.Helper()
	pass := func(context.Context, saga.Call[order]) (thing, error) {
		if !p.open.Load() {
			return thing{}, saga.NotSent(errors.New("not yet"))
		}
		return thing{ID: "p"}, nil
	}
	pay := func(_ context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		p.paid.note(c.Saga + c.Work)
		return thing{ID: "paid-" + c.Work}, nil
	}
	brisk := saga.Defaults{Timeout: time.Second, Settle: 10 * time.Millisecond, Retry: saga.Retry{Initial: 100 * time.Millisecond, Max: 200 * time.Millisecond, Within: time.Hour}}
	last := saga.Do("pay", pay).With(brisk).AtMostOnce().NoUndo("a test")
	awake, err := saga.Define("awake", 1, saga.Do("pass", pass).With(brisk).Idempotent().NoUndo("a test"), last)
	if err != nil {
		t.Fatal(err)
	}
	asleep, err := saga.Define("asleep", 1, saga.Delay[order]("tomorrow", 24*time.Hour), last)
	if err != nil {
		t.Fatal(err)
	}
	return []saga.Program{awake, asleep}
}

// archive is a ledger that can be backed up, and put back.
type archive struct {
	address func() string // where it is now
	back    func()        // keeps what it has
	put     func()        // puts that in its place
}

// inFile is a SQLite file that is copied, and put back under its name.
func inFile(t *testing.T) archive {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ledger.db")
	return archive{
		address: func() string { return name },
		back:    func() { execute(t, "sqlite", name, `VACUUM INTO '`+name+`.backup'`) },
		put: func() {
			for _, of := range []string{"-wal", "-shm"} {
				_ = os.Remove(name + of)
			}
			if err := os.Rename(name+".backup", name); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func execute(t *testing.T, driver, address, statement string) {
	t.Helper()
	db, err := sqlx.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// ownPostgres is a server of the test, with a database, and what runs a program of that server's.
func ownPostgres(t *testing.T) (c *pgtest.Cluster, address, name string, do func(program string, args ...string)) {
	t.Helper()
	bin, err := pgtest.Find()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	c = pgtest.Own(t, pgtest.Settings{})
	address, drop, err := pgtest.Database(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = drop(context.Background()) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return c, address, filepath.Base(u.Path), func(program string, args ...string) {
		t.Helper()
		if !filepath.IsAbs(program) {
			program = filepath.Join(bin, program)
		}
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil { //nolint:gosec // programs of the test
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
}

// dumped is a database that is dumped, and restored under its name in the same server, or in another one.
func dumped(elsewhere bool) func(*testing.T) archive {
	return func(t *testing.T) archive {
		t.Helper()
		c, address, name, do := ownPostgres(t)
		dump, at := filepath.Join(t.TempDir(), "dump.sql"), address
		return archive{
			address: func() string { return at },
			back:    func() { do("pg_dump", "-d", address, "-f", dump) },
			put: func() {
				if elsewhere {
					_, at, _, _ = ownPostgres(t)
				} else {
					execute(t, "postgres", c.URL(), "DROP DATABASE "+name+" WITH (FORCE)")
					execute(t, "postgres", c.URL(), "CREATE DATABASE "+name)
				}
				do("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", at, "-f", dump)
			},
		}
	}
}

// copied is a server whose folder is copied, and put back.
func copied(t *testing.T) archive {
	t.Helper()
	c, address, _, do := ownPostgres(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	data, kept := filepath.Join(u.Query().Get("host"), "data"), filepath.Join(t.TempDir(), "data")
	while := func(do func()) {
		t.Helper()
		if err := c.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		do()
		if err := c.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return archive{
		address: func() string { return address },
		back:    func() { while(func() { do("/bin/cp", "-a", data, kept) }) },
		put:     func() { while(func() { do("/bin/rm", "-rf", data); do("/bin/cp", "-a", kept, data) }) },
	}
}

var archives = map[string]func(*testing.T) archive{
	"a file, put back": inFile, "a dump, into the same server": dumped(false), "a dump, into another": dumped(true), "a base backup, put back": copied,
}

// restoring is a ledger of works that pay, and the witness of its host.
type restoring struct {
	*paying

	t       *testing.T
	at      archive
	witness store.Witness
}

// run runs a process until that is so, and returns what its Run did.
func (r *restoring) run(until func(*process) bool) error {
	r.t.Helper()
	db := r.database()
	p := several(r.t, db, config{opts: coordinator.Options{Poll: 50 * time.Millisecond}}, r.sagas(r.t)...)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	hung := time.After(time.Minute)
	for !until(p) {
		select {
		case <-hung:
			each(func(id saga.ID) bool {
				s, err := p.Show(r.t.Context(), id)
				r.t.Logf("%s is %s: %s, %v", id, s.Status, s.Note, err)
				return true
			})
			r.t.Fatal("it does not come to its end")
		case <-p.ended:
			return errors.Join(p.err, db.Close())
		case <-tick.C:
		}
	}
	return errors.Join(p.halt(), db.Close())
}

func (r *restoring) database() store.DB {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), r.at.address(), &store.Options{Migrate: true, Witness: r.witness})
	if err != nil {
		r.t.Fatal(err)
	}
	return db
}

const restored = 5 // works of each saga

func each(do func(saga.ID) bool) bool {
	all := true
	for i := range restored {
		for _, name := range []string{"awake", "asleep"} {
			all = do(saga.ID{Saga: name, Work: fmt.Sprint("w", i)}) && all
		}
	}
	return all
}

// begin starts the works. It returns when each has begun.
func (r *restoring) begin() {
	r.t.Helper()
	err := r.run(func(p *process) bool {
		return each(func(id saga.ID) bool {
			if _, err := p.Start(r.t.Context(), id.Saga, id.Work, order{}, nil); err != nil {
				r.t.Fatal(err)
			}
			s, err := p.Show(r.t.Context(), id)
			return err == nil && (s.Steps["pass"].Attempts > 0 || s.Status == saga.Waiting)
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// wake lets every work go on, and wakes those that sleep. It returns when each is where it stays.
func (r *restoring) wake(want ...saga.Status) {
	r.t.Helper()
	r.open.Store(true)
	woken := false
	err := r.run(func(p *process) bool {
		if !woken {
			woken = each(func(id saga.ID) bool { return id.Saga == "awake" || p.Wake(r.t.Context(), id, anna) == nil })
		}
		return r.stand(p, want...)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *restoring) stand(p *process, want ...saga.Status) bool {
	return each(func(id saga.ID) bool {
		s, err := p.Show(r.t.Context(), id)
		for _, status := range want {
			if err == nil && s.Status == status {
				return true
			}
		}
		return false
	})
}

func (r *restoring) paidOnce() {
	r.t.Helper()
	each(func(id saga.ID) bool {
		if n := len(r.paid.of(id.Saga + id.Work)); n != 1 {
			r.t.Errorf("%s paid %d times", id, n)
		}
		return true
	})
}

// recover says what became of the ledger, twice: once to see what follows.
func (r *restoring) recover(what ledger.Recovery) error {
	r.t.Helper()
	db := r.database()
	defer db.Close()
	what.By, what.DryRun = anna, true
	seen, err := db.Recover(r.t.Context(), what)
	if err != nil {
		return err
	}
	if n := len(seen.Works); n != 2 || seen.Works[0].Works != restored || seen.Heard.IsZero() {
		r.t.Errorf("a dry run tells %+v", seen)
	}
	what.DryRun = false
	if _, err := db.Recover(r.t.Context(), what); err != nil {
		return err
	}
	acts, err := db.Deeds(r.t.Context(), time.Time{}, 1)
	if err != nil || len(acts) != 1 || acts[0].Kind != ledger.DeedRecover || acts[0].Actor != anna.Name {
		r.t.Errorf("on record is %+v, %v", acts, err)
	}
	return nil
}

// cases-4, 1: a ledger that is put back does not go on where a witness knows better, and pays nothing twice once a person has
// said what happened: those that were awake, and those that slept and were woken since.
func TestARestoredLedgerPaysNothingTwice(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	for name, of := range archives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &restoring{paying: &paying{}, t: t, at: of(t), witness: store.WitnessIn(t.TempDir())}
			r.begin()
			r.at.back()
			r.wake(saga.Completed)
			r.at.put()
			if err := r.run(func(*process) bool { return false }); !errors.Is(err, ledger.ErrBehind) {
				t.Fatalf("it goes on: %v", err)
			}
			if err := r.recover(ledger.Recovery{NothingLost: true}); !errors.Is(err, ledger.ErrBehind) {
				t.Fatalf("what the witness knows is said to be nothing: %v", err)
			}
			if err := r.recover(ledger.Recovery{}); err != nil {
				t.Fatal(err)
			}
			r.wake(saga.Review)
			r.paidOnce()
			if err := r.run(func(*process) bool { return true }); err != nil {
				t.Fatalf("it is refused once more: %v", err)
			}
		})
	}
}

// cases-4, 9: a ledger that was moved with everything in it goes on without a review, once that is said.
func TestAMovedLedgerGoesOn(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	for name, of := range archives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &restoring{paying: &paying{}, t: t, at: of(t), witness: store.WitnessIn(t.TempDir())}
			r.begin()
			r.at.back()
			r.at.put()
			if err := r.recover(ledger.Recovery{NothingLost: true}); err != nil {
				t.Fatal(err)
			}
			r.wake(saga.Completed)
			r.paidOnce()
		})
	}
}

// A process whose witness is gone, or is a new one, says so for as long as no other vouches for the ledger. One that has no
// witness does, too.
func TestAWitnessThatKnowsNothing(t *testing.T) {
	t.Parallel()
	r := &restoring{paying: &paying{}, t: t, at: inFile(t), witness: store.WitnessIn(t.TempDir())}
	says := func(want string) {
		t.Helper()
		err := r.run(func(p *process) bool {
			o, err := p.store.Overview(t.Context())
			if err != nil || len(o.Sessions) == 0 {
				return false
			}
			if got := o.Sessions[0].Witness; got != want && (want != "" || got == ledger.WitnessKept) {
				t.Errorf("the session says %q of its witness, not %q", got, want)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	says(ledger.WitnessKept) // there was nothing before
	says(ledger.WitnessKept)
	r.witness = store.WitnessIn(t.TempDir())
	says(ledger.WitnessNew)
	says(ledger.WitnessKept)
	r.witness = store.WitnessIn("/proc/none")
	says("")
	r.witness = nil
	says(ledger.WitnessTemp)
}
