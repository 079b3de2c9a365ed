package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// An external id that two works claim is reported, once, where the step makes a thing of its own.
// One that shares what it finds claims nothing, and an id is one of a step of a saga: elsewhere it
// names another thing.
func TestCheckFindsAnIDThatTwoWorksClaim(t *testing.T) {
	t.Parallel()
	elsewhere := func(step string) func(b *book) { // one of the copies says it of another step
		return func(b *book) {
			for _, work := range []string{"again", "once more"} {
				rs := b.records[saga.ID{Saga: done.Saga, Work: work}]
				rs[1].ExternalID, rs[4].ExternalID = step+work, "cus_1 "+work
			}
			b.records[saga.ID{Saga: done.Saga, Work: "again"}][4].ExternalID = "cus_1"
		}
	}
	for name, c := range map[string]struct {
		step   program.StepSpec
		change func(b *book)
		want   int
	}{
		"with an undo":   {program.StepSpec{Repeat: program.RepeatFind, Undo: true}, nil, 2},
		"keyed":          {program.StepSpec{Repeat: program.RepeatKeyed, NoUndoReason: "why"}, nil, 2},
		"at most once":   {program.StepSpec{Repeat: program.RepeatAtMostOnce, NoUndoReason: "why"}, nil, 2},
		"shared":         {program.StepSpec{Repeat: program.RepeatFind, NoUndoReason: "customers stay"}, nil, 0},
		"another step's": {program.StepSpec{Repeat: program.RepeatFind, Undo: true}, elsewhere("cus_"), 0},
		"none": {program.StepSpec{Repeat: program.RepeatFind, Undo: true}, func(b *book) {
			for id := range b.records {
				if id.Saga == done.Saga && len(b.records[id]) == 5 {
					b.records[id][1].ExternalID, b.records[id][3].Snapshot = "", nil
					b.head(id).Base = 1
				}
			}
		}, 0},
		"another saga's": {program.StepSpec{Repeat: program.RepeatFind, Undo: true}, func(b *book) {
			b.heads = b.heads[:4]
			b.copy(done, saga.ID{Saga: another.Saga, Work: "again"})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := soundBook(t)
			for _, work := range []string{"again", "once more"} {
				b.copy(done, saga.ID{Saga: done.Saga, Work: work})
			}
			if c.change != nil {
				c.change(b)
			}
			invoice := c.step
			c.step.Name, invoice.Name = "customer", "invoice"
			b.describe(c.step, invoice)
			for id := range b.records {
				b.reseal(id, 0)
			}
			report, err := ledger.Check(t.Context(), b, nil)
			if err != nil || len(report.Findings) != c.want {
				t.Fatalf("findings %v and error %v, want %d", report.Findings, err, c.want)
			}
			for _, f := range report.Findings {
				if !strings.Contains(f.String(), "made cus_1, and so it did for "+done.String()) {
					t.Errorf("it says %s", f)
				}
			}
		})
	}
}

// A digest alone accuses no work: two ids may have the same one. What was taken for a claim of the
// first work counts only if the first work recorded the id, by the ledger's own word.
func TestCheckAsksWhoMadeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hidden []saga.ID // works that have another id of the same digest
		want   int
	}{
		"both":              {nil, 1},
		"the second, alone": {[]saga.ID{done}, 0},
		"no work":           {[]saga.ID{done, {Saga: done.Saga, Work: "again"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := soundBook(t)
			b.copy(done, saga.ID{Saga: done.Saga, Work: "again"})
			b.describe(program.StepSpec{Name: "customer", Repeat: program.RepeatFind, Undo: true}, program.StepSpec{Name: "invoice", Repeat: program.RepeatFind, Undo: true})
			report, err := ledger.Check(t.Context(), unrecorded{b, c.hidden}, nil)
			if err != nil || len(report.Findings) != c.want {
				t.Errorf("findings %v and error %v, want %d", report.Findings, err, c.want)
			}
		})
	}
}

// unrecorded answers, asked for an external id, that some works did not record it.
type unrecorded struct {
	*book

	hidden []saga.ID
}

func (r unrecorded) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	for {
		page, err := r.book.List(ctx, f)
		if f.ExternalID == "" || len(page.Instances) == 0 || !slices.Contains(r.hidden, page.Instances[0].ID) {
			return page, err
		}
		f.After = f.Behind(ledger.Position{Number: page.Instances[0].Number})
	}
}

// However many works share what they found, an id that two others claim to have made at another
// step is reported.
func TestCheckFindsAClaimBehindManyThatShare(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	for i := range 1010 { // their customer is cus_1
		id := saga.ID{Saga: done.Saga, Work: fmt.Sprint(i)}
		b.copy(done, id)
		if i >= 1008 {
			b.records[id][4].ExternalID = "cus_1" // and the number of their invoice is the same
			b.reseal(id, 4)
		}
	}
	b.describe(program.StepSpec{Name: "customer", Repeat: program.RepeatFind, NoUndoReason: "customers stay"}, program.StepSpec{Name: "invoice", Repeat: program.RepeatFind, Undo: true})
	report, err := ledger.Check(t.Context(), b, &ledger.CheckOptions{Filter: ledger.Filter{Limit: 100}})
	if err != nil || len(report.Findings) != 1 || !strings.Contains(report.Findings[0].What, "Step invoice made cus_1, and so it did for order-to-invoice 1008") {
		t.Errorf("findings %v and error %v, want the one of the invoice", report.Findings, err)
	}
}

// What was undone claims nothing: its thing may be another work's by now.
func TestCheckLetsGoOfWhatWasUndone(t *testing.T) {
	t.Parallel()
	l := memory.New(nil)
	lease, err := l.OpenSession(t.Context(), time.Hour, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	step := program.StepSpec{Name: "customer", Repeat: program.RepeatFind, Undo: true}
	if err := l.Describe(t.Context(), &program.Spec{Saga: undone.Saga, Version: 1, Steps: []program.StepSpec{step}}); err != nil {
		t.Fatal(err)
	}
	fill(t, l, lease.Token, undone)
	fill(t, l, lease.Token, saga.ID{Saga: undone.Saga, Work: "undone, too"})
	report, err := ledger.Check(t.Context(), l, nil)
	if err != nil || len(report.Findings) > 0 || report.Works != 2 {
		t.Errorf("got %+v and error %v, want nothing found", report, err)
	}
}
