package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Part is a part of a process that runs beside the coordinator: an inbox.Processor, a
// webhook.Server, a schedule.Runner.
type Part interface {
	// Run works until ctx ends.
	Run(ctx context.Context) error
}

// Run opens a session and works until ctx ends. Then it stops gracefully: nothing new is armed,
// attempts that have not passed their send gate are recorded as not sent, those that have are
// awaited for at most Options.Drain, and the session is buried so that other processes take over at
// once. It returns nil after a graceful stop, and an error when it cannot begin or had to leave
// attempts behind. A coordinator runs once.
//
// The others of a process are run beside it, so that one call runs everything. They end with it:
// when ctx ends, and when one of them returns. Their errors are returned; that it returned without
// one before ctx ended is an error, too.
func (c *Coordinator) Run(ctx context.Context, others ...Part) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(others)+1)
	var parts sync.WaitGroup
	for i, r := range others {
		parts.Go(func() {
			defer stop()
			if errs[i] = r.Run(running); errs[i] == nil && running.Err() == nil {
				errs[i] = fmt.Errorf("a %T, which runs beside the coordinator, has ended by itself", r)
			}
		})
	}
	parts.Go(func() {
		defer stop()
		errs[len(others)] = c.run(running)
	})
	parts.Wait()
	return errors.Join(errs...)
}
