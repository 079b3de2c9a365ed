package flow

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/nap"
)

// Destination hands out send slots. A slot is in hand before a step is armed, so that an armed step
// is sent at once and the window of doubt is the send itself. Works stand in line for one by [Rank], and
// reserve nothing: when a slot and its time are there, the head gets them. Who would wait for too long
// waits in the ledger, under the destination's name, for a process that has room in its line.
type Destination struct {
	name  string
	limit Limit
	hold  time.Duration // the longest wait in line
	room  int           // the longest line
	rate  *rate.Limiter // nil: none, or no part of it
	wake  func()        // there is room in line, and works wait in the ledger

	mu       sync.Mutex
	line     []*turn     // those that never failed here, then the others
	running  int         // slots in use by attempts and lookups under way
	settling int         // attempts that are not awaited any more, and may be at work
	settled  time.Time   // when the last of them is over, in the ledger's time
	timer    *time.Timer // serves the line when a known time has come

	heldBack time.Time     // until then the destination asked for silence (429, 503)
	served   time.Time     // when a slot was last given or came back
	took     time.Duration // how long an attempt keeps its slot, smoothed; 0: not known yet
	more     map[kind]bool // works of a kind may wait in the ledger
	youngest int64         // the highest number of a work that was turned away; 0: none was
	stale    bool          // the last that was turned away is no newcomer, nor is what waits before it
	asked    time.Time     // when they were last asked for because there is room
	joined   time.Time     // when one that never failed here last came to stand in line

	condition
	sharing
}

const (
	keptFor     = 10                    // in so many sends one is kept for those that failed here before
	keptForHung = 100                   // and in so many one for those that had no answer: they may hang again
	askEvery    = 20 * time.Millisecond // how often a line that has become short asks for what waits in the ledger
	longestHush = 24 * time.Hour        // the longest Retry-After that is believed, as for a single step
	never       = 24 * time.Hour        // longer than a work may wait in line
)

// Rank orders a line: what never failed there, and of that compensations, then what is furthest
// along, then what was started first: who comes again stands before those that came meanwhile.
type Rank struct {
	Again  bool  // it failed there before
	Hung   bool  // its latest attempt there had no answer at its deadline
	Came   bool  // since the destination began to fail; this says nothing of its place
	Back   bool  // it is being undone
	Left   int   // steps that are left
	Number int64 // the ledger's, in the order of starting; 0: not stored yet
	Of     any   // the work, a pointer
}

func (r Rank) kind() kind {
	if r.Again {
		return again
	}
	return fresh
}

func (r Rank) before(o Rank) bool {
	switch {
	case r.Again != o.Again:
		return o.Again
	case r.Hung != o.Hung:
		return o.Hung
	case r.Back != o.Back:
		return r.Back
	case r.Left != o.Left:
		return r.Left < o.Left
	default:
		return r.Number != 0 && (o.Number == 0 || r.Number < o.Number)
	}
}

// newcomer reports whether what it is told may be news: it never failed, nor came with those that did.
func (r Rank) newcomer() bool { return r.Came && !r.Again }

// kind tells instances apart at a destination. It begins the name of their line in the ledger.
type kind string

const (
	fresh kind = ""       // they never failed there
	again kind = "retry:" // they did
)

func lineOf(destination string, k kind) string { return string(k) + destination }

// RetryLine is the name under which instances wait in the ledger that failed at a destination.
func RetryLine(destination string) string { return lineOf(destination, again) }

// Line is the name under which one of a rank waits in the ledger.
func (d *Destination) Line(r Rank) string { return lineOf(d.name, r.kind()) }

// Name is the destination's name.
func (d *Destination) Name() string { return d.name }

// turn is a work's place in line.
type turn struct {
	rank  Rank
	late  bool          // it came after works that wait in the ledger, as far as is known: their places are before it
	over  chan struct{} // closed when the turn has come, or is refused
	taken bool          // the slot is the work's
}

// ErrNoRoom is why a work leaves the line for the ledger: its turn is far away, or not foreseen.
var ErrNoRoom = errors.New("the line for the destination is longer than the work may wait")

