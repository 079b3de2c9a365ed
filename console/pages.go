package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/visible"
)

//go:embed html
var files embed.FS

// document is what a verb printed.
type document = map[string]any

// page is what a template is given.
type page struct {
	Title  string
	Here   string // the entry of the menu
	Base   string // of all links
	To     string // the page itself, where a form comes back to
	Person Person
	Said   *notice
	Live   bool // it is read again every few seconds
	Query  url.Values
	Docs   document // what was read, by the name of the section
	Wrong  []string // what could not be read
	now    time.Time
	who    Person // with the roles that are for sagas which the page does not name
}

// notice is what became of what a person did.
type notice struct {
	Good bool   `json:"good"`
	Text string `json:"text"`
}

// pages are the addresses of the console. What is shown is named in the query: an id may look like
// a path.
func (h *handler) pages(mux *http.ServeMux) {
	for path, show := range map[string]func(*asked){
		"/{$}": needs, "/works": works, "/work": work, "/destinations": destinations, "/inbox": heard, "/delivery": delivery,
		"/jobs": jobs, "/plan": planned, "/findings": findings, "/duplicates": duplicates, "/acts": acts,
	} {
		mux.HandleFunc("GET "+path, h.shown(show))
	}
	mux.HandleFunc("POST /do", h.do)
	mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("token") {
			h.signIn(w, r)
			return
		}
		h.signInPage(w, r, http.StatusOK, "")
	})
	mux.HandleFunc("POST /sign-in", h.signIn)
	mux.HandleFunc("POST /sign-out", h.signOut)
	for _, name := range []string{"console.css", "console.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=300")
			http.ServeFileFS(w, r, files, "html/"+name)
		})
	}
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	none := h.shown(func(a *asked) {
		a.status, a.name, a.Title = http.StatusNotFound, "none", "There is no such page"
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			answerProblem(w, refuse(http.StatusMethodNotAllowed, "usage", "nothing here takes "+r.Method))
			return
		}
		none(w, r)
	})
}

// asked is a page on its way to a person.
type asked struct {
	page

	h      *handler
	r      *http.Request
	name   string // of the template
	status int

	mu sync.Mutex // for reads that go on together
}

// together does several reads at the same time.
func (*asked) together(reads ...func()) {
	var all sync.WaitGroup
	for _, read := range reads {
		all.Go(read)
	}
	all.Wait()
}

// read puts what a route answers into the page. What it refuses is told on the page instead.
func (a *asked) read(section, path string, parts map[string]string, flags url.Values) document {
	raw, err := a.h.run(a.r.Context(), &a.who, routed(http.MethodGet, path), &say{parts, flags})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.Wrong = append(a.Wrong, err.Detail)
		if err.Status != http.StatusOK && a.status == http.StatusOK {
			a.status = err.Status
		}
		a.Docs[section] = document{}
		return document{}
	}
	doc := decoded(raw)
	a.Docs[section] = doc
	return doc
}

// decoded is JSON for a template: numbers stay as they are written.
func decoded(raw json.RawMessage) document {
	var doc document
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return document{}
	}
	return doc
}

// items are the objects of a list in doc.
func items(doc document, name string) (all []document) {
	list, _ := doc[name].([]any)
	for _, v := range list {
		if one, ok := v.(document); ok {
			all = append(all, one)
		}
	}
	return all
}

// text is a text in doc.
func text(doc document, name string) string {
	s, _ := doc[name].(string)
	return s
}

// shown makes a page for who may read, and asks others to sign in.
func (h *handler) shown(show func(*asked)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := h.person(r)
		p := who.in(r.URL.Query().Get("saga"))
		if !p.may(Reader) {
			if all := who.sagas(); len(all) > 0 && r.URL.Path == "/" {
				http.Redirect(w, r, h.home(r)+"/works?saga="+url.QueryEscape(all[0]), http.StatusSeeOther)
				return
			}
			if p.Name != "" {
				h.signInPage(w, r, http.StatusForbidden, p.Name+" may not read here: it takes one of the roles "+strings.Join(Roles()[1:], ", ")+".")
				return
			}
			h.signInPage(w, r, http.StatusUnauthorized, "")
			return
		}
		a := &asked{h: h, r: r, status: http.StatusOK, page: page{
			Base: h.home(r), To: r.URL.RequestURI(), Person: p, who: who, Query: r.URL.Query(), Docs: document{}, now: h.now(), Said: h.flash(w, r),
		}}
		show(a)
		h.write(w, a.name, a.status, &a.page)
	}
}

