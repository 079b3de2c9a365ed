package scan

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// generation is the state of the full listings of one side.
type generation struct {
	Scan           int64     `json:"scan"` // the newest
	Running        bool      `json:"running,omitempty"`
	MappingVersion string    `json:"mappingVersion,omitempty"` // by which its rows were made
	Started        time.Time `json:"startedAt,omitzero"`
	LastComplete   *Complete `json:"lastComplete,omitempty"` // the newest that is
	PreviousRows   int64     `json:"previousRows,omitempty"` // rows of the complete one before that

	Writer string `json:"writer,omitempty"`
}

// Complete is a listing in which every part came to its end without an error, and held what the
// provider counted.
type Complete struct {
	Scan           int64     `json:"scan"`
	Started        time.Time `json:"startedAt"` // by our clock: what was made or changed later proves nothing by its absence
	Ended          time.Time `json:"endedAt"`
	Rows           int64     `json:"rows"` // objects or documents
	Partitions     int       `json:"partitions"`
	MappingVersion string    `json:"mappingVersion,omitempty"` // Config.Mapping, by which its rows were made
}

// Progress says how far the full listing of one side has come.
type Progress struct {
	Side       Side
	Generation int64     // the newest
	Started    time.Time // of it
	Open       bool      // it is still being listed; an object unseen in it proves nothing yet
	Parts      int       // of it
	Done       int       // of them
	Failed     []Failure // parts whose last listing ended with an error
	// Complete is the newest complete listing, nil before the first. Sightings of its generation
	// are what to compare.
	Complete *Complete
	// Before is how many rows the complete listing before that had; zero: there was none.
	Before int64
}

// Failure is a part that could not be listed.
type Failure struct {
	Part string
	Why  string
}

// next begins the generation that a run works on, unless one is open. One whose rows were made by
// another mapping is left as it is: half of it could not be compared with the other half.
func (g *generation) next(now time.Time, mapping string) (began bool) {
	if g.Running && g.MappingVersion == mapping {
		return false
	}
	g.Scan, g.Running, g.Started, g.MappingVersion = g.Scan+1, true, now, mapping
	return true
}

// complete ends the generation.
func (g *generation) complete(now time.Time, rows int64, parts int) {
	if g.LastComplete != nil {
		g.PreviousRows = g.LastComplete.Rows
	}
	g.Running = false
	g.LastComplete = &Complete{Scan: g.Scan, Started: g.Started, Ended: now, Rows: rows, Partitions: parts, MappingVersion: g.MappingVersion}
}

// part is the state of one part of a full listing.
type part struct {
	Scan          int64         `json:"scan"` // in which it is being listed, or was last
	Cursor        string        `json:"cursor,omitempty"`
	PageDigest    intake.Digest `json:"pageDigest,omitzero"` // the page before
	ExpectedCount int64         `json:"expectedCount"`       // what it held by the provider's word when its listing began
	Seen          int64         `json:"seen,omitempty"`
	Unmarked      int64         `json:"unmarked,omitempty"`   // of them, without our mark
	Listed        bool          `json:"listed,omitempty"`     // the listing came to its end
	Complete      bool          `json:"complete,omitempty"`   // and held what it should
	CountAtEnd    int64         `json:"countAtEnd,omitempty"` // what it held at its end by the provider's word
	FailedRuns    int           `json:"failedRuns,omitempty"` // runs in a row that ended at Cursor
	Error         string        `json:"error,omitempty"`      // of the last one

	Writer string `json:"writer,omitempty"`
}

// enter makes the part one of a generation. What was listed for it in that generation stays.
func (p *part) enter(number, count int64) {
	if p.Scan != number {
		*p = part{Scan: number, ExpectedCount: count}
		return
	}
	if p.FailedRuns >= giveUp && p.Cursor != "" {
		p.again()
	}
	if p.Cursor == "" && !p.Listed {
		p.ExpectedCount = count
	}
}

// again lists the part from its beginning, in its generation.
func (p *part) again() {
	p.Cursor, p.PageDigest, p.Seen, p.Unmarked, p.FailedRuns = "", intake.Digest{}, 0, 0, 0
	p.Listed, p.Complete = false, false
}

func (p *part) query(name string, limit int) Query {
	return Query{Partition: name, Cursor: p.Cursor, Limit: limit}
}

// errNoPart is what a listing that leads nowhere is told as.
var errNoPart = errors.New("the listing makes no sense")

// page takes a page of rows in.
func (p *part) page(q Query, next string, rows []Sighting) error {
	sum := make([]string, 0, 2*len(rows))
	for i := range rows {
		sum = append(sum, rows[i].ID, rows[i].Revision)
	}
	digest := intake.DigestOf(sum...)
	if what, ok := noProgress(q, next, len(rows), digest == p.PageDigest && len(rows) > 0); ok {
		return fmt.Errorf("%w: %s", errNoPart, what)
	}
	p.Cursor, p.PageDigest, p.FailedRuns = next, digest, 0
	p.Seen += int64(len(rows))
	for i := range rows {
		if rows[i].Key == "" {
			p.Unmarked++
		}
	}
	p.Listed = next == ""
	return nil
}

// count checks what the listing of the part held against what it holds now by the provider's word:
// U1. Objects come and go meanwhile, so it is to be no less than the smaller count.
func (p *part) count(held, now int64) {
	least := min(p.ExpectedCount, now)
	if p.ExpectedCount < 0 || now < 0 {
		least = max(p.ExpectedCount, now) // one word is better than none
	}
	if held < least {
		p.again()
		p.Error = fmt.Sprintf("the provider counts %d, its listing shows %d; it is listed again", least, held)
		return
	}
	p.Complete, p.CountAtEnd, p.Error = true, now, ""
}

func (p *part) fail(why error) {
	p.FailedRuns++
	p.Error = why.Error()
}

// progress says how far a listing has come.
func (g *generation) progress(side Side, names []string, states map[string]*part) Progress {
	p := Progress{Side: side, Generation: g.Scan, Started: g.Started, Open: g.Running, Parts: len(names), Complete: g.LastComplete, Before: g.PreviousRows}
	for _, name := range names {
		s := states[name]
		if s.Complete && s.Scan == g.Scan {
			p.Done++
		}
		if s.Error != "" {
			p.Failed = append(p.Failed, Failure{name, s.Error})
		}
	}
	return p
}
