package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What breaks the rules of what is read: when, whether it is told at all, and byte by byte.

// tornLoad: a head is read first, and its records when another process has written behind it.
type tornLoad struct{ Store }

func (s tornLoad) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	before, err := s.Store.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	end := time.NewTimer(2 * time.Second)
	defer end.Stop()
	for {
		after, err := s.Store.Load(ctx, ids)
		if err != nil || len(after) != len(before) {
			return after, err
		}
		changed := false
		for i := range after {
			changed = changed || len(after[i].Records) != len(before[i].Records)
			after[i].Instance = before[i].Instance
		}
		if changed {
			return after, nil
		}
		select {
		case <-end.C:
			return after, nil
		case <-time.After(time.Millisecond):
		}
	}
}

// lagging: a load answers what the one before it saw.
type lagging struct {
	Store

	mu   sync.Mutex
	seen map[string][]ledger.Chain
}

func (l *lagging) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	now, err := l.Store.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = make(map[string][]ledger.Chain)
	}
	key := fmt.Sprint(ids)
	before, known := l.seen[key]
	l.seen[key] = now
	if known {
		return before, nil
	}
	return now, nil
}

// everlasting: nothing tells that a session is over.
type everlasting struct{ Store }

func (e everlasting) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	chains, err := e.Store.Load(ctx, ids)
	for i := range chains {
		chains[i].Over = false
	}
	return chains, err
}

// credulous: a schema that this program does not know is no reason to stop.
type credulous struct{ Store }

func (c credulous) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	lease, err := c.Store.Renew(ctx, t, r)
	if errors.Is(err, ledger.ErrSchema) {
		return ledger.Lease{Token: t, TTL: r.TTL, At: time.Now()}, nil
	}
	return lease, err
}

// tidy: a body comes back without its spaces.
type tidy struct{ Store }

func (t tidy) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	rs, err := t.Store.History(ctx, id)
	for i := range rs {
		var body bytes.Buffer
		if len(rs[i].Body) > 0 && json.Compact(&body, rs[i].Body) == nil {
			rs[i].Body = body.Bytes()
		}
	}
	return rs, err
}
