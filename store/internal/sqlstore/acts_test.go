package sqlstore_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// tampering is what SQL does to acts, where a check finds it and what it says; "" is nothing.
var tampering = []struct{ change, where, says string }{
	{`UPDATE amends_audit SET number = number`, "", ""},
	{`UPDATE amends_audit SET actor = 'ben' WHERE number = 2`, "act 2", "It says: pause by ben at "},
	{`UPDATE amends_audit SET reason = NULL WHERE number = 2`, "act 2", "it was edited"},
	{`UPDATE amends_audit SET body = NULL WHERE number = 2`, "act 2", "it was edited"},
	{`UPDATE amends_audit SET at = (SELECT at FROM amends_audit WHERE number = 1) WHERE number = 3`, "act 3", "it was edited"},
	{`UPDATE amends_audit SET name = 'status' WHERE number = 3`, "act 3", "look by anna at "},
	{`UPDATE amends_audit SET version = version + 1 WHERE number = 1`, "act 1", "it was edited"},
	{`UPDATE amends_audit SET hash = (SELECT hash FROM amends_audit WHERE number = 2) WHERE number = 3`, "act 3", "it was edited"},
	{`DELETE FROM amends_audit WHERE number = 1`, "act 1", "after act 0 comes act 2, which anna did at "},
	{`DELETE FROM amends_audit WHERE number = 2`, "act 2", "after act 1 comes act 3"},
	{`DELETE FROM amends_audit WHERE number = 3`, "act 3", "The last acts are missing: the ledger counts 3, and none is behind number 2."},
	{`DELETE FROM amends_audit`, "act 1", "none is behind number 0"},
	{`UPDATE amends_meta SET acts = 2`, "act 3", "The ledger counts 2 acts, and number 3 is there"},
	{`UPDATE amends_meta SET acts_hash = NULL`, "act 3", "the ledger says that the last act has"},
}

// Acts that were edited or deleted by SQL are found, each at its place: one in the middle, the last one, and all of them.
func TestCheckNamesActsThatSQLChanged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l ledger.Ledger, db *sqlx.DB) {
		db.SetMaxOpenConns(1)
		act(t, l)
		for _, c := range tampering {
			for _, table := range []string{"amends_audit", "amends_meta"} {
				db.MustExec(`CREATE TABLE kept_` + table + ` AS SELECT * FROM ` + table)
			}
			db.MustExec(c.change)
			report, err := ledger.Check(t.Context(), l, nil)
			switch {
			case err != nil:
				t.Errorf("%s: %v", c.change, err)
			case c.where == "" && (len(report.Findings) > 0 || report.Acts != 3):
				t.Errorf("%s: %+v, want three acts and no finding", c.change, report)
			case c.where != "" && (len(report.Findings) == 0 || report.Findings[0].Where() != c.where || !strings.Contains(report.Findings[0].What, c.says)):
				t.Errorf("%s: found %v, want %s: %s", c.change, report.Findings, c.where, c.says)
			case len(report.Findings) > 1 && !strings.Contains(c.change, "SET hash"): // two rows do not follow then
				t.Errorf("%s: found %v, want one finding", c.change, report.Findings)
			}
			for _, table := range []string{"amends_audit", "amends_meta"} {
				db.MustExec(`DELETE FROM ` + table)
				db.MustExec(`INSERT INTO ` + table + ` SELECT * FROM kept_` + table)
				db.MustExec(`DROP TABLE kept_` + table)
			}
		}
	})
}

// act puts a look, a pause and another look on record.
func act(t *testing.T, l ledger.Ledger) {
	t.Helper()
	anna := saga.Actor{Name: "anna", Reason: "a complaint"}
	if err := l.Did(t.Context(), ledger.DeedLooked, "bodies", anna); err != nil {
		t.Fatal(err)
	}
	pause := ledger.Control{Kind: ledger.ControlPause, Name: "all", Nonce: 1, Body: json.RawMessage(`{}`), Actor: "anna", Reason: "a fire"}
	if _, err := l.SetControl(t.Context(), 0, pause); err != nil {
		t.Fatal(err)
	}
	if err := l.Did(t.Context(), ledger.DeedLooked, "bodies", anna); err != nil {
		t.Fatal(err)
	}
}
