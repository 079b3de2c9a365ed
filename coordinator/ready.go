package coordinator

import (
	"errors"
	"fmt"
	"time"
)

// Health reports whether this process does its work: nil, or why not. It asks nothing and returns
// at once, so a probe may call it as often as it likes:
//
//	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
//		if err := c.Health(); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// It is an error before [Coordinator.Run] has opened a session, while it stops, and from the moment
// on in which the lease is not to be trusted any more, by this process's own clock: when the ledger
// is away, not when it is back. Nothing is sent then, and other processes may take the works over;
// this one opens a new session as soon as it can, so that a restart mends nothing that waiting does
// not. A destination that is away says nothing of this process's health.
func (c *Coordinator) Health() error {
	s := c.current.Load()
	switch {
	case c.isStopping():
		return errStopping
	case !c.ran.Load():
		return errors.New("this coordinator does not run: call Run")
	case s == nil:
		return c.away(errors.New("no session with the ledger yet"))
	}
	return c.away(s.trusted())
}

// away adds to err for how long the ledger has not answered.
func (c *Coordinator) away(err error) error {
	if err == nil {
		return nil
	}
	if silent := c.outage.lasts(); silent > 0 {
		return fmt.Errorf("%w; the ledger has not answered for %s", err, silent.Round(time.Millisecond))
	}
	return err
}
