// Package approval lets people decide by a page what instances wait for: the steps of [saga.Approve].
//
//	saga.Approve[Order]("approved").By("finance").Votes(2).NotStarter().Within(72*time.Hour).Ask(mail),
//	…
//	who := func(r *http.Request) (name string, roles []string) { … } // from your session, or your proxy
//	mux.Handle("/approvals/", http.StripPrefix("/approvals", approval.Handler(c, who, log)))
//
// # Mistakes people make
//
//   - A person is named by what the request says of itself, such as a query: each reader could then vote as another.
//   - NotStarter without [saga.StartOptions.Starter]: the coordinator does not know who started it.
//   - The page is shown under another path than [saga.Brief.Path] says: the links in the mails lead nowhere.
package approval

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/visible"
	"github.com/amends-dev/amends/saga"
)

// Decider is a [coordinator.Coordinator] or a [coordinator.Operator].
type Decider interface {
	Approvals(ctx context.Context) iter.Seq2[coordinator.Approval, error]
	Approval(ctx context.Context, id saga.ID, step string) (coordinator.Approval, error)
	Vote(ctx context.Context, id saga.ID, step string, approve bool, shown string, by coordinator.Voter) error
}

// Handler serves a page for each approval, and takes votes from it:
//
//	mux.Handle("/approvals/", http.StripPrefix("/approvals", approval.Handler(c, who, nil)))
//
//	GET  /                     what is to be decided
//	GET  /SAGA/WORK/STEP       what the person decides about, and the votes so far; it changes nothing, however often it is opened
//	POST /SAGA/WORK/STEP       a vote: shown (the digest of what the page showed), decision (approve or reject), reason
//
// saga.Brief.Path is the path of the page. who names the person of a request, and the roles of that person: from a
// session, from a proxy that signs people in, never from what the request says of itself. Where it names none, the
// request is answered with 401, and shows nothing. Without a who the pages only show, to every reader: a link is no
// identity.
//
// A vote that does not come from the handler's own page is refused (403), and so is one on something else than what is to
// be decided by now (409: the page shows it). log is told of what is answered with 503; nil is logrus' standard logger.
func Handler(d Decider, who func(*http.Request) (name string, roles []string), log logrus.FieldLogger) http.Handler {
	if log == nil {
		log = logrus.StandardLogger()
	}
	h := &handler{d, who, log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /{saga}/{work}/{step}", h.show)
	mux.HandleFunc("POST /{saga}/{work}/{step}", h.vote)
	return http.NewCrossOriginProtection().Handler(h.known(mux))
}

type handler struct {
	d   Decider
	who func(*http.Request) (string, []string)
	log logrus.FieldLogger
}

type person struct{}

// known lets only requests through whose person is known, if anyone asks.
func (h *handler) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		var by coordinator.Voter
		if h.who != nil {
			by.Name, by.Roles = h.who(r)
			if by.Name = strings.TrimSpace(by.Name); by.Name == "" {
				h.page(w, http.StatusUnauthorized, page{Notice: "Sign in first: it is not known who you are."})
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), person{}, by)))
	})
}

func voter(r *http.Request) coordinator.Voter {
	by, _ := r.Context().Value(person{}).(coordinator.Voter)
	return by
}

// list shows what is to be decided, the person's own first.
func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	p := page{Title: "To be decided", By: voter(r), List: true}
	for a, err := range h.d.Approvals(r.Context()) {
		if err != nil {
			h.failed(w, err)
			return
		}
		v := view{Approval: a, Mine: mine(&a, p.By.Roles), Link: "." + a.Path()}
		if h.who != nil && !v.Mine {
			v.About = nil
		}
		p.All = append(p.All, v)
	}
	slices.SortStableFunc(p.All, func(a, b view) int {
		switch {
		case a.Mine == b.Mine:
			return 0
		case a.Mine:
			return -1
		default:
			return 1
		}
	})
	h.page(w, http.StatusOK, p)
}

func mine(a *coordinator.Approval, roles []string) bool {
	return slices.ContainsFunc(roles, func(r string) bool { return r == saga.Admin || slices.Contains(a.Roles, r) })
}

func at(r *http.Request) (id saga.ID, step string) {
	return saga.ID{Saga: r.PathValue("saga"), Work: r.PathValue("work")}, r.PathValue("step")
}

func (h *handler) show(w http.ResponseWriter, r *http.Request) {
	h.one(w, r, http.StatusOK, "")
}

