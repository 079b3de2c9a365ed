package play

import (
	"bytes"
	"strings"
	"testing"
)

// What is wrong with the values of the command line is named all at once, with status 2. Asking for help is
// no fault.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-kills -1 -orders 0 -faults NaN -workers 2": "-orders must be at least 1\n-faults must lie between 0 and 1\n-kills must not be negative\n" +
			"-workers: a SQLite ledger takes one sync process; give a Postgres URL with -db for more\n",
		"-orders x":                    "invalid value \"x\" for flag -orders: parse error\n",
		"-db postgres://x -workers -3": "-workers must be at least 1, or 0 for the default\n",
		"-json somewhere":              "\"somewhere\" belongs to no flag\n",
	} {
		var out, log bytes.Buffer
		status := Run(t.Context(), Job{}, strings.Fields(args), nil, &out, &log)
		said, named := strings.CutPrefix(log.String(), "orders-to-accounting: wrong command line; -h explains the flags\n")
		if status != 2 || !named || said != want || out.Len() > 0 {
			t.Errorf("%s: exit status %d\n%s%s\nwant\n%s", args, status, out.String(), said, want)
		}
	}
	var out, log bytes.Buffer
	if status := Run(t.Context(), Job{}, []string{"-h"}, nil, &out, &log); status != 0 || log.Len() > 0 || !strings.Contains(out.String(), "Exit status: 0") {
		t.Errorf("-h: exit status %d\n%s%s", status, out.String(), log.String())
	}
}

// Without -workers there is one process on SQLite and three on Postgres; without -seed, one that can be
// repeated. A password is not printed.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for db, workers := range map[string]int{"ledger.db": 1, "postgres://x/y": 3, "postgresql://x/y": 3} {
		o, err := parse([]string{"-db", db})
		if err != nil || o.workers != workers || o.seed == 0 || o.orders != 300 || o.kills != 8 || o.faults != 0.15 || o.json {
			t.Errorf("%s: %+v, %v", db, o, err)
		}
	}
	if got := withoutPassword("postgres://ada:secret@x/y"); strings.Contains(got, "secret") {
		t.Errorf("printed as %s", got)
	}
}
