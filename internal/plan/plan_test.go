package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// findings are one of each sort, in the order of keys.
func findings() []plan.Finding {
	return []plan.Finding{
		{Key: "shop:order:1", Class: plan.InSync, Action: plan.Nothing, Reason: "it says what it should"},
		{Key: "shop:order:2", Class: plan.Missing, Action: plan.Start, Reason: "the ledger has no work for it", SourceRevision: "1"},
		{
			Key: "shop:order:3", Class: plan.Stale, Action: plan.Revise, Reason: "the source has 2, and 1 was applied", SourceRevision: "2", LedgerRevision: "1", Documents: []string{"inv_3"},
			Changes: []plan.Change{{Field: "customer", Actual: "cus_7", Desired: "cus_8"}, {Field: "total", Actual: "4100", Desired: "4200"}},
		},
		{
			Key: "shop:order:4", Class: plan.Diverged, Action: plan.Ask, Reason: "fields of ours were changed at the destination", SourceRevision: "1", LedgerRevision: "1", Documents: []string{"inv_4"},
			Changes: []plan.Change{{Field: "note", Actual: "\x1b[31mred\nlines", Desired: strings.Repeat("long ", 100)}}, Suggestion: "keep the change and correct the source, or write ours again",
		},
		{Key: "shop:order:5", Class: plan.Duplicate, Action: plan.Ask, Reason: "the destination has 2 of them under one mark", Documents: []string{"inv_5", "inv_6"}, Suggestion: "keep inv_5: the ledger knows it. Nothing is voided by itself"},
		{Key: "shop:order:6", Class: plan.SourceGone, Action: plan.Withdraw, Reason: "the source cancelled it at 2", SourceRevision: "2", LedgerRevision: "1", Documents: []string{"inv_7"}},
		{Key: "shop:order:7", Class: plan.PhantomDone, Action: plan.Again, Reason: "its document is gone; the policy says to make it again", SourceRevision: "1", LedgerRevision: "1"},
	}
}

func head() *plan.Plan {
	return &plan.Plan{
		Job: "books", MappingVersion: "3", PreviousMappingVersion: "2", Scan: 12,
		Counts:      plan.Census{Source: 1203, Destination: 1199, Ledger: 1202, Keys: 1204, PreviousSource: 1200},
		Differences: plan.Spread{Compared: 1190, Fields: []plan.Share{{Field: "total", Count: 2}}},
	}
}

var counted = []plan.Tally{{Class: plan.InSync, Action: plan.Nothing, Count: 1187}, {Class: plan.Foreign, Action: plan.Nothing, Count: 40}}

