package flow

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// Health is what every process of a ledger knows of one destination. It is a value, kept in the
// ledger as a control and changed by compare-and-set: a change that loses to another is decided
// again on what that one wrote. Times are the ledger's.
//
// A destination is paused by a person; or limited, because it asked to be left alone for a while
// (429, 503); or failing, because it served none of those who never failed there; or healthy. Only
// a healthy one gets more than a probe at a time. What waits for it waits in the ledger.
type Health struct {
	PausedBy     string `json:"pausedBy,omitempty"` // a person; and why, in that person's words
	PausedReason string `json:"pausedReason,omitempty"`

	ProbedAt         time.Time `json:"probedAt,omitzero"` // a person had it tried
	LimitedUntil     time.Time `json:"limitedUntil,omitzero"`
	FailureStartedAt time.Time `json:"failureStartedAt,omitzero"`
	Evidence         string    `json:"evidence,omitempty"`  // for people: why it counts as failing, or limited
	LastError        string    `json:"lastError,omitempty"` // what the latest failure said

	// FailsAlone is the instance that fails and was the only one that its process knew of.
	FailsAlone lone `json:"failsAlone,omitzero"`

	// The probe is made by a newcomer, if one wants to, and else by one that waited or failed there
	// before. Those may all be at fault, as they came together: they have waits of their own, and
	// lengthen no newcomer's.
	Probe        probe     `json:"probe,omitzero"`
	RetryProbe   probe     `json:"retryProbe,omitzero"`
	RecoveredAt  time.Time `json:"recoveredAt,omitzero"`
	LastServedAt time.Time `json:"lastServedAt,omitzero"` // one was, by any process: told every ten seconds, and at once after a limit
}

// probe is the right to one attempt at a failing destination. A process takes it for a while.
type probe struct {
	Failed  int       `json:"failed,omitempty"` // so many did; what is back for less than a minute goes on counting
	Next    time.Time `json:"nextAt,omitzero"`
	Session string    `json:"session,omitempty"` // that has it now
	Until   time.Time `json:"until,omitzero"`
}

// lone is an instance that fails, since when, and when it last did, to five minutes.
type lone struct {
	Number int64     `json:"number,omitzero,string"`
	Since  time.Time `json:"since,omitzero"`
	At     time.Time `json:"at,omitzero"`
}

// older reports whether another is to be told in its place: it speaks for nothing any more, or the same has failed since.
func (l lone) older(than lone) bool {
	age := than.At.Sub(l.At)
	return age >= evidenceFor || l.Number == than.Number && age >= evidenceFor/4
}

// of is the probe of newcomers, or of others.
func (h *Health) of(newcomer bool) *probe {
	if newcomer {
		return &h.Probe
	}
	return &h.RetryProbe
}

var newcomersAndOthers = []bool{true, false}

// The states of a destination, as people read them.
const (
	Healthy = "healthy"
	Limited = "limited"
	Failing = "failing"
	Paused  = "paused"
)

func (h *Health) State(now machine.Moment) string {
	switch {
	case h.PausedBy != "":
		return Paused
	case now.Earliest.Before(h.LimitedUntil):
		return Limited
	case !h.FailureStartedAt.IsZero():
		return Failing
	default:
		return Healthy
	}
}

// believed is the health without times that only a clock explains which ran ahead and was set back
// since: they would close the destination until it has come there again.
func (h Health) believed(now machine.Moment) Health {
	ahead := func(t time.Time, by time.Duration) bool { return t.After(now.Latest.Add(by + time.Minute)) }
	if ahead(h.LastServedAt, 0) {
		h.LastServedAt = time.Time{}
	}
	all := ahead(h.FailureStartedAt, 0)
	if all {
		h.FailureStartedAt = now.Earliest
	}
	if all || ahead(h.LimitedUntil, longestHush) {
		h.LimitedUntil = time.Time{}
	}
	for _, newcomer := range newcomersAndOthers {
		p := h.of(newcomer)
		if all || p.Next.After(h.LimitedUntil) && ahead(p.Next, lastProbe) {
			p.Next = now.Earliest
		}
		if all || ahead(p.Until, longestHush) {
			h = h.unused(newcomer)
		}
	}
	return h
}

// probing reports whether the session has the probe, and time to make it.
func (h *Health) probing(now machine.Moment, who machine.Token, newcomer bool) bool {
	p := h.of(newcomer)
	return h.State(now) == Failing && p.Session == who.String() && now.Latest.Before(p.Until)
}

// mayProbe reports whether the probe is to be had: it is time, and no other has it, nor a newcomer.
func (h *Health) mayProbe(now machine.Moment, newcomer bool) bool {
	return h.State(now) == Failing && !now.Earliest.Before(Latest(h.of(newcomer).opens(), h.Probe.Until))
}

