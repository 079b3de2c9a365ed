package simulation

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// Two processes on one database, each with a handle of its own, in real time: what holds on the
// memory store holds on SQLite and Postgres. Everything has happened before it begins and is told
// out of order.
func TestTwoProcessesOnADatabase(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "heard.db")
		onDatabase(t, func(ctx context.Context) (store, error) { return sqlite.Open(ctx, path, nil) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		onDatabase(t, func(ctx context.Context) (store, error) {
			return postgres.Open(ctx, url, &postgres.Options{Migrate: true})
		})
	})
}

func onDatabase(t *testing.T, open func(context.Context) (store, error)) {
	t.Helper()
	const seed = 11
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	nodes := [2]*scene{newScene(seed, size{objects: 90, deliveries: 900}, time.Now().Add(-span-time.Hour))}
	nodes[0].calmDown()
	nodes[1] = &scene{world: nodes[0].world, works: nodes[0].works}
	var running []*process
	for _, s := range nodes {
		var err error
		if s.store, err = open(ctx); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.store.Close(); err != nil {
				t.Error(err)
			}
		})
		s.gate = &watched{Gate: s.store, world: s.world}
		s.settle, s.poll = 50*time.Millisecond, 50*time.Millisecond
		running = append(running, start(ctx, s, 0))
	}
	knock(t, nodes, running)
	for began := time.Now(); owing(t, nodes[0].store); {
		if time.Since(began) > 5*time.Minute {
			t.Error("it does not come to rest")
			break
		}
		_ = pause(ctx, 50*time.Millisecond)
	}
	cancel()
	for _, p := range running {
		<-p.done
	}
	v, err := nodes[0].judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{v.different, v.works, v.unfinished, nodes[0].gate.broken, nodes[1].gate.broken, nodes[0].works.broken} {
		for _, broken := range list {
			t.Error(broken)
		}
	}
	t.Logf("%d objects told of, %d requests, %d revisions handed over again", v.told, nodes[0].world.fetches, nodes[0].works.repeated)
}

// knock delivers everything in any order, through both handles at once.
func knock(t *testing.T, nodes [2]*scene, running []*process) {
	t.Helper()
	mail := nodes[0].mail.deliveries
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mail), func(i, j int) { mail[i], mail[j] = mail[j], mail[i] })
	var knocking sync.WaitGroup
	for i, s := range nodes {
		knocking.Go(func() {
			for n := i; n < len(mail); n += len(nodes) {
				ev := mail[n].event
				ev.Received = time.Now()
				if err := s.store.Accept(t.Context(), []intake.Event{ev}); err != nil {
					t.Error(err)
				}
				running[i].processor.Sources()[0].Wake()
			}
		})
	}
	knocking.Wait()
}

// owing reports whether anything is unjudged, owed or planned.
func owing(t *testing.T, s store) bool {
	t.Helper()
	unjudged, err := s.Deliveries(t.Context(), intake.DeliveryFilter{Unjudged: true, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Entries(t.Context(), intake.EntryFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if e := &entries[i]; !e.Due.IsZero() || e.Owing() || e.Holder != "" {
			return true
		}
	}
	return len(unjudged) > 0
}
