package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/amends-dev/amends/internal/plan"
)

// A new draft ends the one that is still being written: of what that one adds at the same time
// nothing is left.
func plansRace(b *bench) {
	other := b.again()
	for range 5 {
		old := b.draft("books")
		var wg sync.WaitGroup
		started := make(chan struct{})
		ctx, stop := context.WithCancel(b.Context())
		wg.Go(func() {
			for i := 0; ; i++ {
				err := b.Find(ctx, old, missing(fmt.Sprintf("%04d", i)))
				if i == 0 {
					close(started)
				}
				if errors.Is(err, plan.ErrNotFound) || ctx.Err() != nil {
					return
				}
				if err != nil {
					b.Errorf("find: %v", err)
					return
				}
			}
		})
		<-started
		if _, err := other.Draft(b.Context(), "books"); err != nil {
			b.Errorf("draft: %v", err)
			stop() // else it would write for ever
		}
		wg.Wait()
		stop()
		if got := b.keys(plan.FindingQuery{Plan: old}); got != "[]" {
			b.Fatalf("of the draft that died there is left %s", got)
		}
	}
}
