package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/amends-dev/amends/approval"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/axe"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
)

// tab is a person before a Chromium, with a session of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	site string // the pages of who signed in
	axe  string // what finds what is wrong with a page
}

func newTab(t *testing.T) *tab {
	t.Helper()
	pace.Day(t)
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: scripts/deps.sh chromium")
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, axe: axe.Expression(t)}
	b.do() // the browser lives as long as the context of the first call
	return b
}

// beside is another tab of the same browser.
func (b *tab) beside(address string) *tab {
	b.t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx)
	b.t.Cleanup(stop)
	other := &tab{t: b.t, ctx: ctx, site: b.site, axe: b.axe}
	other.open(address)
	return other
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("main"))
}

// is evaluates an expression in the page.
func (b *tab) is(expression string) bool {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// until waits until an expression is true in the page, whatever it is exchanged for meanwhile.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		switch {
		case v && err == nil:
			return
		case time.Now().After(end):
			b.t.Fatalf("it never became true: %s: %v\n%s", expression, err, b.sees())
		}
	}
}

func (b *tab) sees() string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Text("main"))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// shows looks at the page on a desk and on a telephone: it keeps out no one, and is not wider than its window. Pictures of it are kept
// for a person to look at, where AMENDS_SCREENSHOTS names a folder.
func (b *tab) shows(name string) {
	b.t.Helper()
	for _, width := range []int64{390, 1280} {
		b.do(chromedp.EmulateViewport(width, 900))
		wrong, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](b.axe, chromedp.EvalAwaitPromise))
		if err != nil {
			b.t.Fatal(err)
		}
		if wrong != "" {
			b.t.Errorf("%s keeps people out:\n%s", name, wrong)
		}
		if !b.is(fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, width)) {
			b.t.Errorf("%s is wider than a window of %d", name, width)
		}
		b.keeps(fmt.Sprintf("%s-%d.png", name, width))
	}
}

func (b *tab) keeps(name string) {
	b.t.Helper()
	folder := os.Getenv("AMENDS_SCREENSHOTS")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err = errors.Join(err, os.MkdirAll(folder, 0o750), os.WriteFile(filepath.Join(folder, name), shot, 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

// as signs a browser in.
func (b *tab) as(w *world, name string, roles ...string) {
	b.t.Helper()
	token, err := w.tokens.Issue(console.Person{Name: name, Roles: roles}, time.Hour)
	if err != nil {
		b.t.Fatal(err)
	}
	b.open(w.server.URL + "/sign-in?token=" + token)
	address, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		b.t.Fatal(err)
	}
	b.site = strings.TrimSuffix(address, "/")
}

// buttons are those of forms that decide.
const buttons = `[...document.querySelectorAll("form.do button")]`

// What a person reads is what the person decides about: the console exchanges no form under its reader. When what it shows has
// changed, its buttons are off and it says so.
func TestNoFormIsExchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newTab(t)
	b.as(w, "fay", console.Approver, console.Operator, "finance")

	w.start("pay", "bill:1", letter{To: "Alice"}, saga.Waiting)
	b.open(b.site + address("pay", "bill:1"))
	b.until(`document.querySelector("main").textContent.includes("Alice")`)
	if _, err := w.c.Start(t.Context(), "pay", "bill:1", letter{To: "Mallory"}, &saga.StartOptions{Revision: "2", Source: "shop"}); err != nil {
		t.Fatal(err)
	}
	b.until(`document.getElementById("changed") !== null && document.getElementById("pause").offsetParent === null`) // there is nothing to pause
	b.shows("changed")
	if text := b.sees(); !strings.Contains(text, "Alice") || strings.Contains(text, "Mallory") || !strings.Contains(text, "has changed") {
		t.Errorf("what was read is another text:\n%s", text)
	}
	if !b.is(buttons + `.filter((b) => b.textContent === "Approve").every((b) => b.disabled)`) {
		t.Error("what has changed can be approved")
	}
	b.do(chromedp.Click("#changed button"))
	b.until(`document.querySelector("main").textContent.includes("Mallory") && !document.getElementById("changed")`)
	if !b.is(buttons + `.every((b) => !b.disabled)`) {
		t.Error("loaded again, it cannot be decided")
	}

	w.start("mail", "order:1", letter{Outcome: "the line went dead"}, saga.Review)
	w.start("mail", "order:2", letter{Outcome: "the line went dead"}, saga.Review)
	b.open(b.site + "/")
	order := saga.ID{Saga: "mail", Work: "order:1"}
	if err := w.c.Resolve(t.Context(), order, "send", coordinator.DidNotHappen(), saga.Actor{Name: "ben", Reason: "not in the outbox"}); err != nil {
		t.Fatal(err)
	}
	b.until(`document.getElementById("changed") !== null`)
	of := func(work string) string {
		return `[...document.querySelectorAll("form.do")].filter((f) => f.querySelector("[name='part.work']")?.value === "` + work + `").map((f) => f.querySelector("button"))`
	}
	if !b.is(of("order:1") + `.every((b) => b.disabled)`) {
		t.Error("what another operator has settled can be settled again")
	}
	if !b.is(of("order:2") + `.length > 0 && ` + of("order:2") + `.every((b) => !b.disabled)`) {
		t.Error("what no one has touched cannot be settled")
	}
	b.is(`document.querySelectorAll("details").forEach((d) => d.open = true); true`)
	b.shows("needs")
	w.start("pay", "bill:2", letter{To: "Bob"}, saga.Waiting)
	for name, path := range map[string]string{
		"approvals": "/", "approval": address("pay", "bill:2"), "instances": "/works?status=waiting", "sagas": "/sagas", "group": "/group?saga=mail&step=send&reason=in-doubt", "none": "/nothing",
	} {
		b.open(b.site + path)
		b.shows(name)
	}
}

// The page of package approval takes a vote on what it showed, and on nothing else.
func TestPageOfAnApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newTab(t)
	who := func(*http.Request) (string, []string) { return "fay", []string{"finance"} }
	server := httptest.NewServer(approval.Handler(w.c, who, nil))
	t.Cleanup(server.Close)
	w.start("pay", "bill:1", letter{To: "Alice"}, saga.Waiting)
	b.open(server.URL)
	b.shows("list-of-package")
	b.open(server.URL + "/pay/bill:1/release")
	b.shows("approval-of-package")
	if _, err := w.c.Start(t.Context(), "pay", "bill:1", letter{To: "Mallory"}, &saga.StartOptions{Revision: "2", Source: "shop"}); err != nil {
		t.Fatal(err)
	}
	w.untilShown("Mallory")
	if text := b.sees(); !strings.Contains(text, "Alice") {
		t.Errorf("the page shows:\n%s", text)
	}
	b.do(chromedp.Click(`button[value="approve"]`))
	b.until(`document.querySelector("[role=status]")?.textContent.includes("has changed since you saw it")`)
	w.until("pay", "bill:1", saga.Waiting)
	b.do(chromedp.Click(`button[value="approve"]`))
	b.until(`document.querySelector("[role=status]")?.textContent.includes("is on record")`)
	w.until("pay", "bill:1", saga.Completed)
	b.open(server.URL + "/pay/bill:1/release")
	b.shows("decided-of-package")
}

