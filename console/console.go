package console

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/callback"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/serving"
	"github.com/amends-dev/amends/store"
)

// Options say who may ask, and where. Without Who and Tokens [New] refuses: a console that anyone
// can use is no default.
type Options struct {
	// Who says who asks, where the program or a proxy before it knows that: see [Header]. Where it
	// names no one, a token may.
	Who func(*http.Request) Person
	// Tokens are who may sign in with which token: in a browser, or as Authorization: Bearer TOKEN.
	Tokens *Tokens
	// Hosts are the names under which the console is asked for, as in "ops.example.com", without a
	// port. This machine's own names (localhost, 127.0.0.1, ::1) need no mention; all others are
	// refused.
	Hosts []string
	// Path is where it is mounted, such as "/amends/". Empty: "/".
	Path string
	// Metrics answers /metrics to those who may read, such as promhttp's handler. Nil: nothing does.
	Metrics http.Handler
	// Coordinator starts instances for POST /api/v1/works, and reads answers to callbacks with their
	// definitions. Nil: nothing can be started here.
	Coordinator *coordinator.Coordinator
	// Log is told of what goes wrong; nil is logrus' standard logger.
	Log logrus.FieldLogger
}

// handler is the console over one database.
type handler struct {
	db   store.DB
	desk *desk.Desk
	opts Options
	base string // the path without its end: "" or "/amends"
	log  logrus.FieldLogger
	now  func() time.Time
	room room

	sessions sessions
	checking chan struct{}
	key      []byte // of the notices
}

// New returns the pages and /api/v1 over db.
func New(db store.DB, o *Options) (http.Handler, error) {
	if o == nil || o.Who == nil && o.Tokens == nil {
		return nil, errors.New("console: say who may ask: Options.Tokens or Options.Who")
	}
	h := &handler{db: db, desk: desk.New(db, ""), opts: *o, base: pathOf(o.Path), log: o.Log, now: time.Now, key: []byte(random()), checking: make(chan struct{}, 1)}
	if h.log == nil {
		h.log = logrus.StandardLogger()
	}
	mux := http.NewServeMux()
	latest, older, err := described(h.api(mux))
	if err != nil {
		return nil, fmt.Errorf("console: describe /api/v1: %w", err)
	}
	answers := desk.Either[callback.Completer](o.Coordinator != nil, o.Coordinator, coordinator.NewOperator(db))
	mux.Handle("/api/v1/callbacks/", http.StripPrefix("/api/v1/callbacks", callback.Handler(answers, h.log))) // who has the token may answer
	for name, doc := range map[string][]byte{"openapi.json": latest, "openapi-3.0.json": older} {
		mux.HandleFunc("GET /api/v1/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(doc)
		})
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		answerProblem(w, refuse(http.StatusNotFound, desk.NotFound, "there is no "+r.Method+" "+r.URL.Path+": GET /api/v1/openapi.json says what there is"))
	})
	h.health(mux)
	h.pages(mux)
	return h.guard(h.below(mux)), nil
}

// pathOf is a path without its end: "" or "/amends".
func pathOf(path string) string { return strings.TrimSuffix("/"+strings.Trim(path, "/"), "/") }

