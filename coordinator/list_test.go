package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// cut is a ledger whose pages are short, and whose n-th cannot be read.
type cut struct {
	ledger.Ledger
	page, fails int
	pages       int
}

func (c *cut) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	if c.pages++; c.pages == c.fails {
		return ledger.Page{}, errors.New("the database is away")
	}
	f.Limit = c.page
	return c.Ledger.List(ctx, f)
}

// List goes over all pages, each instance once, tells where it stands, stops when its caller does,
// and ends with the error of a ledger that cannot be read.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &cut{Ledger: memory.New(nil), page: 2}
		c, err := coordinator.New(l, &coordinator.Options{Log: silent()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := saga.Define("list", 1, saga.Do("step", func(_ context.Context, c saga.Call[int]) (string, error) {
			if c.Input == 3 {
				return "", saga.Permanent(errors.New("no"))
			}
			return fmt.Sprint("id_", c.Input), nil
		}).Idempotent().UndoMaybe(func(context.Context, saga.Call[int], *string) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait() // it has its session
		for n := range 5 {
			if err := d.Start(t.Context(), c, fmt.Sprint("w", n), n); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		op := coordinator.NewOperator(l)
		listed := func(f coordinator.Filter, most int) string {
			var all []string
			for i, err := range op.List(t.Context(), f) {
				if err != nil {
					all = append(all, err.Error())
					continue
				}
				if i.Started.IsZero() || i.Ended.IsZero() || i.Updated.IsZero() || i.ID.Saga != "list" || i.Version != 1 {
					t.Errorf("%+v", i)
				}
				if all = append(all, i.ID.Work+" "+string(i.Status)); len(all) == most {
					break
				}
			}
			return strings.Join(all, ", ")
		}
		for want, got := range map[string]string{
			"w0 completed, w1 completed, w2 completed, w3 compensated, w4 completed": listed(coordinator.Filter{}, 9),
			"w4 completed, w3 compensated, w2 completed":                             listed(coordinator.Filter{Newest: true}, 3),
			"w3 compensated": listed(coordinator.Filter{Status: saga.Compensated}, 9),
			"w2 completed":   listed(coordinator.Filter{ExternalID: "id_2"}, 9),
			"":               listed(coordinator.Filter{Prefix: "x"}, 9),
		} {
			if got != want {
				t.Errorf("listed %q, want %q", got, want)
			}
		}
		l.pages, l.fails = 0, 2
		if got := listed(coordinator.Filter{}, 9); got != "w0 completed, w1 completed, list instances: the database is away" {
			t.Errorf("listed %q", got)
		}
	})
}
