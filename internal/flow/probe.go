package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// condition is how this process finds a destination's health out, and how it tells the others.
type condition struct {
	now    func() machine.Moment
	who    func() machine.Token                             // the session of this process; 0: none
	change func(f func(h Health) (changed Health, ok bool)) // in the background

	health Health
	evidence
	worked   time.Time          // ledger time: when this process last saw one served
	longest  time.Duration      // the longest attempt there
	flights  map[any]time.Time  // attempts and lookups under way, since when
	recall   func(all bool)     // one that failed there before is due now, or each
	recalled time.Time          // that was asked for
	used     map[bool]time.Time // the end of the probe that was made last, by a newcomer or another
	prober   map[bool]any       // who made it
	kept     int                // sends since one of those that failed there before, and wait
	keptHung int                // and since one of those that had no answer

	// window is how many may be under way after an outage, those that hang aside: one at first, and one more for each that is served;
	// half where more than a quarter of a round fail, and from then on one more for each round. 0: any number.
	window int
	opened time.Time // when it was one
	round  int       // how many more are told something in this round
	size   int       // of it
	wrong  int       // of it, those that failed
	slower bool
	blamed map[int64]bool // instances that failed since
	serves time.Duration  // how long one takes that is served, smoothed; 0: not known yet
}

// evidence is what speaks for an outage: what failed since one was served, in the ledger's time.
type evidence struct {
	failed map[int64]bool // instances
	misses int            // of them, those that never failed there before
	missed time.Time      // when the first of these did
	since  time.Time      // when the first attempt was sent that failed
	latest time.Time      // when the latest failed
	away   time.Time      // when there was no connection for the first time, without an answer since
	why    string         // what the latest said
}

// forget has nothing speak for an outage.
func (d *Destination) forget() {
	clear(d.failed)
	d.evidence = evidence{failed: d.failed}
}

const (
	hangsFor    = time.Second      // what is under way for longer, and for much longer than usual, says nothing of what a destination can bear
	opensFor    = 30 * time.Second // how often, while there is a window, what was refused for it is due again
	leavesAfter = 10 * time.Minute // a window in which nothing waits: sooner, what waits in the ledger for its time would come all at once
	muchFor     = 64               // a window as wide is left when a quarter of it is enough
	recallEvery = 4 * time.Second  // how often one that waits is had to try, for want of another that is due
	tellsServed = 10 * time.Second // how often others are told that one was served: what they see fail is at fault itself

	// A destination counts as failing when twenty that never failed there before do in a row, within
	// two seconds at least, since many come together; where less comes, five within two minutes at
	// least. What others are told says nothing: as long as some are served, the fault may be theirs.
	// Where half of all are at fault for ever, twenty in a row are one chance in a million.
	manyMisses, manyFor = 20, 2 * time.Second
	fewMisses, fewFor   = 5, 2 * time.Minute

	// Where still less comes: when two instances at least fail, whether or not they did before, and none is served for a minute from
	// when the first of them was sent; or when no connection is to be had for ten seconds. One alone may be at fault itself: that it
	// fails is told the other processes, who may know another.
	bothFor, awayFor, tellsAlone = time.Minute, 10 * time.Second, 10 * time.Second
	// aloneFor is how long one that fails alone is not given up: another may tell meanwhile that it is an outage.
	aloneFor = 5 * time.Minute
	// evidenceFor is how long a failure speaks for an outage, without another.
	evidenceFor = 20 * time.Minute
)

// obey takes over what is known of the health. It returns the states that it had and has.
func (d *Destination) obey(h Health) (was, is string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	h = h.believed(now)
	was, is = d.health.State(now), h.State(now)
	if h.LastServedAt.After(d.health.LastServedAt) { // by another process, maybe
		d.forget()
	}
	if h.LimitedUntil.Before(d.health.LimitedUntil) { // a person wants it tried now
		d.heldBack = time.Time{}
	}
	d.stale = d.stale && h.FailureStartedAt.Equal(d.health.FailureStartedAt)
	if d.health = h; was == Failing && is == Healthy {
		d.window, d.round, d.size, d.wrong, d.slower = 1, 1, 1, 0, false
		d.blamed, d.opened = map[int64]bool{}, time.Now()
		time.AfterFunc(opensFor, d.recallRefused)
		d.more = map[kind]bool{fresh: true, again: true}
	}
	d.serve()
	return was, is
}

