package coordinator_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// typist types what docs/operating.md says.
type typist struct {
	t     *testing.T
	dir   string
	state string // XDG_STATE_HOME
	path  string
}

// built is the command, once it was built.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "amends-bin-*"); err == nil {
		var out []byte
		if out, err = exec.CommandContext(context.Background(), "go", "build", "-o", dir, "../cmd/amends").CombinedOutput(); err != nil { //nolint:gosec // a folder of ours
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	return dir, err
})

func newTypist(t *testing.T) *typist {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	postgres, _ := pgtest.Find() // who needs it has looked
	return &typist{t, t.TempDir(), t.TempDir(), bin + ":" + postgres + ":" + os.Getenv("PATH")}
}

// types types the block of a section that begins with these words.
func (w *typist) types(section, begins, ledger string) {
	w.t.Helper()
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		w.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### "+section+"\n")
	text, _, _ = strings.Cut(text, "\n### ")
	_, block, found := strings.Cut(text, "```sh\n"+begins)
	if !found {
		w.t.Fatalf("docs/operating.md, %s, has no block that begins with %s", section, begins)
	}
	block, _, _ = strings.Cut(block, "```")
	if out, err := w.bash(begins+block, ledger); err != nil {
		w.t.Fatalf("%s%s: %v\n%s", begins, block, err, out)
	}
}

