package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
)

// TestMain lets the test binary be the process of a cell.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "cell" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run executes a command and returns the lines of JSON it printed.
func run(t *testing.T, args ...string) ([]map[string]any, error) {
	t.Helper()
	var out, people bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetErr(&people)
	cmd.SetArgs(append(args, "--rounds", "1", "--duration", "100ms", "--warm-up", "10ms", "--in-flight", "1,8"))
	err := cmd.ExecuteContext(t.Context())
	t.Log(people.String())
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q is not a line of JSON: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines, err
}

// A comparison ends with one line for each ledger and load, and every figure in
// it was measured.
func TestCompare(t *testing.T) {
	pace.Night(t)
	lines, err := run(t, "compare")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines, want one for each of two ledgers and two loads: %v", len(lines), lines)
	}
	for _, l := range lines {
		for _, key := range []string{
			"in_flight", "sagas_per_second", "floor_sagas_per_second", "ratio", "without_group_commit_sagas_per_second",
			"latency_ms_p50", "latency_ms_p99", "wal_bytes_per_saga", "commits_per_saga", "cpu_ms_per_saga", "rss_mb",
		} {
			if v, ok := l[key].(float64); !ok || v <= 0 {
				t.Errorf("%v, %v in flight: %s is %v", l["ledger"], l["in_flight"], key, l[key])
			}
		}
		// One saga alone shares its commits with nobody: five records, five commits. A
		// heartbeat may add one.
		if c, _ := l["commits_per_saga"].(float64); l["in_flight"] == 1.0 && (c < 5 || c > 6) {
			t.Errorf("%v: one saga alone took %v commits, want 5", l["ledger"], c)
		}
	}
}

// Growth fails when works are slower than the limit allows, and only then.
func TestGrowthLimit(t *testing.T) {
	pace.Night(t)
	lines, err := run(t, "growth", "--works", "2000", "--limit", "100000")
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines and %v, want four lines", len(lines), err)
	}
	for _, l := range lines {
		if rate, _ := l["grown_sagas_per_second"].(float64); l["finished_works"] != 2000.0 || rate <= 0 {
			t.Errorf("odd line: %v", l)
		}
	}
	if _, err := run(t, "growth", "--works", "2000", "--limit", "-100", "--ledgers", "sqlite"); err == nil ||
		!strings.Contains(err.Error(), "slow a new one by") {
		t.Errorf("a limit that nothing can keep gave %v", err)
	}
}

// All that is wrong with the arguments is told at once, before anything starts.
func TestArguments(t *testing.T) {
	cmd := command()
	cmd.SetArgs([]string{"compare", "--ledgers", "oracle", "--in-flight", "0", "--rounds", "0"})
	err := cmd.ExecuteContext(t.Context())
	for _, want := range []string{"oracle", "--in-flight", "--rounds"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not speak of %s", err, want)
		}
	}
}
