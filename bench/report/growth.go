package report

// Growth is what finished works cost a new one on one ledger at one load. The
// figures are medians of interleaved rounds. By how much a new work is slower is
// taken within each round, where both runs are neighbours, and is a median, too: a
// machine that is busy for a while moves it less than a quotient of medians.
type Growth struct {
	Ledger        string  `json:"ledger"`
	InFlight      int     `json:"in_flight"`
	Works         int     `json:"finished_works"`
	EmptyRate     float64 `json:"empty_sagas_per_second"`
	GrownRate     float64 `json:"grown_sagas_per_second"`
	EmptyP50      float64 `json:"empty_latency_ms_p50"`
	GrownP50      float64 `json:"grown_latency_ms_p50"`
	EmptyCPU      float64 `json:"empty_cpu_ms_per_saga"`
	GrownCPU      float64 `json:"grown_cpu_ms_per_saga"`
	SlowerPercent float64 `json:"slower_percent"` // by the rates; below zero: faster
	Rounds        int     `json:"rounds"`
}

// Growths compares the subject on a grown ledger with the floor, which is the same
// engine on an empty one.
func Growths(groups []Group, works int) []Growth {
	var lines []Growth
	for _, g := range groups {
		if g.Role != Subject {
			continue
		}
		before, ok := find(groups, g, Floor)
		if !ok {
			continue
		}
		p50 := func(s Sample) float64 { return s.P50 }
		cpu := func(s Sample) float64 { return s.EngineCPU + s.DatabaseCPU }
		lines = append(lines, Growth{
			Ledger:        g.Ledger,
			InFlight:      g.InFlight,
			Works:         works,
			EmptyRate:     round(before.Median(rate)),
			GrownRate:     round(g.Median(rate)),
			EmptyP50:      round(before.Median(p50)),
			GrownP50:      round(g.Median(p50)),
			EmptyCPU:      round(before.Median(cpu)),
			GrownCPU:      round(g.Median(cpu)),
			SlowerPercent: round((slowdown(before, g) - 1) * 100),
			Rounds:        len(g.Samples),
		})
	}
	return lines
}

// slowdown is the median over the rounds of how many times slower one group
// was than another. The samples of a round share its number.
func slowdown(before, after Group) float64 {
	rates := make(map[int]float64, len(before.Samples))
	for _, s := range before.Samples {
		rates[s.Round] = s.SagasPerSecond
	}
	return after.Median(func(s Sample) float64 { return rates[s.Round] / s.SagasPerSecond })
}
