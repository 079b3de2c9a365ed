package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// subjects are keys, one for each subject, and which of them seals.
type subjects struct {
	mu        sync.Mutex
	version   int
	destroyed string
	fails     string // the subject whose key cannot be had
}

func (k *subjects) Sealing(subject string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails == subject && subject != "" {
		return "", errors.New("the vault is shut")
	}
	return fmt.Sprintf("%s/%d", subject, k.version), nil
}

func (k *subjects) Key(id string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.destroyed != "" && strings.HasPrefix(id, k.destroyed) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%-32s", id)[:store.KeySize], nil
}

func (k *subjects) set(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}

// secrets are said in bodies alone.
var secrets = []string{"zqInput", "zqResult", "zqPaper", "zqMessage", "zqRead", "zqSettled", "zqWebhook"}

type letter struct{ Customer, Text string }

func letters(t *testing.T) saga.Program {
	t.Helper()
	steps := []saga.Step[letter]{
		saga.Subject(func(l letter) string { return "customer:" + l.Customer }),
		saga.Do("invoice", func(_ context.Context, c saga.Call[letter]) (made, error) {
			return made{"inv_" + c.Input.Customer, "zqResult"}, nil
		}).Idempotent().UndoMaybe(func(context.Context, saga.Call[letter], *made) error { return nil }),
		saga.Approve[letter]("approved").By("finance").About(func(saga.Call[letter]) saga.About { return saga.About{Title: "zqPaper"} }).Within(day),
		saga.Await("paid", func(saga.Call[letter], saga.Message) (string, error) { return "zqRead", nil }).
			On("payment", func(c saga.Call[letter]) string { return c.Work }).EachRun().Within(day, saga.Compensate).NoID(),
	}
	for i := range 60 { // there is a snapshot
		steps = append(steps, saga.Do(fmt.Sprintf("copy-%d", i), func(context.Context, saga.Call[letter]) (string, error) { return "", nil }).Idempotent().NoID().NoUndo("it is a copy"))
	}
	steps = append(steps, saga.Do("mail", func(context.Context, saga.Call[letter]) (string, error) {
		return "", errors.New("the line went dead")
	}).AtMostOnce().NoUndo("it cannot be unsent"))
	d, err := saga.Define("letters", 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is sealed says nothing to who reads the database, and everything to a process with the keys, whose newest seals. A key that was
// destroyed leaves what erasure of bodies leaves. Processes without keys are told, and store nothing.
func TestSealed(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "l.db")
		sealed(t, path, func() string {
			var all strings.Builder
			for _, suffix := range []string{"", "-wal"} {
				b, err := os.ReadFile(path + suffix)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(b)
			}
			return all.String()
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := pgtest.URL(t)
		sealed(t, address, func() string { return dump(t, address) })
	})
}

func sealed(t *testing.T, address string, files func() string) { //nolint:thelper // it is the test itself, once for each database
	keys := &subjects{}
	under := func(keys store.Keys) store.DB {
		t.Helper()
		db, err := store.Open(t.Context(), address, &store.Options{Migrate: true, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	before := under(nil)
	db, programs, by := under(keys), []saga.Program{letters(t)}, saga.Actor{Name: "bob", Reason: "said"}
	heard(t, db, "e1")
	like := program.Message{Name: "like", Key: "k", ID: "1", Body: []byte("sealed:a:b:c:d")}
	if _, err := before.Keep(t.Context(), like, time.Hour); err != nil {
		t.Error(err)
	}
	if ms, err := db.Messages(t.Context(), "like", "k", "letters"); err != nil || len(ms) != 1 || string(ms[0].Body) != " sealed:a:b:c:d" {
		t.Errorf("a plain body that looks like a sealed one is %+v, %v", ms, err)
	}
	if _, err := before.Reduce(t.Context(), []ledger.Reduction{{Head: ledger.Instance{Number: 1}, To: ledger.LeftRecords}}); !errors.Is(err, ledger.ErrKeys) {
		t.Errorf("a process without keys lets bodies go that it has not read: %v", err)
	}
	must := func(s saga.Summary, err error, status saga.Status) {
		t.Helper()
		if err != nil || s.Status != status {
			t.Fatal(s.Status, err)
		}
	}
	begin := func(c *coordinator.Coordinator, customer string) (saga.ID, coordinator.Approval) {
		t.Helper()
		id := saga.ID{Saga: "letters", Work: "letter:" + customer}
		if _, err := c.Deliver(t.Context(), saga.Message{Name: "payment", Key: id.Work, ID: customer, Body: []byte(`{"from":"zqMessage"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Start(t.Context(), id.Saga, id.Work, letter{customer, "zqInput"}, &saga.StartOptions{Revision: "1"}); err != nil {
			t.Fatal(err)
		}
		a := coordinator.Approval{}
		for err := error(nil); a.Digest == ""; {
			if a, err = c.Approval(t.Context(), id, "approved"); err != nil && !errors.Is(err, coordinator.ErrNotOpen) {
				t.Fatal(err)
			}
		}
		if a.About == nil || a.About.Title != "zqPaper" || !strings.Contains(string(a.Shown), "zqInput") {
			t.Errorf("people are asked about %s", a.Shown)
		}
		return id, a
	}
	approve := func(c *coordinator.Coordinator, a coordinator.Approval) {
		t.Helper()
		if err := c.Vote(t.Context(), a.ID, "approved", true, a.Digest, coordinator.Voter{Actor: by, Roles: []string{"finance"}}); err != nil {
			t.Fatal(err)
		}
	}
	finish := func(c *coordinator.Coordinator, id saga.ID) {
		t.Helper()
		s, err := c.Wait(t.Context(), id.Saga, id.Work)
		must(s, err, saga.Review)
		if err := c.Resolve(t.Context(), id, "mail", saga.Resolution{Attempt: 1, Happened: true, ExternalID: "mail_" + id.Work, Output: []byte(`"zqSettled"`)}, by); err != nil {
			t.Fatal(err)
		}
		s, err = c.Wait(t.Context(), id.Saga, id.Work)
		must(s, err, saga.Completed)
	}
	run := func(c *coordinator.Coordinator, customer string) saga.ID {
		t.Helper()
		id, a := begin(c, customer)
		approve(c, a)
		finish(c, id)
		return id
	}
	var ann, ben saga.ID
	process(t, db, programs, func(c *coordinator.Coordinator) { ann = run(c, "ann") })
	keys.set(func() { keys.version++ })
	process(t, db, programs, func(c *coordinator.Coordinator) { ben = run(c, "ben") })

	if said := says(t, db, ben); !strings.Contains(said, `"snapshot"`) {
		t.Error("there is no snapshot")
	}
	is, all := files(), says(t, db, ann)+says(t, db, ben)
	for _, word := range secrets {
		if i := strings.Index(is, word); i >= 0 {
			t.Errorf("%s can be read: %q", word, is[max(0, i-80):min(len(is), i+80)])
		}
		if word != "zqWebhook" && word != "zqMessage" && !strings.Contains(all, word) {
			t.Errorf("with the keys %s is not there", word)
		}
	}
	if ds, err := db.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 1 || !strings.Contains(string(ds[0].Body), "zqWebhook") {
		t.Errorf("with the keys a delivery is %+v, %v", ds, err)
	}
	sound := func(db store.DB) {
		t.Helper()
		if found, err := ledger.Check(t.Context(), db, nil); err != nil || len(found.Findings) > 0 {
			t.Errorf("the ledger: %v, %v", found.Findings, err)
		}
	}
	sound(db)

	t.Run("without keys", func(t *testing.T) {
		plain := under(nil)
		sound(plain)
		said := says(t, plain, ann)
		if slices.ContainsFunc(secrets, func(word string) bool { return strings.Contains(said, word) }) || !strings.Contains(said, "inv_ann") {
			t.Errorf("it says %s", said)
		}
		if _, err := plain.Keep(t.Context(), program.Message{Name: "payment", Key: "k", ID: "1", Body: []byte("{}")}, time.Hour); err == nil || !strings.Contains(err.Error(), "AMENDS_KEYS") {
			t.Errorf("a message: %v", err)
		}
		if _, err := plain.Reduce(t.Context(), []ledger.Reduction{{To: ledger.LeftRecords}}); err == nil || !strings.Contains(err.Error(), "AMENDS_KEYS") {
			t.Errorf("retention: %v", err)
		}
		if err := plain.Accept(t.Context(), hearing("e2")); err == nil || !strings.Contains(err.Error(), "AMENDS_KEYS") {
			t.Errorf("a webhook: %v", err)
		}
	})
	t.Run("a key destroyed", func(t *testing.T) {
		keys.set(func() { keys.destroyed = "customer:ann/0" })
		sound(db)
		if said := says(t, db, ann); strings.Contains(said, "zqInput") || strings.Contains(said, "zqResult") || !strings.Contains(said, "inv_ann") {
			t.Errorf("it says %s", said)
		}
		process(t, db, programs, func(c *coordinator.Coordinator) {
			s, err := c.Start(t.Context(), ann.Saga, ann.Work, letter{"ann", "zqInput"}, &saga.StartOptions{Revision: "1"})
			if err != nil || !s.Duplicate || s.Status != saga.Completed || s.Steps["invoice"].ExternalID != "inv_ann" {
				t.Errorf("a duplicate is told %+v, %v", s, err)
			}
			if _, err := c.Start(t.Context(), ann.Saga, ann.Work, letter{"ann", "another"}, &saga.StartOptions{Revision: "1"}); !errors.Is(err, coordinator.ErrConflict) {
				t.Errorf("another payload: %v", err)
			}
			run(c, "carl")
			if err := c.Withdraw(t.Context(), ann.Saga, ann.Work, "2", by); err != nil {
				t.Error(err)
			}
			s2, err := c.Wait(t.Context(), ann.Saga, ann.Work)
			must(s2, err, saga.Review)
		})
		sound(db)
		if said := says(t, db, ben); !strings.Contains(said, "zqResult") {
			t.Errorf("others are hit: %s", said)
		}
	})
	t.Run("the key of what has not ended", func(t *testing.T) {
		eve := saga.ID{Saga: "letters", Work: "letter:eve"}
		process(t, db, programs, func(c *coordinator.Coordinator) {
			if _, err := c.Start(t.Context(), eve.Saga, eve.Work, letter{"eve", "zqInput"}, nil); err != nil {
				t.Fatal(err)
			}
		})
		keys.set(func() { keys.destroyed = "customer:eve/" })
		process(t, db, programs, func(c *coordinator.Coordinator) {
			run(c, "frank") // others are not held up
			if _, err := c.Approval(t.Context(), eve, ""); err == nil || !strings.Contains(err.Error(), "cannot go on") || !strings.Contains(err.Error(), "destroyed") {
				t.Errorf("it is told %v", err)
			}
		})
	})
	t.Run("a key that cannot be had", func(t *testing.T) {
		process(t, db, programs, func(c *coordinator.Coordinator) {
			gina, a := begin(c, "gina")
			keys.set(func() { keys.fails = "customer:gina" })
			approve(c, a)
			run(c, "dora") // others are not held up
			if _, err := c.Start(t.Context(), "letters", "letter:2", letter{"gina", ""}, nil); err == nil || !strings.Contains(err.Error(), "the vault is shut") {
				t.Errorf("a start: %v", err)
			}
			keys.set(func() { keys.fails = "" })
			finish(c, gina)
		})
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]store.DB{"opened before": before, "opened now": under(nil)} {
		if _, err := db.OpenSession(t.Context(), time.Minute, "test", nil); err == nil || !strings.Contains(err.Error(), "AMENDS_KEYS") {
			t.Errorf("a session without keys, %s: %v", name, err)
		}
		_ = db.Close() // it has the lock of the file
	}
}

// says is the history of a work, with what was said to it.
func says(t *testing.T, db store.DB, id saga.ID) string {
	t.Helper()
	records, err := db.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
