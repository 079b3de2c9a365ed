package command

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
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

// table prints rows. columns are their headings, each with the field or the function of a row that it shows: "at=At, who=Actor".
func (a *app) table(rows any, columns string) {
	all := reflect.ValueOf(rows)
	var g grid
	var shows []string
	for column := range strings.SplitSeq(columns, ", ") {
		heading, show, _ := strings.Cut(column, "=")
		g.header, shows = append(g.header, heading), append(shows, show)
	}
	for i := range all.Len() {
		cells := make([]string, len(shows))
		for n, show := range shows {
			cells[n] = a.cell(reflect.Indirect(all.Index(i)), show)
		}
		g.add(cells...)
	}
	a.print(&g)
}

// cell is what a row shows. With "?" behind its name a number that is nothing is a dash, with "+" there may be more than was counted, and
// with "!" a time is exact.
func (a *app) cell(row reflect.Value, show string) string {
	name := strings.TrimRight(show, "?+!")
	v := row.FieldByName(name)
	if m := row.Addr().MethodByName(name); m.IsValid() {
		v = m.Call([]reflect.Value{reflect.ValueOf(a.now())}[:m.Type().NumIn()])[0]
	}
	switch is := v.Interface().(type) {
	case *time.Time:
		if strings.HasSuffix(show, "!") {
			return exact(*is)
		}
		return a.when(is)
	case []string:
		return strings.Join(is, ", ")
	case desk.Duration:
		return desk.When(is > 0, finding.Span(time.Duration(is)))
	}
	switch {
	case strings.HasSuffix(show, "+"):
		return finding.Works(v.Int())
	case strings.HasSuffix(show, "?") && v.IsZero():
		return ""
	}
	return fmt.Sprint(v)
}

// list prints the items of a document, as a table or as what names works to the verbs, and says where there are none, and where there are more.
func (a *app) list(doc reflect.Value, none, columns, next string) {
	items := doc.FieldByName("Items")
	var more *string
	if v := doc.FieldByName("Next"); v.IsValid() {
		more, _ = reflect.TypeAssert[*string](v)
	}
	switch {
	case items.Len() == 0 && more == nil:
		a.sayf("%s", none)
	case a.output == "ids":
		for i := range items.Len() {
			if one, is := reflect.TypeAssert[interface{ Named() string }](items.Index(i).Addr()); is {
				fmt.Fprintln(a.out, one.Named())
			}
		}
	case items.Len() > 0:
		a.table(items.Interface(), columns)
	}
	if next != "" {
		a.more(more, next)
	}
}

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

func fits(s string, width int) bool { return text.LongestLineLen(s) <= width }

// paragraph writes words behind a margin, wrapped to the terminal if there is one.
func (a *app) paragraph(margin, words string) { a.block(margin, margin, words) }

// paragraphs writes those that are not empty.
func (a *app) paragraphs(margin string, all ...string) {
	for _, words := range all {
		if words != "" {
			a.paragraph(margin, words)
		}
	}
}

// then writes paragraphs behind what was written, and an empty line.
func (a *app) then(all ...string) {
	fmt.Fprintln(a.out)
	a.paragraphs("", all...)
}

// section writes a heading, and a paragraph for each of all; nothing where there is none.
func section[T any](a *app, heading string, all []T, words func(*T) string) {
	if len(all) > 0 {
		fmt.Fprintln(a.out, "\n"+visible(heading))
	}
	for i := range all {
		a.paragraph("  ", words(&all[i]))
	}
}

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

// fields writes names, each with its value behind it, where that is not empty.
func (a *app) fields(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			a.block(fmt.Sprintf("%-9s ", pairs[i]), "          ", pairs[i+1])
		}
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

// when shows a moment of a document in a table: how long ago, or in UTC, as --time says.
func (a *app) when(at *time.Time) string {
	t := desk.At(at)
	if t.IsZero() {
		return ""
	}
	if a.times == "relative" || a.times == "auto" && a.screen.terminal {
		return a.ago(t)
	}
	return finding.ISO(t)
}

// both shows a moment in UTC and how long ago it was; "" for none.
func (a *app) both(t time.Time) string {
	return desk.When(!t.IsZero(), fmt.Sprintf("%s (%s)", finding.ISO(t), a.ago(t)))
}

func (a *app) ago(t time.Time) string {
	d := a.now().Sub(t)
	switch {
	case d < -time.Second:
		return "in " + finding.Span(-d)
	case d < time.Second:
		return "now"
	default:
		return finding.Span(d) + " ago"
	}
}

// exact is a moment in UTC to the millisecond.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// progress shows on stderr how far a command has come: one line that counts on a terminal, now and
// then a new line elsewhere. With -o json it shows nothing.
type progress struct {
	app  *app
	bar  *progressbar.ProgressBar // nil: there is no terminal
	last time.Time                // that a line was written
}

// between is how long nothing is said at least where there is no terminal.
const between = 10 * time.Second

// progress begins to count something.
func (a *app) progress(what string) *progress {
	p := &progress{app: a, last: a.now()}
	if !a.json && screenOf(a.err, a.env).terminal {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

// at says that n of it are done; line says it in words.
func (p *progress) at(n int64, line func() string) {
	if p.bar != nil {
		_ = p.bar.Set64(n)
		return
	}
	if now := p.app.now(); now.Sub(p.last) >= between {
		p.last = now
		p.app.sayf("%s", line())
	}
}

// is says what is being counted by now.
func (p *progress) is(what string) {
	if p.bar != nil {
		p.bar.Describe(visible(what))
	}
}

func (p *progress) done() {
	if p != nil && p.bar != nil {
		_ = p.bar.Finish()
	}
}
