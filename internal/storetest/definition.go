package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
)

var definitionCases = []testCase{
	{name: "stored", run: definitionStored},
	{name: "changed", run: definitionChanged, breaks: broken{"structure-compared": func(s Store) Store { return forgiving{s} }}},
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

// Describe "stores the structure of a definition"; versions stand side by side, in order.
func definitionStored(b *bench) {
	before := b.clock()
	for _, s := range []*program.Spec{spec("b", 2), spec("a", 10), spec("b", 1), spec("a", 9)} {
		for range 2 { // the same again is no change
			if err := b.Describe(b.Context(), s); err != nil {
				b.Fatalf("describe %s version %d: %v", s.Saga, s.Version, err)
			}
		}
	}
	ds, err := b.Definitions(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var got []ledger.Version
	for _, d := range ds {
		got = append(got, ledger.Version{Saga: d.Spec.Saga, Version: d.Spec.Version})
		want := spec(d.Spec.Saga, d.Spec.Version)
		if !reflect.DeepEqual(d.Spec, *want) || d.Structure != want.Structure() {
			b.Errorf("definition came back as %+v (structure %s), want %+v (structure %s)", d.Spec, d.Structure, *want, want.Structure())
		}
		var decoded program.Spec
		if err := json.Unmarshal(d.JSON, &decoded); err != nil || !reflect.DeepEqual(decoded, *want) {
			b.Errorf("its JSON decodes to %+v and error %v", decoded, err)
		}
		if d.First.Before(before) || d.First.After(b.clock()) {
			b.Errorf("first seen at %v, want since %v", d.First, before)
		}
	}
	if want := []ledger.Version{{Saga: "a", Version: 9}, {Saga: "a", Version: 10}, {Saga: "b", Version: 1}, {Saga: "b", Version: 2}}; !slices.Equal(got, want) {
		b.Errorf("definitions are %v, want %v", got, want)
	}
}

// "ErrDefinitionChanged when they differ." Timeouts and retries are not structure.
func definitionChanged(b *bench) {
	if err := b.Describe(b.Context(), spec("a", 1)); err != nil {
		b.Fatal(err)
	}
	for name, change := range map[string]func(s *program.Spec){
		"a step renamed": func(s *program.Spec) { s.Steps[0].Name = "client" },
		"a step added":   func(s *program.Spec) { s.Steps = append(s.Steps, program.StepSpec{Name: "third"}) },
		"a step removed": func(s *program.Spec) { s.Steps = s.Steps[:1] },
		"another class":  func(s *program.Spec) { s.Steps[1].Repeat = program.RepeatAtMostOnce },
		"no undo":        func(s *program.Spec) { s.Steps[0].Undo = false },
	} {
		s := spec("a", 1)
		change(s)
		b.wantError(name, b.Describe(b.Context(), s), ledger.ErrDefinitionChanged)
		s.Version = 2
		if ds, err := b.Definitions(b.Context()); err != nil || len(ds) != 1 || ds[0].Structure != spec("a", 1).Structure() {
			b.Errorf("%s: a refused definition was stored: %+v, %v", name, ds, err)
		}
	}
	tuned := spec("a", 1)
	tuned.Steps[0].Timeout, tuned.Steps[0].Retry.Attempts, tuned.Steps[0].To = time.Hour, 99, "elsewhere"
	if err := b.Describe(b.Context(), tuned); err != nil {
		b.Errorf("a tuned definition was refused: %v", err)
	}
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
