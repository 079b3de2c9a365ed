package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A history is a list of numbers, and each stands for one call with all its arguments: see [drawn].
// Zero is no call, so that rapid takes calls away when it looks for the shortest history.
const historyLength = 240

// Differ plays random histories of calls on the reference, which is in memory, and on the stores of
// h, under one clock that goes on between calls only. Whatever one of the two answers, the other
// has to answer. It prints how often each method met each class of error; at night each pair of
// [expected] has to be among them.
func Differ(t *testing.T, h Harness) {
	t.Helper()
	met := coverage{}
	end := time.Now().Add(differTime())
	for round := 0; round == 0 || pace.AtNight() && time.Now().Before(end) && !t.Failed(); round++ {
		failed := false
		rapid.Check(t, func(rt *rapid.T) {
			history := rapid.SliceOfN(rapid.Uint32(), historyLength, historyLength).Draw(rt, "history")
			if !failed && time.Now().After(end) {
				return
			}
			if where := play(rt, h, nil, history, met, rt.Log); where != "" {
				failed = true
				rt.Fatalf("%s", where)
			}
		})
	}
	met.report(t)
}

// differTime is how long histories are played: seconds by day. Set AMENDS_DIFFER_TIME for another
// time.
func differTime() time.Duration {
	d, err := time.ParseDuration(os.Getenv("AMENDS_DIFFER_TIME"))
	switch {
	case err == nil:
		return d
	case pace.AtNight():
		return 5 * time.Minute
	case testing.Short():
		return time.Second
	}
	return 3 * time.Second
}

// side is one of the two stores, with what differs between them by chance, each by its place.
type side struct {
	Store
	raw        Store
	ctx        context.Context
	tokens     []machine.Token
	works      map[saga.ID]*chain
	numbers    []int64 // of works, as they were started
	deliveries []int64 // numbers of deliveries, as they came
	refs       []plan.Ref
	names      map[any]string // what was drawn by chance, by the order in which it was seen
	met        coverage
	said       strings.Builder
	forgot     bool  // deliveries were purged or judged again
	over       bool  // the database has become another one
	last       error // that is of none of the classes
}

// player plays one history.
type player struct {
	now   time.Time
	back  bool // the clock has gone back
	sides [2]*side
}

// era is when every history begins.
var era = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// play plays a history on the reference and on a store of h, which may be broken, and says where
// they first differ.
func play(t T, h Harness, broken func(Store) Store, history []uint32, met coverage, logf func(...any)) string {
	t.Helper()
	p := &player{now: era}
	other := h.Open(t)
	t.Cleanup(func() { _ = other.Close() })
	reference := memory.New(&memory.Options{Now: func() time.Time { return p.now }, Limits: other.Limits()})
	for i, db := range []Store{reference, other} {
		p.sides[i] = &side{Store: db, raw: db, ctx: t.Context(), works: map[saga.ID]*chain{}, names: map[any]string{}}
	}
	if p.sides[1].met = met; broken != nil {
		p.sides[1].Store = broken(other)
	}
	for i, n := range history {
		if n == 0 {
			continue
		}
		// Times within a history differ by their microseconds, so that nothing is due at the same time.
		p.now = p.now.Add(time.Microsecond)
		d := &draw{player: p, harness: h, t: t}
		c := d.begin(n)
		p.tick(d)
		h.SetTime(t, other, p.now)
		for _, s := range p.sides {
			s.said.Reset()
			d.begin(n)
			c.do(d, s)
		}
		a, b := p.sides[0].said.String(), p.sides[1].said.String()
		call := fmt.Sprintf("call %d (%d), %s%s at %s", i, n, c.name, d.args, p.now.Sub(era))
		if logf(call + ":" + a); a != b {
			return fmt.Sprintf("%s: the reference says%s\nand the store says%s\nthe last errors without a class: %v and %v", call, a, b, p.sides[0].last, p.sides[1].last)
		}
	}
	return p.sound(t)
}

// tick moves the clock on now and then, by whole milliseconds, and seldom back.
func (p *player) tick(d *draw) {
	switch {
	case !d.one(9):
	case d.one(30):
		p.now = p.now.Add(25 * time.Hour)
	case d.one(30):
		p.now, p.back = p.now.Add(-time.Hour), true
	default:
		p.now = p.now.Add(pick(d, time.Millisecond, 500*time.Millisecond, time.Second, 3*time.Second, 3*time.Second, 20*time.Second, 2*time.Minute))
	}
}

// sound reports whether [ledger.Check] finds the same on both sides: some of what is drawn is such as
// no machine writes.
func (p *player) sound(t T) string {
	var found [2]string
	for i, s := range p.sides {
		report, err := ledger.Check(t.Context(), s.raw, &ledger.CheckOptions{ChainsOnly: true})
		for _, f := range report.Findings {
			if !strings.HasSuffix(f.Do, "catch-up.") { // the check takes its own time for that of the clock
				found[i] += "\n\t" + f.Where() + ": " + f.Do
			}
		}
		found[i] += "\n\t" + classOf(err)
	}
	if found[0] != found[1] {
		return fmt.Sprintf("check of the reference:%s\nand of the store:%s", found[0], found[1])
	}
	return ""
}

// call is one kind of call.
type call struct {
	name   string
	weight int
	do     func(d *draw, s *side)
}

var calls = slices.Concat(ledgerCalls, otherCalls, gateCalls)

