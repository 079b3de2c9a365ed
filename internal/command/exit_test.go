package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
)

// What cobra refuses before a verb has begun is a mistake on the command line, and every kind of failure has its status.
func TestClassify(t *testing.T) {
	t.Parallel()
	if f := (&app{}).classify(t.Context(), errors.New("unknown flag")); exitOf(f.Code) != exitUsage {
		t.Errorf("an error before a verb has begun ends with %s", f.Code)
	}
	for code, want := range map[desk.Code]exit{
		desk.Failed: exitFailed, desk.Misuse: exitUsage, desk.NotFound: exitNotFound, desk.NotAllowed: exitNotAllowed, desk.Conflict: exitConflict,
		desk.Findings: exitFindings, desk.TimedOut: exitTimedOut, desk.Interrupted: exitInterrupted, "another": exitFailed,
	} {
		a := &app{begun: true}
		if f := a.classify(t.Context(), fmt.Errorf("show: %w", &desk.Failure{Code: code})); exitOf(f.Code) != want {
			t.Errorf("%s ends with %d, want %d", code, exitOf(f.Code), want)
		}
	}
}

// Numbers and words of the table are unique: scripts tell by either.
func TestExits(t *testing.T) {
	t.Parallel()
	numbers, words := map[exit]bool{}, map[desk.Code]bool{}
	for _, x := range exits {
		n := exitOf(x.word)
		if numbers[n] || words[x.word] {
			t.Errorf("%d %s is in the table twice", n, x.word)
		}
		numbers[n], words[x.word] = true, true
	}
}

// Ctrl-C ends with 130, whatever error the interrupted call makes of it.
func TestInterrupted(t *testing.T) {
	t.Setenv("AMENDS_DB", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := t.TempDir() + "/ledger.db"
	var out, errs bytes.Buffer
	if got := exec(t.Context(), os.Getenv, []string{"migrate", "--db", file}, nil, &out, &errs); got != exitDone {
		t.Fatalf("%d: %s", got, errs.String())
	}
	out.Reset()
	errs.Reset()
	for _, args := range [][]string{{"list"}, {"check"}, {"show", "x"}} {
		if got := exec(ctx, os.Getenv, append(args, "--db", file), nil, &out, &errs); got != exitInterrupted {
			t.Errorf("%v ends with %d: %s", args, got, errs.String())
		}
	}
	if out.Len() > 0 || strings.Count(errs.String(), "amends: interrupted\n") != 3 {
		t.Errorf("it says %q and %q", out.String(), errs.String())
	}
}

// The package comment names every verb and every exit status, in the words of the program.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../cmd/amends/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Join(strings.Fields(strings.ReplaceAll(string(b), "//", " ")), " ")
	has := func(text string) {
		t.Helper()
		if !strings.Contains(doc, strings.Join(strings.Fields(text), " ")) {
			t.Errorf("doc.go does not say %q", text)
		}
	}
	for _, cmd := range Verbs().Commands()[:len(verbs)] {
		has(cmd.Name() + " " + cmd.Short)
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.Name())
		}
		for _, c := range cmd.Commands() {
			has(cmd.Name() + " " + c.Name() + " " + c.Short)
		}
	}
	for _, x := range exits {
		has(fmt.Sprintf("%d %s %s", exitOf(x.word), x.word, x.means))
	}
}

// Every verb has its words in help.txt, and every text there is one of a verb or is named by one.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	unused := maps.Clone(helps())
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			path := strings.TrimPrefix(c.CommandPath(), "amends ")
			if name := c.Name(); path != "json" && path != "situations" && name != "help" && name != "completion" {
				if says, has := unused[path]; !has || says.short == "" || !strings.HasPrefix(says.use+" ", name+" ") {
					t.Errorf("help.txt says of %s: %q, %q", path, says.use, says.short)
				}
				delete(unused, path)
				look(c)
			}
		}
	}
	look(Verbs())
	for path := range unused {
		if path != "amends" && !strings.Contains(helpTexts, "\n"+path+"\n\n") && path != "@rebuild" {
			t.Errorf("help.txt has words of %s, which is no verb and is named nowhere", path)
		}
	}
}

