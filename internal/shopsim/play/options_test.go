package play

import (
	"bytes"
	"strings"
	"testing"
)

// The command line's faults are named all at once, with status 2. Asking for help is no fault.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-kills -1 -orders 0 -faults NaN -workers 2": "-orders must be at least 1\n-faults must lie between 0 and 1\n-kills must not be negative\n" +
			"-workers: a SQLite ledger takes one sync process; give a Postgres URL with -db for more\n",
		"-orders x -kills -1":            "invalid value \"x\" for flag -orders: parse error\n-kills must not be negative\n",
		"-bogus -= here -faults 2":       "flag provided but not defined: -bogus\nbad flag syntax: -=\n\"here\" belongs to no flag\n-faults must lie between 0 and 1\n",
		"-=":                             "bad flag syntax: -=\n",
		"-db":                            "flag needs an argument: -db\n",
		"-db postgres://x -workers -3":   "-workers must be at least 1, or 0 for the default\n",
		"-seed -1 -json=maybe somewhere": "invalid value \"-1\" for flag -seed: parse error\ninvalid boolean value \"maybe\" for -json: parse error\n\"somewhere\" belongs to no flag\n",
	} {
		var out, log bytes.Buffer
		status := Run(t.Context(), Job{}, strings.Fields(args), nil, &out, &log)
		said, named := strings.CutPrefix(log.String(), "orders-to-accounting: wrong command line; -h explains the flags\n")
		if status != 2 || !named || said != want || out.Len() > 0 {
			t.Errorf("%s: exit status %d\n%s%s\nwant\n%s", args, status, out.String(), said, want)
		}
	}
	var out, log bytes.Buffer
	if status := Run(t.Context(), Job{}, []string{"-orders", "0", "-h"}, nil, &out, &log); status != 0 || log.Len() > 0 {
		t.Errorf("-h: exit status %d\n%s", status, log.String())
	}
	for _, want := range []string{"-orders", "-seed", "-faults", "-kills", "-workers", "-db", "-json", "Exit status: 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("-h does not speak of %s", want)
		}
	}
}

// Without -workers there is one process on SQLite and three on Postgres; without -seed, one that
// can be repeated.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for db, workers := range map[string]int{"ledger.db": 1, "postgres://x/y": 3, "postgresql://x/y": 3} {
		o, err := parse([]string{"-db", db})
		if err != nil || o.workers != workers || o.seed == 0 || o.orders != 300 || o.kills != 8 || o.faults != 0.15 || o.json {
			t.Errorf("%s: %+v, %v", db, o, err)
		}
	}
}
