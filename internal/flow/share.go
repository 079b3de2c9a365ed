package flow

import (
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// share is who may use which part of a destination's limit, for all processes of a ledger. Like
// [Health] it is a value, kept in the ledger as a control and changed by compare-and-set. Its times
// are the ledger's.
//
// A limit has as many parts as it can be divided into without one that could not send: of
// Concurrent: 1 there is one, and one session at a time has it. Each session that sends there wants
// as many as the others, and takes what is free. What it gives up, or leaves when it dies, is free
// when nothing that it sent can be at work any more.
type share struct {
	Parts        []part          `json:"parts"`
	Sessions     map[string]want `json:"sessions"`               // the sessions that send there
	DeadSessions map[string]dead `json:"deadSessions,omitempty"` // of which a part is not free yet
}

// want is what a session that sends there says of itself.
type want struct {
	// Definitions is a digest of the definitions that it can run: where there are fewer parts than
	// sessions, those that run different ones take turns, so that no definition waits for ever.
	Definitions string `json:"definitions"`
	// Settle is how long after its end something that it sent may be at work. Only it knows its
	// steps.
	Settle lasting `json:"settle,omitempty"`
	// HeldWithoutAnswer is how many slots are held by requests without an answer, and UnansweredUntil when the last of them
	// that it does not await any more has settled.
	HeldWithoutAnswer int       `json:"heldWithoutAnswer,omitempty"`
	UnansweredUntil   time.Time `json:"unansweredUntil,omitzero"`
}

// dead is what is known of what a dead session had under way. Its parts are free when that is over: when every session that lives has
// claimed what it could of the dead one's instances, their chains have told all of it. Else they are when the longest that it may have
// sent is over.
type dead struct {
	Definitions   string    `json:"definitions"`
	UnderWayUntil time.Time `json:"underWayUntil,omitzero"` // as far as was found
	SearchedBy    []string  `json:"searchedBy,omitempty"`   // the sessions that have claimed what they could
	SearchLost    bool      `json:"searchLost,omitempty"`   // one ended that had not, and what it had found with it
}

// lasting is a length of time in a stored document, a text such as 30s.
type lasting time.Duration

func (l lasting) MarshalText() ([]byte, error) { return []byte(time.Duration(l).String()), nil }

func (l *lasting) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*l = lasting(d)
	return err
}

// part is one part of a limit.
type part struct {
	Session     string    `json:"session,omitempty"`     // a session; empty: none
	AcquiredAt  time.Time `json:"acquiredAt,omitzero"`   // its owner has it
	ReleasedAt  time.Time `json:"releasedAt,omitzero"`   // its last owner left it; zero: no session ever had it
	AvailableAt time.Time `json:"availableAt,omitzero"`  // without an owner: when it may be taken
	ReservedFor string    `json:"reservedFor,omitempty"` // without an owner: the digest of those who may take it first
	LeftBy      string    `json:"leftBy,omitempty"`      // without an owner: a dead session, which may have requests under way
}

// member is one session's view of a share.
type member struct {
	now    machine.Moment
	token  string
	runs   string // its digest
	parts  int    // how many parts the limit has
	dead   func(token string) bool
	settle time.Duration                                  // from its end until nothing that it sent can be at work
	held   int                                            // slots that it holds for requests without an answer
	until  time.Time                                      // when the last of them has settled that are not awaited
	found  func(token string) (until time.Time, all bool) // in the chains of a dead session that were claimed
}

// How long a session keeps a part that sessions with other definitions wait for, and how long such
// a part is kept for them.
const (
	partTurn     = 30 * time.Second
	partReserved = 15 * time.Second
)

// Limit is what a destination can bear from all processes of a ledger. 0 is no limit.
type Limit struct {
	PerSecond  float64
	Burst      int // at least 1
	Concurrent int
}

// mostParts bounds what the ledger keeps of a limit that could be divided into more.
const mostParts = 64

// partsOf is how many parts a limit has; 0: it is none.
func (l Limit) partsOf() int {
	switch n := l.Concurrent; {
	case l.PerSecond == 0:
		return min(n, mostParts)
	case n == 0:
		return min(max(1, l.Burst), mostParts)
	default:
		return min(n, max(1, l.Burst), mostParts)
	}
}

