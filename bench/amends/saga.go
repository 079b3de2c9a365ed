package amends

import (
	"context"
	"time"

	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/saga"
)

// name is the saga's name in the ledger.
const name = "order-to-invoice"

// order is the input of a saga, of about the size of a real one's reference.
type order struct {
	Order    int    `json:"order"`
	Total    int    `json:"total"`
	Currency string `json:"currency"`
}

// thing is what a step makes.
type thing struct {
	ID string `json:"id"`
}

// ExternalID implements saga.Identified.
func (t thing) ExternalID() string { return t.ID }

// actions are the no-op steps of the workload. With a delay the third one takes as long, at a destination of its own.
type actions struct {
	steps *workload.Steps
	delay time.Duration
}

func (a actions) definition() (*saga.Definition[order], error) {
	return saga.Define(name, 1,
		saga.Do(workload.StepNames[0], a.do(0)).Idempotent().UndoMaybe(a.undo),
		saga.Do(workload.StepNames[1], a.do(1)).Find(a.find).EachRun().UndoMaybe(a.undo),
		saga.Do(workload.StepNames[2], a.do(2)).Idempotent().UndoMaybe(a.undo).Pivot(),
		saga.Do(workload.StepNames[3], a.do(3)).AtMostOnce().NoUndo("a mail cannot be unsent"),
	)
}

func (a actions) do(step int) func(context.Context, saga.Call[order]) (thing, error) {
	return func(_ context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		if a.delay > 0 && step == 2 {
			<-time.After(a.delay)
		}
		return thing{ID: a.steps.Do(c.Input.Order, step)}, nil
	}
}

func (actions) find(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
	return saga.NotFound[thing](), nil
}

func (actions) undo(context.Context, saga.Call[order], *thing) error { return nil }
