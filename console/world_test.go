package console

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// world is a ledger, a coordinator over it, and the console.
type world struct {
	t      *testing.T
	db     store.DB
	c      *coordinator.Coordinator
	tokens *Tokens
	server *httptest.Server
	ended  chan error
	stop   context.CancelFunc // of the coordinator
}

// letter is what the saga of these tests sends.
type letter struct{ To, Outcome string }

// mailing is a saga with one letter, which is lost where its input says so, one that people approve, one that waits for an answer, and
// one that waits for a time.
func mailing() []saga.Program {
	var lost sync.Map // by key: what is lost is the first that leaves, which need not be the first attempt
	send := saga.Do("send", func(_ context.Context, c saga.Call[letter]) (string, error) {
		if err := c.Sending(); err != nil {
			return "", err
		}
		if c.Input.Outcome != "" {
			if _, again := lost.LoadOrStore(c.Key, true); !again {
				return "", errors.New(c.Input.Outcome)
			}
		}
		return "sent", nil
	}).AtMostOnce().NoUndo("a letter cannot be unsent").Timeout(time.Minute).Settle(time.Millisecond)
	mail, err := saga.Define("mail", 1, send)
	if err != nil {
		panic(err)
	}
	pay, err := saga.Define("pay", 1, saga.Approve[letter]("release").By("finance").Within(time.Hour).About(aboutLetter).
		When(func(c saga.Call[letter]) bool { return c.Input.Outcome != "a bug" || c.Input.To[3] > 0 }))
	if err != nil {
		panic(err)
	}
	read := func(saga.Call[letter], saga.Message) (string, error) { return "paid", nil }
	ask, err := saga.Define("ask", 1, saga.Await("paid", read).On("paid", func(c saga.Call[letter]) string { return c.Work }).EachRun().Within(time.Hour, saga.Compensate))
	if err != nil {
		panic(err)
	}
	later, err := saga.Define("later", 1, saga.Delay[letter]("later", time.Hour))
	if err != nil {
		panic(err)
	}
	return []saga.Program{mail, pay, ask, later}
}

// aboutLetter has a link that is one, unless the letter has an outcome.
func aboutLetter(c saga.Call[letter]) saga.About {
	link := "https://books.example/bills?to=" + c.Input.To
	if c.Input.Outcome != "" {
		link = "javascript:alert(1)"
	}
	return saga.About{Title: "Pay " + c.Input.To, Amount: "EUR 1,200.00", Link: link, Fields: []saga.Field{{Name: "cost centre", Value: "4711"}}}
}

