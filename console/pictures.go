package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// timeline is an instance over time: a row for each step and direction, a bar for each attempt, wait and doubt.
type timeline struct {
	Rows   []lane
	Height int
	From   time.Time
	To     time.Time
}

// lane is a step in one direction. Places are in thousandths of the whole width.
type lane struct {
	Name string
	Y    int
	Bars []bar
}

type bar struct {
	X, W  int
	Kind  string // attempt, wait or doubt
	Tone  string
	Title string // the whole of it in words
}

// laneHeight is the height of a lane, in the units of the picture.
const laneHeight = 28

// timelineOf reads the attempts out of a history: a record dispatches one, a later one says how it
// ended.
func timelineOf(records []desk.Record, now time.Time) timeline {
	t := timeline{To: now}
	if len(records) == 0 {
		return t
	}
	t.From = desk.At(records[0].At)
	if last := &records[len(records)-1]; last.Status.Terminal() {
		t.To = desk.At(last.At)
	}
	if !t.To.After(t.From) {
		t.To = t.From.Add(time.Second)
	}
	of := map[string]int{}
	add := func(name string, b bar) {
		row, known := of[name]
		if !known {
			row = len(t.Rows)
			of[name] = row
			t.Rows = append(t.Rows, lane{Name: name, Y: row * laneHeight})
		}
		t.Rows[row].Bars = append(t.Rows[row].Bars, b)
	}
	for i := range records {
		r, later := &records[i], records[i+1:]
		if r.Dispatch != nil {
			add(effect(r.Dispatch.Step, r.Dispatch.Direction), t.attempt(r.Dispatch, desk.At(r.At), later))
		}
		switch r.Kind { //nolint:exhaustive // what takes time
		case machine.KindWaiting, machine.KindOpened:
			add(effect(r.Step, r.Direction), t.stay("wait", "waits", r, later))
		case machine.KindUnknown, machine.KindLost:
			add(effect(r.Step, r.Direction), t.stay("doubt", "in doubt", r, later))
		}
	}
	t.Height = len(t.Rows) * laneHeight
	return t
}

// effect is a step, or its undo.
func effect(step string, direction saga.Direction) string {
	return desk.When(direction == saga.Undo, "undo of ") + step
}

// attempt is one attempt, from its dispatch to what the later records say of it.
func (t *timeline) attempt(d *desk.Dispatch, begun time.Time, later []desk.Record) bar {
	ended, outcome, words := t.To, "", "under way"
	for i := range later {
		r := &later[i]
		if r.Step == d.Step && r.Direction == d.Direction && r.Attempt == d.Attempt && r.Kind != machine.KindDispatched {
			ended, outcome, words = desk.At(r.At), string(r.Kind), r.Words
			break
		}
	}
	b := t.between(begun, ended)
	b.Kind, b.Tone = "attempt", tone(outcome)
	b.Title = fmt.Sprintf("%s #%d, begun %s, %s later: %s; key %s", effect(d.Step, d.Direction), d.Attempt, iso(begun), span(ended.Sub(begun)), words, d.Key)
	return b
}

// stay is how long a step waits, or is in doubt: until a record tells more of it than that it goes on.
func (t *timeline) stay(kind, words string, r *desk.Record, later []desk.Record) bar {
	begun, ended, how := desk.At(r.At), t.To, "until now"
	for i := range later {
		next := &later[i]
		goesOn := next.Kind == r.Kind || next.Kind == machine.KindVoted || next.Kind == machine.KindExtended || next.Kind == machine.KindUnclear
		if next.Kind == machine.KindRevised || next.Step == r.Step && next.Direction == r.Direction && !goesOn {
			ended, how = desk.At(next.At), "until: "+next.Words
			break
		}
	}
	b := t.between(begun, ended)
	b.Kind, b.Tone = kind, desk.Either(kind == "wait", "live", "warn")
	b.Title = fmt.Sprintf("%s %s from %s, for %s, %s", effect(r.Step, r.Direction), words, iso(begun), span(ended.Sub(begun)), how)
	return b
}

// between is a bar from one time to another.
func (t *timeline) between(begun, ended time.Time) bar {
	whole := t.To.Sub(t.From)
	place := func(at time.Time) int {
		return int(1000 * (float64(min(max(at.Sub(t.From), 0), whole)) / float64(whole)))
	}
	b := bar{X: place(begun)}
	b.W = max(place(ended)-b.X, 4)
	b.X = min(b.X, 1000-b.W)
	return b
}

// chart is what was blocked by day, as bars in which the layers stand upon each other.
type chart struct {
	Days   []column
	Layers []layer
	Most   int64
	Width  int
	Height int
}

type layer struct {
	Name string
	Sum  int64
}

type column struct {
	X     int
	Label string // of some of them
	Parts []part
	Title string
}

type part struct {
	Name string
	Y, H int
}

const (
	chartDays   = 90
	chartHeight = 160
	columnWidth = 10
)

// chartOf draws the last days; one without a duplicate is there, too.
func chartOf(days []desk.Day, now time.Time) chart {
	c := chart{Width: chartDays * columnWidth, Height: chartHeight}
	counts := map[desk.Day]int64{} // of a day and a layer, of the day, and of the layer
	for _, d := range days {
		for _, of := range []desk.Day{{Day: d.Day, By: d.By}, {Day: d.Day}, {By: d.By}} {
			counts[of] += d.Count
		}
		c.Most = max(c.Most, counts[desk.Day{Day: d.Day}])
	}
	for _, name := range layers {
		c.Layers = append(c.Layers, layer{name, counts[desk.Day{By: name}]})
	}
	for i := range chartDays {
		c.Days = append(c.Days, c.column(i, now.UTC().AddDate(0, 0, i-chartDays+1).Format(time.DateOnly), counts))
	}
	return c
}

// layers are what stops duplicates.
var layers = ledger.Layers

func (c *chart) column(i int, day string, counts map[desk.Day]int64) column {
	col := column{X: i * columnWidth}
	words := []string{day + ":"}
	y := chartHeight
	for _, name := range layers {
		n := counts[desk.Day{Day: day, By: name}]
		words = append(words, fmt.Sprintf("%d by %s", n, name))
		if n > 0 {
			h := max(int(n*chartHeight/max(c.Most, n)), 1)
			y = max(y-h, 0)
			col.Parts = append(col.Parts, part{name, y, h})
		}
	}
	col.Title = strings.Join(words, " ")
	col.Label = desk.When(i%15 == 0 || i == chartDays-1, day[5:])
	return col
}
