package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Where a read fails the page says so, and not that all is well.
func TestNoAllClearWhereAReadFails(t *testing.T) {
	t.Parallel()
	for name, clear := range map[string]string{
		"needs": "Nothing needs you", "duplicates": "No duplicate", "findings": "agree, as far as", "acts": "No person did", "inbox": "Nothing was heard",
		"jobs": "No process with a job", "destinations": "No process ever", "works": "No instance matches",
	} {
		for _, wrong := range [][]string{nil, {"the ledger does not answer"}} {
			p := &page{Title: "x", Docs: document{"each": []document{}, "chart": chart{}}, Wrong: wrong}
			var b bytes.Buffer
			if err := templates[name].ExecuteTemplate(&b, "page", p); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(b.String(), clear); said == (wrong != nil) {
				t.Errorf("%s with %q says that all is well: %v", name, wrong, said)
			}
		}
	}
	p := &page{Docs: document{"alarms": []document{{"job": "orders", "alarm": "no run ended well"}}}}
	var b bytes.Buffer
	if err := templates["needs"].ExecuteTemplate(&b, "page", p); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "no run ended well") || strings.Contains(text, "Nothing needs you") {
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
	at := func(days int, kind, status string) document {
		return document{"at": begin.AddDate(0, 0, days).Format(time.RFC3339Nano), "kind": kind, "step": "rest", "status": status, "attempt": json.Number("0")}
	}
	line := timelineOf([]document{at(0, "started", "running"), at(10, "wait-began", "waiting"), at(110, "wait-over", "running"), at(120, "noted", "completed")}, begin)
	if len(line.Rows) != 1 || line.Rows[0].Bars[0].X != 83 || line.Rows[0].Bars[0].W != 833 {
		t.Errorf("a wait from day 10 to 110 of 120 is %+v", line.Rows)
	}
	back := timelineOf([]document{at(5, "started", "running"), at(1, "wait-began", "waiting"), at(0, "wait-over", "running")}, begin)
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