// shut says how long it is closed to newcomers, or to others, at least; 0 when it is open.
func (d *Destination) shut(newcomer bool) time.Duration {
	wait := max(0, time.Until(d.heldBack))
	switch now := d.now(); {
	case d.awaits():
		return max(wait, d.hold) // not for longer than a work may wait in line
	case !d.has():
		return never // another process has the limit, or another's part of it
	case d.toMake(now, newcomer):
		return wait
	default:
		return max(wait, d.health.shut(now, newcomer))
	}
}

// known is the destination's health, as far as it is known here.
func (d *Destination) known() Health {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.health
}

// toMake reports whether this process has the probe, and has not made it yet.
func (d *Destination) toMake(now machine.Moment, newcomer bool) bool {
	return d.health.probing(now, d.who(), newcomer) && d.used[newcomer] != d.health.of(newcomer).Until
}

// came reports whether a newcomer stands in line.
func (d *Destination) came() bool {
	return slices.ContainsFunc(d.line, func(t *turn) bool { return t.rank.newcomer() })
}

// findsOut reports whether one of a kind that waits in the ledger could make the probe, and no more.
func (d *Destination) findsOut(k kind) bool {
	now := d.now()
	newcomer := k == fresh && !d.stale && !d.came() && d.health.mayProbe(now, true)
	return d.has() && time.Until(d.heldBack) <= 0 && (newcomer || len(d.line) == 0 && d.health.mayProbe(now, false))
}

// Paused says that a person holds the destination, or nil.
func (d *Destination) Paused() error {
	if d == nil {
		return nil
	}
	if h := d.known(); h.PausedBy != "" {
		return fmt.Errorf("%w by %s: %s", ErrPaused, h.PausedBy, h.PausedReason)
	}
	return nil
}

// probe asks for the probe when it is to be had and a work stands in line for it, a newcomer if there
// is one, and gives it back when none does any more: another process may have one.
func (d *Destination) probe() {
	now, who := d.now(), d.who()
	if d.health = d.health.believed(now); who == 0 || !d.has() {
		return
	}
	if len(d.line) == 0 && d.health.mayProbe(now, false) && time.Since(d.recalled) >= recallEvery {
		d.recalled = time.Now()
		go d.recall(false)
	}
	for _, n := range newcomersAndOthers {
		switch wanted := len(d.line) > 0 && d.came() == n; {
		case wanted && d.health.mayProbe(now, n):
			most := 2*d.longest + 2*d.hold // a lookup and an attempt, and what is between them
			d.change(func(h Health) (Health, bool) { return h.taken(now, who, n, most), h.mayProbe(now, n) })
		case !wanted && d.toMake(now, n):
			d.health = d.health.unused(n) // at once, as for one that failed
			d.change(func(h Health) (Health, bool) { return h.unused(n), h.of(n).Session == who.String() })
		}
	}
}

// Answered notes that an instance was served, which took so long.
func (d *Destination) Answered(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serves == 0 || !d.health.FailureStartedAt.IsZero() { // behind an outage it may take longer than before
		d.serves = took
	}
	d.serves += (took - d.serves) / 8
	now := d.now()
	d.worked = now.Earliest
	d.forget()
	d.opens(true)
	tells := func(h *Health) bool {
		return !h.FailureStartedAt.IsZero() || h.FailsAlone.Number != 0 || now.Earliest.Sub(h.LastServedAt) > tellsServed || h.LastServedAt.Before(h.LimitedUntil)
	}
	if tells(&d.health) {
		d.change(func(h Health) (Health, bool) { return h.served(now), tells(&h) })
	}
}

// unanswered is how many slots are in use by what has no answer: it settles, or is under way for much longer than usual.
func (d *Destination) unanswered() int {
	n := min(d.settling, d.holds)
	for _, since := range d.flights {
		if d.hangs(since, longFor) {
			n++
		}
	}
	return n
}

