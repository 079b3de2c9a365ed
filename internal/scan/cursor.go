package scan

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// cursor is the state of an incremental sweep: how far it has come, and the pass under way. All
// times but Asked, StartedAt, FullScanWanted.At and EmptyAt are by the source's clock. Its methods decide; they
// neither ask nor store.
type cursor struct {
	WatermarkAt    time.Time     `json:"watermarkAt,omitzero"`            // the newest change of a pass that came to its end; it never goes back
	Ahead          time.Duration `json:"clockAheadNanos,string,omitzero"` // how far ahead of ours the source's clock was seen
	TiedAt         time.Time     `json:"tiedAt,omitzero"`                 // more objects of this time than a page can have
	ListedFromAt   time.Time     `json:"listedFromAt,omitzero"`           // what is older was seen by a full sweep
	EmptyAt        time.Time     `json:"emptyAt,omitzero"`                // when a pass last found nothing where something was
	FullScanWanted *wanted       `json:"fullScanWanted,omitempty"`
	Sync           *pass         `json:"sync,omitempty"`

	Writer string `json:"writer,omitempty"` // who wrote it, so that two who write the same are told apart
}

// pass is one way through what changed since a time.
type pass struct {
	StartedAt       time.Time     `json:"startedAt"`
	ChangedFromAt   time.Time     `json:"changedFromAt,omitzero"`
	ChangedUntil    time.Time     `json:"changedUntil"`
	Cursor          string        `json:"cursor,omitempty"`         // the provider's, of the next page
	PageLimit       int           `json:"pageLimit,omitempty"`      // of the next page, where a page was too small to get past one time
	PageDigest      intake.Digest `json:"pageDigest,omitzero"`      // the page before
	LastChangedAt   time.Time     `json:"lastChangedAt,omitzero"`   // the change of the last object, in an ordered listing
	NewestChangedAt time.Time     `json:"newestChangedAt,omitzero"` // the newest change that is believed, up to ChangedUntil
	Seen            int64         `json:"seen,omitempty"`

	Unordered  bool `json:"unordered,omitempty"`  // it is not in the order of changes
	FailedRuns int  `json:"failedRuns,omitempty"` // runs in a row that ended at Cursor
}

