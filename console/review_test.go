package console

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Where a read fails the page says so, and not that all is well.
func TestNoAllClearWhereAReadFails(t *testing.T) {
	t.Parallel()
	none := needsMe{
		Status: &desk.Status{}, Approvals: &desk.All[desk.Approval]{}, Drift: &desk.Drifts{}, Blocked: &desk.List[*desk.Entry]{},
		Jobs: &desk.Board{}, Destinations: &desk.Destinations{},
	}
	written := func(name string, p *page) string {
		t.Helper()
		var b bytes.Buffer
		if err := templates[name].ExecuteTemplate(&b, "page", p); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		clear string
		data  any
	}{
		"needs": {"Nothing needs you", &none}, "duplicates": {"No duplicate", blocked{Duplicates: &desk.Duplicates{}}}, "findings": {"agree, as far as", &desk.Drifts{}},
		"acts": {"No person did", &desk.List[desk.Deed]{}}, "inbox": {"Nothing was heard", inbox{&desk.All[desk.Count]{}, &desk.List[desk.Delivery]{}}},
		"jobs": {"No process with a job", jobsRuns{&desk.Board{}, &desk.List[desk.Run]{}}}, "destinations": {"No process ever", &desk.Destinations{}},
		"works": {"No instance matches", listed{List: &desk.List[desk.Head]{}}}, "sagas": {"No process ever", &desk.All[desk.Saga]{}},
		"processes": {"No process with a saga", &desk.Status{}}, "group": {"None is in review", &grouped{}},
	} {
		for _, wrong := range [][]string{nil, {"the ledger does not answer"}} {
			if said := strings.Contains(written(name, &page{Title: "x", Data: c.data, Wrong: wrong}), c.clear); said == (wrong != nil) {
				t.Errorf("%s with %q says that all is well: %v", name, wrong, said)
			}
		}
	}
	late := none
	late.Alarms, late.More = []desk.Job{{Job: "orders", Alarm: "no run ended well"}}, true
	late.Groups = []reviews{{Group: desk.Group{Saga: "mail", Step: "send", Reason: saga.ReasonInDoubt, Count: 2}}}
	has(t, written("needs", &page{Data: &late}), "2 of <bdi>mail</bdi>", "All that are in review")
	if text := written("needs", &page{Data: &late}); !strings.Contains(text, "no run ended well") || strings.Contains(text, "Nothing needs you") {
		t.Errorf("beside a job that is late all is well:\n%s", text)
	}
}

// An address carries only a token of the process itself: with one of the file, a stranger's page could
// sign a person in under another name.
func TestSignInByAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	file := filepath.Join(t.TempDir(), "tokens")
	kept, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := kept.Issue(Person{"eve", []string{Admin}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.tokens.mu.Lock()
	w.tokens.file = file
	w.tokens.mu.Unlock()
	x := w.as("")
	if status, _ := x.get("/sign-in?token=" + text); status != http.StatusForbidden {
		t.Errorf("an address with a token of the file signs in: %d", status)
	}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	if status, page := x.ask("POST", "/sign-in?to=%2F..%2F..%2Fx", "token="+text, form); status != http.StatusOK || !strings.Contains(page, "What needs me") {
		t.Errorf("the form does not: %d", status)
	}
}

// A token is added behind a line that a person left without an end.
func TestTokenBehindHalfALine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# who may"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tokens.Issue(Person{"maria", []string{Reader}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := tokens.of(text, time.Now()); p.Name != "maria" || err != nil {
		t.Errorf("it is %v's: %v", p, err)
	}
}

// A timeline of months is drawn to scale.
func TestTimelineOfMonths(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(days int, kind machine.Kind, status saga.Status) desk.Record {
		when := begin.AddDate(0, 0, days)
		return desk.Record{At: &when, Kind: kind, Step: "rest", Direction: saga.Forward, Status: status}
	}
	line := timelineOf([]desk.Record{at(0, "started", "running"), at(10, "wait-began", "waiting"), at(110, "wait-over", "running"), at(120, "noted", "completed")}, begin)
	if len(line.Rows) != 1 || line.Rows[0].Bars[0].X != 83 || line.Rows[0].Bars[0].W != 833 {
		t.Errorf("a wait from day 10 to 110 of 120 is %+v", line.Rows)
	}
	back := timelineOf([]desk.Record{at(5, "started", "running"), at(1, "wait-began", "waiting"), at(0, "wait-over", "running")}, begin)
	if b := back.Rows[0].Bars[0]; b.X < 0 || b.W < 1 || b.X+b.W > 1000 {
		t.Errorf("after a clock that stepped back it is %+v", b)
	}
}

