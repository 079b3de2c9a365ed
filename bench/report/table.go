package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable writes the medians of all groups for people to read. ratio is the heading of the
// rates' quotient to the floor's. Beside it stands the one to the other build's, if there was
// another.
func WriteTable(w io.Writer, groups []Group, ratio string) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	header := table.Row{
		"ledger", "in flight", "engine", "sagas/s", "min–max", ratio, "of before",
		"p50 ms", "p99 ms", "commits", "log bytes", "CPU ms engine", "CPU ms db", "RSS MB",
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(rightAligned(len(header)))
	for i, g := range groups {
		if i > 0 && (groups[i-1].Ledger != g.Ledger || groups[i-1].InFlight != g.InFlight) {
			t.AppendSeparator()
		}
		t.AppendRow(row(g, floorRate(groups, g), ofBefore(groups, g)))
	}
	t.SuppressEmptyColumns()
	t.Render()
}

func row(g Group, floor, before float64) table.Row {
	rates := g.figures(rate)
	ratio, change := "", ""
	if floor > 0 {
		ratio = fmt.Sprintf("%.2f", g.Median(rate)/floor)
	}
	if before > 0 {
		change = fmt.Sprintf("%.3f", before)
	}
	cell := func(figure func(Sample) float64) string { return number(g.Median(figure)) }
	return table.Row{
		g.Ledger, g.InFlight, g.Engine,
		cell(rate), number(rates[0]) + "–" + number(rates[len(rates)-1]), ratio, change,
		cell(func(s Sample) float64 { return s.P50 }),
		cell(func(s Sample) float64 { return s.P99 }),
		cell(func(s Sample) float64 { return s.Commits }),
		cell(func(s Sample) float64 { return s.LogBytes }),
		cell(func(s Sample) float64 { return s.EngineCPU }),
		cell(func(s Sample) float64 { return s.DatabaseCPU }),
		cell(func(s Sample) float64 { return s.PeakMemory }),
	}
}

// number prints three significant digits, and all digits of large numbers.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// rightAligned aligns every column of figures to the right, that is all but
// the names of ledger and engine.
func rightAligned(columns int) []table.ColumnConfig {
	var configs []table.ColumnConfig
	for n := 1; n <= columns; n++ {
		if n == 1 || n == 3 {
			continue
		}
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return configs
}
