package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// partly is a store in memory of which a work has gone, the chain of another is damaged, and a third cannot be loaded.
type partly struct {
	recovers

	gone, damaged, lost string
}

func (p *partly) Load(ctx context.Context, ids []saga.ID) (chains []ledger.Chain, err error) {
	all, err := p.recovers.Load(ctx, ids)
	if slices.ContainsFunc(ids, func(id saga.ID) bool { return id.Work == p.lost }) {
		return nil, ledger.ErrDamaged
	}
	for _, c := range all {
		if c.Instance.ID.Work == p.damaged {
			c.Records[1].Seq += 7
		}
		if c.Instance.ID.Work != p.gone {
			chains = append(chains, c)
		}
	}
	return chains, err
}

// A batch is said to those of its works that can be read, and says of each what became of it: also where one has gone since, or is damaged, and where one that
// it was not said to has moved since.
func TestABatchOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		closed := true
		p, err := saga.Define("payment", 1, saga.Do("open", func(context.Context, saga.Call[int]) (struct{}, error) { return struct{}{}, nil }).Idempotent().NoID().NoUndo("a test").Pivot(),
			saga.Do("charge", func(context.Context, saga.Call[int]) (none struct{}, err error) {
				if closed {
					err = saga.Permanent(errors.New("closed"))
				}
				return none, err
			}).Idempotent().NoID().NoUndo("a test"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := coordinator.New(db, &coordinator.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		defer func() { stop(); <-ended }()
		pass := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // virtual time
			synctest.Wait()
		}
		for i := range 9 {
			if _, err := c.Start(t.Context(), "payment", fmt.Sprint(i), i, nil); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		store := &partly{recovers{db, ledgertest.Keeps{}, false}, "7", "8", "5"}
		d := New(store, "")
		in := &BatchIn{Act: machine.VerbRetry, By: By{Actor: "anna", Reason: "a test"}}
		in.Defaults()
		in.Filter, in.StopAfter, in.Rate = Filter{"status=review"}, 2, 1
		plan, err := d.Batch(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Matched != 8 || plan.Takes != 6 || !strings.Contains(fmt.Sprint(plan.Groups), "it cannot be read") {
			t.Errorf("%+v", plan)
		}
		if g, err := d.Groups(t.Context(), new(GroupsIn)); err != nil || len(g.Items) != 2 || g.Items[0].Count != 6 || g.Items[1].Error != "" {
			t.Errorf("%+v, %v", g, err)
		}
		pass(time.Minute)
		closed = false
		if err := c.Retry(t.Context(), saga.ID{Saga: "payment", Work: "6"}, saga.Actor{Name: "bob", Reason: "by hand"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		store.gone, store.damaged, store.lost = "0", "1", "2"
		shown, err := d.ShowBatch(t.Context(), &WhichBatch{Batch: plan.Batch})
		if err != nil {
			t.Fatal(err)
		}
		if n := shown.Result.Said; n < 2 || n > 5 || !maps.Equal(shown.Outcome, map[string]int{"said": n, "not-said": 6 - n}) {
			t.Errorf("%+v", shown)
		}
		if it := shown.Items; it[0].Outcome != "said" || it[0].Answer != "its records have gone" || !strings.Contains(it[1].Answer, "damaged") || it[2].Answer == "" || it[5].Outcome != "not-said" || it[5].Status != saga.Completed {
			t.Errorf("%+v", it)
		}
		in.Filter = Filter{"status=review", "waits-for=none"}
		if _, err := d.Batch(t.Context(), in); err == nil || FailureOf(t.Context(), err).Code != NotFound {
			t.Errorf("of a destination that there is not: %v", err)
		}
	})
}
