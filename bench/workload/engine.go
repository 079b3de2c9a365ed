package workload

import (
	"context"
	"fmt"
)

// StepCount is the number of forward steps of the saga.
const StepCount = 4

// StepNames are the forward steps in their order.
var StepNames = [StepCount]string{"customer", "invoice", "mark-synced", "receipt"}

// A Saga is one unit of work an engine is asked to run.
type Saga struct {
	Number int    // counts from the load's first number
	Work   string // the business key, unique within a ledger
}

// NewSaga returns the saga with the given number.
func NewSaga(number int) Saga {
	return Saga{Number: number, Work: fmt.Sprintf("shop:order:%010d", number)}
}

// An Engine runs sagas durably. Implementations call [Steps.Do] for every step.
type Engine interface {
	// Run starts the saga and returns when its last step is durably recorded.
	// It is called by many goroutines at once, never twice for one saga.
	Run(ctx context.Context, s Saga) error

	// Close stops the engine after all calls of Run have returned.
	Close() error
}
