package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
)

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
	counts := map[string]map[string]int64{}
	sums := map[string]int64{}
	for _, d := range days {
		if counts[d.Day] == nil {
			counts[d.Day] = map[string]int64{}
		}
		counts[d.Day][d.By] += d.Count
		sums[d.By] += d.Count
	}
	names := []string{"start", "receiver", "version"}
	for _, name := range names {
		c.Layers = append(c.Layers, layer{name, sums[name]})
	}
	for _, of := range counts {
		var sum int64
		for _, n := range of {
			sum += n
		}
		c.Most = max(c.Most, sum)
	}
	for i := range chartDays {
		day := now.UTC().AddDate(0, 0, i-chartDays+1).Format(time.DateOnly)
		c.Days = append(c.Days, c.column(i, day, counts[day], names))
	}
	return c
}

func (c *chart) column(i int, day string, counts map[string]int64, names []string) column {
	col := column{X: i * columnWidth}
	words := []string{day + ":"}
	y := chartHeight
	for _, name := range names {
		n := counts[name]
		words = append(words, fmt.Sprintf("%d by %s", n, name))
		if n > 0 {
			h := max(int(n*chartHeight/max(c.Most, n)), 1)
			y = max(y-h, 0)
			col.Parts = append(col.Parts, part{name, y, h})
		}
	}
	col.Title = strings.Join(words, " ")
	if i%15 == 0 || i == chartDays-1 {
		col.Label = day[5:]
	}
	return col
}