func newDestination(name string, l Limit, hold time.Duration, room int, wake func(), c condition, s sharing) *Destination {
	d := &Destination{name: name, limit: l, hold: hold, room: max(1, room), wake: wake, condition: c, sharing: s}
	d.evidence.failed, d.flights, d.used = map[int64]bool{}, map[any]time.Time{}, map[bool]time.Time{}
	d.prober = map[bool]any{}
	d.more = map[kind]bool{fresh: true, again: true}
	d.change = func(f func(Health) (Health, bool)) {
		c.change(func(h Health) (Health, bool) { return f(h.believed(d.now())) })
	}
	return d
}

// Try takes a slot if one is free now and the work would be the first in line.
func (d *Destination) Try(r Rank) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.line) > 0 && (!r.before(d.line[0].rank) || d.turns()) {
		return false
	}
	return d.free(r) == 0
}

// Take waits in line for a slot. The error is [nap.ErrWoken] after a send to wake (which may be nil),
// ErrNoRoom, or that of ctx. Without one a slot is in hand, also when ctx ended meanwhile.
func (d *Destination) Take(ctx context.Context, wake <-chan struct{}, r Rank) error {
	t := d.join(r)
	patience := time.NewTicker(d.hold)
	defer patience.Stop()
	for {
		select {
		case <-t.over:
			return d.leave(t, ErrNoRoom)
		case <-wake:
			return d.leave(t, nap.ErrWoken)
		case <-ctx.Done():
			return d.leave(t, ctx.Err())
		case <-patience.C:
			d.weary(t)
		}
	}
}

// join puts a work in line, and turns one away when the line is full or too long to wait in.
func (d *Destination) join(r Rank) *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &turn{rank: r, over: make(chan struct{})}
	if !r.Again {
		d.joined = time.Now()
	}
	t.late = d.more[fresh] && !r.Again && d.youngest > 0 && (r.Number == 0 || r.Number > d.youngest)
	at := sort.Search(len(d.line), func(i int) bool { return r.before(d.line[i].rank) }) // behind its equals
	d.line = slices.Insert(d.line, at, t)
	switch {
	case at > 0 && d.wait(at) > d.hold:
		if !t.late { // it is back from the ledger: what is before it in line is before what waits
			for _, o := range d.line[:at] {
				o.late = false
			}
		}
		d.refuse(at)
	case len(d.line) > d.room:
		d.refuse(len(d.line) - 1)
	}
	d.serve()
	return t
}

// leave takes a work out of the line, and returns why; nil when the slot was the work's already.
func (d *Destination) leave(t *turn, why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := slices.Index(d.line, t); at >= 0 {
		d.line = slices.Delete(d.line, at, at+1)
		d.serve()
	}
	if t.taken {
		return nil
	}
	return why
}

// weary turns a work away that has waited for as long as it may, unless it is the next of its kind; of those that had no answer also
// the next, so that it keeps its place from no other.
func (d *Destination) weary(t *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := slices.Index(d.line, t); at > 0 && (at != d.others() || t.rank.Hung) {
		d.refuse(at)
	}
}

// refuse turns the work at a place in the line away.
func (d *Destination) refuse(at int) {
	t := d.line[at]
	d.more[t.rank.kind()] = true
	close(t.over)
	d.line = slices.Delete(d.line, at, at+1)
	if !t.rank.Again {
		d.youngest = max(d.youngest, t.rank.Number)
		d.stale = !t.rank.Came
	}
}

// others is how many in line never failed here. They are before those that did.
func (d *Destination) others() int {
	return sort.Search(len(d.line), func(at int) bool { return d.line[at].rank.Again })
}

// wait estimates how long the work at a place in the line has to wait: for those before it, and once
// for an attempt that hangs, as long as it has kept its slot for longer than usual.
func (d *Destination) wait(at int) time.Duration {
	if others := d.others(); at >= others { // one send in ten is kept for those that failed here before
		at = min(at, keptFor*(at-others+1))
	}
	wait := time.Duration(at+1) * d.each()
	if n := d.mine.Concurrent; n > 0 && d.busy() >= n {
		wait += max(0, time.Since(d.served)-d.took)
	}
	return wait
}

