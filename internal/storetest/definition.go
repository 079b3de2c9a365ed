package storetest

import (
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
)

var definitionCases = []testCase{
	{name: "at the same time", run: definitionRace},
}

func spec(name string, version int) *program.Spec {
	return &program.Spec{Saga: name, Version: version, Steps: []program.StepSpec{
		{
			Name: "customer", Repeat: program.RepeatKeyed, TTL: 24 * time.Hour, Undo: true, To: "books",
			Retry: program.Retry{Attempts: 3, Within: time.Hour}, Timeout: 30 * time.Second, Settle: time.Minute,
		},
		{
			Name: "invoice", Repeat: program.RepeatFind, Find: true, NoUndo: "the customer's “own” words: 日本 \x01",
			Pivot: true, Timeout: time.Second,
		},
	}}
}

// Processes that start together describe together: one structure wins, the others are told.
func definitionRace(b *bench) {
	second := b.again()
	other := spec("a", 1)
	other.Steps[0].Name = "client"
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() {
			s, store := spec("a", 1), b.Store
			if i%2 == 1 {
				s, store = other, second
			}
			errs[i] = store.Describe(b.Context(), s)
		})
	}
	wg.Wait()
	ds, err := b.Definitions(b.Context())
	if err != nil || len(ds) != 1 {
		b.Fatalf("%d definitions and error %v, want one", len(ds), err)
	}
	for i, err := range errs {
		described := []string{spec("a", 1).Structure(), other.Structure()}[i%2]
		if described == ds[0].Structure && err != nil {
			b.Errorf("the structure that is stored was refused: %v", err)
		}
		if described != ds[0].Structure {
			b.wantError("the other structure", err, ledger.ErrDefinitionChanged)
		}
	}
}