// longFor is how long an attempt is under way at least before people are told of the slot that it keeps.
const longFor = 10 * time.Second

// hangs reports whether what is under way since then takes much longer than usual.
func (d *Destination) hangs(since time.Time, least time.Duration) bool {
	return time.Since(since) >= max(least, 3*d.serves)
}

// recallRefused has those be due again and again that were refused because too many came back at once: that was no fault of theirs.
func (d *Destination) recallRefused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.window > 0 && d.who() != 0 && time.Since(d.opened) >= opensFor { // else it is of an earlier outage
		go d.recall(true)
		time.AfterFunc(opensFor, d.recallRefused)
	}
}

// Opening reports whether it is sent more and more since an outage.
func (d *Destination) Opening() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.window > 0
}

// full reports whether as many are under way as may be after an outage.
func (d *Destination) full() bool {
	if d.window == 0 {
		return false
	}
	n := 0
	for _, since := range d.flights {
		if !d.hangs(since, hangsFor) {
			n++
		}
	}
	return n >= d.window
}

// opens has the window grow or shrink by what one was told: it was served, or failed.
func (d *Destination) opens(served bool) {
	if d.window == 0 {
		return
	}
	if d.round--; !served {
		d.wrong++
		d.slower = d.slower || 4*d.wrong > d.size // at once: of what comes back of the same round others may be served
	} else if !d.slower {
		d.window++
	}
	if d.round <= 0 {
		switch {
		case 4*d.wrong > d.size:
			d.window = max(1, d.window/2)
		case d.slower:
			d.window++
		}
		d.round, d.size, d.wrong = d.window, d.window, 0
	}
	wide := d.window > muchFor && 4*len(d.flights) < d.window
	over := !d.more[fresh] && !d.more[again] && time.Since(d.opened) > leavesAfter
	if d.window > d.room || len(d.line) == 0 && (wide || over) {
		d.window = 0
	}
}

// Failure is what is told of an attempt or a lookup of an instance that failed, although it reached the destination or tried to.
type Failure struct {
	Number int64 // the instance's
	Rank   Rank  // what it was when it was sent
	Why    string
	Busy   bool // the destination says that it has too much to do
	Away   bool // there was no connection to be had
}

// FailedBy notes that an instance failed there.
func (d *Destination) FailedBy(f Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, who, n := d.now(), d.who(), f.Rank.newcomer()
	if d.window > 0 && (f.Busy || !d.blamed[f.Number]) { // who fails again may be at fault itself
		d.blamed[f.Number] = true
		d.opens(false)
	}
	d.gather(now, &f)
	if d.health.probing(now, who, n) && d.prober[n] == f.Rank.Of { // not one that was passed over
		d.health = d.health.missed(now, n, f.Why) // at once: neither it nor another is to leave before that is stored
		d.change(func(h Health) (Health, bool) { return h.missed(now, n, f.Why), h.of(n).Session == who.String() })
		return
	}
	d.suspect()
	if one := (lone{f.Number, d.since, now.Earliest}); len(d.failed) == 1 && now.Earliest.Sub(d.since) >= tellsAlone && d.health.FailsAlone.older(one) {
		d.change(func(h Health) (Health, bool) {
			tells := h.FailureStartedAt.IsZero() && h.FailsAlone.older(one)
			h.FailsAlone = one
			return h, tells
		})
	}
}

// gather takes a failure for what it says.
func (d *Destination) gather(now machine.Moment, f *Failure) {
	if !d.latest.IsZero() && (now.Earliest.Sub(d.latest) > evidenceFor || d.latest.After(now.Latest)) { // or by a clock that was set back
		d.forget()
	}
	if !d.failed[f.Number] && !f.Rank.Again {
		if d.misses++; d.misses == 1 {
			d.missed = now.Earliest
		}
	}
	sent := now.Earliest
	if began, flies := d.flights[f.Rank.Of]; flies {
		sent = sent.Add(-time.Since(began))
	}
	if d.since.IsZero() || sent.Before(d.since) {
		d.since = Latest(sent, d.worked)
	}
	if !f.Away {
		d.away = time.Time{}
	} else if d.away.IsZero() {
		d.away = now.Earliest
	}
	d.failed[f.Number], d.latest, d.why = true, now.Earliest, f.Why
}

