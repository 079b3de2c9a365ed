package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/program"
	unseen "github.com/amends-dev/amends/internal/visible"
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
func (a *app) printJSON(v any) error { return unseen.JSON(a.out, desk.Versioned(v), "  ") }

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

// visible makes a text from elsewhere safe to show.
func visible(s string) string { return unseen.Text(s) }

// quote makes s one word of a shell's command line.
func quote(s string) string { return program.Word(s) }

// oneLine joins the lines of an error that lists several reasons.
func oneLine(s string) string {
	return visible(strings.ReplaceAll(strings.ReplaceAll(s, ":\n", ": "), "\n", "; "))
}

// again is the command line as it was typed, without the cursor.
func again(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		words = append(words, quote(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "after", f.Name == "before":
		case f.Name == "db":
			if ad, err := parseAddress(f.Value.String()); err == nil && !ad.Secret() {
				words = append(words, "--db", quote(f.Value.String()))
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, quote(f.Value.String()))
		}
	})
	return strings.Join(words, " ")
}