// On both pages: the same vote again, before it is read, is answered as the first was; and what was shown of an earlier run decides
// nothing in the next.
func TestVotesOnBothPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newTab(t)
	who := func(*http.Request) (string, []string) { return "fay", []string{"finance"} }
	server := httptest.NewServer(approval.Handler(coordinator.NewOperator(w.db), who, nil))
	t.Cleanup(server.Close)
	w.start("pay", "bill:1", letter{To: "Alice"}, saga.Waiting)
	b.as(w, "fay", console.Approver, "finance")
	own, pack := b.site+address("pay", "bill:1"), server.URL+"/pay/bill:1/release"
	inConsole, inPackage := b.beside(own), b.beside(pack)
	oldConsole, oldPackage := b.beside(own), b.beside(pack)
	w.halt()
	const approve = `document.querySelector(".choices form.do input[name='flag.reason']").value = "seen"; document.querySelector(".choices form.do button").click(); true`
	inConsole.is(approve)
	inConsole.until(`document.querySelector(".said.good") !== null`)
	for range 2 {
		inPackage.do(chromedp.Click(`button[value="approve"]`))
		inPackage.until(`document.querySelector("[role=status]")?.textContent.includes("is on record")`)
		inPackage.open(pack)
	}
	w.run()
	w.until("pay", "bill:1", saga.Completed)
	if _, err := w.c.Rerun(t.Context(), saga.ID{Saga: "pay", Work: "bill:1"}, "again", saga.Actor{Name: "olaf", Reason: "it is to be paid again"}); err != nil {
		t.Fatal(err)
	}
	w.until("pay", "bill:1", saga.Waiting)
	oldConsole.is(approve)
	oldConsole.until(`document.getElementById("changed") !== null || // its buttons were off already
		document.querySelector(".said.bad")?.textContent.includes("has changed since it was shown") === true`)
	oldPackage.do(chromedp.Click(`button[value="approve"]`))
	oldPackage.until(`document.querySelector("[role=status]")?.textContent.includes("has changed since you saw it")`)
	w.until("pay", "bill:1", saga.Waiting)
	inPackage.open(pack)
	inPackage.do(chromedp.Click(`button[value="approve"]`))
	w.until("pay", "bill:1", saga.Completed)
}

// untilShown waits until what is to be decided about the bill says a text.
func (w *world) untilShown(text string) {
	w.t.Helper()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if a, err := w.c.Approval(w.t.Context(), saga.ID{Saga: "pay", Work: "bill:1"}, ""); err == nil && strings.Contains(string(a.Shown), text) {
			return
		}
	}
}
