package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/workload"
)

// size is what `bench size` was asked for.
type size struct {
	dir   string
	works int
}

func sizeCommand() *cobra.Command {
	var s size
	cmd := &cobra.Command{
		Use:   "size",
		Short: "What a finished work takes on disk, on SQLite and Postgres",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&s.dir, "dir", os.TempDir(), "where the ledgers lie")
	cmd.Flags().IntVar(&s.works, "works", 20_000, "finished works")
	return cmd
}

func (s size) run(ctx context.Context, out io.Writer) (err error) {
	stage, err := openStage(ctx, s.dir, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	fmt.Fprintln(out, "| ledger | bytes for a finished work | works/s, 64 in flight |\n|---|---|---|")
	for _, ledger := range []string{onSQLite, onPostgres} {
		if err := s.on(ctx, out, stage, ledger); err != nil {
			return fmt.Errorf("%s: %w", ledger, err)
		}
	}
	return nil
}

func (s size) on(ctx context.Context, out io.Writer, stage *stage, ledger string) (err error) {
	e, err := subject(ledger)
	if err != nil {
		return err
	}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	var sizes []int64 // of a ledger with one work, and with all
	var took time.Duration
	for _, upTo := range [][2]int{{0, 1}, {1, s.works}} {
		begin := time.Now()
		if err := finish(ctx, e, address, upTo[0], upTo[1]); err != nil {
			return err
		}
		took = time.Since(begin)
		n, err := stage.bytes(ctx, ledger, address)
		if err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	works := int64(s.works - 1)
	fmt.Fprintf(out, "| %s | %d | %.0f |\n", ledger, (sizes[1]-sizes[0])/works, float64(works)/took.Seconds())
	return nil
}

// finish runs the works of a range for real, 64 at a time.
func finish(ctx context.Context, e entry, address string, from, to int) error {
	steps := workload.NewSteps(from, to-from)
	engine, err := e.open(ctx, address, steps)
	if err != nil {
		return err
	}
	works, running := errgroup.WithContext(ctx)
	works.SetLimit(64)
	for n := from; n < to; n++ {
		works.Go(func() error { return engine.Run(running, workload.NewSaga(n)) })
	}
	return errors.Join(works.Wait(), engine.Close(), steps.Verify(to-from))
}

// bytes is the size of a database that no process has open.
func (s *stage) bytes(ctx context.Context, ledger, address string) (n int64, err error) {
	if ledger != onPostgres {
		info, err := os.Stat(address)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	db, err := openForFilling(ctx, ledger, address)
	if err != nil {
		return 0, err
	}
	err = db.GetContext(ctx, &n, "SELECT pg_database_size(current_database())")
	return n, errors.Join(err, db.Close())
}