// each is the time between two sends, as far as it is known.
func (d *Destination) each() (each time.Duration) {
	if d.mine.PerSecond > 0 {
		each = time.Duration(float64(time.Second) / d.mine.PerSecond)
	}
	for _, n := range []int{d.mine.Concurrent, d.window} {
		if n > 0 {
			each = max(each, d.took/time.Duration(n))
		}
	}
	return each
}

// serve gives slots to the head of the line, asks for works that wait in the ledger when it has
// become short, and comes back when there is more to do at a known time.
func (d *Destination) serve() {
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.limited() && len(d.share.owned(d.who().String(), d.limit.partsOf())) > len(d.parts) {
		d.apportion() // what is at work may have become less
	}
	d.probe()
	d.sendAway()
	if next := min(d.give(), d.ask(), d.suspect()); next < never {
		d.timer = time.AfterFunc(next, func() { d.mu.Lock(); defer d.mu.Unlock(); d.serve() })
	}
}

// give gives slots to the line for as long as there are some, and says after which time the next is
// there; never: when one comes back. What fails may be open to one in line and not to those before.
func (d *Destination) give() time.Duration {
	first, wait := 0, never
	switch {
	case d.turnsHung():
		first = len(d.line) - 1
	case d.turns():
		first = d.others()
	}
	for i := range d.line {
		at := (first + i) % len(d.line)
		if wait = min(wait, d.free(d.line[at].rank)); wait == 0 {
			d.line[at].taken = true
			close(d.line[at].over)
			d.line = slices.Delete(d.line, at, at+1)
			return d.give() // to the next
		}
		if d.health.FailureStartedAt.IsZero() {
			break
		}
	}
	return wait
}

// turns reports whether one of those that failed here before goes before the others now.
func (d *Destination) turns() bool {
	at := d.others()
	return d.turnsHung() || d.kept >= keptFor-1 && at < len(d.line) && !d.line[at].rank.Hung
}

// turnsHung reports whether one of those that had no answer here does.
func (d *Destination) turnsHung() bool {
	return d.keptHung >= keptForHung-1 && len(d.line) > 0 && d.line[len(d.line)-1].rank.Hung
}

// sendAway turns away whom a destination that is closed has no use for: all, when that is longer
// than they may wait; all but a newcomer and another, of whom one may be the probe, when it fails.
func (d *Destination) sendAway() {
	stays := map[bool]bool{}
	for _, t := range slices.Clone(d.line) {
		n := t.rank.newcomer()
		if shut := d.shut(n); shut > d.hold || shut > 0 && stays[n] && !d.health.FailureStartedAt.IsZero() {
			d.refuse(slices.Index(d.line, t))
		}
		stays[n] = true
	}
}

// ask asks for works that wait in the ledger, when the line has become short. It says after which
// time to ask again; never: a change of the line is the next occasion.
func (d *Destination) ask() (after time.Duration) {
	if !(d.more[fresh] && d.vacant(fresh) > d.places()/2) && !(d.more[again] && d.vacant(again) > 0) {
		return never
	}
	if since := time.Since(d.asked); since < askEvery {
		return askEvery - since
	}
	d.asked = time.Now()
	d.wake()
	return never
}

// vacant is for how many works of a kind that wait in the ledger there is room in line. One that
// fails has room for one when the probe is to be had, whether or not any waited before: it may have
// become due since. Works that came late do not use up the places of those that were there before. Those that failed
// here before have one place beside others when it is their turn, and all where there are no others.
func (d *Destination) vacant(k kind) int {
	if d.shut(false) > 0 && !d.findsOut(k) {
		return 0
	}
	places, others := d.places(), d.others()
	if k == again {
		if others > 0 || d.more[fresh] {
			places = min(1, d.kept/(keptFor-1)) // when it is their turn
		}
		return max(0, places-(len(d.line)-others))
	}
	for _, t := range d.line[:others] {
		if !t.late || !d.more[fresh] {
			places--
		}
	}
	return max(0, places)
}