// both is since when two instances fail at least; zero: one alone does, or none.
func (d *Destination) both(now machine.Moment) time.Time {
	a := d.health.FailsAlone
	if other := a.Number != 0 && len(d.failed) > 0 && !d.failed[a.Number]; other && now.Earliest.Sub(a.At) < evidenceFor {
		return earliest(a.Since, d.since)
	}
	if len(d.failed) > 1 {
		return d.since
	}
	return time.Time{}
}

// suspect has the destination count as failing when there is evidence enough. It says after which time there is, if nothing comes
// meanwhile; never: it takes more.
func (d *Destination) suspect() time.Duration {
	now := d.now()
	if !d.health.FailureStartedAt.IsZero() || len(d.failed) == 0 || now.Earliest.Sub(d.latest) > evidenceFor {
		return never
	}
	missed, both, evidence, wait := now.Earliest.Sub(d.missed), d.both(now), "", never
	switch {
	case d.misses >= manyMisses && missed >= manyFor || d.misses >= fewMisses && missed >= fewFor:
		evidence = fmt.Sprintf("%d in a row failed that never failed there before, within %s", d.misses, missed.Round(time.Second))
	case !d.away.IsZero() && d.latest.Sub(d.away) >= awayFor:
		evidence = fmt.Sprintf("no connection to it was to be had for %s", d.latest.Sub(d.away).Round(time.Second))
	case !both.IsZero():
		if wait = bothFor - now.Earliest.Sub(both); wait <= 0 {
			evidence = fmt.Sprintf("several instances failed, and none was served within %s", now.Earliest.Sub(both).Round(time.Second))
		}
	}
	if evidence == "" {
		return wait
	}
	why := d.why
	d.change(func(h Health) (Health, bool) { return h.failed(now, evidence, why), h.FailureStartedAt.IsZero() })
	return never
}

// Answers notes that the destination answered, about one request.
func (d *Destination) Answers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = time.Time{}
}

// Outage reports whether it is not an instance's own fault that it failed again: none was served there since it failed last, and it is
// not the only one that fails. Of one alone that cannot be told before it has failed for a while: until then its last try does not count.
func (d *Destination) Outage(failed, began time.Time, last bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if d.servedSince(now, Latest(failed, began)) {
		return false
	}
	return !d.health.FailureStartedAt.IsZero() || !d.away.IsZero() || !d.both(now).IsZero() || last && now.Earliest.Sub(began).Abs() < aloneFor
}

// Tries reports whether an instance that failed there is to be tried now, whatever it waits for: another was served there since, or it
// may be the one that finds out whether an outage is over.
func (d *Destination) Tries(failed time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	return d.servedSince(now, failed) || d.has() && (d.health.mayProbe(now, false) || d.toMake(now, false))
}

func (d *Destination) servedSince(now machine.Moment, since time.Time) bool {
	if d.worked.After(now.Latest) { // by a clock that was set back since
		d.worked = time.Time{}
	}
	return Latest(d.worked, d.health.believed(now).LastServedAt).After(since)
}

// asideFor is how long a work stays away at most from a destination that fails, and failed it
// before.
const asideFor = 15 * time.Minute

// Aside is how long such a work stays away: about as long as it takes to probe with each of its
// kind. If it is the work that is at fault, one of them is served. It is no longer than the
// destination has been failing.
func (d *Destination) Aside() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.health.FailureStartedAt.IsZero() {
		return 0
	}
	wait := d.health.RetryProbe.wait()
	failing := d.now().Latest.Sub(d.health.FailureStartedAt)
	most := min(asideFor, time.Duration(len(d.failed))*wait, max(wait, failing))
	return most/2 + rand.N(most/2+1)
}

// Failing is since when the destination has failed; zero when it does not.
func (d *Destination) Failing() time.Time { return d.known().FailureStartedAt }

// Probed is when a person had it tried; zero: never, or by a clock that is ahead.
func (d *Destination) Probed() time.Time {
	if at := d.known().ProbedAt; !at.After(d.now().Latest) {
		return at
	}
	return time.Time{}
}
