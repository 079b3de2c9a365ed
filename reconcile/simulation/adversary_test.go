package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// delivery is one knock on the door.
type delivery struct {
	at    time.Time
	event intake.Event
}

// mail is everything that will be delivered, in order of arrival.
type mail struct {
	deliveries []delivery
	dropped    int // events that never come
	forged     int // of the future, or under a used id
}

const (
	maxCopies = 20
	lost      = 20 // one event of so many never comes
)

// newMail makes up what becomes of everything the sources tell. It notes which objects are told of
// their last change: only those can be known to be right without a reconciler.
func newMail(w *world, deliveries int) *mail {
	chance := rand.New(rand.NewPCG(w.seed, 2))
	m := &mail{}
	var told []intake.Event
	for _, o := range w.objects {
		for n := range o.states {
			ev := o.kind.event(o, n)
			ev.ID = strconv.Itoa(n)
			ev.Dedupe = intake.DigestOf(ev.Object.String(), ev.ID)
			if chance.IntN(lost) == 0 {
				m.dropped++
				continue
			}
			told = append(told, ev)
			o.told = o.told || n == len(o.states)-1
			if chance.IntN(50) == 0 { // a second subscription tells of the same change under an id of its own
				ev.Dedupe = intake.DigestOf(ev.Object.String(), ev.ID, "again")
				told = append(told, ev)
			}
			if chance.IntN(100) == 0 && ev.Version.Step > 0 { // stamped in the future: a lie
				m.forged++
				told = append(told, forged(ev))
			}
			if chance.IntN(100) == 0 { // the truth, under the id of an earlier event
				m.forged++
				ev.Dedupe = intake.DigestOf(ev.Object.String(), "0")
				told = append(told, ev)
			}
		}
	}
	copies := make([]int, len(told))
	for i := range told {
		m.add(chance, &told[i])
		copies[i]++
	}
	for len(m.deliveries) < deliveries {
		if i := chance.IntN(len(told)); copies[i] < maxCopies {
			m.add(chance, &told[i])
			copies[i]++
		}
	}
	slices.SortStableFunc(m.deliveries, func(a, b delivery) int { return a.at.Compare(b.at) })
	return m
}

// forged says what is not, a day ahead.
func forged(ev intake.Event) intake.Event {
	ev.Body = encode(map[string]string{"id": ev.Object.ID, "is": "forged"})
	ev.Fingerprint, ev.Payload, ev.Deleted = fingerprint(ev.Body), intake.Whole, false
	ev.Version.N += int64(24 * time.Hour)
	ev.Dedupe = intake.DigestOf(ev.Object.String(), ev.ID, "future")
	return ev
}

// add delivers a copy of the event some time after it happened: mostly soon, sometimes hours later.
func (m *mail) add(chance *rand.Rand, ev *intake.Event) {
	delay := time.Duration(chance.ExpFloat64() * float64(15*time.Second))
	if chance.IntN(50) == 0 {
		delay += time.Duration(chance.IntN(180)) * time.Minute
	}
	m.deliveries = append(m.deliveries, delivery{at: ev.At.Add(delay), event: *ev})
}

// post delivers everything at its time. Who gets no acknowledgement knocks again.
func (m *mail) post(ctx context.Context, door intake.Inbox, stripped bool, wake func()) (acked map[intake.Digest]intake.Object, retries int) {
	acked = map[intake.Digest]intake.Object{}
	for _, d := range m.deliveries {
		if err := pause(ctx, time.Until(d.at)); err != nil {
			return acked, retries
		}
		ev := d.event
		if stripped {
			ev = strip(ev)
		}
		ev.Received = time.Now()
		for door.Accept(ctx, []intake.Event{ev}) != nil {
			retries++
			if err := pause(ctx, time.Second); err != nil {
				return acked, retries
			}
		}
		acked[ev.Dedupe] = ev.Object
		wake()
	}
	return acked, retries
}