// shut is how long it is closed to newcomers, or to others; 0: not at all, never: until it is changed.
func (h *Health) shut(now machine.Moment, newcomer bool) time.Duration {
	switch h.State(now) {
	case Healthy:
		return 0
	case Limited:
		return max(askEvery, h.LimitedUntil.Sub(now.Earliest))
	case Failing:
		return max(askEvery, h.of(newcomer).opens().Sub(now.Earliest))
	default:
		return never
	}
}

// How long a probe waits after one that failed.
const (
	firstProbe = time.Second
	lastProbe  = 8 * time.Second
)

// wait is how long the next probe waits after one that fails now.
func (p *probe) wait() time.Duration { return min(firstProbe<<min(p.Failed, 3), lastProbe) }

// opens is when it is to be had: its time has come, and no session has it.
func (p *probe) opens() time.Time { return Latest(p.Next, p.Until) }

// TriedAt is when the next attempt finds out whether it is back; zero: one does, or may at once.
func (h *Health) TriedAt(now time.Time) (at time.Time) {
	for _, newcomer := range newcomersAndOthers {
		p := h.of(newcomer)
		if now.Before(p.Until) {
			return time.Time{}
		}
		if p.Next.After(now) && (at.IsZero() || p.Next.Before(at)) {
			at = p.Next
		}
	}
	return at
}

// failed begins the failing, or goes on with it when it was back for less than a minute.
func (h Health) failed(now machine.Moment, evidence, why string) Health {
	h.FailureStartedAt, h.Evidence, h.LastError = now.Earliest, evidence, why
	if now.Earliest.Sub(h.RecoveredAt).Abs() > time.Minute {
		h.Probe, h.RetryProbe = probe{}, probe{}
	}
	h.Probe.Next, h.RetryProbe.Next = now.Latest.Add(h.Probe.wait()), now.Latest.Add(h.RetryProbe.wait())
	h.RecoveredAt = time.Time{}
	return h
}

// missed makes the next probe wait longer. One by an instance that never failed there delays that by one which did, too: it would hear the same.
func (h Health) missed(now machine.Moment, newcomer bool, why string) Health {
	p := probe{Failed: h.of(newcomer).Failed + 1}
	p.Next = Latest(now.Latest.Add(p.wait()), h.LimitedUntil)
	*h.of(newcomer), h.LastError = p, why
	if newcomer {
		h.RetryProbe.Next = Latest(h.RetryProbe.Next, p.Next.Add(p.wait()/2))
	}
	return h
}

// taken gives the probe to a session. It is answered soon or passed over: what hangs may be
// at fault itself, or hang on a connection that will never be served, and the next is asked in its place.
func (h Health) taken(now machine.Moment, who machine.Token, newcomer bool, most time.Duration) Health {
	p := h.of(newcomer)
	if p.Session != "" { // it has not answered
		p.Failed++
	}
	most = min(most, max(p.wait(), firstProbe))
	p.Session, p.Until = who.String(), now.Latest.Add(most)
	return h
}

// unused gives the probe back that was not made.
func (h Health) unused(newcomer bool) Health {
	h.of(newcomer).Session, h.of(newcomer).Until = "", time.Time{}
	return h
}

// served notes that an instance was served, and ends the failing. One that is served while the
// destination is limited was sent before it asked for that.
func (h Health) served(now machine.Moment) Health {
	h.LastServedAt, h.FailsAlone = now.Earliest, lone{}
	if !h.FailureStartedAt.IsZero() && !now.Earliest.Before(h.LimitedUntil) {
		h.RecoveredAt, h.FailureStartedAt, h.Evidence, h.LastError = now.Earliest, time.Time{}, "", ""
		h.Probe, h.RetryProbe = probe{Failed: h.Probe.Failed}, probe{Failed: h.RetryProbe.Failed}
	}
	return h
}

// limit has the destination left alone until then, if that is later than what it asked for before.
// What asks again, and has served none since its last wait was over, is probed first.
func (h Health) limit(now machine.Moment, until time.Time, why string) Health {
	if once := h.LimitedUntil; !once.IsZero() && !now.Earliest.Before(once) && h.LastServedAt.Before(once) && h.FailureStartedAt.IsZero() {
		h = h.failed(now, "it asked to be left alone again, and had served none since", why)
	}
	h.LimitedUntil, h.LastError = Latest(h.LimitedUntil, until), why
	h.Probe.Next, h.RetryProbe.Next = Latest(h.Probe.Next, until), Latest(h.RetryProbe.Next, until)
	return h.unused(true).unused(false)
}

// probed lets both kinds try now. One that asked to be left alone is not sent all that waits.
func (h Health) probed(now machine.Moment) Health {
	if now.Earliest.Before(h.LimitedUntil) {
		if h.LimitedUntil = now.Earliest; h.FailureStartedAt.IsZero() {
			h = h.failed(now, "it asked to be left alone, and a person has it tried", h.LastError)
		}
	}
	h.Probe.Next, h.RetryProbe.Next, h.ProbedAt = now.Earliest, now.Earliest, now.Earliest
	return h.unused(true).unused(false)
}
