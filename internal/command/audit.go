package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
)

// What is read of the ledger as a whole, for those who audit it.

// counting is a function that is told how many things were done, and one for the end of that.
func (a *app) counting(things string) (tell func(int64), done func()) {
	p := a.progress(things)
	return func(n int64) { p.at(n, func() string { return fmt.Sprintf("%d %s", n, things) }) }, p.done
}

var exportVerb = verb[desk.ExportIn, desk.Exported]{
	name: "export", args: noWork,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.ExportIn) (*desk.Exported, error) {
		tell, done := a.counting("works exported")
		in.To, in.Progress = a.out, tell
		if ad, err := a.address(); err == nil { // else the program has the database
			in.Ledger = ad.String()
		}
		e, err := d.Export(ctx, in)
		done()
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(a.err, amount(e)) // stdout has the export itself
		return nil, alarmOf(e)
	},
}

var verifyVerb = verb[desk.VerifyIn, desk.Verified]{
	name: "verify", args: theFile.named(0, 1), free: true,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.VerifyIn) (*desk.Verified, error) {
		tell, done := a.counting("works verified")
		in.From, in.Progress = a.given.In, tell
		if name := a.cmd.Flags().Arg(0); name != "" && name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			defer func() { _ = f.Close() }() // it was only read
			in.From = f
		}
		v, err := d.Verify(ctx, in)
		done()
		if err != nil {
			return nil, err
		}
		return v, alarmOf(v)
	},
	print: func(a *app, _ *desk.VerifyIn, v *desk.Verified) {
		for _, f := range v.Findings {
			a.paragraph("", f.Where)
			a.paragraph("  ", f.What)
		}
		if v.Sound {
			a.paragraph("", amount(&v.Exported))
		}
	},
}

// amount says what an export has, and by which digest it is known.
func amount(e *desk.Exported) string {
	return fmt.Sprintf("%s%s, %s, %s%s: %s; digest %s", desk.When(!e.Whole, "a part of the ledger: "), finding.Count(int(e.Works), "work"), finding.Count(int(e.Records), "record"), finding.Count(int(e.Acts), "act"),
		desk.When(e.Moving > 0, fmt.Sprintf(" (%d moved all the while: of those the chains only)", e.Moving)), desk.Either(e.Sound, "sound", finding.Count(len(e.Findings), "finding")), e.SHA256)
}

var reportVerb = verb[desk.MonthIn, desk.Month]{
	name: "report", args: noArguments,
	by: func(a *app, d *desk.Desk, ctx context.Context, in *desk.MonthIn) (*desk.Month, error) {
		tell, done := a.counting("works read")
		defer done()
		in.Progress = tell
		return d.Month(ctx, in)
	},
	print: func(a *app, _ *desk.MonthIn, m *desk.Month) {
		a.fields("month", m.Since.Format("2006-01")+desk.When(a.now().Before(*m.Until), ", which is not over"))
		fmt.Fprintln(a.out)
		if len(m.Items) > 0 {
			a.table(m.Items, "saga=Saga, started=Started, completed=Completed, undone=Undone, live=Live, reviews=ReviewsOpened, settled=ReviewsSettled, open=ReviewsOpen, median=MedianWait, longest=LongestWait")
			fmt.Fprintln(a.out)
		}
		g := grid{header: []string{"duplicates", "blocked"}}
		for _, by := range slices.Sorted(maps.Keys(m.Duplicates)) {
			g.add(by, strconv.FormatInt(m.Duplicates[by], 10))
		}
		a.print(&g)
	},
}
