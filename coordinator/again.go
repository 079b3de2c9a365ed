package coordinator

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Again runs a completed work once more at the version of the source that it has: somebody has edited or deleted at a
// destination what it made there, and it shall be as it was. Every step gets a new key and is told what it left behind
// ([saga.Call.PreviousID]); a step that is done once per work (a mail) stays done. An action whose thing is gone makes
// another.
//
// The run is a sub-revision ("17+1", see [saga.SubRevision]): older than the source's next version, which takes the work
// on as ever. request names what is asked for: the same request again changes nothing, whatever became of the first,
// and is answered as a duplicate. Works that are not completed match [ErrNotCompleted].
func (c *Coordinator) Again(ctx context.Context, sagaName, work, request string, by By) (Started, error) {
	id := saga.ID{Saga: sagaName, Work: work}
	if err := by.check(); err != nil {
		return Started{}, fmt.Errorf("again %s:\n%w", id, err)
	}
	if request == "" {
		return Started{}, fmt.Errorf("again %s: name the request, so that asking twice is asking once", id)
	}
	st, unread, err := c.stand(ctx, id)
	if err != nil {
		return Started{}, fmt.Errorf("again %s: %w", id, err)
	}
	sum, err := c.summarize(ctx, st)
	if err != nil {
		return Started{}, err
	}
	key := "again:" + request
	known, err := c.signals(ctx, id, func(s *saga.Signal) bool { return s.Key == key })
	switch {
	case err != nil:
		return Started{}, fmt.Errorf("again %s: %w", id, err)
	case known > 0:
		return Started{Summary: sum, Duplicate: true}, nil
	case st.Status != saga.Completed:
		return Started{Summary: sum}, fmt.Errorf("again %s: %w: it is %s", id, ErrNotCompleted, st.Status)
	}
	next := saga.SubRevision(st.Heard)
	for i := range unread { // others asked, too, and are not heard yet
		if unread[i].Revision == next {
			next = saga.SubRevision(next)
		}
	}
	sig := saga.Signal{
		Kind: saga.SignalRevise, Key: key, Actor: by.Actor, Reason: by.Reason,
		News: saga.News{Revision: next, Version: c.newestVersion(st), Input: st.Input},
	}
	return Started{Summary: sum, Revised: true}, c.post(ctx, id, sig)
}

// signals counts the signals posted to a work that are of a kind. A ledger that cannot be read has none: posting one
// again changes nothing.
func (op *Operator) signals(ctx context.Context, id saga.ID, of func(*saga.Signal) bool) (n int, err error) {
	r, ok := op.ledger.(ledger.Reader)
	if !ok {
		return 0, nil
	}
	all, err := r.Signals(ctx, id)
	for i := range all {
		if of(&all[i]) {
			n++
		}
	}
	return n, err
}

// newestVersion is the definition's version that a revision of the work takes.
func (c *Coordinator) newestVersion(st *saga.State) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.newest[st.ID.Saga]; p != nil {
		return p.Spec().Version
	}
	return st.Version
}
