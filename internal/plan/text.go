package plan

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Shown is how many findings of each class a text shows.
const Shown = 5

// WriteText writes a plan for people: the sides, a table of what was found, what the bounds say,
// and the first findings of each class. first returns the first n of one class.
func WriteText(w io.Writer, p *Plan, first func(c Class, n int) ([]Finding, error)) error {
	b := bufio.NewWriter(w)
	mapping := ""
	if p.MappingVersion != "" {
		mapping = fmt.Sprintf(", mapping %s", line(p.MappingVersion))
	}
	fmt.Fprintf(b, "Plan %s of %s%s, generation %d\n", p.ID, line(p.Job), mapping, p.Scan)
	c := &p.Counts
	fmt.Fprintf(b, "%s: the source has %s, the destination %s, the ledger %s\n\n", count(c.Keys, "key"), thousands(c.Source), thousands(c.Destination), thousands(c.Ledger))
	writeTallies(b, p)
	for _, words := range p.Words() {
		fmt.Fprintf(b, "\n%s.\n", line(words))
	}
	for _, class := range p.found() {
		fs, err := first(class, Shown)
		if err != nil {
			return fmt.Errorf("write plan %.*s: %w", short, p.ID, err)
		}
		if len(fs) == 0 {
			continue
		}
		all := p.Count(func(t Tally) bool { return t.Class == class })
		fmt.Fprintf(b, "\n%s", class)
		if all > int64(len(fs)) {
			fmt.Fprintf(b, ", the first %d of %s", len(fs), thousands(all))
		}
		fmt.Fprintln(b)
		for i := range fs {
			writeFinding(b, &fs[i])
		}
	}
	return b.Flush()
}

// found are the classes of which findings are kept.
func (p *Plan) found() []Class {
	var found []Class
	for _, t := range p.Classes {
		if (t.Class.Drift() || t.Class == NoSource || t.Class == Accepted) && (len(found) == 0 || found[len(found)-1] != t.Class) {
			found = append(found, t.Class)
		}
	}
	return found
}

func writeTallies(w io.Writer, p *Plan) {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tto be done\tkeys\t")
	for _, row := range p.Classes {
		note := ""
		if row.Action.Acts() && (p.RefusedReason != "" || p.Withholds(row.Risk)) {
			note = "withheld"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.Class, row.Action, thousands(row.Count), note)
	}
	_ = t.Flush() // a strings.Builder never fails
	for row := range strings.Lines(table.String()) {
		fmt.Fprintln(w, strings.TrimRight(row, " \n"))
	}
}

// writeFinding writes one finding with what differs, and what to do.
func writeFinding(w io.Writer, f *Finding) {
	fmt.Fprintf(w, "  %s  %s: %s", line(f.Key), f.Action, line(f.Reason))
	if len(f.Documents) > 0 {
		fmt.Fprintf(w, " (%s)", line(strings.Join(f.Documents, ", ")))
	}
	fmt.Fprintln(w)
	for _, c := range f.Changes {
		fmt.Fprintf(w, "    - %s: %s\n    + %s: %s\n", line(c.Field), line(c.Actual), line(c.Field), line(c.Desired))
	}
	if f.Suggestion != "" {
		fmt.Fprintf(w, "    > %s\n", line(f.Suggestion))
	}
}

// line makes a text fit for one line of a terminal: others write what is in it.
func line(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// WriteJSON writes a plan and its findings as one JSON document, which says the version of its JSON.
// Equal plans are equal bytes.
func WriteJSON(w io.Writer, api string, p *Plan, fs iter.Seq2[Finding, error]) error {
	head, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write plan %.*s: %w", short, p.ID, err)
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `{"api":%q,"plan":%s,"findings":[`, api, head)
	between := "\n"
	for f, err := range fs {
		var line []byte
		if err == nil {
			line, err = json.Marshal(&f)
		}
		if err != nil {
			return fmt.Errorf("write plan %.*s: %w", short, p.ID, err)
		}
		fmt.Fprintf(b, "%s%s", between, line)
		between = ",\n"
	}
	fmt.Fprintln(b, "]}")
	return b.Flush()
}
