package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/amends-dev/amends/internal/program"
	unseen "github.com/amends-dev/amends/internal/visible"
	"github.com/amends-dev/amends/saga"
)

// screen is what stdout is: a terminal of some width, or a file or pipe.
type screen struct {
	terminal bool
	width    int // of a terminal
}

func screenOf(w io.Writer, env func(string) string) screen {
	f, ok := w.(*os.File)
	if !ok || env("TERM") == "dumb" {
		return screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return screen{terminal: err == nil, width: width}
}

// printJSON writes v as one JSON document, which says its version.
func (a *app) printJSON(v any) error { return writeJSON(a.out, versioned{v}, "  ") }

// versioned is an object whose first field is the version of the JSON.
type versioned struct{ object any }

func (v versioned) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.object); err != nil {
		return nil, err
	}
	fields, isObject := bytes.CutPrefix(b.Bytes(), []byte("{"))
	if !isObject {
		return nil, fmt.Errorf("a document of the command is an object, not %.20s", b.Bytes())
	}
	if fields[0] != '}' {
		fields = slices.Concat([]byte(","), fields)
	}
	return slices.Concat([]byte(`{"api":"`+API+`"`), fields), nil
}

// writeJSON writes v as JSON that is safe to show: people read it on terminals, too. What visible
// escapes is escaped here, and is the same text for a program.
func writeJSON(w io.Writer, v any, indent string) error {
	enc := json.NewEncoder(&escaping{w: w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

// escaping writes whole lines to w, of which visible escapes what is in them. What does not end a line
// is kept back.
type escaping struct {
	w    io.Writer
	rest []byte
}

func (s *escaping) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	lines := s.rest[:bytes.LastIndexByte(s.rest, '\n')+1]
	_, err := io.WriteString(s.w, visibleLines(string(lines)))
	s.rest = s.rest[len(lines):]
	return len(p), err
}

// sayf tells something on stderr that is not the answer itself. Programs that asked for JSON are
// not told.
func (a *app) sayf(format string, args ...any) {
	if !a.json {
		fmt.Fprintln(a.err, visible(fmt.Sprintf(format, args...)))
	}
}

// grid is a table. Cells are never cut: half an id is no id.
type grid struct {
	header []string
	rows   [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// print writes g with lines between the columns on a terminal that is wide enough, and as plain
// aligned text otherwise.
func (a *app) print(g *grid) {
	if a.screen.terminal {
		if lined := g.render(true); fits(lined, a.screen.width) {
			fmt.Fprintln(a.out, lined)
			return
		}
	}
	fmt.Fprintln(a.out, g.render(false))
}

func (g *grid) render(lined bool) string {
	t := table.NewWriter()
	style := table.StyleLight
	if !lined {
		style.Options = table.OptionsNoBordersAndSeparators
		style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
		t.SuppressTrailingSpaces()
	}
	t.SetStyle(style)
	t.AppendHeader(row(g.header))
	for _, r := range g.rows {
		t.AppendRow(row(r))
	}
	return t.Render()
}

// row is cells as the table wants them. An empty one shows as a dash, so that the columns can be
// counted.
func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		if r[i] = visible(c); c == "" {
			r[i] = "-"
		}
	}
	return r
}

func fits(s string, width int) bool {
	return text.LongestLineLen(s) <= width
}

// paragraph writes words behind a margin, wrapped to the terminal if there is one.
func (a *app) paragraph(margin, words string) { a.block(margin, margin, words) }

// block is paragraph with a margin of its own for the first line.
func (a *app) block(first, margin, words string) {
	words = visible(words)
	if width := a.screen.width - len(margin); a.screen.terminal && width > 20 {
		words = text.WrapSoft(words, width)
	}
	for line := range strings.SplitSeq(words, "\n") {
		fmt.Fprintln(a.out, first+strings.TrimRight(line, " "))
		first = margin
	}
}

// visible makes a text from elsewhere safe to show: an id or an error message must not move the
// cursor, hide what follows, or look like a line of ours.
func visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	return strings.ReplaceAll(visibleLines(s), "\n", `\n`)
}

// visibleLines is visible for a text of several lines.
func visibleLines(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) && r != '\n' }) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports control characters and those that change a text without being seen.
func hidden(r rune) bool { return unicode.IsControl(r) || unseen.Hides(r) }

// quote makes s one word of a shell's command line.
func quote(s string) string { return program.Word(s) }

// showCommand is the command that shows a work.
func showCommand(id saga.ID, db string) string {
	return program.Command("show", id.Work, " --saga "+quote(id.Saga)+dbFlag(db))
}

// oneLine joins the lines of an error that lists several reasons.
func oneLine(s string) string {
	return visible(strings.ReplaceAll(strings.ReplaceAll(s, ":\n", ": "), "\n", "; "))
}