// A list is bounded, a look is on record only for what there is, and a role with a comma is one role.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	x := w.as("olaf", Operator)
	for _, path := range []string{"/works", "/acts", "/inbox", "/drift"} {
		if status, _ := x.get("/api/v1" + path + "?limit=1001"); status != http.StatusBadRequest {
			t.Errorf("%s has no bound: %d", path, status)
		}
	}
	if status, _ := x.get("/api/v1/works/mail/nothing/bodies"); status != http.StatusNotFound {
		t.Errorf("bodies of nothing: %d", status)
	}
	if status, _ := x.get("/api/v1/works/mail/order%3A1%09pay"); status != http.StatusBadRequest {
		t.Errorf("a work id that names another saga: %d", status)
	}
	w.start("mail", "order:1", letter{To: "Otto"}, saga.Completed)
	x.ask("GET", address("mail", "order:1")+"&bodies=1", "", map[string]string{"Sec-Fetch-Site": "cross-site"})
	x.ask("HEAD", address("mail", "order:1")+"&bodies=1", "", nil)
	if _, text := x.get("/acts"); strings.Contains(text, "bodies of") {
		t.Errorf("a look that there was not is on record:\n%s", text)
	}
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	odd := w.as("odd", Approver, "x,admin")
	a, err := w.c.Approval(t.Context(), saga.ID{Saga: "pay", Work: "bill:1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if status, text := odd.post("/api/v1/works/pay/bill:1/approve", `{"reason":"let me","shown":"`+a.Digest+`"}`); status != http.StatusConflict {
		t.Errorf("a role with a comma is two: %d %s", status, text)
	}
}

// A page offers what the desk does: of each choice a form that says what it says and asks what only the person knows. Votes stand beside
// what is decided about.
func TestAFormForEachChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	w.start("pay", "bill:1", letter{To: "Otto"}, saga.Waiting)
	w.start("pay", "bill:2", letter{Outcome: "a bug"}, saga.Review)
	w.start("ask", "w1", letter{}, saga.Waiting)
	w.start("later", "w2", letter{}, saga.Waiting)
	for _, id := range []saga.ID{{Saga: "mail", Work: "order:1"}, {Saga: "pay", Work: "bill:1"}, {Saga: "pay", Work: "bill:2"}, {Saga: "ask", Work: "w1"}, {Saga: "later", Work: "w2"}} {
		i, err := desk.New(w.db, "").Show(t.Context(), &desk.ShowIn{Which: desk.Which{Saga: id.Saga, Work: id.Work}})
		if err != nil {
			t.Fatal(err)
		}
		all := slices.DeleteFunc(slices.Concat(i.Choices, i.Also), func(c desk.Choice) bool { return c.Verb == "approve" || c.Verb == "reject" })
		p := &page{}
		forms := slices.Concat(p.Choices(i, i.Choices), p.Choices(i, i.Also))
		if len(forms) != len(all) || len(all) == 0 {
			t.Errorf("%s: %d forms of %d choices", id, len(forms), len(all))
			continue
		}
		for n, c := range all {
			f := &forms[n]
			op := operationAt(http.MethodPost, f.Do)
			if op == nil || f.Do != "/works/{saga}/{work}/"+c.Verb || f.When != c.When || f.Label != c.Button {
				t.Errorf("%s: the form of %q is %+v", id, c.Verb, f)
				continue
			}
			for _, flag := range c.Flags {
				_, set := f.Set[flag.Name]
				asked := slices.ContainsFunc(f.Ask, func(b blank) bool { return b.Name == flag.Name })
				if asked != (flag.Example != "") || set == asked || op.field(flag.Name) == nil {
					t.Errorf("%s: %s says %s: asked %t, set %t", id, c.Verb, flag.Name, asked, set)
				}
			}
		}
	}
}