// portion is what some of the parts of a limit come to.
func (l Limit) portion(owned []int) (p Limit) {
	n := l.partsOf()
	for _, k := range owned {
		of := func(whole int) int { return whole*(k+1)/n - whole*k/n }
		p.Concurrent += of(l.Concurrent)
		p.Burst += of(max(1, l.Burst))
		p.PerSecond += l.PerSecond / float64(n)
	}
	return p
}

// held is how many slots of some of the parts of a limit requests may hold that are not awaited any more, and may be at work: a quarter
// of the whole, and one at least.
func (l Limit) held(owned []int) (slots int) {
	quarter := func(n int) int { return (n + 3) / 4 }
	n := l.partsOf()
	for _, k := range owned {
		slots += quarter(l.Concurrent*(k+1)/n) - quarter(l.Concurrent*k/n)
	}
	return slots
}

// owned are the parts that a session has, of the first n.
func (s share) owned(token string, n int) (owned []int) {
	for k := range s.Parts[:min(n, len(s.Parts))] {
		if s.Parts[k].Session == token {
			owned = append(owned, k)
		}
	}
	return owned
}

// fair is how many parts the member ought to have: parts divided by sessions, and at most one of the remainder, if there
// is one left. Where there are fewer parts than sessions, one
// that has had its part for long gives it to those that run other definitions and have none.
func (s share) fair(m member) int {
	n := max(1, len(s.Sessions))
	floor, over := m.parts/n, m.parts%n
	mine := len(s.owned(m.token, m.parts))
	before := 0 // others that have one of those that are left over
	for token := range s.Sessions {
		if has := len(s.owned(token, m.parts)); token != m.token && has > floor && (mine <= floor || token < m.token) {
			before++
		}
	}
	if before >= over {
		return floor
	}
	if floor == 0 && mine == 1 && s.next(m) != "" && !m.now.Earliest.Before(s.Parts[s.owned(m.token, m.parts)[0]].AcquiredAt.Add(partTurn)) {
		return 0
	}
	return floor + 1
}

// next is the digest of the sessions whose turn it is after the member's: those that run other
// definitions and have no part, nor one that is kept for them; empty: there are none.
func (s share) next(m member) string {
	var without []string
	for _, w := range s.Sessions {
		if runs := w.Definitions; !slices.Contains(without, runs) && !s.serves(runs) {
			without = append(without, runs)
		}
	}
	if len(without) == 0 {
		return ""
	}
	slices.Sort(without)
	at, _ := slices.BinarySearch(without, m.runs)
	return without[at%len(without)]
}

// serves reports whether a session with the digest has a part, or has one kept.
func (s share) serves(runs string) bool {
	return slices.ContainsFunc(s.Parts, func(p part) bool {
		return p.Session != "" && s.Sessions[p.Session].Definitions == runs || p.ReservedFor == runs
	})
}

// joined is the share with the member among those who want it and without the dead, and whether
// that changes it.
func (s share) joined(m member) (share, bool) {
	mine := want{Definitions: m.runs, Settle: lasting(m.settle), HeldWithoutAnswer: m.held, UnansweredUntil: m.until}
	t := share{Parts: slices.Clone(s.Parts), Sessions: map[string]want{m.token: mine}, DeadSessions: maps.Clone(s.DeadSessions)}
	known, is := s.Sessions[m.token]
	changed := !is || known.Definitions != mine.Definitions || known.Settle != mine.Settle || known.HeldWithoutAnswer != mine.HeldWithoutAnswer || mine.UnansweredUntil.After(known.UnansweredUntil)
	for token, w := range s.Sessions {
		if token != m.token && !m.dead(token) {
			t.Sessions[token] = w
		}
	}
	for token := range s.Sessions { // what they had found of others, before they are dead themselves
		if _, lives := t.Sessions[token]; !lives {
			t.lose(token)
		}
	}
	for token, w := range s.Sessions {
		if _, lives := t.Sessions[token]; lives {
			continue
		}
		changed = true
		for _, k := range t.owned(token, len(t.Parts)) {
			t.Parts[k] = part{ReleasedAt: m.now.Latest, AvailableAt: m.now.Latest.Add(time.Duration(w.Settle)), LeftBy: token}
			if t.DeadSessions == nil {
				t.DeadSessions = map[string]dead{}
			}
			t.DeadSessions[token] = dead{Definitions: w.Definitions, UnderWayUntil: w.UnansweredUntil}
		}
	}
	for len(t.Parts) < m.parts {
		t.Parts, changed = append(t.Parts, part{}), true
	}
	changed = t.search(m) || changed
	return t, changed
}

