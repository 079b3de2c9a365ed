package command

import (
	"fmt"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/ledger"
)

var retentionVerb = group{"retention", []maker{
	plain("plan", noArguments, (*desk.Desk).PlanRetention, func(a *app, _ *desk.RetentionPlanIn, out *desk.Retained) { a.printRetained(out) }),
	plain("run", noArguments, (*desk.Desk).RunRetention, func(a *app, _ *desk.RetentionRunIn, out *desk.Retained) { a.printRetained(out) }),
	plain("set", noArguments, (*desk.Desk).SetRetention, func(a *app, _ *desk.RetentionSetIn, out *desk.Policy) {
		a.paragraph("", "From now on: "+out.Words()+".")
	}),
}}

func (a *app) printRetained(out *desk.Retained) {
	set := false
	for i := range out.Policies {
		set = set || out.Policies[i].By != ""
	}
	if len(out.Policies) > 0 {
		a.table(out.Policies, "saga=Saga, kept=Words, says=By")
		fmt.Fprintln(a.out)
	}
	if len(out.Goes) > 0 {
		a.table(out.Goes, "saga=Saga, goes=What, works=Works, about=Size, oldest=Oldest")
		fmt.Fprintln(a.out)
	}
	switch {
	case !set:
		a.paragraph("", "No retention is set, and nothing goes by time. What is usual: amends retention set --bodies 90d --records 2y --reason WHY; or saga.Retain in a definition.")
	case len(out.Goes) == 0:
		a.paragraph("", "Nothing is due by "+finding.ISO(*out.At)+".")
	case out.DryRun:
		a.paragraph("", "Nothing was changed. It goes by: amends retention run --reason WHY; or by a job, see docs/expiry.md.")
	default:
		a.paragraph("", "It has gone, and does not come back but from a backup.")
	}
	a.paragraphs("", desk.When(out.Erased > 0, finding.Works(int64(out.Erased))+" erased, as a person had said before."), desk.When(out.Kept > 0, finding.Works(int64(out.Kept))+" held by a person, to be erased first, or moved meanwhile: nothing of them went."),
		desk.When(out.Damaged > 0, finding.Works(int64(out.Damaged))+" could not be read: nothing of them went. Run amends check."))
}

func (a *app) printHeldWork(_ *desk.HoldWorkIn, out *desk.HeldWork) {
	gone := map[ledger.Left]string{ledger.LeftRecords: "Its bodies have gone already. ", ledger.LeftRemains: "Its records have gone already. "}
	a.paragraph("", desk.Either(out.Held, gone[out.Left]+"Nothing of it goes by retention, until: amends hold "+quote(out.WorkID)+" --saga "+out.Saga+" --lift --reason WHY", "It is not held any more."))
}

func (a *app) printErased(in *desk.EraseIn, out *desk.Erased) {
	if len(out.Works) == 0 {
		a.paragraph("", "No work in this ledger has the subject "+quote(in.Subject)+". Works that were started before their definition had a saga.Subject have none: erase them by their ids.")
	}
	if len(out.Works) > 0 {
		a.table(out.Works, "saga=Saga, work=WorkID, records=Records, objects=Objects, becomes=Outcome")
		fmt.Fprintln(a.out)
	}
	later, erased := 0, 0
	for i := range out.Works {
		if out.Works[i].Later {
			later++
		}
		if out.Works[i].ErasedAs != "" {
			erased++
		}
	}
	switch {
	case out.DryRun && len(out.Works) > 0:
		a.paragraph("", "Nothing was changed. It is erased by the same without --dry-run, with --reason WHY. Copies in backups, in logs and in what was exported are yours to erase: docs/expiry.md.")
	case erased > 0:
		a.paragraph("", "What was erased does not come back. A file of SQLite, and the log of PostgreSQL, hold it until they are cleaned (VACUUM, recycling); copies in backups, in logs and in what was exported are yours to erase: docs/expiry.md.")
	}
	a.paragraphs("", desk.When(later > 0 && !out.DryRun, finding.Works(int64(later))+" marked: a run of retention (amends retention run, or its job) erases them once what is said of them is over; until then: amends list --tag amends:erase=later."),
		desk.When(out.Named > 0, finding.Works(int64(out.Named))+" still stored under its id: some client of the database has had a transaction open since before. The next run of retention takes it."))
}