// places is how long the line may be for its last to have a turn in time; one at least.
func (d *Destination) places() int {
	if !d.health.FailureStartedAt.IsZero() {
		return 1 // for the probe
	}
	each := d.each()
	left := d.hold - (d.wait(0) - each)
	return max(1, int(min(time.Duration(d.room), left/max(1, each))))
}

// offer says for how many works of a kind that wait in the ledger there is room.
func (d *Destination) offer(k kind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.probe()
	return d.vacant(k)
}

// none notes that none of a kind waits in the ledger for the destination.
func (d *Destination) none(k kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.more[k] = false
	if last := len(d.line) - 1; last >= 0 && d.line[last].rank.Hung { // it waits for that
		d.serve()
	}
}

// free takes a slot for one of a rank if there is one, and returns 0. If not, it says after which
// time there is; never: when one has come back.
func (d *Destination) free(of Rank) (wait time.Duration) {
	if wait = d.shut(of.newcomer()); wait > 0 {
		return wait
	}
	if n := d.mine.Concurrent; n > 0 && d.busy() >= n {
		return never
	}
	if d.full() {
		return hangsFor
	}
	if wait = d.behind(of); wait > 0 {
		return wait
	}
	if r := d.rate; r != nil && !r.Allow() {
		missing := 1 - r.Tokens()
		return max(time.Microsecond, time.Duration(missing/float64(r.Limit())*float64(time.Second)))
	}
	d.running++
	d.flights[of.Of] = time.Now()
	d.used[of.newcomer()], d.prober[of.newcomer()] = d.health.of(of.newcomer()).Until, of.Of
	switch {
	case of.Hung:
		d.keptHung = 0
	case of.Again:
		d.kept = 0
		d.keptHung++
	case d.more[again] || d.others() < len(d.line):
		d.kept++
		d.keptHung++
	}
	d.served = time.Now()
	return 0
}

// behind is for how long one that had no answer leaves the slots of a limit to others: when it hangs again it would keep one from them
// for as long. Others stand in line, or did a moment ago, so that more of them may wait in the ledger. Who finds out whether an outage is
// over leaves it to none.
func (d *Destination) behind(r Rank) time.Duration {
	if !r.Hung || d.mine.Concurrent == 0 || !d.health.FailureStartedAt.IsZero() || d.turnsHung() {
		return 0
	}
	if d.others() > 0 {
		return never
	}
	if d.more[fresh] {
		return max(0, d.hold-time.Since(d.joined))
	}
	return 0
}

// busy is how many slots are in use: those of what runs, and a quarter of all at most, or one, of what only settles.
func (d *Destination) busy() int { return d.running + min(d.settling, d.holds) }

// Release gives a slot back that a work of a rank had in use for so long; 0 when it was not used. One
// that only lingers is no work's any more.
func (d *Destination) Release(r Rank, used time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Of != nil {
		delete(d.flights, r.Of)
		if n := r.newcomer(); d.prober[n] == r.Of { // a lookup leaves the probe to the attempt behind it
			d.used[n] = time.Time{}
		}
	}
	used = min(used, 2*d.took+d.hold) // one attempt that hung says little about the next
	if d.took == 0 {
		d.took = used
	}
	if used > 0 {
		d.took += (used - d.took) / 8
	}
	d.running--
	d.served = time.Now()
	d.serve()
}

// Hush keeps every work away for as long as the destination asked for with a 429 or 503.
func (d *Destination) Hush(t time.Duration, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t = min(t, longestHush)
	d.away = time.Time{}
	if until := time.Now().Add(t); until.After(d.heldBack) {
		d.heldBack = until
		now := d.now()
		until := now.Latest.Add(t)
		d.change(func(h Health) (Health, bool) { return h.limit(now, until, why), until.After(h.LimitedUntil) })
	}
	d.serve()
}
