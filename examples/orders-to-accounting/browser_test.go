package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/amends-dev/amends/internal/answers"
	"github.com/amends-dev/amends/internal/axe"
	"github.com/amends-dev/amends/internal/pace"
)

// A person watches the run in a browser while its process is killed, finds what is in review,
// looks into the mailbox, says what is there, and the audit is clean. Every page is looked at in
// both themes and on a telephone; with AMENDS_SCREENSHOTS naming a folder, a person can, too.
func TestConsoleInABrowser(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	b := newBrowser(t)
	cmd := command(t, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-console", "-by-hand", "-approve")
	var log bytes.Buffer
	cmd.Stderr = &log
	run := begin(t, cmd)
	url := run.says(`Watch it in a browser: (\S+)`)[1]
	b.do(chromedp.Navigate(url), chromedp.WaitVisible("nav"))
	b.url, b.token, _ = strings.Cut(url, "/sign-in?token=")
	b.pages = strings.TrimSuffix(get(b, chromedp.Location()), "/")

	letters := run.says(`grep -A6 'X-Order: \S+' (\S+)`)[1]
	settled := 0
	for over := run.meets(`The console stays up`); ; settled++ {
		work := b.review(over)
		if work == "" {
			break
		}
		b.settle(work, letter(t, letters, work))
	}
	if settled == 0 {
		t.Errorf("seed %d leaves nothing in review; choose another", seed)
	}
	b.keyboard()
	b.live()
	counts := b.metrics()
	plan := b.answers()
	b.look("/", "/works", "/work?saga="+sagaName+"&id=shop:order:10001", "/sagas", "/processes", "/destinations", "/inbox", "/delivery?number=1", "/jobs", "/findings", "/duplicates", "/acts", "/works?status=review", "/plan?id="+plan, "/sign-in", "/nothing")
	b.do(chromedp.Navigate(b.pages+"/works"), chromedp.WaitVisible("#asof"))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s\n%s", err, &log, run.text())
	}
	b.until(`document.getElementById("asof").textContent.includes("does not answer")`) // the page says that it is not live any more
	if !strings.Contains(run.text(), "With amends: each paid order has one invoice") {
		t.Errorf("the audit is not clean:\n%s", run.text())
	}
	// What the audit counts in shop and books is what the ledger counts, whatever was killed.
	orders, voided := run.counts(`orders +(\d+) `), run.counts(`cancelled, invoice voided +(\d+) `)
	if counts[`amends_works{saga="order-to-invoice",status="completed"}`] != orders-voided || counts[`amends_works{saga="order-to-invoice",status="compensated"}`] != voided {
		t.Errorf("the audit has %d orders, %d of them cancelled; the metrics say %v", orders, voided, counts)
	}
	// A delivery that met no answer may have come or not: its receiver was killed.
	copies, unheard := run.counts(`(\d+) of them needless copies`), run.counts(`(\d+) met no answer`)
	if counts[`amends_duplicates_blocked_total{layer="receiver",source="shop"}`] < copies-unheard {
		t.Errorf("%d needless copies were sent, and %d deliveries met no answer; the metrics say %v", copies, unheard, counts)
	}
}

// metrics are what /metrics says of the ledger.
func (b *browser) metrics() map[string]int {
	b.t.Helper()
	counts := map[string]int{}
	_, text := b.fetch("/metrics")
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(value); err == nil {
			counts[name] = n
		}
	}
	return counts
}

