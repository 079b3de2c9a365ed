package coordinator

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// health is what every process of a ledger knows of one destination. It is a value, kept in the
// ledger as a control and changed by compare-and-set: a change that loses to another is decided
// again on what that one wrote. Times are the ledger's.
//
// A destination is paused by a person; or limited, because it asked to be left alone for a while
// (429, 503); or failing, because several instances failed there and none was served meanwhile; or
// healthy. Only a healthy one gets more than one attempt, and a failing one gets that from one
// process at a time: the probe. What waits for it waits in the ledger.
type health struct {
	PausedBy  string `json:"pausedBy,omitempty"` // a person; and why, in that person's words
	PausedWhy string `json:"pausedReason,omitempty"`

	LimitedUntil time.Time `json:"limitedUntil,omitzero"`

	FailingSince time.Time `json:"failureStartedAt,omitzero"`
	Why          string    `json:"lastError,omitempty"` // what the latest failure said
	// Probes are those that failed since the destination began to fail. One that begins again
	// within a minute goes on counting.
	Probes    int       `json:"failedProbes,omitempty"`
	NextProbe time.Time `json:"nextProbeAt,omitzero"`
	Prober    string    `json:"probeSession,omitempty"` // the session that probes now
	ProbeEnds time.Time `json:"probeUntil,omitzero"`
	BackSince time.Time `json:"recoveredAt,omitzero"`

	// ServedAt is when an instance was last served there, by any process; it is told once a minute.
	ServedAt time.Time `json:"lastServedAt,omitzero"`
}

// The states of a destination, as people read them.
const (
	healthy = "healthy"
	limited = "limited"
	failing = "failing"
	paused  = "paused"
)

// state is where the destination stands.
func (h *health) state(now machine.Moment) string {
	switch {
	case h.PausedBy != "":
		return paused
	case now.Earliest.Before(h.LimitedUntil):
		return limited
	case !h.FailingSince.IsZero():
		return failing
	default:
		return healthy
	}
}

// believed is the health without times that only a clock explains which ran ahead and was set back
// since (T5): they would close the destination until it has come there again.
func (h health) believed(now machine.Moment) health {
	ahead := func(t time.Time, by time.Duration) bool { return t.After(now.Latest.Add(by + time.Minute)) }
	if ahead(h.ServedAt, 0) {
		h.ServedAt = time.Time{}
	}
	if ahead(h.BackSince, 0) {
		h.BackSince = time.Time{}
	}
	all := ahead(h.FailingSince, 0)
	if all {
		h.FailingSince = now.Earliest
	}
	if all || ahead(h.LimitedUntil, longestHush) {
		h.LimitedUntil = time.Time{}
	}
	if all || ahead(latest(h.NextProbe, h.LimitedUntil), longestHush) || h.NextProbe.After(h.LimitedUntil) && ahead(h.NextProbe, lastProbe) {
		h.NextProbe = now.Earliest
	}
	if all || ahead(h.ProbeEnds, longestHush) {
		h = h.unused()
	}
	return h
}

// probing reports whether the session has the probe, and time to make it.
func (h *health) probing(now machine.Moment, who machine.Token) bool {
	return h.state(now) == failing && h.Prober == who.String() && now.Latest.Before(h.ProbeEnds)
}

// mayProbe reports whether the probe is to be had: its time has come, and no other is under way.
func (h *health) mayProbe(now machine.Moment) bool {
	return h.state(now) == failing && !now.Earliest.Before(h.NextProbe) && (h.Prober == "" || !now.Earliest.Before(h.ProbeEnds))
}

// changes is when the state changes by itself, or something is to be had; zero: only when it is
// changed.
func (h *health) changes(now machine.Moment) time.Time {
	switch h.state(now) {
	case limited:
		return h.LimitedUntil
	case failing:
		if h.Prober != "" {
			return h.ProbeEnds
		}
		return h.NextProbe
	default:
		return time.Time{}
	}
}

// How long a probe waits after one that failed.
const (
	firstProbe = time.Second
	lastProbe  = time.Minute
)

// failed begins the failing, or has the next probe wait longer.
func (h health) failed(now machine.Moment, why string) health {
	if h.FailingSince.IsZero() {
		if h.FailingSince = now.Earliest; now.Earliest.After(h.BackSince.Add(time.Minute)) {
			h.Probes = 0
		}
		h.BackSince = time.Time{}
	} else {
		h.Probes++
	}
	h.Why, h.NextProbe, h.Prober, h.ProbeEnds = why, now.Latest.Add(h.wait()), "", time.Time{}
	return h
}

// wait is how long the next probe waits after one that fails now.
func (h *health) wait() time.Duration {
	if h.Probes < 6 {
		return firstProbe << h.Probes
	}
	return lastProbe
}

// taken gives the probe to a session, until it has an answer or never will.
func (h health) taken(who machine.Token, ends time.Time) health {
	h.Prober, h.ProbeEnds = who.String(), ends
	return h
}

// unused gives the probe back that was not made.
func (h health) unused() health {
	h.Prober, h.ProbeEnds = "", time.Time{}
	return h
}

// ends reports whether an instance that is served ends the failing. One that is served while the
// destination is limited was sent before it asked for that.
func (h *health) ends(now machine.Moment) bool {
	return !h.FailingSince.IsZero() && !now.Earliest.Before(h.LimitedUntil)
}

// served notes that an instance was served, and ends the failing.
func (h health) served(now machine.Moment) health {
	ends := h.ends(now)
	if h.ServedAt = now.Earliest; ends {
		h.BackSince, h.FailingSince, h.Why, h.NextProbe = now.Earliest, time.Time{}, "", time.Time{}
		h = h.unused()
	}
	return h
}

// limit has the destination left alone until then, if that is later than what it asked for before.
// Then it is probed first: who asked for a wait and has had it may want another.
func (h health) limit(now machine.Moment, until time.Time, why string) health {
	if h.FailingSince.IsZero() {
		h.FailingSince, h.Probes, h.BackSince = now.Earliest, 0, time.Time{}
	}
	h.LimitedUntil, h.NextProbe, h.Why = latest(h.LimitedUntil, until), latest(h.NextProbe, until), why
	return h.unused()
}
