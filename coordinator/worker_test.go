package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// The test binary runs itself as a worker: a real process that can be killed. The world stays in
// the parent and is reached over HTTP, by the client that real actions use.

// workerEnv makes the test binary a worker on the world at that address, workerLedger says on which
// ledger.
const (
	workerEnv    = "AMENDS_TEST_WORKER"
	workerLedger = "AMENDS_TEST_WORKER_LEDGER"
)

// message is an arrival on its way between the processes.
type message struct {
	Work, Step, Customer, Target, Made string
	Dir                                saga.Direction
	Attempt                            int
}

// remote is a worker's way to the world.
type remote struct{ client *sagahttp.Client }

func (r *remote) send(ctx context.Context, c saga.Call[order], dir saga.Direction, target string) (made thing, err error) {
	_, err = r.client.Do(ctx, sagahttp.Request{
		Method: "POST", Path: "/effects", Key: c.Key, Into: &made,
		Body: message{Work: c.Work, Step: c.Step, Customer: c.Input.Customer, Target: target, Made: c.MadeKey, Dir: dir, Attempt: c.Attempt},
	})
	return made, err
}

func (r *remote) find(ctx context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
	var found []thing
	if _, err := r.client.Do(ctx, sagahttp.Request{Method: "GET", Path: sagahttp.Path("effects", c.Step, c.Work), Into: &found}); err != nil {
		return saga.Finding[thing]{}, err
	}
	return saga.Found(found...), nil
}

// serve is the world's side.
func (w *world) serve() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /effects", func(rw http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		a := arrival{
			work: m.Work, step: m.Step, dir: m.Dir, key: r.Header.Get("Idempotency-Key"), attempt: m.Attempt,
			customer: m.Customer, target: m.Target, made: m.Made,
		}
		made, err := w.request(r.Context(), a)
		switch class, _ := saga.Classify(err); {
		case err == nil:
			_ = json.NewEncoder(rw).Encode(made) // the client may be dead
		case class == saga.Refused:
			http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
		default:
			http.Error(rw, err.Error(), http.StatusBadGateway)
		}
	})
	mux.HandleFunc("GET /effects/{step}/{work}", func(rw http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(rw).Encode(append([]thing{}, w.find(r.PathValue("step"), r.PathValue("work"))...))
	})
	mux.HandleFunc("GET /orders", func(rw http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_ = json.NewEncoder(rw).Encode(w.orders)
	})
	return mux
}

// brisk are times for a real database: a lease and attempts of two seconds.
func brisk() config {
	return config{opts: fast(), tune: tuning{timeout: 2 * time.Second, settle: time.Second, retry: saga.Retry{Initial: 100 * time.Millisecond, Max: 2 * time.Second}}}
}

// openPostgres opens the ledger at url for the length of the test, as one process does.
func openPostgres(t *testing.T, url string) ledger.Ledger {
	t.Helper()
	l, err := openLedger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // after a restart of the server its connections are broken
	return l
}

// postgresAndItsDatabase opens a fresh ledger, and the database it lives in.
func postgresAndItsDatabase(t *testing.T) (ledger.Ledger, *sqlx.DB) {
	t.Helper()
	url := pgtest.URL(t)
	db, err := sqlx.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return openPostgres(t, url), db
}

// openLedger opens a ledger by its address: a Postgres URL or a file.
func openLedger(ctx context.Context, address string) (ledger.Ledger, error) {
	if len(address) > 8 && address[:8] == "postgres" {
		return postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	}
	return sqlite.Open(ctx, address, nil)
}

// work is a worker's main: it starts every order the world knows, again and again as a sync job
// does, and runs whatever there is to run until it is told to stop, or killed.
func work(address string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runWorker(ctx, address); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func runWorker(ctx context.Context, address string) error {
	client, err := sagahttp.New(address, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := openLedger(ctx, os.Getenv(workerLedger))
	if err != nil {
		return err
	}
	defer l.Close() // the process ends
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	o := fast()
	o.Log = log
	o.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 8}, "shop": {Concurrent: 8}, "post": {Concurrent: 8}}
	c, err := coordinator.New(l, &o)
	if err != nil {
		return err
	}
	p := &process{t: &testing.B{}, remote: &remote{client}}
	tune := brisk().tune
	tune.delay = 300 * time.Millisecond
	if err := c.Register(ctx, orders(p, tune)); err != nil {
		return err
	}
	return runs(ctx, c, 50*time.Millisecond, func() error {
		if err := startOrders(ctx, c, client); err != nil && ctx.Err() == nil {
			log.WithError(err).Warn("starting orders")
		}
		return nil
	})
}

// runs runs a coordinator until ctx ends, and calls visit again and again meanwhile.
func runs(ctx context.Context, c *coordinator.Coordinator, every time.Duration, visit func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := visit(); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
}

func startOrders(ctx context.Context, c *coordinator.Coordinator, client *sagahttp.Client) error {
	var works []string
	if _, err := client.Do(ctx, sagahttp.Request{Method: "GET", Path: "/orders", Into: &works}); err != nil {
		return err
	}
	var faults []error
	for _, w := range works {
		_, err := c.Start(ctx, orderSaga, w, order{Customer: "c-" + w}, &saga.StartOptions{Source: "sync"})
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