// guard refuses what no page of the console can have sent, and tells browsers what its pages need.
func (h *handler) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerProblem(w, refuse(http.StatusForbidden, desk.NotAllowed, "another site sent this: nothing was done"))
	}))
	inner := crossOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if !h.known(r.Host) && !slices.Contains(healthPaths, strings.TrimPrefix(r.URL.Path, h.base)) {
			answerProblem(w, refuse(http.StatusMisdirectedRequest, desk.NotAllowed,
				"the console does not know itself by this name: name it in Options.Hosts, or with amends serve --host NAME"))
			return
		}
		defer h.bound(w, r)()
		if strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "multipart/") { // its files would go to disk
			answerProblem(w, refuse(http.StatusUnsupportedMediaType, desk.Misuse, "no form of the console has files"))
			return
		}
		switch below := r.URL.EscapedPath(); {
		case h.base == "":
		case below == h.base:
			http.Redirect(w, r, h.base+"/", http.StatusSeeOther)
			return
		case !strings.HasPrefix(below, h.base+"/"), strings.Contains(below, "//"): // cleaned, it would lead out of the path
			http.NotFound(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// known reports whether the console is asked for under a name that is its own.
func (h *handler) known(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	return name == "localhost" || name == "127.0.0.1" || name == "::1" ||
		slices.ContainsFunc(h.opts.Hosts, func(s string) bool { return strings.EqualFold(s, name) })
}

// person is who asks for a page: who calls, or who signed in with the browser.
func (h *handler) person(r *http.Request) Person {
	if p := h.caller(r); p.Name != "" {
		return p
	}
	return h.signedIn(r)
}

// caller is who asks by what a request itself says: as the program tells, or by a token in the header. Only pages know the browser's
// session, so that no address of /api/v1 does anything for a page of another site.
func (h *handler) caller(r *http.Request) Person {
	if h.opts.Who != nil {
		if p := h.opts.Who(r); strings.TrimSpace(p.Name) != "" {
			return p
		}
	}
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return h.holder(strings.TrimSpace(text))
}

// holder is who has a token.
func (h *handler) holder(text string) Person { return h.told(h.opts.Tokens.of(text, h.now())) }

// told is who was found among the tokens.
func (h *handler) told(p Person, err error) Person {
	if err != nil {
		h.log.WithError(err).Error("of the console's tokens some cannot be read: they let no one in")
	}
	return p
}

// signIn begins a session. Only a page of the console itself is gone to from there. An address carries a token only if it is this
// process's own: with another one, a page of a stranger could sign a person in under a name of its own.
func (h *handler) signIn(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("token")
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			h.signInPage(w, r, unread(err).Status, "The form was not read: "+unread(err).Detail)
			return
		}
		text = r.PostForm.Get("token")
	}
	text = strings.TrimSpace(text)
	switch {
	case r.Method != http.MethodPost && !r.URL.Query().Has("token"):
		h.signInPage(w, r, http.StatusOK, "")
		return
	case r.Method == http.MethodGet && !h.opts.Tokens.own(text):
		h.signInPage(w, r, http.StatusForbidden, "Paste the token into the form: an address carries only the one that this process printed, while it runs.")
		return
	case h.holder(text).Name == "":
		h.signInPage(w, r, http.StatusForbidden, "There is no such token, or its time is over.")
		return
	}
	id, s := h.sessions.begin(text, secure(r), h.now())
	http.SetCookie(w, h.cookie(r, sessionCookie, s.place, id, sessionFor))
	http.Redirect(w, r, h.base+s.place+ownPath(r.URL.Query().Get("to")), http.StatusSeeOther)
}

// ownPath is a path of the console, whatever it was given.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.Contains(to, `\`) || path.Clean(u.Path) != u.Path && path.Clean(u.Path)+"/" != u.Path {
		return "/"
	}
	return to
}

func (h *handler) signOut(w http.ResponseWriter, r *http.Request) {
	h.sessions.end(h.sessionOf(r))
	http.SetCookie(w, h.cookie(r, sessionCookie, placeOf(r), "", -time.Second))
	http.Redirect(w, r, h.base+"/sign-in", http.StatusSeeOther)
}

// healthPaths are asked for by what runs the process, under whatever address it has.
var healthPaths = []string{"/healthz", "/readyz"}

// health answers what runs it: the process lives, and the ledger answers.
func (h *handler) health(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.db.Definitions(r.Context()); err != nil {
			h.log.WithError(err).Error("the ledger does not answer")
			http.Error(w, "the ledger does not answer", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		p := h.caller(r)
		switch {
		case h.opts.Metrics == nil:
			http.Error(w, "this console has no metrics", http.StatusNotFound)
		case !p.may(Reader):
			w.Header().Set("WWW-Authenticate", `Bearer realm="amends"`)
			http.Error(w, "send Authorization: Bearer TOKEN; amends token makes one", http.StatusUnauthorized)
		default:
			h.opts.Metrics.ServeHTTP(w, r)
		}
	})
}

// ownValid is for how long the token holds that a process gives to who started it.
const ownValid = 365 * 24 * time.Hour