// search notes what the member has found of dead sessions, and frees the parts of those of which all was found.
func (s *share) search(m member) (changed bool) {
	for token, d := range s.DeadSessions {
		until, all := m.found(token)
		if all && !slices.Contains(d.SearchedBy, m.token) {
			d.SearchedBy, changed = append(slices.Clone(d.SearchedBy), m.token), true
		}
		if d.UnderWayUntil.Before(until) { // also behind that: what another claim had locked came to this one
			d.UnderWayUntil, changed = until, true
		}
		s.DeadSessions[token] = d
		left := func(p part) bool { return p.Session == "" && p.LeftBy == token }
		if !slices.ContainsFunc(s.Parts, left) {
			delete(s.DeadSessions, token)
			changed = true
			continue
		}
		if !s.searched(d) {
			continue
		}
		for k := range s.Parts {
			if p := &s.Parts[k]; left(*p) {
				if p.LeftBy = ""; d.UnderWayUntil.Before(p.AvailableAt) {
					p.AvailableAt = Latest(d.UnderWayUntil, p.ReleasedAt)
				}
			}
		}
		delete(s.DeadSessions, token)
		changed = true
	}
	return changed
}

// lose notes that a session ends which may have found something of dead ones, and did not tell it.
func (s *share) lose(token string) {
	for of, d := range s.DeadSessions {
		if !slices.Contains(d.SearchedBy, token) {
			d.SearchLost = true
			s.DeadSessions[of] = d
		}
	}
}

// searched reports whether all of a dead session's instances were claimed: each session that lives has claimed what it could since, and
// one of them knows its definitions.
func (s *share) searched(d dead) (all bool) {
	if d.SearchLost {
		return false
	}
	for token, w := range s.Sessions {
		if !slices.Contains(d.SearchedBy, token) {
			return false
		}
		all = all || w.Definitions == d.Definitions
	}
	return all
}

// taken is the share after the member has taken what is free and it ought to have, and whether that
// changes it.
func (s share) taken(m member) (share, bool) {
	t := share{Parts: slices.Clone(s.Parts), Sessions: s.Sessions, DeadSessions: s.DeadSessions}
	want := s.fair(m) - len(s.owned(m.token, m.parts))
	changed := false
	for k := range t.Parts[:min(m.parts, len(t.Parts))] {
		if p := &t.Parts[k]; want > 0 && p.Session == "" && !m.now.Earliest.Before(p.AvailableAt) &&
			(p.ReservedFor == "" || p.ReservedFor == m.runs || !m.now.Earliest.Before(p.AvailableAt.Add(partReserved))) {
			*p = part{Session: m.token, AcquiredAt: m.now.Latest, ReleasedAt: p.ReleasedAt}
			want--
			changed = true
		}
	}
	return t, changed
}

// given is the share after the member has given up all its parts but the first keep, which nothing
// that it sent uses any more, and whether that changes it.
func (s share) given(m member, keep int) (share, bool) {
	t := share{Parts: slices.Clone(s.Parts), Sessions: s.Sessions, DeadSessions: s.DeadSessions}
	owned := t.owned(m.token, len(t.Parts))
	for _, k := range owned[min(keep, len(owned)):] {
		t.Parts[k] = part{ReleasedAt: m.now.Latest, AvailableAt: m.now.Latest}
		if keep == 0 && len(s.Sessions) > m.parts {
			t.Parts[k].ReservedFor = s.next(m)
		}
	}
	return t, len(owned) > keep
}

// left is the share without the member, which ends; settled: it awaits nothing any more, and what it does not await is over at
// m.until.
func (s share) left(m member, settled bool) (share, bool) {
	t := share{Parts: slices.Clone(s.Parts), Sessions: map[string]want{}, DeadSessions: maps.Clone(s.DeadSessions)}
	t.lose(m.token)
	for token, w := range s.Sessions {
		if token != m.token {
			t.Sessions[token] = w
		}
	}
	free := m.now.Latest
	if settled {
		free = Latest(free, m.until)
	} else {
		free = free.Add(m.settle)
	}
	owned := t.owned(m.token, len(t.Parts))
	for _, k := range owned {
		t.Parts[k] = part{ReleasedAt: m.now.Latest, AvailableAt: free}
	}
	return t, len(owned) > 0 || len(t.Sessions) < len(s.Sessions)
}
