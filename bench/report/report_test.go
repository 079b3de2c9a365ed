package report

import (
	"bytes"
	"strings"
	"testing"
)

// rounds returns one sample per rate.
func rounds(ledger string, role Role, inFlight int, rates ...float64) []Sample {
	var samples []Sample
	for i, r := range rates {
		samples = append(samples, Sample{
			Ledger: ledger, Engine: string(role) + " x", Role: role, Round: i + 1, InFlight: inFlight,
			SagasPerSecond: r, P50: 1000 / r, LogBytes: 1700.4, EngineCPU: 0.0312345, DatabaseCPU: 0.05,
		})
	}
	return samples
}

func example() []Group {
	samples := rounds("postgres", Floor, 64, 20_000, 10_000, 12_000)
	samples = append(samples, rounds("postgres", Subject, 64, 6_000, 9_000, 5_000)...)
	samples = append(samples, rounds("postgres", Single, 64, 700, 900, 800)...)
	samples = append(samples, rounds("sqlite", Floor, 64, 30_000)...)
	return Groups(samples)
}

// A line has medians, and its ratio is the one of the rates beside it. A ledger
// on which amends did not run has no line.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, Lines(example())); err != nil {
		t.Fatal(err)
	}
	const want = `{"ledger":"postgres","in_flight":64,"sagas_per_second":6000,"floor_sagas_per_second":12000,"ratio":0.5,` +
		`"without_group_commit_sagas_per_second":800,"latency_ms_p50":0.1667,"latency_ms_p99":0,"commits_per_saga":0,` +
		`"wal_bytes_per_saga":1700,"cpu_ms_per_saga":0.08123,"engine_cpu_ms_per_saga":0.03123,"database_cpu_ms_per_saga":0.05,` +
		`"rss_mb":0,"rounds":3}` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
}

// The table shows every engine with its ratio to the floor of its own ledger and load.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	WriteTable(&out, example(), "of floor")
	for _, want := range []string{"5000–9000", " 0.50 ", " 0.07 ", "floor x", "OF FLOOR"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

// How much slower a grown ledger is compares neighbours: here the machine was busy
// in the second round, and the works cost a quarter all the same.
func TestGrowth(t *testing.T) {
	samples := rounds("sqlite", Floor, 1, 1000, 100, 1000, 1000, 1000)
	samples = append(samples, rounds("sqlite", Subject, 1, 800, 80, 1000, 790, 500)...)
	lines := Growths(Groups(samples), 7)
	if len(lines) != 1 || lines[0].SlowerPercent != 25 || lines[0].Works != 7 || lines[0].GrownRate != 790 {
		t.Errorf("got %+v, want one line, 25 %% slower, 790 sagas a second", lines)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{7}, 7},
		{nil, 0},
	} {
		g := Group{Samples: rounds("l", Floor, 1, test.rates...)}
		if got := g.Median(rate); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.rates, got, test.want)
		}
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{
		0: 0, 12345.678: 12346, 1234.56: 1235, 0.0123456: 0.01235, 9.99999: 10, -2.34567: -2.346,
	} {
		if got := round(in); got != want {
			t.Errorf("round(%v) = %v, want %v", in, got, want)
		}
	}
}

// This build is compared with another one round by round: here the machine was busy in the second
// round, and this build is a tenth faster all the same. The floor has no other build.
func TestBefore(t *testing.T) {
	samples := rounds("postgres", Floor, 64, 20_000, 2_000, 20_000)
	samples = append(samples, rounds("postgres", Subject, 64, 1_100, 110, 1_150)...)
	samples = append(samples, rounds("postgres", Subject+ByBefore, 64, 1_000, 100, 1_000)...)
	groups := Groups(samples)
	if got := ofBefore(groups, groups[1]); got < 1.0999 || got > 1.1001 {
		t.Errorf("%v of before, want 1.1", got)
	}
	if lines := Lines(groups); len(lines) != 1 || lines[0].OfBefore != 1.1 {
		t.Errorf("%+v, want one line with 1.1 of before", lines)
	}
	var out bytes.Buffer
	WriteTable(&out, groups, "of floor")
	if !strings.Contains(out.String(), " 1.100 ") || !strings.Contains(out.String(), "amends, before x") {
		t.Errorf("the table does not tell it:\n%s", out.String())
	}
	out.Reset()
	WriteTable(&out, example(), "of floor")
	if strings.Contains(out.String(), "BEFORE") {
		t.Errorf("there is nothing before:\n%s", out.String())
	}
}
