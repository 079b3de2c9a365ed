package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what one of the five fields counts.
type kind struct {
	name   string
	least  int
	most   int
	names  []string // from least on; nil: numbers
	unit   time.Duration
	next   string // where it begins again
	varies bool   // how far it counts differs: a month has 28 to 31 days
}

var kinds = [...]kind{
	{name: "minute", most: 59, unit: time.Minute, next: "in the next hour"},
	{name: "hour", most: 23, unit: time.Hour, next: "on the next day"},
	{name: "day of the month", least: 1, most: 31, unit: 24 * time.Hour, next: "in the next month", varies: true},
	{name: "month", least: 1, most: 12, next: "in the next year", names: []string{
		"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
	}},
	{name: "day of the week", most: 6, unit: 24 * time.Hour, next: "in the next week", names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// part is one part of a field: a value, a range, or a step through either. Nothing is wrong with it:
// the parser has read it.
type part struct {
	text              string
	first, last, step int
	around            bool // it goes to the end of the field, and begins again
}

// steps judges the steps of five fields: the parser takes one that leads out of its field, and then
// only the first value is left.
func steps(text string) (warns []string, err error) {
	fields := strings.Fields(text)
	if len(fields) != len(kinds) {
		return nil, nil // a descriptor
	}
	var faults []error
	for i := range kinds {
		k := &kinds[i]
		parts := k.parts(fields[i])
		for _, p := range parts {
			if p.step > 1 && p.step > p.last-p.first && !k.full(&p) {
				faults = append(faults, k.cannot(&p))
			}
		}
		if p := k.uneven(parts); p != nil {
			warns = append(warns, k.really(p, parts))
		}
	}
	return warns, errors.Join(faults...)
}

func (k *kind) parts(field string) (parts []part) {
	for _, text := range strings.FieldsFunc(field, func(r rune) bool { return r == ',' }) {
		span, step, stepped := strings.Cut(text, "/")
		first, last, ranged := strings.Cut(span, "-")
		p := part{text: text, step: 1, first: k.least, last: k.most}
		if first != "*" && first != "?" {
			p.first = k.value(first)
			if p.last = p.first; ranged {
				p.last = k.value(last)
			} else if stepped {
				p.last = k.most
			}
		}
		if stepped {
			p.step, _ = strconv.Atoi(step)
		}
		p.around = stepped && (!ranged || p.first == k.least && p.last == k.most)
		parts = append(parts, p)
	}
	return parts
}

func (k *kind) value(text string) int {
	if i := slices.Index(k.names, strings.ToUpper(text)); i >= 0 {
		return k.least + i
	}
	n, _ := strconv.Atoi(text)
	return n
}

func (k *kind) size() int { return k.most - k.least + 1 }

// full reports whether the step is once around the field: */60 in minutes is every 60 minutes.
func (k *kind) full(p *part) bool { return p.around && p.step == k.size() && !k.varies }

// cannot says that only the first value of a part is left, and what to write instead.
func (k *kind) cannot(p *part) error {
	text := fmt.Sprintf("its %s is %q: that counts from %s to %s, which a step of %d leads out of, so that only %s would be left. Write %s if that is meant",
		k.name, p.text, k.label(p.first), k.label(p.last), p.step, k.label(p.first), k.label(p.first))
	return errors.New(text + k.instead(p, ", or in place of all five fields "))
}

// instead is the @every that a step is, where there is one.
func (k *kind) instead(p *part, before string) string {
	const most = 10_000 // more is a slip of the hand, and none a duration
	switch {
	case !p.around || k.unit == 0 || p.step > most:
		return ""
	case k.unit == time.Minute:
		return fmt.Sprintf("%s@every %dm", before, p.step)
	default:
		return fmt.Sprintf("%s@every %dh", before, p.step*int(k.unit/time.Hour))
	}
}

// uneven is a part whose steps are not equal because the field begins again, or nil. It is nil, too,
// when the other parts fill the gap.
func (k *kind) uneven(parts []part) *part {
	for i := range parts {
		p := &parts[i]
		if p.step > 1 && p.around && !k.equal(values(parts[i:i+1])) && !k.equal(values(parts)) {
			return p
		}
	}
	return nil
}

// equal reports whether values are equally far from each other, from the last to the first again too.
func (k *kind) equal(all []int) bool {
	gap := all[0] + k.size() - all[len(all)-1]
	for i := range all[1:] {
		if all[i+1]-all[i] != gap {
			return false
		}
	}
	return true
}

// values are what the parts name, in order.
func values(parts []part) (all []int) {
	for _, p := range parts {
		for v := p.first; v <= p.last && v >= p.first; v += p.step {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// really says when a field with an uneven step runs.
func (k *kind) really(p *part, parts []part) string {
	var at []string
	for _, v := range values(parts) {
		at = append(at, k.label(v))
	}
	return fmt.Sprintf("its %s is %q: it runs at %s, and begins again at %s %s, so that not every step is %d%s",
		k.name, strings.Join(texts(parts), ","), strings.Join(at, ", "), at[0], k.next, p.step, k.instead(p, "; for equal steps write in place of all five fields: "))
}

func texts(parts []part) (all []string) {
	for _, p := range parts {
		all = append(all, p.text)
	}
	return all
}

// label is a value as people write it.
func (k *kind) label(v int) string {
	if i := v - k.least; i >= 0 && i < len(k.names) {
		return k.names[i]
	}
	return strconv.Itoa(v)
}
