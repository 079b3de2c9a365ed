package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/visible"
)

//go:embed html
var files embed.FS

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
	Data   any      // what was read
	Next   string   // the next page; "": there is none
	Wrong  []string // what could not be read
	now    time.Time
	who    Person // with the roles that are for sagas which the page does not name
}

// Menu leads to the pages.
func (*page) Menu() []entry { return menu }

type entry struct{ Name, Path, Label string }

var menu = []entry{
	{"needs", "/", "Needs me"}, {"works", "/works", "Instances"}, {"sagas", "/sagas", "Sagas"}, {"destinations", "/destinations", "Destinations"},
	{"processes", "/processes", "Processes"}, {"inbox", "/inbox", "Inbox"}, {"jobs", "/jobs", "Jobs"}, {"findings", "/findings", "Findings"},
	{"duplicates", "/duplicates", "Duplicates"}, {"acts", "/acts", "People"},
}

// notice is what became of what a person did.
type notice struct {
	Good bool   `json:"good"`
	Text string `json:"text"`
}

// shows are the pages, by their addresses. What is shown is named in the query: an id may look like a path.
var shows = map[string]func(*asked){
	"/{$}": needs, "/works": works, "/work": work, "/group": group, "/inbox": heard, "/delivery": delivery, "/jobs": jobs, "/plan": planned, "/duplicates": duplicates,
	"/sagas":        document[desk.All[desk.Saga]]("sagas", "Sagas", "sagas", true, "/sagas"),
	"/processes":    document[desk.Status]("processes", "Processes", "processes", true, "/status"),
	"/destinations": document[desk.Destinations]("destinations", "Destinations", "destinations", true, "/destinations"),
	"/findings":     document[desk.Drifts]("findings", "Findings", "findings", false, "/drift", "job", "class", "key", "after"),
	"/acts":         document[desk.List[desk.Deed]]("acts", "What people did", "acts", false, "/acts", "before"),
}

func (h *handler) pages(mux *http.ServeMux) {
	for path, show := range shows {
		mux.HandleFunc("GET "+path, h.shown(show))
	}
	mux.HandleFunc("POST /do", h.do)
	mux.HandleFunc("GET /sign-in", h.signIn)
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
			answerProblem(w, refuse(http.StatusMethodNotAllowed, desk.Misuse, "nothing here takes "+r.Method))
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

// is names the page.
func (a *asked) is(name, title, here string, live bool) {
	a.name, a.Title, a.Here, a.Live = name, title, here, live
}

// together does several reads at the same time.
func (*asked) together(reads ...func()) {
	var all sync.WaitGroup
	for _, read := range reads {
		all.Go(read)
	}
	all.Wait()
}

// read is what an operation answers the person. pairs are what it is asked with: names and values, of which those that are empty are
// not said. What fails is told on the page instead, and the document is empty.
func read[Out any](a *asked, path string, pairs ...string) *Out {
	op := operationAt(http.MethodGet, path)
	s := &said{map[string]string{}, map[string]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		switch name, value := pairs[i], pairs[i+1]; {
		case strings.Contains(path, "{"+name+"}"):
			s.parts[name] = value
		case value != "":
			s.says[name] = value
		}
	}
	doc, wrong := a.h.run(a.r.Context(), &a.who, op, s)
	if out, is := doc.(*Out); is && wrong == nil {
		return out
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Wrong = append(a.Wrong, wrong.Plain); a.status == http.StatusOK {
		a.status = wrong.Status
	}
	return new(Out)
}

// filters are those of these names that the query of the page has.
func (a *asked) filters(names ...string) (pairs []string) {
	for _, name := range names {
		pairs = append(pairs, name, clean(a.Query.Get(name)))
	}
	return pairs
}

// shown makes a page for who may read, and asks others to sign in.
func (h *handler) shown(show func(*asked)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := h.person(r)
		q := r.URL.Query()
		p := who.in(h.about(r.Context(), &said{parts: map[string]string{"saga": q.Get("saga"), "work": q.Get("id")}}))
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
			Base: h.home(r), To: r.URL.RequestURI(), Person: p, who: who, Query: r.URL.Query(), now: h.now(), Said: h.flash(w, r),
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
	h.write(w, "sign-in", status, &page{Title: "Sign in", Base: h.home(r), To: ownPath(to), Said: desk.Either(why != "", &notice{Text: why}, nil)})
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

// do does what a form says, by the same operations as /api/v1, and goes back to the page it came from.
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
	op := operationAt(http.MethodPost, r.PostForm.Get("do"))
	if op == nil {
		h.signInPage(w, r, http.StatusBadRequest, "Nothing was done: the form is not one of this console.")
		return
	}
	s := &said{map[string]string{}, map[string]string{}}
	for name, values := range r.PostForm {
		of, what, ok := strings.Cut(name, ".")
		switch {
		case ok && of == "part": // a name is what it is, to the last space
			s.parts[what] = values[0]
		case ok && of == "flag" && clean(values[0]) != "":
			s.says[what] = clean(values[0])
		}
	}
	var n notice
	switch chosen := r.PostForm["one"]; {
	case len(chosen) > mostTogether:
		n.Text = fmt.Sprintf("Nothing was done: at most %d are decided at once.", mostTogether)
	case len(chosen) > 0:
		n = h.doAll(r.Context(), &p, op, s, r.PostForm.Get("key"), chosen)
	case r.PostForm.Has("among"):
		n.Text = "Nothing was done: none is ticked."
	default:
		if was, _ := h.keyed(r.Context(), &p, op, s, r.PostForm.Get("key")); was.Notice != nil {
			n = *was.Notice
		} else if was.Problem != nil { // before it was asked for
			n.Text = was.Problem.Detail
		}
	}
	h.setFlash(w, r, n)
	http.Redirect(w, r, h.home(r)+ownPath(r.URL.Query().Get("to")), http.StatusSeeOther)
}

// clean makes what a person typed storable.
func clean(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?"))
}

// outcome says what became of what a person did.
func outcome(doc any, wrong *problem) *notice {
	if wrong != nil {
		return &notice{wrong.Status == http.StatusAccepted, wrong.Plain}
	}
	if of, is := doc.(*desk.All[desk.Of]); is && len(of.Items) == 1 {
		doc = of.Items[0].Outcome
	}
	words := "It is stored, and applied as soon as a process reads it."
	switch d := doc.(type) {
	case *desk.Outcome:
		words = d.Words()
	case *desk.EndedHold:
		words = desk.Either(d.Stored, words, "Nothing was held any more, and nothing was done.")
	case *desk.Run:
		words = desk.Either(d.Result != "", "The run ended: "+string(d.Result)+".", words)
	}
	return &notice{true, words}
}

// templates are the pages, each with the frame around it.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	frame := template.Must(template.New("").Funcs(functions).ParseFS(files, "html/frame.html", "html/parts.html"))
	for _, name := range []string{
		"needs", "works", "work", "group", "sagas", "processes", "destinations", "inbox", "delivery", "jobs", "plan", "findings", "duplicates", "acts", "sign-in", "none",
	} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "html/"+name+".html"))
	}
	return all
}()
