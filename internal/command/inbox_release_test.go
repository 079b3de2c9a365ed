package command

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	stores "github.com/amends-dev/amends/store"
)

// What is held of a source is a finding with an exit status, is listed, and is released or dropped
// once, with who did it and why.
func TestHeldWithdrawals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := stores.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	env := func(name string) string { return map[string]string{"AMENDS_DB": path}[name] }
	runs := func(want exit, line string, wants ...string) {
		t.Helper()
		status, said := says(t, env, "", strings.Fields(line)...)
		for _, words := range wants {
			if status != want || !strings.Contains(said, words) {
				t.Errorf("%s ends with %d and says\n%s\nwant %d and %q", line, status, said, want, words)
			}
		}
	}
	for _, act := range []string{"release", "drop"} {
		for _, id := range []string{"1", "2"} {
			o := intake.Object{Source: "shop", Type: "order", ID: id}
			err := db.Update(t.Context(), o, func(_ time.Time, e *intake.Entry) error {
				e.Accepted, e.Delivered, e.Held = e.Accepted+1, e.Accepted, e.Accepted+1
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		why := " --reason mended --actor anna"
		runs(exitFindings, "status --exit-code", "withdrawals of shop that are held: 2", "amends inbox release shop --reason WHY")
		runs(exitDone, "status -o json", `"kind": "held"`, `"source": "shop"`)
		runs(exitDone, "inbox objects --held", "shop:order:1", "held", "beyond the bound")
		runs(exitUsage, "inbox "+act+" shop", "say why")
		runs(exitUsage, "inbox "+act+why, "name the source")
		runs(exitDone, "inbox "+act+" shop --dry-run"+why, "2 withdrawals of shop", "nothing was changed")
		runs(exitDone, "inbox "+act+" shop -o json"+why, `"withdrawals": 2`, `"act": "`+act+`"`, `"stored": true`)
		runs(exitDone, "inbox "+act+" shop"+why, "no withdrawal of shop is held; nothing was done")
		runs(exitDone, "inbox objects --held", "no objects match")
		runs(exitDone, "acts", act, "source:shop", "anna", "mended")
	}
}
