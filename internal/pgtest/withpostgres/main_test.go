package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// with runs withpostgres and returns its exit status and what was printed.
func with(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status, err := run(args, &out, &errs)
	if err != nil {
		errs.WriteString(err.Error())
	}
	return status, strings.TrimSpace(out.String()), errs.String()
}

// The exit status is the command's own, so that make and CI see it.
func TestExitStatus(t *testing.T) {
	pace.Day(t)
	t.Setenv(pgtest.Env, "postgres://given/none") // nothing connects to it
	for _, tc := range []struct {
		name string
		args []string
		want int
	}{
		{"success", []string{"true"}, 0},
		{"failure", []string{"sh", "-c", "exit 7"}, 7},
		{"killed", []string{"sh", "-c", "kill -9 $$"}, 128 + 9},
		{"no such command", []string{"no-such-command-anywhere"}, 1},
		{"no command", nil, 2},
		{"unknown flag", []string{"-unknown"}, 2},
		{"settings for a server that is not ours", []string{"-set", "work_mem=1MB", "true"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, _, said := with(t, tc.args...); got != tc.want {
				t.Errorf("status %d; want %d. It said: %s", got, tc.want, said)
			}
		})
	}
}