func newWorld(t *testing.T, o *Options) *world {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := working(t, db)
	tokens, err := OpenTokens("")
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		o = &Options{}
	}
	o.Tokens, o.Log, o.Coordinator = tokens, log, c
	pages, err := New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, c: c, tokens: tokens, server: httptest.NewServer(pages)}
	w.run()
	t.Cleanup(func() {
		w.server.Close()
		w.halt()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// working is a coordinator that knows the sagas.
func working(t *testing.T, db store.DB) *coordinator.Coordinator {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(db, &coordinator.Options{Log: log, Poll: 20 * time.Millisecond, Lease: 5 * time.Second, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), mailing()...); err != nil {
		t.Fatal(err)
	}
	return c
}

// run has the coordinator work until it is halted; one that was halted is followed by another.
func (w *world) run() {
	w.t.Helper()
	if w.ended != nil {
		w.c = working(w.t, w.db)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.ended, w.stop = make(chan error, 1), stop
	go func(ended chan error) { ended <- w.c.Run(ctx) }(w.ended)
}

func (w *world) halt() {
	w.t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		w.t.Error(err)
	}
}

// start starts an instance and waits until it has a status.
func (w *world) start(sagaName, id string, input letter, status saga.Status) {
	w.t.Helper()
	if _, err := w.c.Start(w.t.Context(), sagaName, id, input, nil); err != nil {
		w.t.Fatal(err)
	}
	w.until(sagaName, id, status)
}

func (w *world) until(sagaName, id string, status saga.Status) {
	w.t.Helper()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		s, err := w.c.Show(w.t.Context(), saga.ID{Saga: sagaName, Work: id})
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Status == status {
			return
		}
		if s.Status.Terminal() {
			w.t.Fatalf("%s is %s, want %s", id, s.Status, status)
		}
	}
}

// window is a browser, or a program, with a token.
type window struct {
	w     *world
	token string
	base  string // where the console is mounted
	place string // below which its browser's pages are, once it is signed in
	c     *http.Client
}

// as is a window of a person with roles; without a role it has no token.
func (w *world) as(name string, roles ...string) *window {
	w.t.Helper()
	jar, _ := cookiejar.New(nil)
	x := &window{w: w, c: &http.Client{Jar: jar}}
	if len(roles) > 0 {
		var err error
		if x.token, err = w.tokens.Issue(Person{name, roles}, time.Hour); err != nil {
			w.t.Fatal(err)
		}
		x.get("/sign-in?token=" + x.token)
	}
	return x
}

// asks is whether a program is asked for, and no page.
func asks(path string) bool {
	return strings.HasPrefix(path, "/api/") || slices.Contains(healthPaths, path) || path == "/metrics"
}

// ask sends a request, and returns its status and what was answered.
func (x *window) ask(method, path, body string, header map[string]string) (int, string) {
	x.w.t.Helper()
	if below, ok := strings.CutPrefix(path, x.base+"/"); ok && !asks(path) {
		path = x.base + x.place + "/" + below
	}
	r, err := http.NewRequestWithContext(x.w.t.Context(), method, x.w.server.URL+path, strings.NewReader(body))
	if err != nil {
		x.w.t.Fatal(err)
	}
	if x.token != "" && asks(path) {
		r.Header.Set("Authorization", "Bearer "+x.token)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if host, has := header["Host"]; has {
		r.Host = host
	}
	status, text, _ := x.sends(r)
	return status, text
}

func (x *window) sends(r *http.Request) (status int, text, replayed string) {
	x.w.t.Helper()
	answer, err := x.c.Do(r)
	if err != nil {
		x.w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if name, _, ok := strings.Cut(strings.TrimPrefix(answer.Request.URL.Path, x.base+"/"), "/"); ok && strings.HasPrefix(name, "~") {
		x.place = "/" + name
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		x.w.t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header.Get("Idempotency-Replayed")
}

func (x *window) get(path string) (int, string) { return x.ask("GET", path, "", nil) }

// post says something to /api/v1 as a program does.
func (x *window) post(path, body string) (int, string) {
	return x.ask("POST", path, body, map[string]string{"Authorization": "Bearer " + x.token, "Content-Type": "application/json"})
}

// forms are the forms of a page that do something.
var forms = regexp.MustCompile(`(?s)<form method="post" action="[^"]*/do[?][^"]*".*?</form>`)

// press fills in the form of a page that has a button, and sends it.
func (x *window) press(page, button string, fill map[string]string) string {
	x.w.t.Helper()
	_, text := x.get(page)
	return x.send(text, button, fill)
}

func (x *window) send(page, button string, fill map[string]string) string {
	x.w.t.Helper()
	return x.sendTo("/do", page, button, fill)
}

func (x *window) sendTo(path, page, button string, fill map[string]string) string {
	x.w.t.Helper()
	for _, form := range forms.FindAllString(page, -1) {
		if !strings.Contains(form, "<button>"+button+"</button>") {
			continue
		}
		values := url.Values{}
		for _, m := range regexp.MustCompile(`name="([^"]+)"[^>]* value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
			values.Add(m[1], htmlText(m[2]))
		}
		for name, value := range fill {
			values.Set("flag."+name, value)
		}
		_, query, _ := strings.Cut(regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(form)[1], "?")
		_, text := x.ask("POST", path+"?"+htmlText(query), values.Encode(), map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
		return text
	}
	x.w.t.Fatalf("there is no button %q on the page:\n%s", button, page)
	return ""
}

// htmlText is an attribute as it was before it was escaped.
func htmlText(s string) string {
	return strings.NewReplacer("&amp;", "&", "&#39;", "'", "&#34;", `"`, "&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(s)
}

// has checks that a text says everything.
func has(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// address is the page of an instance.
func address(sagaName, id string) string {
	return "/work?" + url.Values{"saga": {sagaName}, "id": {id}}.Encode()
}

// filled is a path of the table with something in each of its parts.
func filled(path string) string {
	return regexp.MustCompile(`{[a-z]+}`).ReplaceAllString(strings.ReplaceAll(path, "{number}", "1"), "x")
}

// at finds an operation.
func at(method, path string) *operation {
	return &operations[slices.IndexFunc(operations, func(o operation) bool { return o.method == method && o.path == path })]
}

// with is a copy of fields with more.
func with(fields map[string]string, name, value string) map[string]string {
	all := maps.Clone(fields)
	all[name] = value
	return all
}
