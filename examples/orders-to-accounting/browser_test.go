package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
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
	run := begin(t, cmd)
	url := run.says(`Watch it in a browser: (\S+)`)[1]
	b.do(chromedp.Navigate(url), chromedp.WaitVisible("nav"))
	url, _, _ = strings.Cut(url, "/sign-in")
	b.url = url

	folder := run.says(`grep -rh -A9 'X-Order: \S+' (\S+)`)[1]
	settled := 0
	for over := run.meets(`The console stays up`); ; settled++ {
		work := b.review(over)
		if work == "" {
			break
		}
		b.settle(work, letter(t, folder, work))
	}
	if settled == 0 {
		t.Errorf("seed %d leaves nothing in review; choose another", seed)
	}
	b.look("/", "/works", "/work?saga="+sagaName+"&id=shop:order:10001", "/destinations", "/inbox", "/delivery?number=1", "/jobs", "/findings", "/duplicates", "/works?status=review")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, run.text())
	}
	if !strings.Contains(run.text(), "With amends: each paid order has one invoice") {
		t.Errorf("the audit is not clean:\n%s", run.text())
	}
}

// letter is the Message-ID of the letter about an order in the mailbox, or "".
func letter(t *testing.T, folder, work string) (id string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("X-Order: "+work+"\r\n")) {
			id = string(regexp.MustCompile(`Message-ID: <(.*?)>`).FindSubmatch(text)[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
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

func (p *performance) text() string {
	for line := range p.lines {
		fmt.Fprintln(&p.said, line)
	}
	return p.said.String()
}

// browser is a Chromium, and a person before it.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string
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
	return &browser{t: t, ctx: ctx}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func get[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
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
		b.do(chromedp.Navigate(b.url+"/"), chromedp.WaitVisible("main"))
		const first = `document.querySelector("section article.card h3 a")?.textContent ?? ""`
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
	b.do(chromedp.Click("section article.card h3 a"), chromedp.WaitVisible("svg.timeline"))
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
	b.do(chromedp.SendKeys(form+` input[name="flag.reason"]`, "looked into the mailbox"), chromedp.Click(form+" button"), chromedp.WaitVisible(".said[role=status]"))
	if text := b.sees(); !strings.Contains(text, "Done.") && !strings.Contains(text, "stored") {
		b.t.Errorf("after %q of %s the page says:\n%s", button, work, text)
	}
}

// look opens pages in both themes and at two widths. None is wider than its window.
func (b *browser) look(paths ...string) {
	b.t.Helper()
	folder := os.Getenv("AMENDS_SCREENSHOTS")
	for i, path := range paths {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				b.do(themed(theme), chromedp.EmulateViewport(width, 900), chromedp.Navigate(b.url+path), chromedp.WaitVisible("main h1"))
				wide := get(b, chromedp.Evaluate[int64]("document.documentElement.scrollWidth"))
				shot := get(b, chromedp.FullScreenshot(90))
				if wide > width {
					b.t.Errorf("%s is %d wide in a window of %d", path, wide, width)
				}
				if folder != "" {
					name := filepath.Join(folder, fmt.Sprintf("%02d-%s-%d.png", i, theme, width))
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