func (h *handler) signInPage(w http.ResponseWriter, r *http.Request, status int, why string) {
	to := r.URL.Query().Get("to")
	if to == "" && r.URL.Path != "/sign-in" && r.Method == http.MethodGet {
		to = r.URL.RequestURI()
	}
	p := &page{Title: "Sign in", Base: h.home(r), To: ownPath(to)}
	if why != "" {
		p.Said = &notice{Text: why}
	}
	h.write(w, "sign-in", status, p)
}

func (h *handler) write(w http.ResponseWriter, name string, status int, p *page) {
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, "page", p); err != nil {
		h.log.WithError(err).WithField("page", name).Error("a page of the console could not be made")
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(visible.HTML(b.Bytes())) // who hung up is told nothing
}

// do does what a form says, by the same routes as /api/v1, and goes back to the page it came from.
func (h *handler) do(w http.ResponseWriter, r *http.Request) {
	p := h.person(r)
	if p.Name == "" {
		h.signInPage(w, r, http.StatusUnauthorized, "Nothing was done: sign in first.")
		return
	}
	if err := r.ParseForm(); err != nil {
		h.signInPage(w, r, unread(err).Status, "Nothing was done: "+unread(err).Detail+".")
		return
	}
	i := slices.IndexFunc(routes, func(rt route) bool { return rt.changes() && rt.line != "" && rt.path == r.PostForm.Get("do") })
	if i < 0 {
		h.signInPage(w, r, http.StatusBadRequest, "Nothing was done: the form is not one of this console.")
		return
	}
	s := &say{parts: map[string]string{}, flags: map[string][]string{}}
	for name, values := range r.PostForm {
		of, flag, ok := strings.Cut(name, ".")
		switch {
		case ok && of == "part": // a name is what it is, to the last space
			s.parts[flag] = values[0]
		case ok && of == "flag" && clean(values[0]) != "":
			s.flags[flag] = []string{clean(values[0])}
		}
	}
	doc, _, err := h.once(r.Context(), &p, &routes[i], s, r.PostForm.Get("key"))
	n := outcome(doc, err)
	h.setFlash(w, r, n)
	http.Redirect(w, r, h.home(r)+ownPath(r.URL.Query().Get("to")), http.StatusSeeOther)
}

// clean makes what a person typed storable.
func clean(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?"))
}

// outcome says what became of what a person did.
func outcome(raw json.RawMessage, err *problem) notice {
	if err != nil {
		if err.Status == http.StatusAccepted {
			return notice{true, err.Detail}
		}
		return notice{false, err.Detail}
	}
	doc := decoded(raw)
	if of := items(doc, "items"); len(of) == 1 {
		doc = of[0]
	}
	applied, _ := doc["applied"].(bool)
	switch {
	case applied:
		return notice{true, "Done. It is " + text(doc, "status") + " now. " + text(doc, "next")}
	case text(doc, "act") != "" && doc["stored"] == false:
		return notice{true, "Nothing was held any more, and nothing was done."}
	case text(doc, "result") != "":
		return notice{true, "The run ended: " + text(doc, "result") + "."}
	default:
		return notice{true, "It is stored, and applied as soon as a process reads it."}
	}
}

// templates are the pages, each with the frame around it.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	frame := template.Must(template.New("").Funcs(functions).ParseFS(files, "html/frame.html", "html/parts.html"))
	for _, name := range []string{
		"needs", "works", "work", "destinations", "inbox", "delivery", "jobs", "plan", "findings", "duplicates", "acts", "sign-in", "none",
	} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "html/"+name+".html"))
	}
	return all
}()
