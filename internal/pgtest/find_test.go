package pgtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/pgtest"
)

// The newest version wins by number, not by name, and half an installation (the
// client package alone) does not count.
func TestNewestVersionWins(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for folder, programs := range map[string][]string{
		"9.6": {"initdb", "pg_ctl", "postgres"},
		"14":  {"initdb", "pg_ctl", "postgres"},
		"16":  {"initdb", "pg_ctl", "postgres"},
		"17":  {"psql", "pg_ctl"},
	} {
		bin := filepath.Join(base, folder, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			if err := os.WriteFile(filepath.Join(bin, program), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := filepath.Rel(base, pgtest.Newest([]string{filepath.Join(base, "*", "bin")}))
	if err != nil || got != filepath.Join("16", "bin") {
		t.Errorf("newest = %q, %v; want 16/bin", got, err)
	}
	if got := pgtest.Newest([]string{filepath.Join(base, "nowhere", "*")}); got != "" {
		t.Errorf("newest of nothing = %q", got)
	}
}
