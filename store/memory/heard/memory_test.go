package memory_test

import (
	"testing"

	"github.com/amends-dev/amends/store/memory/heard"
	"github.com/amends-dev/amends/store/storetest"
)

var harness = storetest.Harness{
	Open: func(*testing.T) storetest.Store { return memory.New(nil) },
}

func TestConformance(t *testing.T) {
	t.Parallel()
	harness.Run(t)
}

// The suite finds every rule that a store can break.
func TestConformanceCatches(t *testing.T) {
	t.Parallel()
	harness.Prove(t, "TestConformance")
}