// answers reads what a run leaves behind by /api/v1, checks each answer against the document, and returns the id of a plan.
func (b *browser) answers() string {
	b.t.Helper()
	_, doc := b.fetch("/api/v1/openapi.json")
	book := answers.Open(b.t, []byte(doc))
	read := func(path, filled string) (text string) {
		b.t.Helper()
		status, text := b.fetch("/api/v1" + filled)
		book.Check(http.MethodGet, "/api/v1"+path, status, text)
		return text
	}
	plan := regexp.MustCompile(`"plan": "([^"]+)"`).FindStringSubmatch(read("/jobs/{job}/runs", "/jobs/"+jobAll+"/runs"))
	if plan == nil {
		b.t.Fatal("the run made no plan")
	}
	const order = "/works/" + sagaName + "/shop:order:10001"
	for path, filled := range map[string]string{
		"/status": "/status", "/works": "/works?limit=20", "/works/{saga}/{work}": order, "/works/{saga}/{work}/history": order + "/history",
		"/works/{saga}/{work}/bodies": order + "/bodies", "/duplicates": "/duplicates", "/acts": "/acts", "/destinations": "/destinations", "/inbox": "/inbox?limit=20",
		"/inbox/objects": "/inbox/objects?limit=20", "/inbox/counts": "/inbox/counts", "/inbox/deliveries/{number}": "/inbox/deliveries/1",
		"/inbox/deliveries/{number}/bodies": "/inbox/deliveries/1/bodies", "/jobs": "/jobs", "/jobs/runs": "/jobs/runs", "/plans/{plan}": "/plans/" + plan[1], "/drift": "/drift",
		"/check": "/check",
	} {
		read(path, filled)
	}
	if len(book.Seen) != 19 {
		b.t.Errorf("%d of 19 reads answer: %v", len(book.Seen), book.Seen)
	}
	return plan[1]
}

// fetch is what a program with the token reads.
func (b *browser) fetch(path string) (status int, text string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// letter is the id of the letter about an order in the mailbox, or "".
func letter(t *testing.T, letters, work string) (id string) {
	t.Helper()
	text, err := os.ReadFile(letters)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`X-Order: ` + work + `\nMessage-ID: (\S+)`).FindSubmatch(text); found != nil {
		id = string(found[1])
	}
	return id
}

// performance is a run under way, and what it has said.
type performance struct {
	t     *testing.T
	lines chan string
	said  strings.Builder
}

func begin(t *testing.T, cmd *exec.Cmd) *performance {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &performance{t: t, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	return p
}

// says waits until the run has said something.
func (p *performance) says(pattern string) []string {
	p.t.Helper()
	for line := range p.lines {
		fmt.Fprintln(&p.said, line)
		if m := regexp.MustCompile(pattern).FindStringSubmatch(line); m != nil {
			return m
		}
	}
	p.t.Fatalf("it has ended and never said %q:\n%s", pattern, p.said.String())
	return nil
}

// meets tells, whenever it is asked, whether the run has said something by now.
func (p *performance) meets(pattern string) func() bool {
	met := false
	return func() bool {
		for {
			select {
			case line, open := <-p.lines:
				if !open {
					p.t.Fatalf("it has ended:\n%s", p.said.String())
				}
				fmt.Fprintln(&p.said, line)
				met = met || strings.Contains(line, pattern)
			default:
				return met
			}
		}
	}
}

// counts is a number that the run has said.
func (p *performance) counts(pattern string) int {
	p.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(p.text())
	if m == nil {
		p.t.Fatalf("it never said %q:\n%s", pattern, p.said.String())
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *performance) text() string {
	for line := range p.lines {
		fmt.Fprintln(&p.said, line)
	}
	return p.said.String()
}

// hangs is how long a browser may take for one thing before it counts as hung.
const hangs = 2 * time.Minute

// browser is a Chromium, and a person before it.
type browser struct {
	t   *testing.T
	ctx context.Context

	url, token string // of the console
	pages      string // of the browser that signed in
	axe        string // what finds what is wrong with a page
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: scripts/deps.sh chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-background-networking", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context of the first call
		t.Fatal(err)
	}
	return &browser{t: t, ctx: ctx, axe: axe.Expression(t)}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, hangs)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func get[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, hangs)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// sees is what the page says now.
func (b *browser) sees() string {
	b.t.Helper()
	return get(b, chromedp.Text("main"))
}

// review is an instance that the first page says is in review; "" when the run is over.
func (b *browser) review(over func() bool) string {
	b.t.Helper()
	for !over() {
		b.do(chromedp.Navigate(b.pages+"/"), chromedp.WaitVisible("main"))
		const first = `document.querySelector("section article.card h4 a")?.textContent ?? ""`
		if work := get(b, chromedp.Evaluate[string](first)); work != "" {
			return work
		}
		b.do(chromedp.Sleep(200 * time.Millisecond)) // the run moves by itself
	}
	return ""
}

// settle follows the link of a review, reads what happened, and says what the mailbox has.
func (b *browser) settle(work, id string) {
	b.t.Helper()
	b.do(chromedp.Navigate(get(b, chromedp.Evaluate[string](`document.querySelector("section article.card h4 a").href`))), chromedp.WaitVisible("svg.timeline"))
	text := b.sees()
	for _, want := range []string{work, "in-doubt", "receipt", "What is safe to do", "What happened"} {
		if !strings.Contains(text, want) {
			b.t.Errorf("the page of %s does not say %q:\n%s", work, want, text)
		}
	}
	button, form := "It did not happen", `.do:has(input[name="flag.did-not-happen"])`
	if id != "" {
		button, form = "It happened", `.do:has(input[name="flag.happened"])`
		b.do(chromedp.SendKeys(form+` input[name="flag.happened"]`, id))
	}
	b.do(chromedp.SendKeys(form+` input[name="flag.reason"]`, "looked into the mailbox"), chromedp.Submit(form), chromedp.WaitVisible(".said[role=status]"))
	if text := b.sees(); !strings.Contains(text, "Applied.") && !strings.Contains(text, "Stored") {
		b.t.Errorf("after %q of %s the page says:\n%s", button, work, text)
	}
}

// keyboard reaches a page's content, and an instance from the list, without a mouse.
func (b *browser) keyboard() {
	b.t.Helper()
	focus := func() string { return get(b, chromedp.Evaluate[string]("document.activeElement.textContent.trim()")) }
	b.do(chromedp.Navigate(b.pages+"/works"), chromedp.WaitVisible("main"), chromedp.KeyEvent(kb.Tab))
	if at := focus(); at != "To the content" {
		b.t.Errorf("the first Tab comes to %q", at)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	for range 20 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if strings.HasPrefix(focus(), "shop:order:") {
			b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("svg.timeline"))
			return
		}
	}
	b.t.Error("twenty times Tab come to no instance")
}

