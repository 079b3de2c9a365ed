package hooks

import (
	"strconv"

	"github.com/amends-dev/amends/internal/shopsim/faults"
)

// Plan decides what becomes of which webhook. The shares lie between 0 and 1.
type Plan struct {
	Seed       uint64
	Drops      float64 // share of webhooks whose first attempts never leave
	Duplicates float64 // share of webhooks that arrive more than once
	Forgeries  float64 // share of webhooks that are sent together with a forged one
}

// The most that can become of one webhook.
const (
	MaxCopies  = 4
	MaxDropped = 3
)

// Forgery names what is wrong with a forged webhook.
type Forgery string

// The forgeries. All of them speak of an order of the shop.
const (
	Genuine     Forgery = ""             // none
	WrongSecret Forgery = "wrong-secret" // other content, signed with a secret that is not the shop's
	Altered     Forgery = "altered"      // other content under the signature of the genuine one
	Stale       Forgery = "stale"        // the genuine one, captured an hour ago and sent again
)

var forgeries = []Forgery{WrongSecret, Altered, Stale}

// Fate is what becomes of one webhook.
type Fate struct {
	Copies  int     // how often it arrives beyond the first time
	Dropped int     // how many of its first attempts never leave
	Forgery Forgery // the forged webhook sent beside it
}

// For returns the fate of the webhook with this id.
func (p Plan) For(id string) Fate {
	var f Fate
	if p.draw("copied", id) < p.Duplicates {
		f.Copies = 1 + p.choose(MaxCopies, "copies", id)
	}
	if p.draw("drop", id) < p.Drops {
		f.Dropped = 1 + p.choose(MaxDropped, "drops", id)
	}
	if p.draw("forged", id) < p.Forgeries {
		f.Forgery = forgeries[p.choose(len(forgeries), "forgery", id)]
	}
	return f
}

func (p Plan) draw(what, id string) float64 { return faults.Draw(p.Seed, "webhook/"+what+"/"+id) }

// choose returns a number from 0 to n-1.
func (p Plan) choose(n int, what, id string) int { return int(p.draw(what, id) * float64(n)) }

// nth is the name of the nth thing of its kind.
func nth(what string, n int) string { return what + "/" + strconv.Itoa(n) }
