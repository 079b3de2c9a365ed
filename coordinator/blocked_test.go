package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What had come before and had its effect once is counted, by what blocked it and by whose it was: a message, a vote of its saga, and an effect
// that was in doubt and was found at its destination. What comes first is not, a storm of one costs a call a second, and neither are messages
// that amends sends itself until they are used.
func TestWhatIsBlockedIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &tellsBlocked{DB: memory.New(nil)}
		sent := 0
		send := func(context.Context, saga.Call[order]) (thing, error) {
			sent++
			return thing{}, errors.New("the answer was lost")
		}
		find := func(_ context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
			return saga.Found(thing{ID: "inv_" + c.Work}), nil
		}
		lost, err := saga.Define("lost", 1, saga.Do("invoice", send).Find(find).Once().ID(func(t thing) string { return t.ID }).NoUndo("it is a test"))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, (&payments{}).saga(t, time.Hour), lost)
		blocked := func() map[string]int64 {
			pass(5 * time.Second)
			days, err := l.BlockedDays(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			by := map[string]int64{}
			for _, d := range days {
				by[d.By+" "+d.Source] += d.Count
			}
			return by
		}
		for _, err := range []error{
			ofStart(p.Start(t.Context(), "payment", "w", order{Total: 50}, &saga.StartOptions{Starter: "sam"})),
			ofStart(p.Start(t.Context(), "lost", "w", order{}, nil)),
			ofAck(p.Deliver(t.Context(), saga.Message{Name: "paid", Key: "7", ID: "evt_1"})),
			ofAck(p.Deliver(t.Context(), saga.Message{Name: "amends-alert-over", Key: "7", ID: "1"})),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		a, err := p.Approval(t.Context(), paymentOf("w"), "")
		if err != nil {
			t.Fatal(err)
		}
		vote := func() error { return p.Vote(t.Context(), a.ID, "", true, a.Digest, votes("ann", "finance")) }
		if err := vote(); err != nil {
			t.Fatal(err)
		}
		if by := blocked(); len(by) != 1 || by["lookup lost/invoice"] != 1 || sent != 1 {
			t.Errorf("of what came once %v is blocked; %d were sent", by, sent)
		}
		for range 2 {
			if err := errors.Join(ofAck(p.Deliver(t.Context(), saga.Message{Name: "paid", Key: "7", ID: "evt_1"})), ofAck(p.Deliver(t.Context(), saga.Message{Name: "amends-alert-over", Key: "7", ID: "1"}))); err != nil {
				t.Fatal(err)
			}
			if err := vote(); err != nil && !errors.Is(err, coordinator.ErrVoted) {
				t.Fatal(err)
			}
		}
		if by := blocked(); by["answer "] != 2 || by["vote payment"] != 2 || by["lookup lost/invoice"] != 1 {
			t.Errorf("blocked are %v", by)
		}
		before := l.calls.Load()
		for range 500 {
			if err := ofAck(p.Deliver(t.Context(), saga.Message{Name: "paid", Key: "7", ID: "evt_1"})); err != nil {
				t.Fatal(err)
			}
		}
		if by, calls := blocked(), l.calls.Load()-before; by["answer "] != 502 || calls > 5 {
			t.Errorf("of 502 that came again %d are counted, by %d calls", by["answer "], calls)
		}
		p.kill()
	})
}

// tellsBlocked counts how often it is told what is blocked.
type tellsBlocked struct {
	*memory.DB

	calls atomic.Int64
}

func (l *tellsBlocked) Blocked(ctx context.Context, by, source string, n int64) error {
	l.calls.Add(1)
	return l.DB.Blocked(ctx, by, source, n)
}

func ofStart(_ coordinator.Started, err error) error { return err }
func ofAck(_ coordinator.Ack, err error) error       { return err }
