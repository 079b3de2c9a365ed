package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/plan"
	unseen "github.com/amends-dev/amends/internal/visible"
)

// On a terminal that is wide enough a table has lines; on a narrow one, and in a file, it has none.
// No cell is cut anywhere.
func TestTable(t *testing.T) {
	t.Parallel()
	g := grid{header: []string{"work", "status"}}
	g.add("shop:order:10492", "completed")
	g.add("shop:order:7", "")
	lined := "" +
		"┌──────────────────┬───────────┐\n" +
		"│ WORK             │ STATUS    │\n" +
		"├──────────────────┼───────────┤\n" +
		"│ shop:order:10492 │ completed │\n" +
		"│ shop:order:7     │ -         │\n" +
		"└──────────────────┴───────────┘\n"
	plain := "" +
		"WORK              STATUS\n" +
		"shop:order:10492  completed\n" +
		"shop:order:7      -\n"
	for _, tc := range []struct {
		name   string
		screen screen
		want   string
	}{
		{"terminal", screen{terminal: true, width: 80}, lined},
		{"terminal that just fits", screen{terminal: true, width: 32}, lined},
		{"narrow terminal", screen{terminal: true, width: 31}, plain},
		{"file", screen{}, plain},
	} {
		var out bytes.Buffer
		a := &app{out: &out, screen: tc.screen}
		if a.print(&g); out.String() != tc.want {
			t.Errorf("%s:\n%swant\n%s", tc.name, out.String(), tc.want)
		}
	}
}

// columnsOf are the columns of the verbs that print a list, by their paths.
func columnsOf(of []maker, path string, all map[string]string) {
	for _, m := range of {
		switch m := m.(type) {
		case group:
			columnsOf(m.verbs, m.name+" ", all)
		case interface{ shows() (name, columns string) }:
			if name, columns := m.shows(); columns != "" {
				all[path+name] = columns
			}
		}
	}
}

func (v verb[In, Out]) shows() (name, columns string) { return v.name, v.columns }

// Every column of a list is a field or a function of its rows.
func TestColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	a := &app{out: &out, err: &bytes.Buffer{}, now: func() time.Time { return at }}
	columns := map[string]string{}
	columnsOf(verbs, "", columns)
	for path, rows := range map[string]any{
		"list": []desk.Head{{}}, "duplicates": []desk.Duplicate{{}}, "acts": []desk.Deed{{}}, "approvals": []desk.Approval{{Roles: []string{"finance", "legal"}}},
		"inbox list": []desk.Delivery{{}}, "alerts list": []desk.AlertShown{{}}, "stats": []desk.Total{{}}, "inbox objects": []*desk.Entry{{FailedAttempts: 3}}, "inbox counts": []desk.Count{{}},
		"reconcile runs": []desk.Run{{StartedAt: &at}}, "drift list": []desk.Drift{{}}, "drift decided": []desk.DecidedOn{{}},
	} {
		a.table(rows, columns[path])
		delete(columns, path)
	}
	if len(columns) > 0 {
		t.Errorf("of these no row is printed: %v", columns)
	}
	a.printStatus(nil, &desk.Status{At: &at, Sessions: []desk.Session{{Opened: &at}}})
	a.printDestinations(nil, &desk.Destinations{Items: []desk.Destination{{Waiting: 1000}}})
	a.printBoard(&desk.JobsIn{}, &desk.Board{Items: []desk.Job{{Runs: []time.Time{at}}}})
	a.printScopeActs(&desk.ScopeActs{Acts: []desk.ScopeAct{{At: &at}}})
	for _, want := range []string{"3×", "0s", "1000 or more", "finance, legal", "2026-11-20T03:00:00Z", "2026-11-20T03:00:00.000Z", "the schedule"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row shows %q:\n%s", want, &out)
		}
	}
}

