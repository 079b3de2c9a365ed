// Command service is a whole program to begin from: paid orders of a shop become invoices in the
// books, by webhooks at once and by a comparison every night; cancelled ones are voided. It has a
// health check, counters and a slog logger, and runs on a SQLite file or on Postgres. service.go
// puts it together, saga.go says what is done, and shop.go and books.go speak with the two systems.
// Without any setting it brings a shop and books of its own. "service health" asks the process that
// listens whether it is healthy, for a container that has nothing else to ask with.
package main

import (
	"cmp"
	"context"
	"expvar"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/amends-dev/amends/examples/service/outside"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == "health" {
		if err := health(ctx, cmp.Or(os.Getenv("LISTEN"), listen)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:gocritic // as below
		}
		return
	}
	s, done, err := read(ctx, os.Getenv, os.Stdout, slog.Default())
	if err == nil {
		defer done()
		err = run(ctx, s, slog.Default(), expvar.NewMap("amends"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the service ended:", err)
		os.Exit(1) //nolint:gocritic // the deferred only stop what ends with the process
	}
}

// settings are what the service is told by its environment.
type settings struct {
	Database string // a path, or postgres://…
	Listen   string // host:port, for webhooks, health and counters
	Shop     string // where the shop is
	Books    string // where the books are
	Secret   string // what the shop signs its webhooks with
}

// listen is where the service listens when it is not told.
const listen = "localhost:8080"

// health is an error unless the service on this machine says that it is healthy.
func health(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil) //nolint:gosec // its own address
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r) //nolint:gosec // as above
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz answered %s", answer.Status)
	}
	return nil
}

const variables = `The service reads these variables:

  DATABASE        a SQLite file or postgres://…      default: amends.db
  LISTEN          host:port for /webhooks/shop, /healthz and /counters
                                                     default: localhost:8080
  SHOP_URL        where the shop is
  BOOKS_URL       where the books are
  WEBHOOK_SECRET  what the shop signs with: whsec_…

Without the last three it brings a shop and books of its own, which keep nothing: then the default
of DATABASE is a new file.
`

// read reads the settings. Where neither shop nor books are named it starts some, which sell until
// ctx ends; done stops them.
func read(ctx context.Context, env func(string) string, out io.Writer, log *slog.Logger) (s settings, done func(), err error) {
	s = settings{env("DATABASE"), cmp.Or(env("LISTEN"), listen), env("SHOP_URL"), env("BOOKS_URL"), env("WEBHOOK_SECRET")}
	if s.Shop+s.Books+s.Secret == "" {
		return bundled(ctx, s, out, log)
	}
	var missing []string
	if s.Shop == "" {
		missing = append(missing, "SHOP_URL")
	}
	if s.Books == "" {
		missing = append(missing, "BOOKS_URL")
	}
	if s.Secret == "" {
		missing = append(missing, "WEBHOOK_SECRET")
	}
	if len(missing) > 0 {
		return s, nil, fmt.Errorf("set %s, too, or none of the three\n\n%s", strings.Join(missing, " and "), variables)
	}
	s.Database = cmp.Or(s.Database, "amends.db")
	return s, func() {}, nil
}

// bundled starts a shop and books, and says so.
func bundled(ctx context.Context, s settings, out io.Writer, log *slog.Logger) (settings, func(), error) {
	if s.Database == "" {
		dir, err := os.MkdirTemp("", "amends-service-")
		if err != nil {
			return s, nil, err
		}
		s.Database = filepath.Join(dir, "amends.db")
	}
	w := outside.New()
	s.Shop, s.Books, s.Secret = w.ShopURL, w.BooksURL, outside.Secret
	fmt.Fprintf(out, `%s
The shop sells something every two seconds now, and loses some webhooks. In another terminal:

  go run ./cmd/amends list --db %s
  curl http://%s/counters

`, variables, s.Database, s.Listen)
	go w.Play(ctx, "http://"+s.Listen+"/webhooks/shop", log)
	return s, w.Close, nil
}