// wanted is a reason why a full sweep is wanted.
type wanted struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"wantedAt"`
}

// want notes that only a full sweep can tell that begins after a time.
func (c *cursor) want(why string, after time.Time) {
	if c.FullScanWanted == nil {
		c.FullScanWanted = &wanted{Reason: why, At: after}
	}
	c.FullScanWanted.At = later(c.FullScanWanted.At, after)
}

// covered takes note of a full sweep that has come to its end: what was wanted before it began is
// done. Where no page got past one time the next pass begins right behind it, because everything of
// that time was seen.
func (c *cursor) covered(full *Complete) {
	if c.FullScanWanted == nil || full == nil || !full.Started.After(c.FullScanWanted.At) {
		return
	}
	c.FullScanWanted = nil
	if !c.TiedAt.IsZero() {
		c.ListedFromAt, c.TiedAt, c.Sync = c.TiedAt.Add(1), time.Time{}, nil
	}
}

// giveUp is how many runs may end at one cursor of the provider's until it is taken for expired.
const giveUp = 3

// begin goes on with the pass under way, or begins one.
func (c *cursor) begin(now time.Time, o *Config) {
	switch p := c.Sync; {
	case p == nil:
		c.Sync = &pass{StartedAt: now, ChangedUntil: now.Add(c.Ahead - o.Safety)}
		if !c.WatermarkAt.IsZero() {
			high := c.WatermarkAt
			if now.Before(high) { // one wrong stamp is not to eat the overlap
				high = now
			}
			c.Sync.ChangedFromAt = high.Add(-o.Overlap)
		}
		c.Sync.ChangedFromAt = later(later(c.Sync.ChangedFromAt, c.ListedFromAt), o.Begin)
	case p.FailedRuns >= giveUp && p.Cursor != "":
		c.expire()
	}
}

// expire goes on without the provider's cursor: from the last object that was listed, if the
// listing is in order.
func (c *cursor) expire() {
	p := c.Sync
	if !p.LastChangedAt.IsZero() && !p.Unordered {
		p.ChangedFromAt = p.LastChangedAt
	}
	p.Cursor, p.PageDigest, p.PageLimit, p.FailedRuns = "", intake.Digest{}, 0, 0
	p.LastChangedAt = time.Time{}
}

func (c *cursor) query(o *Config) Query {
	p := c.Sync
	return Query{Since: p.ChangedFromAt, Until: p.ChangedUntil, Cursor: p.Cursor, Limit: max(p.PageLimit, o.Page)}
}

// next is what to do behind a page.
type next int

const (
	more   next = iota // store it and ask for the next
	wider              // leave it: ask for it once more, wider
	finish             // store it: the pass has come to its end
	broken             // leave it: the listing makes no sense
)

// outcome is what a page means.
type outcome struct {
	next       next
	why        string // broken: what is wrong
	violations int64
}

// page takes a page in.
func (c *cursor) page(q Query, p *Page, now time.Time, o *Config) outcome {
	pass := c.Sync
	digest := digestOf(p.Objects)
	if what, ok := noProgress(q, p.Next, len(p.Objects), digest == pass.PageDigest && len(p.Objects) > 0); ok {
		return c.standing(q, p, what, now, o)
	}
	pass.PageDigest, pass.PageLimit, pass.FailedRuns = digest, 0, 0
	var out outcome
	beyond := len(p.Objects) > 0
	for i := range p.Objects {
		changed := p.Objects[i].Changed
		if !c.object(&p.Objects[i], now, o) {
			out.violations++
		}
		beyond = beyond && changed.After(pass.ChangedUntil)
	}
	pass.Cursor = p.Next
	if p.Next == "" || beyond && !pass.Unordered {
		c.end(now)
		out.next = finish
	}
	return out
}

// noProgress recognises a page that leads nowhere (I8).
func noProgress(q Query, next string, objects int, same bool) (what string, ok bool) {
	switch {
	case objects == 0 && next != "":
		return "a page is empty, and yet there is said to be a next one", true
	case next != "" && next == q.Cursor:
		return "the cursor of the next page is that of this one", true
	case same:
		return "the same page was given twice", true
	}
	return "", false
}

// widest is how many times wider than usual a page may be asked for.
const widest = 16

// standing decides about a page that leads nowhere. If all its objects changed at one time it may
// only be too small: it is asked for wider (I5). A time is never stepped over.
func (c *cursor) standing(q Query, p *Page, what string, now time.Time, o *Config) outcome {
	pass := c.Sync
	tie := len(p.Objects) > 0
	for i := range p.Objects {
		tie = tie && p.Objects[i].Changed.Equal(p.Objects[0].Changed)
	}
	if tie && q.Limit*2 <= o.Page*widest {
		pass.PageLimit = q.Limit * 2
		return outcome{next: wider}
	}
	pass.PageLimit = 0
	if !tie {
		return outcome{next: broken, why: what, violations: 1}
	}
	c.TiedAt = p.Objects[0].Changed
	why := fmt.Sprintf("more than %d objects changed at %s, and the source's pages do not get past that time; a full sweep has to see them",
		len(p.Objects), c.TiedAt.UTC().Format(time.RFC3339Nano))
	c.want(why, later(now, c.TiedAt.Add(o.Overlap))) // when all of that time is shown
	return outcome{next: broken, why: why, violations: 1}
}

// object takes an object in. It reports whether the object is what a listing promises. What is not
// is stored all the same, because the gate can judge it; it only moves no cursor.
func (c *cursor) object(o *Listed, now time.Time, conf *Config) bool {
	p, changed := c.Sync, o.Changed
	p.Seen++
	if changed.IsZero() || changed.After(now.Add(conf.Skew)) {
		return false
	}
	inOrder := !changed.Before(p.LastChangedAt)
	if p.LastChangedAt = later(p.LastChangedAt, changed); !inOrder {
		p.Unordered = true
	}
	if ahead := changed.Sub(now); ahead > c.Ahead {
		c.Ahead = ahead
	}
	if !changed.After(p.ChangedUntil) {
		p.NewestChangedAt = later(p.NewestChangedAt, changed)
	}
	inBounds := p.ChangedFromAt.IsZero() || !changed.Before(p.ChangedFromAt.Add(-max(o.Version.Step, time.Second)))
	return inBounds && inOrder
}

// end ends a pass.
func (c *cursor) end(now time.Time) {
	p := c.Sync
	blank := p.Seen == 0 && !c.WatermarkAt.IsZero()
	if blank && now.Sub(c.EmptyAt) > 24*time.Hour {
		c.EmptyAt = now
		c.want(fmt.Sprintf("the source lists nothing from %s on, where the newest change was at %s: its clock went back, or what changed last was deleted",
			p.ChangedFromAt.UTC().Format(time.RFC3339), c.WatermarkAt.UTC().Format(time.RFC3339)), now)
	}
	c.WatermarkAt, c.Sync = later(c.WatermarkAt, p.NewestChangedAt), nil
}

// fail takes note of a run that ended early.
func (c *cursor) fail() {
	if c.Sync != nil {
		c.Sync.FailedRuns++
	}
}

// String is where the sweep stands, for people.
func (c *cursor) String() string {
	if c.WatermarkAt.IsZero() {
		return "the beginning"
	}
	return c.WatermarkAt.UTC().Format(time.RFC3339Nano)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// digestOf tells pages apart.
func digestOf(objects []Listed) intake.Digest {
	parts := make([]string, 0, 2*len(objects))
	for i := range objects {
		parts = append(parts, objects[i].ID, stamp(objects[i].Changed))
	}
	return intake.DigestOf(parts...)
}