// live sees a page read again by itself, also after a click in a table and after a pause that was ended.
func (b *browser) live() {
	b.t.Helper()
	b.do(chromedp.Navigate(b.pages+"/works"), chromedp.WaitVisible("#asof"))
	b.press("#pause")
	b.press("#pause")
	b.do(chromedp.Click(".wide thead"))
	was := get(b, chromedp.Evaluate[string](`document.getElementById("asof").textContent`))
	b.until(fmt.Sprintf(`document.getElementById("asof").textContent !== %q`, was))
}

// press presses a button, also one that a page that lives has just made again.
func (b *browser) press(button string) {
	b.t.Helper()
	get(b, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q).click(); true", button)))
}

// until waits until an expression is true in the page.
func (b *browser) until(expression string) {
	b.t.Helper()
	if !get(b, chromedp.Poll[bool](expression)) {
		b.t.Errorf("it never became true: %s", expression)
	}
}

// look opens pages in both themes and at two widths, with all that is folded. None is wider than its window, and none keeps people out.
func (b *browser) look(paths ...string) {
	b.t.Helper()
	folder := os.Getenv("AMENDS_SCREENSHOTS")
	for i, path := range paths {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				b.do(themed(theme), chromedp.EmulateViewport(width, 900), chromedp.Navigate(b.pages+path), chromedp.WaitVisible("main h1"))
				get(b, chromedp.Evaluate[bool](`document.querySelectorAll("details").forEach((d) => d.open = true); true`))
				wide := get(b, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
				if wrong := get(b, chromedp.Evaluate[string](b.axe, chromedp.EvalAwaitPromise)); wrong != "" {
					b.t.Errorf("%s keeps people out, %s and %d wide:\n%s", path, theme, width, wrong)
				}
				shot := get(b, chromedp.FullScreenshot(90))
				if wide > width {
					b.t.Errorf("%s is %d wide in a window of %d", path, wide, width)
				}
				if folder != "" {
					name := filepath.Join(folder, fmt.Sprintf("%02d-%s-%d.jpeg", i, theme, width))
					if err := errors.Join(os.MkdirAll(folder, 0o750), os.WriteFile(name, shot, 0o600)); err != nil {
						b.t.Fatal(err)
					}
				}
			}
		}
	}
}

func themed(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	})
}