// Every command of the README, and of every example in the help texts, can be typed as it stands
// there.
func TestExamples(t *testing.T) { // not parallel: a root command sets a variable of cobra's
	b, err := os.ReadFile("../../cmd/amends/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range regexp.MustCompile("`(amends [^`]+)`").FindAllStringSubmatch(string(b), -1) {
		lines = append(lines, m[1])
	}
	if len(lines) < 20 {
		t.Errorf("the README has %d commands", len(lines))
	}
	var collect func(*cobra.Command)
	collect = func(cmd *cobra.Command) {
		lines = append(lines, strings.Split(cmd.Example, "\n")...)
		for _, c := range cmd.Commands() {
			collect(c)
		}
	}
	collect(newApp(&Line{Env: os.Getenv}).root())
	for _, line := range lines {
		words := typed(line)
		if len(words) == 0 || words[0] != "amends" {
			continue // export AMENDS_DB=…
		}
		if help := words[1:]; len(help) == 2 && help[0] == "help" {
			words = help // what cobra adds when it runs
		} else if slices.Equal(help, []string{"--help"}) {
			continue
		}
		root := newApp(&Line{Env: os.Getenv}).root()
		cmd, args, err := root.Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil && cmd.Args != nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// typed is the first command of a line as a shell would hand it over, near enough.
func typed(line string) []string {
	line, _, _ = strings.Cut(strings.ReplaceAll(line, `\|`, "|"), " |")
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " >")
	line = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "WORDS")
	return strings.Fields(line)
}

// An address is a file or a URL, and is shown without its password.
func TestParseAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		dialect migrations.Dialect
		shown   string // "" the name is refused
		secret  bool
	}{
		{"ledger.db", migrations.SQLite, "ledger.db", false},
		{"/var/lib/ledger.db", migrations.SQLite, "/var/lib/ledger.db", false},
		{"sqlite:ledger.db", migrations.SQLite, "ledger.db", false},
		{"sqlite:///var/lib/ledger.db", migrations.SQLite, "/var/lib/ledger.db", false},
		{"postgres://shop@db/shop", migrations.Postgres, "postgres://shop@db/shop", false},
		{"postgresql://shop:geheim@db/shop", migrations.Postgres, "postgresql://shop:xxxxx@db/shop", true},
		{"postgres://db/shop?password=geheim", migrations.Postgres, "postgres://db/shop?password=xxxxx", true},
		{"", "", "", false},
		{"sqlite:", "", "", false},
		{"postgres://", "", "", false},
		{"postgres://a:1,b:2/shop", "", "", false},
		{"mysql://db/shop", "", "", false},
	} {
		ad, err := parseAddress(tc.name)
		if (err == nil) != (tc.shown != "") {
			t.Errorf("%q: %v", tc.name, err)
			continue
		}
		if err == nil && (ad.dialect != tc.dialect || ad.String() != tc.shown || ad.Secret() != tc.secret) {
			t.Errorf("%q is %s %s, secret %t", tc.name, ad.dialect, ad, ad.Secret())
		}
	}
}

// Opening would migrate an older file under the programs that still use it, so it is refused first.
func TestReadable(t *testing.T) {
	t.Parallel()
	ad, err := parseAddress("ledger.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := ad.readable(2, 2); err != nil {
		t.Error(err)
	}
	if err := ad.readable(1, 2); !errors.Is(err, ledger.ErrSchema) || !strings.Contains(err.Error(), "has version 1, this program needs 2") {
		t.Error(err)
	}
	if err := ad.readable(0, 2); err == nil || !strings.Contains(err.Error(), "holds no ledger") {
		t.Error(err)
	}
}