// Long words of others are wrapped on a terminal, behind their margin, and left alone elsewhere.
func TestParagraph(t *testing.T) {
	t.Parallel()
	words := "Look at the destination of step receipt for its key"
	var out bytes.Buffer
	a := &app{out: &out, screen: screen{terminal: true, width: 32}}
	a.paragraph("  ", words)
	if want := "  Look at the destination of\n  step receipt for its key\n"; out.String() != want {
		t.Errorf("wrapped:\n%q\nwant\n%q", out.String(), want)
	}
	out.Reset()
	a.fields("because", words)
	if want := "because   Look at the\n          destination of step\n          receipt for its key\n"; out.String() != want {
		t.Errorf("a field:\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	a.screen = screen{}
	if a.paragraph("  ", words); out.String() != "  "+words+"\n" {
		t.Errorf("in a file: %q", out.String())
	}
}

// A text from elsewhere cannot move the cursor, start a line, or turn the direction of writing.
func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Rechnung für Łukasz ✓": "Rechnung für Łukasz ✓",
		"a\x1b[2Kb":             `a\u001b[2Kb`,
		"a\r\nb":                `a\u000d\nb`,
		"a\tb":                  `a\u0009b`,
		"a\u202eb":              `a\u202eb`,
		"a\u009bb":              `a\u009bb`,
		"a\xffb":                "a\uFFFDb",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}

// People read JSON on terminals, too: no text in it moves the cursor, starts a title or turns the
// direction of writing, in a document, an error or a plan, and a program reads what it was.
func TestVisibleJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Rechnung für Łukasz ✓ <&>":  `"Rechnung für Łukasz ✓ <&>"`,
		"a\u009b2Jb":                 `"a\u009b2Jb"`,
		"a\u009dtitle\u009cb":        `"a\u009dtitle\u009cb"`,
		"a\u0085b":                   `"a\u0085b"`,
		"a\x7fb":                     `"a\u007fb"`,
		"a\u202egnp.exe":             `"a\u202egnp.exe"`,
		"a\u2066b\u2069\u200e\u061c": `"a\u2066b\u2069\u200e\u061c"`,
		"a\x1b[2K\nb\\":              `"a\u001b[2K\nb\\"`,
	} {
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out, failed, planned, body bytes.Buffer
		a := &app{out: &out, err: &failed, json: true}
		none := func(func(plan.Finding, error) bool) {}
		err = errors.Join(a.printJSON(desk.All[string]{Items: []string{in}}), plan.WriteJSON(&unseen.Writer{W: &planned}, desk.API, &plan.Plan{Job: in}, none),
			unseen.JSON(&body, json.RawMessage(raw), ""))
		if err != nil {
			t.Fatal(err)
		}
		a.fail(&desk.Failure{What: in})
		if !strings.HasPrefix(planned.String(), `{"api":"`+desk.API+`",`) {
			t.Errorf("a plan does not begin with its version: %.40s", planned.String())
		}
		for name, got := range map[string]string{"a document": out.String(), "an error": failed.String(), "a plan": planned.String(), "a body": body.String()} {
			got = strings.NewReplacer(`\u003c`, `<`, `\u0026`, `&`, `\u003e`, `>`).Replace(got) // as internal/plan escapes them
			if !strings.Contains(got, strings.TrimSuffix(want, `"`)) || !json.Valid([]byte(got)) {
				t.Errorf("%s with %q is %s; want %s", name, in, got, want)
			}
		}
		var back struct {
			API   string
			Items []string
		}
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.API != desk.API || back.Items[0] != in {
			t.Errorf("%q is read as %+v, %v", in, back, err)
		}
	}
	for _, digits := range []string{`{"id":616581622363398142,"n":[9007199254740993,105.0,1e400,-0]}`} {
		var out bytes.Buffer
		if err := unseen.JSON(&out, json.RawMessage(digits), ""); err != nil || out.String() != digits+"\n" {
			t.Errorf("%s is written as %s, %v", digits, &out, err)
		}
	}
	var out bytes.Buffer
	if err := unseen.JSON(&out, json.RawMessage("\"a\x9bb\""), ""); err != nil || out.String() != "\"a\uFFFDb\"\n" {
		t.Errorf("a byte that is no text: %q, %v", out.String(), err)
	}
}

// What amends prints as a command is one: every word survives a shell.
func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"shop:order:10492": "shop:order:10492",
		"":                 "''",
		"order 7":          "'order 7'",
		"$(rm -rf /)":      "'$(rm -rf /)'",
		"anna's":           `'anna'\''s'`,
		"größe":            "'größe'",
		"a;b":              "'a;b'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

// A time is said as people say it, before and after now.
func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	a := &app{now: func() time.Time { return now }}
	for d, want := range map[time.Duration]string{
		0:                                "now",
		500 * time.Millisecond:           "now",
		-500 * time.Millisecond:          "now", // the database's clock may be a little ahead
		-59 * time.Second:                "59s ago",
		-61 * time.Second:                "1m01s ago",
		-(time.Hour + 59*time.Second):    "1h00m ago",
		-(49*time.Hour + 30*time.Minute): "2d01h ago",
		90 * time.Second:                 "in 1m30s",
	} {
		if got := a.ago(now.Add(d)); got != want {
			t.Errorf("%s from now: %q, want %q", d, got, want)
		}
	}
}

// In tables --time decides, and without it the screen does. No time is no text.
func TestWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 3, 0, 0, 0, time.FixedZone("CET", 3600))
	for _, tc := range []struct {
		times    string
		terminal bool
		want     string
	}{
		{"auto", true, "1m00s ago"}, {"auto", false, "2026-11-20T01:59:00Z"},
		{"iso", true, "2026-11-20T01:59:00Z"}, {"relative", false, "1m00s ago"},
	} {
		a := &app{now: func() time.Time { return now }, times: tc.times, screen: screen{terminal: tc.terminal}}
		if got := a.when(new(now.Add(-time.Minute))); got != tc.want {
			t.Errorf("--time %s, terminal %t: %q, want %q", tc.times, tc.terminal, got, tc.want)
		}
		if got := a.when(nil); got != "" {
			t.Errorf("no time is shown as %q", got)
		}
	}
}

// Every reason of an error is on the one line that a person and a log see.
func TestOneLine(t *testing.T) {
	t.Parallel()
	if got := oneLine("start x:\nfirst\nsecond\x1b[0m"); got != `start x: first; second\u001b[0m` {
		t.Error(got)
	}
	if strings.Contains(oneLine("a\nb"), "\n") {
		t.Error("it has two lines")
	}
}