// draw draws the arguments of one call. They are the same for both sides, whatever was called before, but
// for the time.
type draw struct {
	*rand.Rand
	*player
	harness Harness
	t       T
	args    string // those that a reader wants to see
}

// begin draws the kind of call that a number stands for, and then the same arguments again.
func (d *draw) begin(n uint32) call {
	d.Rand, d.args = rand.New(rand.NewPCG(uint64(n), 7)), ""
	weight := 0
	for i := range calls {
		weight += calls[i].weight
	}
	at, i := d.IntN(weight), 0
	for ; at >= calls[i].weight; i++ {
		at -= calls[i].weight
	}
	return calls[i]
}

// with notes an argument of the call for a reader.
func (d *draw) with(arg any) { d.args += fmt.Sprintf(" %+v", arg) }

func pick[E any](d *draw, all ...E) E { return all[d.IntN(len(all))] }

// one reports true once in n times.
func (d *draw) one(n int) bool { return d.IntN(n) == 0 }

// shift is a time a few seconds from now, by whole milliseconds.
func (d *draw) shift(from, to int) time.Time {
	return d.now.Add(time.Duration(from+d.IntN(to-from)) * 500 * time.Millisecond)
}

// oddity is text that few databases bend, and sometimes one that none stores.
func (d *draw) oddity(usual ...string) string {
	switch {
	case d.one(40):
		return pick(d, "a\x00", "\xff", strings.Repeat("x", ledger.MaxText+1))
	case d.one(12):
		return pick(d, oddTexts...)
	}
	return pick(d, usual...)
}

// coverage counts how often each method met each class of error.
type coverage map[string]int

func (c coverage) add(method, class string) {
	if c != nil {
		c[method+" "+class]++
	}
}

// report prints what was met, and what is [expected] and was not, which at night is a failure.
func (c coverage) report(t *testing.T) {
	t.Helper()
	for _, pair := range slices.Sorted(maps.Keys(c)) {
		t.Logf("%s: %d times", pair, c[pair])
	}
	for line := range strings.FieldsFuncSeq(expected, func(r rune) bool { return r == ';' }) {
		words := strings.Fields(line)
		for _, class := range words[1:] {
			if pair := words[0] + " " + class; c[pair] == 0 && pace.AtNight() {
				t.Errorf("%s was never met", pair)
			} else if c[pair] == 0 {
				t.Logf("%s was not met today", pair)
			}
		}
	}
}

// classes are the errors that a caller can tell apart, and what they are called here.
var classes = []struct {
	name string
	err  error
}{
	{"not-found", ledger.ErrNotFound}, {"invalid", ledger.ErrInvalid}, {"cursor", ledger.ErrCursor}, {"changed", ledger.ErrChanged},
	{"session-dead", ledger.ErrSessionDead}, {"database-changed", ledger.ErrDatabaseChanged},
	{"definition-changed", ledger.ErrDefinitionChanged}, {"no-delivery", intake.ErrNotFound}, {"no-plan", plan.ErrNotFound},
	{"moved", scan.ErrMoved}, {"no-run", schedule.ErrNotFound}, {"refused", errRefused},
}

func classOf(err error) string {
	if err == nil {
		return "ok"
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "error"
}

// tell is what a call answered: what came with an error is not compared.
func (s *side) tell(method string, err error, answers ...any) {
	class := classOf(err)
	if s.met.add(method, class); class == "error" {
		s.last = err
	}
	fmt.Fprintf(&s.said, "\n\t%s: %s", method, class)
	if err == nil {
		for _, a := range answers {
			s.said.WriteByte(' ')
			s.value(reflect.ValueOf(&a).Elem())
		}
	}
}

// says is tell for a call that answers one thing.
func (s *side) says(method string) func(answer any, err error) {
	return func(answer any, err error) { s.tell(method, err, answer) }
}

// sorted is for answers that come in any order.
func sorted[E any](all []E, key func(E) string) []E {
	all = slices.Clip(append([]E(nil), all...)) // nil of none
	slices.SortFunc(all, func(a, b E) int { return cmp.Compare(key(a), key(b)) })
	return all
}

// rare are stores that break a rule which only a rare history meets.
var rare = broken{
	"wait-stays":         func(s Store) Store { return sweeping{s} },
	"wait-with-record":   func(s Store) Store { return rash{s} },
	"room-asked":         func(s Store) Store { return crowding{s} },
	"in-sync-out":        func(s Store) Store { return clinging{s} },
	"act-kept":           func(s Store) Store { return shortlived{s} },
	"over-told":          func(s Store) Store { return everlasting{s} },
	"read-once":          func(s Store) Store { return signalRepeater{s} },
	"class-order":        func(s Store) Store { return impatient{s} },
	"structure-compared": func(s Store) Store { return forgiving{s} },
}

// DifferCatches plays histories on each store of [rare] until one shows what is broken: two minutes at
// most, at night.
func DifferCatches(t *testing.T, h Harness) {
	t.Helper()
	pace.Night(t)
	for name, how := range rare {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, end := 1, time.Now().Add(2*time.Minute); time.Now().Before(end); n++ {
				history := make([]uint32, historyLength)
				for i := range history {
					history[i] = rand.Uint32() >> rand.IntN(32) //nolint:gosec // no secret
				}
				if where := play(t, h, how, history, nil, func(...any) {}); where != "" {
					t.Logf("history %d: %s", n, where)
					return
				}
			}
			t.Errorf("no history shows that the rule %q is broken", name)
		})
	}
}
