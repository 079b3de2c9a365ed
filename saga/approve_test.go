package saga_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

type payment struct{ Cents, Version int }

func tell(context.Context, saga.Call[payment]) (struct{}, error) { return struct{}{}, nil }

func asking(name string) *saga.Action[payment, struct{}] {
	return saga.Do(name, tell).Idempotent().NoID().NoUndo("a question")
}

// Each fault of an approval is named, all at once.
func TestApproveFaults(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]*saga.ApproveStep[payment]{
		"it does not say who decides: By":                       saga.Approve[payment]("a").Within(time.Hour),
		`the role "two words"`:                                  saga.Approve[payment]("a").By("two words").Within(time.Hour),
		"its Within lasts 0s":                                   saga.Approve[payment]("a").By("x"),
		"it needs a vote at least":                              saga.Approve[payment]("a").By("x").Votes(0).Within(time.Hour),
		"About needs a function":                                saga.Approve[payment]("a").By("x").About(nil).Within(time.Hour),
		"When needs a function":                                 saga.Approve[payment]("a").By("x").When(nil).Within(time.Hour),
		"it reminds, and has no Ask to do so":                   saga.Approve[payment]("a").By("x").Within(time.Hour).Remind(time.Minute),
		"it reminds after 1h0m0s, and has 1h0m0s":               saga.Approve[payment]("a").By("x").Within(time.Hour).Remind(time.Hour).Ask(asking("ask")),
		"it reminds twice":                                      saga.Approve[payment]("a").By("x").Within(time.Hour).Remind(time.Minute).Remind(time.Second).Ask(asking("ask")),
		"it is escalated after 2h0m0s, and has 1h0m0s":          saga.Approve[payment]("a").By("x").Within(time.Hour).Escalate(2*time.Hour, "y"),
		"it is escalated, and no role is named":                 saga.Approve[payment]("a").By("x").Within(time.Hour).Escalate(time.Minute),
		"it is escalated twice":                                 saga.Approve[payment]("a").By("x").Within(time.Hour).Escalate(time.Minute, "y").Escalate(time.Minute, "z"),
		"Ask needs an action":                                   saga.Approve[payment]("a").By("x").Within(time.Hour).Ask(nil),
		"its Ask is to be one action, made by Do, and no pivot": saga.Approve[payment]("a").By("x").Within(time.Hour).Ask(saga.Delay[payment]("d", time.Hour)),
		`step "ask": it does not say how it is undone`:          saga.Approve[payment]("a").By("x").Within(time.Hour).Ask(saga.Do("ask", tell).Idempotent().NoID()),
	} {
		if _, err := saga.Define("pay", 1, a, asking("charge")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What people are shown is the same for the same identity, results and version, and for nothing else; where no decision is needed, it is
// nothing.
func TestShown(t *testing.T) {
	t.Parallel()
	define := func(version int) *saga.Definition[payment] {
		quote := saga.Await("quote", func(saga.Call[payment], saga.Message) (string, error) { return "", nil }).
			On("quoted", func(c saga.Call[payment]) string { return c.Work }).EachRun().Within(time.Hour, saga.Compensate)
		d, err := saga.Define("pay", version, asking("book"), quote, saga.Delay[payment]("rest", time.Hour),
			saga.Approve[payment]("a").By("x").Within(time.Hour).When(func(c saga.Call[payment]) bool { return c.Input.Cents > 10 }).Ask(asking("ask")),
			asking("charge"), saga.Identity(func(p payment) any { return p.Cents }))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	shown := func(d *saga.Definition[payment], input, booked string, quoted ...string) string {
		t.Helper()
		doc, asked, err := d.Shown(&program.Invocation{Work: "w", Step: "a", Input: json.RawMessage(input), Results: map[string]program.Result{
			"book": {ExternalID: booked}, "quote": {ExternalID: strings.Join(quoted, "")}, "rest": {}, "ask": {ExternalID: "m_1"}, "charge": {ExternalID: "of an earlier revision"},
		}})
		if err != nil || asked != (doc != nil) {
			t.Fatalf("%t %v", asked, err)
		}
		return string(doc)
	}
	first := shown(define(1), `{"Cents":50,"Version":1}`, "b_1")
	if want := `{"saga":"pay","version":1,"workId":"w","step":"a","input":50,"results":{"book":{"externalId":"b_1"},"quote":{}}}`; first != want {
		t.Errorf("%s, want %s", first, want)
	}
	if again := shown(define(1), `{"Version":2,"Cents":50}`, "b_1"); again != first {
		t.Errorf("a version that says the same: %s", again)
	}
	for _, other := range []string{shown(define(2), `{"Cents":50}`, "b_1"), shown(define(1), `{"Cents":51}`, "b_1"), shown(define(1), `{"Cents":50}`, "b_2"), shown(define(1), `{"Cents":50}`, "b_1", "q_2")} {
		if other == first {
			t.Errorf("something else is shown as %s", other)
		}
	}
	if none := shown(define(1), `{"Cents":5}`, "b_1"); none != "" {
		t.Errorf("no decision is needed, and %s is shown", none)
	}
	if _, _, err := define(1).Shown(&program.Invocation{Step: "book", Input: json.RawMessage("{}")}); err == nil {
		t.Error("a step that is no approval shows something")
	}
	if o := define(1).Act(t.Context(), &program.Invocation{Step: "charge", Input: json.RawMessage("{}")}); o.Class != program.Succeeded {
		t.Errorf("%+v", o)
	}
}

// What an approval says about itself is part of what is shown, within its bounds and on one line; a panic is an error, as one of the
// identity is.
func TestAbout(t *testing.T) {
	t.Parallel()
	shown := func(about func(saga.Call[payment]) saga.About, results map[string]program.Result) (string, error) {
		t.Helper()
		d, err := saga.Define("pay", 1, asking("book"), saga.Approve[payment]("a").By("x").About(about).Within(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		doc, _, err := d.Shown(&program.Invocation{Work: "w", Step: "a", Input: json.RawMessage(`{"Cents":50}`), Results: results})
		return string(doc), err
	}
	title := func(text string) func(saga.Call[payment]) saga.About {
		return func(saga.Call[payment]) saga.About { return saga.About{Title: text} }
	}
	one, err := shown(title("Pay Otto"), nil)
	if want := `{"about":{"title":"Pay Otto","amount":"","link":"","fields":[]},"saga":"pay"`; err != nil || !strings.HasPrefix(one, want) {
		t.Errorf("%s (%v), want %s", one, err, want)
	}
	if two, err := shown(title("Pay Anna"), nil); two == one || err != nil {
		t.Errorf("another title is the same document (%v)", err)
	}
	long, err := shown(func(saga.Call[payment]) saga.About {
		a := saga.About{Title: strings.Repeat("ü", 201), Amount: "EUR\n1\u202e2\x00", Link: "javascript:alert(1)"}
		for range 13 {
			a.Fields = append(a.Fields, saga.Field{Name: "n", Value: strings.Repeat("v", 501)})
		}
		return a
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := program.AboutOf(json.RawMessage(long))
	if a.Title != strings.Repeat("ü", 199)+"…" || a.Amount != "EUR 12" || a.Link != "javascript:alert(1)" || len(a.Fields) != 12 ||
		a.Fields[10].Value != strings.Repeat("v", 499)+"…" || a.Fields[11].Value != "2 more fields are not shown" {
		t.Errorf("it is kept as %+v", a)
	}
	book := func(c saga.Call[payment]) saga.About { return saga.About{Title: c.ExternalID("book")} }
	if doc, err := shown(book, map[string]program.Result{"book": {ExternalID: "b_1"}}); err != nil || !strings.Contains(doc, `"title":"b_1"`) {
		t.Errorf("%s (%v)", doc, err)
	}
	for want, about := range map[string]func(saga.Call[payment]) saga.About{
		"recorded no external id": func(c saga.Call[payment]) saga.About { return book(c) },
		"panic: a bug":            func(saga.Call[payment]) saga.About { panic("a bug") },
	} {
		if doc, err := shown(about, map[string]program.Result{"book": {}}); doc != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v; want %q", doc, err, want)
		}
	}
}
