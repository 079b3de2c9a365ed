package main

import (
	"bytes"
	"errors"
	"net/url"
	"os"
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

// A given server is used as it is.
func TestGivenServer(t *testing.T) {
	pace.Day(t)
	const given = "postgres://given/none"
	t.Setenv(pgtest.Env, given)
	if _, got, _ := with(t, "sh", "-c", "echo $"+pgtest.Env); got != given {
		t.Errorf("the command got %q; want %q", got, given)
	}
}

// A cluster of our own lasts as long as the command, failed or not.
func TestOwnServerEndsWithTheCommand(t *testing.T) {
	pace.Day(t)
	if _, err := pgtest.Find(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Setenv(pgtest.Env, "")
	status, got, said := with(t, "sh", "-c", "echo $"+pgtest.Env+"; exit 3")
	if status != 3 {
		t.Fatalf("status %d; want 3. It said: %s", status, said)
	}
	address, err := url.Parse(got)
	if err != nil || address.Query().Get("host") == "" {
		t.Fatalf("the command got %q, %v; want a URL with a socket", got, err)
	}
	if _, err := os.Stat(address.Query().Get("host")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster is still there: %v", err)
	}
}

// -fresh gives each command another database and drops it, failed or not.
func TestFreshDatabase(t *testing.T) {
	pace.Day(t)
	server := pgtest.URL(t)
	t.Setenv(pgtest.Env, server)
	seen := map[string]bool{server: true}
	for range 2 {
		status, got, said := with(t, "-fresh", "sh", "-c", "echo $"+pgtest.Env+"; exit 1")
		if status != 1 || seen[got] {
			t.Fatalf("status %d, database %q; want 1 and a new one. It said: %s", status, got, said)
		}
		seen[got] = true
		t.Setenv(pgtest.Env, got)
		if status, _, said := with(t, "-fresh", "true"); status == 0 || !strings.Contains(said, "does not exist") {
			t.Errorf("database %s is still there: status %d, %s", got, status, said)
		}
		t.Setenv(pgtest.Env, server)
	}
}