func planned(t interface{ Fatal(...any) }, h *plan.Plan, b *plan.Bounds, fs []plan.Finding) *plan.Plan {
	p := plan.NewPlanner(h, counted)
	for i := range fs {
		if err := p.Add(&fs[i]); err != nil {
			t.Fatal(err)
		}
	}
	made, err := p.Plan(b)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// strict withholds everything that makes, and lets pass what does not.
var strict = plan.Bounds{Create: plan.Bound{Ask: true}}

func each(fs []plan.Finding) iter.Seq2[plan.Finding, error] {
	return func(yield func(plan.Finding, error) bool) {
		for _, f := range fs {
			if f.Class != plan.InSync && !yield(f, nil) {
				return
			}
		}
	}
}

// What people and programs read of a plan does not change unnoticed.
func TestGolden(t *testing.T) {
	t.Parallel()
	p := planned(t, head(), &strict, findings())
	var text, doc bytes.Buffer
	err := plan.WriteText(&text, p, func(c plan.Class, n int) ([]plan.Finding, error) {
		return slices.DeleteFunc(findings(), func(f plan.Finding) bool { return f.Class != c }), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.WriteJSON(&doc, "v1", p, each(findings())); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(doc.Bytes()) {
		t.Errorf("this is no JSON: %s", doc.Bytes())
	}
	for name, got := range map[string]*bytes.Buffer{"plan.txt": &text, "plan.json": &doc} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s (%v): got\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

// Others write what is in a finding. In a text nothing of it moves the cursor, turns the line
// around or ends it.
func TestTextIsPlain(t *testing.T) {
	t.Parallel()
	evil := "a\x1b[2J\rb\u202ec\nz\x00"
	f := plan.Finding{Key: evil, Class: plan.Diverged, Action: plan.Ask, Reason: evil, Documents: []string{evil}, Suggestion: evil, Changes: []plan.Change{{Field: evil, Actual: evil, Desired: evil}}}
	p := planned(t, &plan.Plan{Job: evil, MappingVersion: evil}, &plan.Bounds{}, []plan.Finding{f})
	var text bytes.Buffer
	if err := plan.WriteText(&text, p, func(plan.Class, int) ([]plan.Finding, error) { return []plan.Finding{f}, nil }); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.ContainsAny(got, "\x1b\r\u202e\x00") || strings.Contains(got, "\nz") {
		t.Errorf("%q", got)
	}
}

// A plan without findings is a document with an empty list, and a text that says so.
func TestEmptyPlan(t *testing.T) {
	t.Parallel()
	p := planned(t, &plan.Plan{Job: "books"}, &plan.Bounds{}, nil)
	var doc bytes.Buffer
	if err := plan.WriteJSON(&doc, "v1", p, each(nil)); err != nil || !strings.Contains(doc.String(), `"findings":[]`) || !json.Valid(doc.Bytes()) {
		t.Errorf("%s, %v", &doc, err)
	}
	if p.Drifts() != 0 || len(p.Words()) != 0 {
		t.Errorf("%d drift, %v", p.Drifts(), p.Words())
	}
}

// The same input makes the same plan, byte for byte; another finding, count, mapping or bound
// that matters makes one with another id.
func TestPlanIsItsInput(t *testing.T) {
	t.Parallel()
	bytesOf := func(p *plan.Plan) string {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := planned(t, head(), &strict, findings())
	if again := planned(t, head(), &strict, findings()); bytesOf(again) != bytesOf(first) || len(first.ID) != 32 {
		t.Errorf("again it is\n%s\nand was\n%s", bytesOf(again), bytesOf(first))
	}
	ids := map[string]string{first.ID: "itself"}
	for name, change := range map[string]func(*plan.Plan, *plan.Bounds, []plan.Finding) []plan.Finding{
		"a finding less": func(_ *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding { return fs[:6] },
		"another why":    func(_ *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding { fs[1].Reason = "!"; return fs },
		"another version": func(_ *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding {
			fs[1].SourceRevision = "9"
			return fs
		},
		"another value": func(_ *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding {
			fs[2].Changes[0].Desired = "cus_9"
			return fs
		},
		"one in sync less": func(_ *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding { return fs[1:] },
		"another mapping": func(h *plan.Plan, _ *plan.Bounds, fs []plan.Finding) []plan.Finding {
			h.MappingVersion = "4"
			return fs
		},
		"another bound": func(_ *plan.Plan, b *plan.Bounds, fs []plan.Finding) []plan.Finding {
			b.Create.Ask = false
			return fs
		},
	} {
		h, b := head(), strict
		id := planned(t, h, &b, change(h, &b, findings())).ID
		if twin, known := ids[id]; known {
			t.Errorf("with %s the id is that of %s", name, twin)
		}
		ids[id] = name
	}
	later := head()
	later.Scan, later.Counts.PreviousSource = later.Scan+1, later.Counts.PreviousSource+1
	if _, same := ids[planned(t, later, &strict, findings()).ID]; !same {
		t.Error("the same plan over a later listing has another id")
	}
}

// In which order the destination lists documents makes no difference to what is found.
func TestOrderOfDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var ds []plan.Document
		for n := range rapid.IntRange(1, 4).Draw(r, "documents") {
			d := doc(fmt.Sprint("inv_", n), sold)
			if rapid.Bool().Draw(r, "late") {
				d = late(d)
			}
			d.Locked = rapid.Bool().Draw(r, "locked")
			ds = append(ds, d)
		}
		i := plan.Item{Key: key, Truth: wanted("1"), Documents: ds, Known: done()}
		want := fmt.Sprint(plan.Classify(&i, &plan.Policy{}))
		i.Documents = rapid.Permutation(ds).Draw(r, "order")
		if got := fmt.Sprint(plan.Classify(&i, &plan.Policy{})); got != want {
			r.Fatalf("%s\nand %s", got, want)
		}
	})
}

// Findings come in the order of their keys, each once. Otherwise one was forgotten or found twice.
func TestPlannerWantsOrder(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"2", "1"}, {"1", "1"}, {""}} {
		p := plan.NewPlanner(head(), nil)
		var err error
		for _, k := range keys {
			err = p.Add(&plan.Finding{Key: k, Class: plan.Missing, Action: plan.Start})
		}
		if err == nil {
			t.Errorf("%q were planned", keys)
		}
	}
}

// A ledger with two works for one key stops the job, and so nothing of the plan is done.
func TestHalt(t *testing.T) {
	t.Parallel()
	fs := append(findings(), plan.Finding{Key: "shop:order:8", Class: plan.DupLedger, Action: plan.Halt, Reason: "two works"})
	if p := planned(t, head(), &plan.Bounds{}, fs); !strings.Contains(p.RefusedReason, "shop:order:8") {
		t.Errorf("refused: %q", p.RefusedReason)
	}
}

// Looked at closely: what a listing took for news of the source counts as somebody's doing when
// the finding, looked at anew, says so; and so a mapping that changed without saying so is noticed
// before anything is done.
func TestSpreadOfFindings(t *testing.T) {
	t.Parallel()
	h := &plan.Plan{Job: "books", MappingVersion: "3", PreviousMappingVersion: "3", Differences: plan.Spread{Compared: 20, Fields: []plan.Share{{Field: "tax", Count: 1, NewerAtSource: 18}, {Field: "total", NewerAtSource: 2}}}}
	var fs []plan.Finding
	for n := range 15 {
		fs = append(fs, plan.Finding{Key: fmt.Sprintf("%02d", n), Class: plan.Diverged, Action: plan.Ask, Changes: []plan.Change{{Field: "tax"}}})
	}
	if p := planned(t, h, &plan.Bounds{}, fs); !strings.Contains(p.RefusedReason, "75 % of 20 documents") || fmt.Sprint(p.Differences.Fields) != "[{tax 15 4} {total 0 2}]" {
		t.Errorf("%q, %v", p.RefusedReason, p.Differences.Fields)
	}
	if p := planned(t, h, &plan.Bounds{}, fs[:10]); p.RefusedReason != "" {
		t.Errorf("ten of twenty: %q", p.RefusedReason)
	}
}

// What runs a work again makes a document where none stands, and changes it where one does; each
// has its own bound.
func TestRisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		do    plan.Verb
		docs  []string
		risk  plan.Risk
		known bool
	}{
		{plan.Start, nil, plan.Create, true},
		{plan.Revise, []string{"inv"}, plan.Update, true},
		{plan.Revise, nil, plan.Create, true},
		{plan.Again, []string{"inv"}, plan.Update, true},
		{plan.Again, nil, plan.Create, true},
		{plan.Withdraw, []string{"inv"}, plan.Destroy, true},
		{plan.Adopt, []string{"inv"}, plan.Harmless, true},
		{plan.Resume, nil, plan.Harmless, true},
		{plan.Ask, []string{"inv"}, plan.Harmless, false},
		{plan.Nothing, nil, plan.Harmless, false},
		{plan.Look, nil, plan.Harmless, false},
		{plan.Halt, nil, plan.Harmless, false},
	} {
		if f := (plan.Finding{Action: c.do, Documents: c.docs}); f.Risk() != c.risk || c.do.Acts() != c.known {
			t.Errorf("%s with %v: risk %q, acts %v; want %q, %v", c.do, c.docs, f.Risk(), c.do.Acts(), c.risk, c.known)
		}
	}
}