// one shows an approval, and what became of a vote on it.
func (h *handler) one(w http.ResponseWriter, r *http.Request, status int, notice string) {
	id, step := at(r)
	a, err := h.d.Approval(r.Context(), id, step)
	switch {
	case errors.Is(err, coordinator.ErrNotFound), errors.Is(err, coordinator.ErrNotOpen):
		h.page(w, http.StatusNotFound, page{Title: "Nothing to decide", Notice: "Nothing is to be decided here, or not yet."})
		return
	case err != nil:
		h.failed(w, err)
		return
	}
	p := page{Title: "Approve " + a.ID.Work + "?", By: voter(r), Notice: notice, View: &view{Approval: a}}
	p.View.Mine = h.who != nil && a.Outcome == "" && mine(&a, p.By.Roles)
	if h.who == nil || mine(&a, p.By.Roles) {
		p.View.Shown = indented(a.Shown)
		if a.About != nil && a.About.Title != "" {
			p.Title = a.About.Title
		}
	} else {
		p.View.About, p.View.Shown = nil, "what is decided about is shown to who may vote"
	}
	h.page(w, status, p)
}

func indented(doc json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, doc, "", "  "); err != nil {
		return string(doc)
	}
	return b.String()
}

// maxForm is more than a form of the page can have.
const maxForm = 64 << 10

func (h *handler) vote(w http.ResponseWriter, r *http.Request) {
	by := voter(r)
	if by.Name == "" {
		h.one(w, r, http.StatusForbidden, "This page only shows: it is not known who you are.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.one(w, r, http.StatusBadRequest, "The form could not be read.")
		return
	}
	approve := r.PostForm.Get("decision") == "approve"
	by.Reason = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(r.PostForm.Get("reason"), "\x00", "?"), "?"))
	switch {
	case !approve && r.PostForm.Get("decision") != "reject":
		h.one(w, r, http.StatusBadRequest, "Say whether you approve or reject.")
		return
	case !approve && by.Reason == "":
		h.one(w, r, http.StatusUnprocessableEntity, "Say why you reject it.")
		return
	case by.Reason == "":
		by.Reason = "seen on its page"
	}
	id, step := at(r)
	switch err := h.d.Vote(r.Context(), id, step, approve, r.PostForm.Get("shown"), by); {
	case err == nil:
		h.one(w, r, http.StatusOK, "Thank you, "+by.Name+": your vote is on record.")
	case errors.Is(err, coordinator.ErrVoted):
		h.one(w, r, http.StatusOK, "You have said so before, and it counts.")
	case errors.Is(err, coordinator.ErrOtherShown):
		h.one(w, r, http.StatusConflict, "What is to be decided has changed since you saw it. Your vote does not count: look at it again.")
	case errors.Is(err, coordinator.ErrNoVote):
		h.one(w, r, http.StatusForbidden, "Your vote does not count: "+because(err, coordinator.ErrNoVote))
	case errors.Is(err, coordinator.ErrNotOpen), errors.Is(err, coordinator.ErrNotFound):
		h.one(w, r, http.StatusConflict, "Your vote does not count: it is decided, or its time is over.")
	default:
		h.failed(w, err)
	}
}

// because is what err says behind the words of what it matches.
func because(err, of error) string {
	_, why, _ := strings.Cut(err.Error(), of.Error()+": ")
	return why
}

func (h *handler) failed(w http.ResponseWriter, err error) {
	h.log.WithError(err).Error("an approval could not be read or decided")
	w.Header().Set("Retry-After", "5")
	h.page(w, http.StatusServiceUnavailable, page{Title: "Not now", Notice: "The ledger does not answer. Nothing is known of your vote: open the page again in a moment."})
}

type page struct {
	Title  string
	Notice string
	By     coordinator.Voter
	View   *view // one
	List   bool  // or all
	All    []view
}

type view struct {
	coordinator.Approval
	Shown string
	Mine  bool // the person may vote
	Link  string
}

// Stands is how many have approved of how many it takes.
func (v view) Stands() string {
	n := 0
	for i := range v.Votes {
		if v.Votes[i].Approve {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, v.Needed)
}

//go:embed page.html
var pageHTML string

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"day":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"list": func(words []string) string { return strings.Join(words, ", ") },
	"web":  visible.Web,
}).Parse(pageHTML))

func (h *handler) page(w http.ResponseWriter, status int, p page) {
	var b bytes.Buffer
	if err := pages.Execute(&b, p); err != nil {
		h.log.WithError(err).Error("the page of an approval could not be made")
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(visible.HTML(b.Bytes())) // who hung up is told nothing
}
