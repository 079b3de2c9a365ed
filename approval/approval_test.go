package approval_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/approval"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

type payment struct {
	Cents int64  `json:"cents"`
	Note  string `json:"note"`
}

// hall is a coordinator with its pages, and people who sign in by a header of a proxy.
type hall struct {
	t    *testing.T
	c    *coordinator.Coordinator
	l    *memory.DB
	page http.Handler
	open http.Handler // the same without a who
}

func newHall(t *testing.T) *hall {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	h := &hall{t: t, l: memory.New(nil)}
	c, err := coordinator.New(h.l, &coordinator.Options{Log: log, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	act := func(context.Context, saga.Call[payment]) (string, error) { return "p_1", nil }
	d, err := saga.Define("pay", 1, saga.Do("book", act).Idempotent().NoUndo("a test"),
		saga.Approve[payment]("approved").By("finance").Votes(2).NotStarter().Within(time.Hour).About(func(c saga.Call[payment]) saga.About {
			return saga.About{Title: "Pay " + c.Input.Note, Amount: "EUR 42.00", Link: "javascript:alert(1)", Fields: []saga.Field{{Name: "bank", Value: "of Otto"}}}
		}),
		saga.Do("charge", act).Idempotent().NoUndo("a test").Pivot())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h.c = c
	who := func(r *http.Request) (string, []string) {
		return r.Header.Get("X-Signed-In"), strings.Fields(r.Header.Get("X-Roles"))
	}
	h.page = http.StripPrefix("/approvals", approval.Handler(c, who, log))
	h.open = http.StripPrefix("/approvals", approval.Handler(c, nil, log))
	return h
}

// pay starts a payment, and returns its page once it is to be decided.
func (h *hall) pay(work string, p payment) (path string) {
	h.t.Helper()
	if _, err := h.c.Start(h.t.Context(), "pay", work, p, &saga.StartOptions{Starter: "sam"}); err != nil {
		h.t.Fatal(err)
	}
	for {
		a, err := h.c.Approval(h.t.Context(), saga.ID{Saga: "pay", Work: work}, "approved")
		if err == nil {
			return "/approvals" + a.Path()
		}
		if h.t.Context().Err() != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // a poll
	}
}

func (h *hall) ask(page http.Handler, method, path, name, roles string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, "http://shop.example"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Signed-In", name)
	r.Header.Set("X-Roles", roles)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

var hidden = regexp.MustCompile(`name="shown" value="([0-9a-f]{64})"`)

// A page shows, however often it is opened; a vote comes from the page, from a person who is known, on what was shown; and every answer is
// as the documentation says.
func TestHandler(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	path := h.pay("shop/order:1", payment{Cents: 500})
	before, err := h.l.History(t.Context(), saga.ID{Saga: "pay", Work: "shop/order:1"})
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	for range 100 { // the scanner of a mail server
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := h.ask(h.page, method, path, "ann", "finance", nil)
			if found := hidden.FindStringSubmatch(w.Body.String()); method == http.MethodGet && found != nil {
				shown = found[1]
			}
			if w.Code != 200 {
				t.Fatalf("%s: %d", method, w.Code)
			}
		}
	}
	after, err := h.l.History(t.Context(), saga.ID{Saga: "pay", Work: "shop/order:1"})
	if err != nil || len(after) != len(before) || shown == "" {
		t.Fatalf("%d records after 200 requests, %d before; the page has %q (%v)", len(after), len(before), shown, err)
	}
	yes := url.Values{"decision": {"approve"}, "shown": {shown}}
	for _, c := range []struct {
		what        string
		page        http.Handler
		method      string
		path        string
		name, roles string
		form        url.Values
		status      int
		says        string
		headers     []string
	}{
		{"not signed in", h.page, "GET", path, "", "", nil, 401, "Sign in first", nil},
		{"not signed in, and votes", h.page, "POST", path, "", "", yes, 401, "Sign in first", nil},
		{"a name of spaces", h.page, "POST", path, "  ", "", yes, 401, "Sign in first", nil},
		{"no who", h.open, "GET", path, "", "", nil, 200, "This page only shows.", nil},
		{"no who, and votes", h.open, "POST", path, "ann", "finance", yes, 403, "This page only shows", nil},
		{"another site's form", h.page, "POST", path, "ann", "finance", yes, 403, "", []string{"Sec-Fetch-Site", "cross-site"}},
		{"another origin", h.page, "POST", path, "ann", "finance", yes, 403, "", []string{"Origin", "https://evil.example"}},
		{"no such work", h.page, "GET", "/approvals/pay/none/approved", "ann", "finance", nil, 404, "Nothing is to be decided here", nil},
		{"no approval", h.page, "GET", strings.Replace(path, "/approved", "/book", 1), "ann", "finance", nil, 404, "Nothing is to be decided here", nil},
		{"no decision", h.page, "POST", path, "ann", "finance", url.Values{"shown": {shown}}, 400, "approve or reject", nil},
		{"no reason to reject", h.page, "POST", path, "ann", "finance", url.Values{"shown": {shown}, "decision": {"reject"}}, 422, "Say why", nil},
		{"a wrong role", h.page, "POST", path, "eve", "sales", yes, 403, "it takes one of the roles finance", nil},
		{"the starter", h.page, "POST", path, "sam", "finance", yes, 403, "another has to decide", nil},
		{"something else", h.page, "POST", path, "ann", "finance", url.Values{"shown": {"other"}, "decision": {"approve"}}, 409, "look at it again", nil},
		{"a wrong role looks", h.page, "GET", path, "eve", "sales", nil, 200, "have no vote here", nil},
		{"the list", h.page, "GET", "/approvals/", "ann", "finance", nil, 200, `href="./pay/shop%2Forder:1/approved"`, nil},
		{"a vote", h.page, "POST", path, "ann", "finance", yes, 200, "your vote is on record", nil},
	} {
		w := h.ask(c.page, c.method, c.path, c.name, c.roles, c.form, c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d %q", c.what, w.Code, w.Body, c.status, c.says)
		}
		if c.status != 403 && strings.Contains(w.Body.String(), "<form") != (c.roles == "finance" && c.name != "sam" && c.status != 404 && c.path == path && c.what != "no who") {
			t.Errorf("%s: whether the page has a form: %s", c.what, w.Body)
		}
		if csp := w.Header().Get("Content-Security-Policy"); len(c.headers) == 0 && !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", c.what, csp)
		}
	}
	h.until(path, "ann</bdi></td><td>approve")
	if w := h.ask(h.page, "POST", path, "ann", "finance", yes); w.Code != 200 || !strings.Contains(w.Body.String(), "it counts") {
		t.Errorf("the same vote again: %d %s", w.Code, w.Body)
	}
	h.ask(h.page, "POST", path, "bob", "finance", yes)
	h.until(path, "It is decided")
	if w := h.ask(h.page, "POST", path, "cleo", "finance", yes); w.Code != 409 || !strings.Contains(w.Body.String(), "it is decided, or its time is over") {
		t.Errorf("a vote behind the decision: %d %s", w.Code, w.Body)
	}
}

// until waits for the page to say so.
func (h *hall) until(path, says string) {
	h.t.Helper()
	for {
		if w := h.ask(h.page, "GET", path, "ann", "finance", nil); strings.Contains(w.Body.String(), says) {
			return
		}
		if h.t.Context().Err() != nil {
			h.t.Fatalf("the page does not say %q", says)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // a poll
	}
}

// What strangers wrote is shown, and does nothing.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	const script = `"><script>alert(1)</script>`
	path := h.pay("w:"+script, payment{Note: script + "\u202egnp.exe" + strings.Repeat("x", 100_000)})
	page := h.ask(h.page, "GET", path, script, "finance", nil).Body.String()
	shown := hidden.FindStringSubmatch(page)
	if shown == nil {
		t.Fatalf("no page: %.300s", page)
	}
	h.ask(h.page, "POST", path, "ann"+script, "finance", url.Values{"decision": {"approve"}, "shown": {shown[1]}, "reason": {script}})
	h.until(path, "<td>approve")
	for _, at := range []string{path, "/approvals/"} {
		if page := h.ask(h.page, "GET", at, script, "finance", nil).Body.String(); strings.Contains(page, "<script") {
			t.Errorf("%s runs what a stranger wrote: %.2000s", at, page)
		}
	}
}

// A page says first what it is about, to those who may vote, and has the document last. No command of a shell is on it.
func TestAPageSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	path := h.pay("bill:1", payment{Cents: 4200, Note: "Alice"})
	for at, all := range map[string][]string{
		path: {
			"<h1><bdi>Pay Alice", "EUR 42.00", "<bdi>javascript:alert(1)", "bank", "of Otto", "0 of 2", "yours", "waiting since", `value="approve"`, `value="reject"`,
			"<pre", "&#34;about&#34;",
		},
		"/approvals/": {"Pay Alice", "EUR 42.00", "of Otto", "0 of 2", "yours", "bill:1"},
	} {
		text := h.ask(h.page, "GET", at, "fay", "finance", nil).Body.String()
		if strings.Contains(text, "href=\"javascript") || strings.Contains(text, "amends approve") {
			t.Errorf("%s has a link that runs a program, or a command:\n%s", at, text)
		}
		rest := text
		for _, want := range all {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Fatalf("%s does not say %q at its place:\n%s", at, want, text)
			}
			rest = after
		}
		if text := h.ask(h.page, "GET", at, "eve", "sales", nil).Body.String(); strings.Contains(text, "Alice") || strings.Contains(text, "Otto") {
			t.Errorf("%s shows it to a person without a vote:\n%s", at, text)
		}
	}
}