// Serve is what "amends serve" does, and for programs of this module alone; others mount [New].
// metrics answers /metrics. It ends when ctx does, or when the listener fails.
func Serve(ctx context.Context, s *serving.Console, metrics http.Handler) error {
	o := &Options{Path: s.Path, Hosts: s.Hosts, Metrics: metrics}
	var err error
	if o.Tokens, err = OpenTokens(s.Tokens); err != nil {
		return err
	}
	if at, ok := s.Listener.Addr().(*net.TCPAddr); ok && !at.IP.IsUnspecified() {
		o.Hosts = append(slices.Clone(o.Hosts), at.IP.String()) // the address that is printed
	}
	o.Who = desk.Either(s.User != "", proven(s.Secret, Header(s.User, s.Roles, s.From...)), nil)
	pages, err := New(s.DB, o)
	if err != nil {
		return err
	}
	url := "http://" + named(s.Listener.Addr()) + pathOf(s.Path) + "/"
	if s.Own != "" {
		token, err := o.Tokens.Issue(Person{Name: s.Own, Roles: []string{Admin}}, ownValid)
		if err != nil {
			return err
		}
		url += "sign-in?token=" + token
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, WriteTimeout: 2 * patience, MaxHeaderBytes: 64 << 10}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := server.Shutdown(wait)
		if errors.Is(err, context.DeadlineExceeded) { // what is left has had its time, or has asked nothing yet, as browsers connect ahead of time
			err = server.Close()
		}
		stopped <- err
	}()
	if err := s.Ready(url); err != nil {
		return err
	}
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// proven is who asks through a proxy that sends its secret; without one, the proxy's address has to do.
func proven(secret string, who func(*http.Request) Person) func(*http.Request) Person {
	return func(r *http.Request) Person {
		if secret != "" && subtle.ConstantTimeCompare([]byte(digest(secret)), []byte(digest(r.Header.Get("X-Amends-Proxy")))) == 0 {
			return Person{}
		}
		return who(r)
	}
}

// named is an address as a browser on this machine asks for it.
func named(a net.Addr) string {
	if at, ok := a.(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		a = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.Port}
	}
	return a.String()
}

// What a request may say, before and after it is known who asks.

const (
	// maxStranger is more than a form of a stranger or an answer to a callback has to say, and maxBody
	// than a request has of who is known.
	maxStranger = 64 << 10
	maxBody     = 1 << 20
	// ofStrangers and ofAll bound what all requests together have in hand.
	ofStrangers = 16 << 20
	ofAll       = 64 << 20
)

// errFull ends the reading of a body when others have what there is for bodies.
var errFull = errors.New("there is no room for the body now: send it again")

// room counts the bytes in hand, of those of whom it is not known who they are and of the others.
type room struct{ strangers, known atomic.Int64 }

// inHand is a body that takes room as it is read. What is slow, or never comes to an end, costs what it has sent.
type inHand struct {
	io.ReadCloser

	used        *atomic.Int64
	bytes, most int64
}

// Read leaves twice its own size free: however many large bodies come, there is room for a small one.
func (b *inHand) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.used.Add(int64(n)) > b.most-2*(b.bytes+int64(n)) {
		b.used.Add(-int64(n))
		return 0, errFull
	}
	b.bytes += int64(n)
	return n, err
}

// bound bounds the body of a request, in the one place where all of them come by. done gives back what it took.
func (h *handler) bound(w http.ResponseWriter, r *http.Request) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := r.Body
	b := &inHand{http.MaxBytesReader(w, body, maxStranger), &h.room.strangers, 0, ofStrangers}
	if r.Body = b; h.person(r).Name != "" && b.bytes == 0 { // Options.Who may look at the body, and is a stranger's until then
		b = &inHand{http.MaxBytesReader(w, body, maxBody), &h.room.known, 0, ofAll - ofStrangers}
		r.Body = b
	}
	return func() { b.used.Add(-b.bytes) }
}

// unread is why a body could not be read.
func unread(err error) *problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, desk.Misuse, "the body is larger than 64 KiB, or 1 MiB with a token")
	case errors.Is(err, errFull):
		return refuse(http.StatusServiceUnavailable, desk.Failed, err.Error())
	}
	return refuse(http.StatusBadRequest, desk.Misuse, "the body could not be read")
}
