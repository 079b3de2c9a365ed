// Command reconcile shows what becomes of lost webhooks, of invoices that people edit and delete,
// and of a lost ledger: shop, ledger and books are compared, what is safe is repaired, and the rest
// is a list for a person. program.go and sides.go are what a program of your own needs. Package
// town plays the shop and the books, and those who use them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/examples/reconcile/town"
)

func main() {
	logrus.SetLevel(logrus.PanicLevel) // the story says it all
	dir, err := os.MkdirTemp("", "amends-reconcile-")
	if err == nil {
		err = run(context.Background(), filepath.Join(dir, "amends.db"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tells the story: with one ledger, and then without.
func run(ctx context.Context, file string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // it takes some seconds
	defer cancel()
	shop, books := town.NewShop(), town.NewBooks()
	if err := serve(ctx, file, shop, books, town.FirstPart(shop, books, out)); err != nil {
		return err
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + part); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return serve(ctx, file, shop, books, town.SecondPart(shop, books, out))
}
