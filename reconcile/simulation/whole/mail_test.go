package whole

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// webhook is one knock on the door.
type webhook struct {
	at    time.Time
	event intake.Event
}

// lost is one event of how many never comes.
const lost = 15

// webhooks makes up what becomes of everything the shop tells, in order of arrival, and notes which
// orders somebody is told of the last change of.
func (s *shop) webhooks(seed uint64, stripped bool) (all []webhook) {
	chance := rand.New(rand.NewPCG(seed, 2))
	for _, o := range s.orders {
		for n := range o.states {
			if chance.IntN(lost) == 0 {
				continue
			}
			o.told = o.told || n == len(o.states)-1
			ev := s.event(o, n, stripped)
			for range 1 + chance.IntN(3) {
				delay := time.Duration(chance.ExpFloat64() * float64(15*time.Second))
				if chance.IntN(40) == 0 {
					delay += time.Duration(chance.IntN(40)) * time.Minute
				}
				all = append(all, webhook{o.states[n].at.Add(delay), ev})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b webhook) int { return a.at.Compare(b.at) })
	return all
}

// event is what the shop tells of a change.
func (s *shop) event(o *order, n int, stripped bool) intake.Event {
	ev := intake.Event{Object: object, Topic: "changed", ID: strconv.Itoa(n), Payload: intake.Thin, At: o.states[n].at}
	ev.Object.ID = o.id
	ev.Dedupe = intake.DigestOf(o.id, ev.ID)
	switch {
	case stripped:
	case o.states[n].deleted:
		ev.Deleted = true
	default:
		ev.Payload, ev.Version = intake.Whole, s.version(o, n)
		ev.Body, ev.Fingerprint = o.states[n].body, o.states[n].print
	}
	return ev
}

// tell delivers every webhook at its time. Who gets no acknowledgement knocks again.
func (s *scene) tell(ctx context.Context, all []webhook) {
	for _, w := range all {
		if pause(ctx, time.Until(w.at)) != nil {
			return
		}
		for s.accept(ctx, w.event) != nil {
			if pause(ctx, time.Second) != nil {
				return
			}
		}
	}
}

func (s *scene) accept(ctx context.Context, ev intake.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive == nil {
		return errDead
	}
	ev.Received = time.Now()
	err := s.db.Accept(ctx, []intake.Event{ev})
	s.alive.processor.Sources()[0].Wake()
	return err
}