func (w *typist) bash(script, ledger string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), "bash", "-euc", script) //nolint:gosec // of our page
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "PATH="+w.path, "AMENDS_DB="+ledger, "XDG_STATE_HOME="+w.state, "TMPDIR="+w.state)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// inFile is a SQLite file that is copied, and put back under its name.
func inFile(w *typist) archive {
	if _, err := exec.LookPath("sqlite3"); err != nil && os.Getenv("CI") == "" {
		w.t.Skip("there is no sqlite3: scripts/deps.sh sqlite3")
	}
	name := filepath.Join(w.dir, "ledger.db")
	return archive{
		address: func() string { return name },
		back:    func() { w.types("SQLite", "sqlite3", name) },
		put:     func() { w.types("SQLite", "rm", name) },
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

// ownPostgres is a server of the test, with a database of that name.
func ownPostgres(t *testing.T) (c *pgtest.Cluster, address, name string) {
	t.Helper()
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
	return c, address, filepath.Base(u.Path)
}

// dumped is a database that is dumped, and restored under its name in the same server, or in another one.
func dumped(elsewhere bool) func(*typist) archive {
	return func(w *typist) archive {
		c, address, name := ownPostgres(w.t)
		at := address
		return archive{
			address: func() string { return at },
			back:    func() { w.types("Postgres", "pg_dump", address) },
			put: func() {
				if elsewhere {
					_, at, _ = ownPostgres(w.t)
				} else {
					execute(w.t, "postgres", c.URL(), "DROP DATABASE "+name+" WITH (FORCE)")
					execute(w.t, "postgres", c.URL(), "CREATE DATABASE "+name)
				}
				w.types("Postgres", "psql", at)
			},
		}
	}
}

// copied is a server whose folder is copied, and put back.
func copied(w *typist) archive {
	c, address, _ := ownPostgres(w.t)
	u, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	data, kept := filepath.Join(u.Query().Get("host"), "data"), filepath.Join(w.dir, "data")
	down := func(script string) {
		if err := c.Down(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if out, err := w.bash(script, ""); err != nil {
			w.t.Fatalf("%s: %v\n%s", script, err, out)
		}
		if err := c.Up(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return archive{
		address: func() string { return address },
		back:    func() { down("cp -a " + data + " " + kept) },
		put:     func() { down("rm -rf " + data + "; cp -a " + kept + " " + data) },
	}
}

// archives are the ways of putting a ledger back, each with its section of the page.
var archives = map[string]struct {
	section string
	of      func(*typist) archive
}{
	"a file, put back":             {"SQLite", inFile},
	"a dump, into the same server": {"Postgres", dumped(false)},
	"a dump, into another":         {"Postgres", dumped(true)},
	"a base backup, put back":      {"Postgres", copied},
}

// restoring is a ledger of works that pay, and the witness of its host.
type restoring struct {
	*paying
	*typist

	at      archive
	witness store.Witness // nil: the one in the folder of the host
}

func newRestoring(t *testing.T, of func(*typist) archive) *restoring {
	t.Helper()
	w := newTypist(t)
	return &restoring{paying: &paying{}, typist: w, at: of(w), witness: store.WitnessIn(filepath.Join(w.state, "amends"))}
}

// run runs a process until that is so, and returns what its Run did.
func (r *restoring) run(until func(*process) bool) error {
	r.t.Helper()
	db := r.database()
	p := several(r.t, db, config{opts: coordinator.Options{Poll: 50 * time.Millisecond}}, r.sagas(r.t)...)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	hung := time.After(10 * time.Minute)
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

// recover says what became of the ledger, as the page does, after a look at what would follow.
func (r *restoring) recover(section, words string, what ledger.Recovery) {
	r.t.Helper()
	db := r.database()
	defer db.Close()
	what.By, what.DryRun = anna, true
	if seen, err := db.Recover(r.t.Context(), what); err != nil || len(seen.Works) != 2 || seen.Works[0].Works != restored || seen.Heard.IsZero() {
		r.t.Errorf("a dry run tells %+v, %v", seen, err)
	}
	r.types(section, words, r.at.address())
	if acts, err := db.Deeds(r.t.Context(), time.Time{}, 1); err != nil || len(acts) != 1 || acts[0].Kind != ledger.DeedRecover || acts[0].Actor == "" || acts[0].Reason == "" {
		r.t.Errorf("on record is %+v, %v", acts, err)
	}
}

// A ledger that is put back does not go on where a witness knows better, and pays nothing twice once a person has
// said what happened: those that were awake, and those that slept and were woken since.
func TestARestoredLedgerPaysNothingTwice(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	for name, way := range archives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestoring(t, way.of)
			r.begin()
			r.at.back()
			r.wake(saga.Completed)
			r.at.put()
			if err := r.run(func(p *process) bool { return p.Health() == nil }); !errors.Is(err, ledger.ErrBehind) || !strings.Contains(err.Error(), "--restored") || !strings.Contains(err.Error(), "--nothing-lost") {
				t.Fatalf("it goes on: %v", err)
			}
			if out, err := r.bash("amends recover --nothing-lost --reason 'a guess'", r.at.address()); err == nil {
				t.Fatalf("what the witness knows is said to be nothing: %s", out)
			}
			r.recover(way.section, "amends recover --restored", ledger.Recovery{})
			r.wake(saga.Review)
			r.paidOnce()
			if err := r.run(func(*process) bool { return true }); err != nil {
				t.Fatalf("it is refused once more: %v", err)
			}
		})
	}
}

// A ledger that was moved with everything in it goes on without a review, a file as it is and a database once that
// is said.
func TestAMovedLedgerGoesOn(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	for _, name := range []string{"a file, put back", "a dump, into another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way := archives[name]
			r := newRestoring(t, way.of)
			r.begin()
			r.at.back()
			r.at.put()
			if way.section == "Postgres" {
				r.recover(way.section, "amends recover --nothing-lost", ledger.Recovery{NothingLost: true})
			}
			r.wake(saga.Completed)
			r.paidOnce()
		})
	}
}

// A restore that is taken back by a copy of what was there before it is one, too: what was done on the restored ledger is not in it.
func TestARestoreThatIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRestoring(t, inFile)
	copied := func(script string) {
		t.Helper()
		if out, err := r.bash(script, r.at.address()); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	r.begin()
	r.at.back()
	r.wake(saga.Completed)
	copied("cp ledger.db aside.db")
	r.at.put()
	r.recover("SQLite", "amends recover --restored", ledger.Recovery{})
	if err := r.run(func(p *process) bool { return p.Health() == nil }); err != nil {
		t.Fatal(err)
	}
	copied("rm -f ledger.db-wal ledger.db-shm; cp aside.db ledger.db")
	if err := r.run(func(p *process) bool { return p.Health() == nil }); !errors.Is(err, ledger.ErrBehind) {
		t.Errorf("it goes on: %v", err)
	}
}

// marks is a witness in another database than the ledger's.
type marks struct{ db *sql.DB }

func (m *marks) Read(ctx context.Context, ledger string) (mark []byte, err error) {
	err = m.db.QueryRowContext(ctx, `SELECT mark FROM amends_marks WHERE ledger = $1`, ledger).Scan(&mark)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return mark, err
}

func (m *marks) Write(ctx context.Context, ledger string, mark []byte) error {
	_, err := m.db.ExecContext(ctx, `
		INSERT INTO amends_marks (ledger, mark) VALUES ($1, $2)
		ON CONFLICT (ledger) DO UPDATE SET mark = excluded.mark`, ledger, string(mark))
	return err
}

// A process whose witness is gone, or is a new one, says so until its next start. One that has no witness does, too.
func TestAWitnessThatKnowsNothing(t *testing.T) {
	t.Parallel()
	r := newRestoring(t, inFile)
	says := func(want string) {
		t.Helper()
		err := r.run(func(p *process) bool {
			o, err := p.store.Overview(t.Context())
			if err != nil || len(o.Sessions) != 1 || p.Health() != nil { // one that was stopped at once leaves its session to the next
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
	beside := filepath.Join(t.TempDir(), "marks.db")
	execute(t, "sqlite", beside, `CREATE TABLE amends_marks (ledger text PRIMARY KEY, mark text NOT NULL)`)
	db, err := sql.Open("sqlite", beside)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r.witness = &marks{db}
	says(ledger.WitnessNew)
	says(ledger.WitnessKept)
	r.witness = store.WitnessIn("/proc/none")
	says("")
	r.witness = nil
	says(ledger.WitnessTemp)
}
