package docs_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// played are the pages that are read out, each list in one folder: a page goes on where the one before
// it ended.
var played = [][]string{{"tutorial-online.md"}, {"tutorial-takeover.md"}, {"tutorial-sync.md", "tutorial-review.md", "tutorial-webhooks.md"}}

// The tutorials are what a reader types, from an empty folder on: each command ends as the page says,
// each program compiles, and each output is as shown, where … stands for anything.
func TestPlayed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	for _, port := range []string{"7001", "8080", "8081"} { // of the pages, which would talk to what is there
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			err = l.Close()
		}
		switch {
		case err != nil && os.Getenv("CI") != "":
			t.Fatalf("the tutorials need port %s: %v", port, err)
		case err != nil:
			t.Skipf("the tutorials need port %s: %v", port, err)
		}
	}
	for _, pages := range played { // one after the other: they use the same ports
		t.Run(pages[0], func(t *testing.T) {
			s := newShell(t)
			for _, page := range pages {
				s.play(page, read(t, page))
			}
		})
	}
}

// The README's quick start runs as it is written, in an empty folder.
func TestReadmePlayed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "../README.md"), "\n## Quick start\n")
	text, _, _ = strings.Cut(text, "\n## ")
	newShell(t).play("README.md", text)
}

// shell is a bash in an empty folder, to which a page is read out.
type shell struct {
	t     *testing.T
	dir   string
	say   io.Writer
	told  *os.File // the status of each command
	ended *bufio.Reader
	n     int
}

// registry is what `go` and `go mod tidy` would fetch: until amends is published it is this checkout.
const registry = `
set -m
trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT
go() {
	case "$1 $2" in
	"install github.com/amends-dev/amends/"*) local path=${2#github.com/amends-dev/amends/}; (cd "$CHECKOUT" && command go install "./${path%@*}") ;;
	"mod tidy")
		cp "$CHECKOUT/go.sum" . && command go mod edit -require github.com/amends-dev/amends@v0.0.0 -replace "github.com/amends-dev/amends=$CHECKOUT" &&
		command go mod tidy ;;
	*) command go "$@" ;;
	esac
}
`

func newShell(t *testing.T) *shell {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, dir: t.TempDir()}
	bin := t.TempDir()
	cmd := exec.Command(bash)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CHECKOUT="+checkout, "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	say, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.say, s.told, s.ended = say, ours, bufio.NewReader(ours)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() {
		_ = exec.Command("pkill", "-9", "-P", fmt.Sprint(cmd.Process.Pid)).Run() // what it runs, in front and behind
		_ = say.Close()
		_ = cmd.Wait()
		_ = ours.Close()
	})
	fmt.Fprint(say, registry)
	return s
}

// run runs one command, and returns its output and its exit status. A build may take long on a machine that is new and busy.
func (s *shell) run(command string) (out, status string) {
	s.n++
	file := filepath.Join(s.t.TempDir(), fmt.Sprint(s.n))
	fmt.Fprintf(s.say, "{ %s\n} >%s 2>&1; echo $? >&3\n", command, file)
	if err := s.told.SetReadDeadline(time.Now().Add(20 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.ended.ReadString('\n')
	if err != nil {
		s.t.Fatalf("%s: it does not end, or the shell has: %v", command, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text), strings.TrimSpace(line)
}

var (
	fence    = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	fileName = regexp.MustCompile("`([\\w/.-]+\\.go)`")
	exitOf   = regexp.MustCompile(`# exit status (\d+)`)
)

// play reads a page out: ```go is the file that the text above it names, ```sh is typed, and ```text is
// what the commands above it print, at once or, where the text above them says later, before long.
func (s *shell) play(page, text string) {
	s.t.Helper()
	var last, before, printed string // the last command typed, and what was printed before it and by it
	var patience time.Duration
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		kind, block := text[m[2]:m[3]], text[m[4]:m[5]]
		switch kind {
		case "go":
			s.write(page, text[:m[0]], block)
		case "sh":
			before, printed, patience = "", "", 0
			if strings.Contains(above(text[:m[0]]), "later") {
				patience = time.Minute
			}
			for command := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
				before, last = before+printed, command
				printed = s.typed(page, command)
			}
		case "text":
			for began := time.Now(); missing(before+printed, block) != ""; printed = s.typed(page, last) {
				if time.Since(began) > patience {
					s.t.Fatalf("%s: %q does not print\n%s\nit prints\n%s", page, last, missing(before+printed, block), before+printed)
				}
				time.Sleep(100 * time.Millisecond)
			}
		default:
			s.t.Fatalf("%s: what is ```%s?", page, kind)
		}
	}
}

func (s *shell) write(page, text, content string) {
	name := fileName.FindStringSubmatch(above(text))
	if name == nil {
		s.t.Fatalf("%s: no file is named above\n%.200s", page, content)
	}
	path := filepath.Join(s.dir, name[1])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// above is the last paragraph of a text.
func above(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n\n")+1:]
}

// typed types one command, which ends as the page says.
func (s *shell) typed(page, command string) string {
	want := "0"
	if m := exitOf.FindStringSubmatch(command); m != nil {
		want = m[1]
	}
	out, status := s.run(command)
	if status != want {
		s.t.Fatalf("%s: %q ends with %s, not %s:\n%s", page, command, status, want, out)
	}
	s.t.Logf("$ %s\n%s", command, out)
	return out
}

// missing is the first line of shown that printed does not have in its place; "" when there is none.
func missing(printed, shown string) string {
	lines := bufio.NewScanner(bytes.NewReader([]byte(printed)))
next:
	for want := range strings.Lines(shown) {
		words := strings.Join(strings.Fields(regexp.QuoteMeta(want)), `\s+`) // columns are as wide as what is in them
		pattern := `^\s*` + strings.ReplaceAll(words, "…", ".*") + `\s*$`
		for lines.Scan() {
			if regexp.MustCompile(pattern).MatchString(lines.Text()) {
				continue next
			}
		}
		return want
	}
	return ""
}
