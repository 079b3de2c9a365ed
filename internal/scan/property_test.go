package scan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/scan"
)

var errKilled = errors.New("the process was killed")

// kill makes the runs of a sweep end after so many calls; negative: never.
func (b *bench) kill(after int) {
	b.config.Proceed = func(context.Context) error {
		if after == 0 {
			return errKilled
		}
		after--
		return nil
	}
}

// unheard lists orders whose last state was not the last one heard.
func (b *bench) unheard() (missing []string) {
	heard := b.heard()
	for id, o := range b.orders {
		if totals := heard[id]; len(totals) == 0 || totals[len(totals)-1] != o.total {
			missing = append(missing, fmt.Sprintf("%s at %s is %d, heard was %v", id, o.changed.Format(time.RFC3339Nano), o.total, totals))
		}
	}
	return missing
}

// habit draws how the shop lists.
func (b *bench) habit(rt *rapid.T) {
	b.step = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(rt, "step")
	b.ahead = rapid.SampledFrom([]time.Duration{0, 9 * time.Minute, -5 * time.Minute}).Draw(rt, "ahead")
	b.config.Page = rapid.IntRange(1, 12).Draw(rt, "page")
	switch rapid.SampledFrom([]string{"keyset", "keyset", "time", "short"}).Draw(rt, "habit") {
	case "time": // with pages that get past every tie
		b.byTime, b.config.Page = true, 12
	case "short":
		b.most = 1
	}
}

// Whatever a source does that keeps its promises (clocks of any resolution, ties across the edges
// of pages, changes that are shown minutes late, cursors that expire), wherever a process is
// killed, and whatever page fails: when all is shown and a run came to its end, of every object the
// last state was heard, and it was heard last.
func TestEveryLastStateIsHeard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		b.habit(rt)
		total := 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"put", "put", "put", "wait", "run", "run", "expire", "fail"}).Draw(rt, "what") {
			case "put":
				for range rapid.IntRange(1, 5).Draw(rt, "puts") {
					total++
					late := time.Duration(rapid.IntRange(0, 240).Draw(rt, "late")) * time.Second
					b.put(fmt.Sprint(rapid.IntRange(0, 30).Draw(rt, "id")), total, late)
				}
			case "wait":
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 3600).Draw(rt, "seconds")) * time.Second)
			case "expire":
				b.expired = func(string) bool { b.expired = nil; return true }
			case "fail":
				b.before = func(*scan.Query) error { b.before = nil; return errors.New("503") }
			case "run":
				b.kill(rapid.IntRange(-1, 8).Draw(rt, "kill"))
				if _, err := b.sweep().Changed(rt.Context()); err != nil && !errors.Is(err, errKilled) {
					rt.Fatal(err)
				}
			}
			b.now = b.now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
		}
		b.now = b.now.Add(15 * time.Minute)
		b.kill(-1)
		b.expired, b.before = nil, nil
		r, err := b.sweep().Changed(rt.Context())
		if err != nil || r.Result != scan.OK {
			rt.Fatalf("the last run: %+v, %v", r, err)
		}
		if missing := b.unheard(); len(missing) > 0 {
			rt.Fatalf("not heard, with the cursor on %s:\n%s", r.After, strings.Join(missing, "\n"))
		}
	})
}

// tampered draws what is wrong with the next pages of a full listing.
func (b *bench) tampered(rt *rapid.T) {
	wrong := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "cut", "empty", "drop", "twice", "503", "killed"}), 1, 30).Draw(rt, "wrong")
	n := -1
	b.before = func(*scan.Query) error {
		if n++; wrong[n%len(wrong)] == "503" {
			return errors.New("503")
		}
		return nil
	}
	b.config.Proceed = func(context.Context) error {
		if n >= 0 && wrong[n%len(wrong)] == "killed" {
			return errKilled
		}
		return nil
	}
	b.after = func(_ *scan.Query, p *scan.Page) {
		switch wrong[n%len(wrong)] {
		case "cut":
			p.Next = ""
		case "empty":
			*p = scan.Page{}
		case "drop":
			p.Objects = p.Objects[:max(0, len(p.Objects)-1)]
		case "twice":
			if len(p.Objects) > 1 {
				p.Objects[0] = p.Objects[1]
			}
		}
	}
}

// Whatever is left out of the pages of a listing, cut off, or shown twice, and wherever it is
// interrupted: a generation that is complete holds every object; a partial listing completes none.
// When the source rests and answers as it should, the listing is complete and holds the source and
// nothing else.
func TestPartialListingsCompleteNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := divided(t)
		maps.DeleteFunc(b.orders, func(id string, _ *order) bool { return id[1] > '4' }) // five in each of ten parts
		b.config.Page = rapid.IntRange(1, 7).Draw(rt, "page")
		complete := int64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "runs") {
			b.tampered(rt)
			r, err := b.sweep().List(rt.Context(), scan.SourceSide)
			if err != nil && !errors.Is(err, errKilled) {
				rt.Fatal(err)
			}
			if c := r.Listed.Complete; c != nil && c.Scan > complete {
				complete = c.Scan
				seen := b.sightings(complete)
				for id := range b.orders {
					if seen[id].Key == "" {
						rt.Fatalf("listing %d is complete without order %s; it has %d rows: %+v", complete, id, len(seen), c)
					}
				}
			}
		}
		b.before, b.after, b.config.Proceed = nil, nil, nil
		delete(b.orders, "33")
		b.put("4x", 1, 0)
		for runs, open := 0, int64(math.MaxInt64); complete <= open; runs++ { // until one is complete that began now
			r, err := b.sweep().List(rt.Context(), scan.SourceSide)
			if err != nil || runs > 4 {
				rt.Fatalf("with a source that rests: %+v, %v", r, err)
			}
			if runs == 0 {
				open = r.Listed.Generation
			}
			if r.Listed.Complete != nil {
				complete = r.Listed.Complete.Scan
			}
		}
		if got, want := slices.Sorted(maps.Keys(b.sightings(0))), slices.Sorted(maps.Keys(b.orders)); !slices.Equal(got, want) {
			rt.Fatalf("there are %v, want %v", got, want)
		}
	})
}
