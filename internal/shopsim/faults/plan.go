package faults

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Kind names one way to misbehave.
type Kind string

// The kinds; the package comment says what each does.
const (
	None        Kind = ""
	TooMany     Kind = "too-many"
	ErrorBefore Kind = "error-before"
	CutBefore   Kind = "cut-before"
	Slow        Kind = "slow"
	ErrorAfter  Kind = "error-after"
	CutAfter    Kind = "cut-after"
	Silent      Kind = "silent"
)

// losesAnswer reports whether the effect happens and the caller is not told.
func (k Kind) losesAnswer() bool { return k == ErrorAfter || k == CutAfter || k == Silent }

// A Menu is the kinds a server can choose from. A kind that is in it twice is
// chosen twice as often.
type Menu []Kind

// The two menus. Mail is gentler: each lost answer of a mail server ends at a
// person, so most of its faults are of the kind that says what happened.
var (
	HTTP = Menu{TooMany, ErrorBefore, CutBefore, Slow, ErrorAfter, CutAfter, CutAfter, Silent}
	SMTP = Menu{TooMany, TooMany, TooMany, Slow, Slow, Slow, CutBefore, CutAfter, Silent}
)

// Patience is how many arrivals of one key can meet a fault.
const Patience = 4

// Plan decides which arrival of which key meets which fault.
type Plan struct {
	Seed uint64
	// Rate is the share of arrivals that meet a fault, from 0 to 1. A higher
	// rate adds faults and changes none.
	Rate float64
}

// Fault is what one arrival meets.
type Fault struct {
	Kind Kind
	// Late says that lookups see the effect later.
	Late bool
}

// At returns the fault that the nth arrival of key meets, counted from 1. It
// is the same for the same plan, menu, key and n, on every machine.
func (p Plan) At(menu Menu, key string, n int) Fault {
	if n > Patience {
		return Fault{}
	}
	arrival := fmt.Sprintf("%s/%d", key, n)
	var f Fault
	if Draw(p.Seed, "fault/"+arrival) < p.Rate {
		f.Kind = menu[int(Draw(p.Seed, "kind/"+arrival)*float64(len(menu)))]
	}
	late := p.Rate
	if f.Kind.losesAnswer() && p.Rate > 0 {
		late = max(late, 0.5)
	}
	f.Late = Draw(p.Seed, "late/"+arrival) < late
	return f
}

// Draw returns a number from 0 up to, not including, 1 that looks random and
// depends on the seed and on what it is drawn about, and on nothing else.
func Draw(seed uint64, about string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", seed, about))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
