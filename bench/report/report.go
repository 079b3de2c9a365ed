package report

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"slices"
)

// Role says what an engine is compared as.
type Role string

// The roles. A summary needs the floor and the subject of a ledger.
const (
	Floor   Role = "floor"                       // the lower bound
	Subject Role = "amends"                      // what is measured
	Single  Role = "amends without group commit" // the same, one commit per append
	Slow    Role = "amends, one slow destination"
)

// ByBefore ends the role and the name of what another build measured.
const ByBefore = ", before"

// Sample is what one engine showed in one round at one load. Costs are per saga.
type Sample struct {
	Ledger         string  `json:"ledger"`
	Engine         string  `json:"engine"`
	Role           Role    `json:"role"`
	Round          int     `json:"round"`
	InFlight       int     `json:"in_flight"`
	Sagas          int     `json:"sagas"`
	SagasPerSecond float64 `json:"sagas_per_second"`
	P50            float64 `json:"latency_ms_p50"`
	P99            float64 `json:"latency_ms_p99"`
	Commits        float64 `json:"commits_per_saga"`
	LogBytes       float64 `json:"wal_bytes_per_saga"`
	EngineCPU      float64 `json:"engine_cpu_ms_per_saga"`
	DatabaseCPU    float64 `json:"database_cpu_ms_per_saga"`
	SlowRate       float64 `json:"slow_destination_sagas_per_second,omitempty"`
	PeakMemory     float64 `json:"rss_mb"`
}

// Group is one engine at one load, with the samples of all its rounds.
type Group struct {
	Ledger, Engine string
	Role           Role
	InFlight       int
	Samples        []Sample
}

// Median returns the median of one figure over the rounds.
func (g Group) Median(figure func(Sample) float64) float64 {
	if len(g.Samples) == 0 {
		return 0
	}
	v := g.figures(figure)
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// figures returns one figure of all rounds, sorted.
func (g Group) figures(figure func(Sample) float64) []float64 {
	v := make([]float64, len(g.Samples))
	for i, s := range g.Samples {
		v[i] = figure(s)
	}
	slices.Sort(v)
	return v
}

// rate is the figure that most comparisons are about.
func rate(s Sample) float64 { return s.SagasPerSecond }

// Groups collects samples by ledger, load and engine, floor first.
func Groups(samples []Sample) []Group {
	var groups []Group
	for _, s := range samples {
		i := slices.IndexFunc(groups, func(g Group) bool {
			return g.Ledger == s.Ledger && g.InFlight == s.InFlight && g.Engine == s.Engine
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Ledger: s.Ledger, Engine: s.Engine, Role: s.Role, InFlight: s.InFlight})
		}
		groups[i].Samples = append(groups[i].Samples, s)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Ledger, b.Ledger), cmp.Compare(a.InFlight, b.InFlight))
	})
	return groups
}

// floorRate is the floor's median rate at the load of a group, 0 if it did not run.
func floorRate(groups []Group, like Group) float64 { return rateOf(groups, like, Floor) }

func rateOf(groups []Group, like Group, role Role) float64 {
	g, _ := find(groups, like, role)
	return g.Median(rate)
}

// find returns the group in a role on the ledger and at the load of another.
func find(groups []Group, like Group, role Role) (Group, bool) {
	i := slices.IndexFunc(groups, func(g Group) bool {
		return g.Ledger == like.Ledger && g.InFlight == like.InFlight && g.Role == role
	})
	if i < 0 {
		return Group{}, false
	}
	return groups[i], true
}

// ofBefore is the median over the rounds of a group's rate by that of the other build in the same
// round, 0 if there is none.
func ofBefore(groups []Group, g Group) float64 {
	before, ok := find(groups, g, g.Role+ByBefore)
	if !ok {
		return 0
	}
	return 1 / slowdown(before, g)
}

// Line is the result of one ledger at one load. Figures are medians of the
// rounds; the ratio is the one of the two medians beside it.
type Line struct {
	Ledger         string  `json:"ledger"`
	InFlight       int     `json:"in_flight"`
	SagasPerSecond float64 `json:"sagas_per_second"`
	FloorRate      float64 `json:"floor_sagas_per_second"`
	Ratio          float64 `json:"ratio"`
	OfBefore       float64 `json:"of_before,omitempty"` // median over the rounds of this build's rate ÷ the other's
	SingleRate     float64 `json:"without_group_commit_sagas_per_second"`
	P50            float64 `json:"latency_ms_p50"`
	P99            float64 `json:"latency_ms_p99"`
	Commits        float64 `json:"commits_per_saga"`
	LogBytes       float64 `json:"wal_bytes_per_saga"`
	CPU            float64 `json:"cpu_ms_per_saga"` // engine and database
	EngineCPU      float64 `json:"engine_cpu_ms_per_saga"`
	DatabaseCPU    float64 `json:"database_cpu_ms_per_saga"`
	SlowRate       float64 `json:"slow_destination_sagas_per_second,omitempty"`
	PeakMemory     float64 `json:"rss_mb"`
	Rounds         int     `json:"rounds"`
}

// Lines returns one line for each ledger and load at which the subject ran.
func Lines(groups []Group) []Line {
	var lines []Line
	for _, g := range groups {
		if g.Role != Subject {
			continue
		}
		line := Line{
			Ledger:         g.Ledger,
			InFlight:       g.InFlight,
			SagasPerSecond: round(g.Median(rate)),
			FloorRate:      round(floorRate(groups, g)),
			SingleRate:     round(rateOf(groups, g, Single)),
			SlowRate:       round(rateOf(groups, g, Slow)),
			P50:            round(g.Median(func(s Sample) float64 { return s.P50 })),
			P99:            round(g.Median(func(s Sample) float64 { return s.P99 })),
			Commits:        round(g.Median(func(s Sample) float64 { return s.Commits })),
			LogBytes:       round(g.Median(func(s Sample) float64 { return s.LogBytes })),
			CPU:            round(g.Median(func(s Sample) float64 { return s.EngineCPU + s.DatabaseCPU })),
			EngineCPU:      round(g.Median(func(s Sample) float64 { return s.EngineCPU })),
			DatabaseCPU:    round(g.Median(func(s Sample) float64 { return s.DatabaseCPU })),
			PeakMemory:     round(g.Median(func(s Sample) float64 { return s.PeakMemory })),
			Rounds:         len(g.Samples),
			OfBefore:       round(ofBefore(groups, g)),
		}
		if line.FloorRate > 0 {
			line.Ratio = round(g.Median(rate) / floorRate(groups, g))
		}
		lines = append(lines, line)
	}
	return lines
}

// WriteJSON writes each line as one line of JSON.
func WriteJSON[T any](w io.Writer, lines []T) error {
	enc := json.NewEncoder(w)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// round keeps four significant digits; the rest is noise.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit >= 1 {
		return math.Round(v)
	}
	return math.Round(v/unit) / math.Round(1/unit)
}