// A handler that mounts the pages, and a person who is known by a session.
func ExampleHandler() {
	c, err := coordinator.New(memory.New(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	who := func(r *http.Request) (name string, roles []string) {
		session, err := r.Cookie("session") // looked up where yours are kept
		if err != nil {
			return "", nil
		}
		return session.Value, []string{"finance"}
	}
	mux := http.NewServeMux()
	mux.Handle("/approvals/", http.StripPrefix("/approvals", approval.Handler(c, who, nil)))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/approvals/", nil))
	fmt.Println(w.Code)
	// Output: 401
}

// docs/approvals.md shows how a program votes that knows who a person is.
func TestDocsShowTheVote(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.pay("w", payment{Cents: 500})
	id := saga.ID{Saga: "pay", Work: "w"}
	a, err := h.c.Approval(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	const line = "	err := c.Vote(ctx, id, step, approve, digest, coordinator.Voter{Actor: saga.Actor{Name: name, Reason: \"by Slack\"}, Roles: roles})\n"
	slack := func(ctx context.Context, c *coordinator.Coordinator, step string, approve bool, digest, name string, roles ...string) error {
		err := c.Vote(ctx, id, step, approve, digest, coordinator.Voter{Actor: saga.Actor{Name: name, Reason: "by Slack"}, Roles: roles})
		return err
	}
	if err := slack(t.Context(), h.c, "approved", true, a.Digest, "ann", "finance"); err != nil {
		t.Error(err)
	}
	if err := slack(t.Context(), h.c, "approved", true, "other", "bob", "finance"); !errors.Is(err, coordinator.ErrOtherShown) {
		t.Error(err)
	}
	docs, err := os.ReadFile("../docs/approvals.md")
	program, err2 := os.ReadFile("approval_test.go")
	if err != nil || err2 != nil || !strings.Contains(string(docs), line) || !strings.Contains(string(program), "\t"+line) {
		t.Errorf("docs/approvals.md does not show it as it is compiled here (%v, %v)", err, err2)
	}
}

// What is decided about is shown to those who may vote on it, and to no one else who can sign in.
func TestADocumentIsForItsVoters(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	path := h.pay("bill:1", payment{Cents: 4200, Note: "for Alice"})
	for roles, want := range map[string]bool{"finance": true, saga.Admin: true, "sales": false, "": false} {
		if text := h.ask(h.page, "GET", path, "fay", roles, nil).Body.String(); strings.Contains(text, "for Alice") != want {
			t.Errorf("with the roles %q the document is shown: %v", roles, !want)
		}
	}
}
