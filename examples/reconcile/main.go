// Command reconcile shows what becomes of lost webhooks, of invoices that people edit and delete, and of a lost ledger:
// shop, ledger and books are compared, what is safe is repaired, and the rest is a list for a person. jobs.go is
// what a program of your own needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	dir, err := os.MkdirTemp("", "amends-reconcile-")
	if err == nil {
		err = run(context.Background(), filepath.Join(dir, "ledger.db"), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tells the story: with one ledger, and then without.
func run(ctx context.Context, file string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // it takes a second
	defer cancel()
	shop, books := NewShop(), NewBooks()
	err := during(ctx, file, shop, books, func(ctx context.Context, p *process) error {
		p.work(ctx)
		return (&story{process: p, out: out}).tell(ctx, unheard, lost, tampered, decided)
	})
	if err != nil {
		return err
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + part); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return during(ctx, file, shop, books, func(ctx context.Context, p *process) error {
		return (&story{process: p, out: out}).tell(ctx, rebuilt)
	})
}
