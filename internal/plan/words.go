package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// short is how much of a plan's id people need.
const short = 8

// Next says what a person can do about what the bounds withhold.
func (p *Plan) Next(e *Excess) string {
	return fmt.Sprintf("%s. Approve plan %.*s or raise the bound", e.Reason, short, p.ID)
}

// Words says what the bounds say about the plan, one sentence each.
func (p *Plan) Words() []string {
	var words []string
	if p.RefusedReason != "" {
		words = append(words, "refused: "+p.RefusedReason)
	}
	for i := range p.OverLimit {
		words = append(words, "withheld: "+p.Next(&p.OverLimit[i]))
	}
	if p.HoldsNothingReason != "" && p.RefusedReason == "" {
		words = append(words, "starts and newer versions do not wait for decisions: "+p.HoldsNothingReason)
	}
	return words
}

// kinds is how many actions of a risk there are, in words.
func kinds(n int64, r Risk) string {
	return count(n, map[Risk]string{Create: "create", Update: "update", Destroy: "withdrawal"}[r])
}

// count is a number of things.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(n) + " " + thing
}

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(s, "-")
	var b strings.Builder
	b.WriteString(s[:len(s)-len(digits)])
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// percent is n of all, rounded down to a hundredth; percentUp is rounded up. So what is over a
// bound, or under it, never reads like the bound.
func percent(n, all int64) string   { return hundredths(n, all, 0) }
func percentUp(n, all int64) string { return hundredths(n, all, all-1) }

func hundredths(n, all, more int64) string {
	if all <= 0 {
		return "all"
	}
	return share100(float64((n*10_000+more)/all) / 100)
}

// share100 writes a percentage.
func share100(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " %" }
