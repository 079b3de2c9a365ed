package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// field is one of the five, as people call it, with its least and largest value.
type field struct {
	name        string
	least, most int
}

var fieldsOf = []field{{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 6}}

// step is one part of a field that has a step: */15.
type step struct {
	field
	text  string
	first int // the first value that the part names
	span  int // values from first to the end of the part
	every int
	round bool // it comes to the end of its field, and begins again
}

// steps are the parts of an expression that have steps. The parser has taken it.
func steps(text string) (all []step) {
	words := strings.Fields(text)
	if len(words) != len(fieldsOf) {
		return nil
	}
	for i, f := range fieldsOf {
		for part := range strings.SplitSeq(words[i], ",") {
			from, n, found := strings.Cut(part, "/")
			every, err := strconv.Atoi(n)
			if !found || err != nil {
				continue
			}
			s := step{field: f, text: part, first: f.least, every: every, round: true}
			last := f.most
			if low, high, isRange := strings.Cut(from, "-"); from != "*" && from != "?" {
				s.first = valueOf(i, low)
				if isRange {
					last, s.round = valueOf(i, high), false
				}
			}
			s.span = last - s.first + 1
			all = append(all, s)
		}
	}
	return all
}

// valueOf reads a value of a field that the parser has taken, also a name like MON: by asking the
// parser for the only one that a field has then.
func valueOf(i int, text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	words := []string{"0", "0", "1", "1", "*"}
	words[i] = text
	parsed, err := parser.Parse(strings.Join(words, " "))
	s, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return fieldsOf[i].least
	}
	bits := []uint64{s.Minute, s.Hour, s.Dom, s.Month, s.Dow}[i]
	for n := fieldsOf[i].least; n <= fieldsOf[i].most; n++ {
		if bits&(1<<n) != 0 {
			return n
		}
	}
	return fieldsOf[i].least
}

// held refuses steps that their fields cannot hold: the parser takes */90 minutes for hourly.
func held(text string) error {
	var errs []error
	for _, s := range steps(text) {
		if s.every > s.span {
			errs = append(errs, fmt.Errorf("%s: a step of %d does not fit into the %s, where %d to %d are left, so it would come at %d alone; "+
				"for an interval that is longer than its field write @every, like @every 90m, or name the values",
				s.text, s.every, s.name, s.first, s.first+s.span-1, s.first))
		}
	}
	return errors.Join(errs...)
}

// uneven warns of steps that do not divide their fields: the last is shorter.
func uneven(text string) (warns []string) {
	for _, s := range steps(text) {
		whole := s.most - s.least + 1
		if !s.round || s.every <= 1 || s.name != "day of month" && whole%s.every == 0 {
			continue
		}
		var at []string
		for n := s.first; n <= s.most; n += s.every {
			at = append(at, strconv.Itoa(n))
		}
		warns = append(warns, fmt.Sprintf("%s does not divide the %s: it comes at %s, and then at %d again", s.text, s.name, strings.Join(at, ", "), s.first))
	}
	return warns
}
