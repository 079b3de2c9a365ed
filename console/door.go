package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/command"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

const (
	// patience is how long a request may take, and mostWait how long it may ask a verb to wait for the
	// end of what it said: then it is told that it goes on.
	patience = time.Minute
	mostWait = 50 * time.Second
	// maxKey is more than an Idempotency-Key has to say.
	maxKey = 255
	// mostItems is how many a list may have.
	mostItems = 1000
)

// problem is an error as RFC 9457 has it, with what the command says of it.
type problem struct {
	API     string          `json:"api"` // the version of the JSON
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail"`
	Code    string          `json:"code"`              // the word of the command's exit status
	Details json.RawMessage `json:"details,omitempty"` // what there is to choose from
	Outcome json.RawMessage `json:"outcome,omitempty"` // where it stands all the same
}

func (p *problem) Error() string { return p.Detail }

// statuses say how an exit status of the command is told by HTTP.
var statuses = map[string]int{
	"failed": http.StatusInternalServerError, "usage": http.StatusBadRequest, "not-found": http.StatusNotFound,
	"not-allowed": http.StatusForbidden, "conflict": http.StatusConflict, "findings": http.StatusOK,
	"timed-out": http.StatusAccepted, "interrupted": http.StatusServiceUnavailable,
}

func refuse(status int, code, detail string) *problem {
	return &problem{API: command.API, Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

func unknownCaller() *problem {
	return refuse(http.StatusUnauthorized, "not-allowed", "it is not known who asks: send Authorization: Bearer TOKEN; amends token makes one")
}

// run runs the verb of a route for a person, and returns its JSON.
func (h *handler) run(ctx context.Context, who *Person, r *route, s *say) (json.RawMessage, *problem) {
	here := who.in(s.saga())
	p := &here
	if !p.may(r.role) && !h.own(ctx, p, r, s) {
		takes := r.role
		if r.role == Approver {
			takes = "approver or operator, and one of those that the approval names"
		}
		if all := who.sagas(); len(all) > 0 && s.saga() == "" {
			takes += "; of " + strings.Join(all, ", ") + " there is a role, where the saga is said"
		}
		return nil, refuse(http.StatusForbidden, "not-allowed", fmt.Sprintf("%s may not do this: it takes the role %s", p.Name, takes))
	}
	if wrong := r.wrong(s); wrong != "" {
		return nil, refuse(http.StatusBadRequest, "usage", wrong)
	}
	if err := r.waits(s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.path == "/check" { // it reads the whole ledger: one at a time
		select {
		case h.checking <- struct{}{}:
			defer func() { <-h.checking }()
		case <-ctx.Done():
			return nil, refuse(http.StatusServiceUnavailable, "interrupted", "another check is under way; ask again when it has ended")
		}
	}
	doc, wrong := command.Ask(ctx, h.db, r.command(p, s))
	if wrong != nil {
		return nil, told(doc, wrong)
	}
	if err := h.looked(ctx, p, r, s); err != nil {
		return nil, err
	}
	return p.withheld(r, doc), nil
}

// own reports whether who starts instances, and may not read, asks where one of those stands.
func (h *handler) own(ctx context.Context, p *Person, r *route, s *say) bool {
	if r.method != http.MethodGet || r.path != "/works/{saga}/{work}" || !p.may(Starter) {
		return false
	}
	records, err := h.db.History(ctx, saga.ID{Saga: s.parts["saga"], Work: s.parts["work"]})
	return err == nil && slices.ContainsFunc(records, func(r machine.Record) bool { return r.Kind == machine.KindStarted && r.Actor == p.Name })
}

// waits bounds how long the verb waits. One that would wait for minutes by itself waits for as long
// as it may here.
func (r *route) waits(s *say) *problem {
	takes := func(flag string) bool { return slices.Contains(strings.Fields(r.flags), flag) }
	if takes("no-wait") && s.flags["wait"] == nil && s.flags["no-wait"] == nil {
		s.flags["wait"] = []string{mostWait.String()}
	}
	for _, text := range s.flags["wait"] {
		if d, err := time.ParseDuration(text); err == nil && d > mostWait { // the verb says what is wrong with others
			return refuse(http.StatusBadRequest, "usage", fmt.Sprintf("wait is at most %s here: ask again, what was said goes on meanwhile", mostWait))
		}
	}
	return nil
}

// withheld is what a verb printed without what is hidden from the person: what an approval shows is
// an instance's input, for those who decide about it.
func (p *Person) withheld(r *route, raw json.RawMessage) json.RawMessage {
	if r.shape != "approval" && r.shape != "approvals" || p.may(Approver) {
		return raw
	}
	doc := decoded(raw)
	for _, one := range append(items(doc, "items"), doc) {
		if _, shown := one["shown"]; shown {
			one["shown"] = nil
		}
	}
	raw, _ = json.Marshal(doc) // it was JSON
	return raw
}

// looked puts on record who sees what is hidden otherwise, before it is shown.
func (h *handler) looked(ctx context.Context, p *Person, r *route, s *say) *problem {
	if !r.looks() {
		return nil
	}
	what := "bodies of delivery " + s.parts["number"]
	if s.parts["work"] != "" {
		what = fmt.Sprintf("bodies of %s %s", s.parts["saga"], s.parts["work"])
	}
	err := h.db.Looked(ctx, what, saga.Actor{Name: p.Name, Reason: "in the console"})
	if err == nil {
		return nil
	}
	h.log.WithError(err).WithField("actor", p.Name).Error("it could not be put on record that a person looks at bodies, and they were not shown")
	return refuse(http.StatusServiceUnavailable, "failed", "it could not be put on record that you look, so nothing is shown; try again")
}

// wrong says what a request says that it cannot.
func (r *route) wrong(s *say) string {
	known := strings.Fields(r.flags)
	for name, values := range s.flags {
		if !slices.Contains(known, name) {
			return fmt.Sprintf("%s %s takes no %q; it takes: %s", r.method, r.path, name, strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return fmt.Sprintf("%q is said twice", name)
		}
	}
	for _, text := range s.flags["limit"] {
		if n, err := strconv.Atoi(text); err != nil || n > mostItems {
			return fmt.Sprintf("limit is a number of at most %d here: ask for the next page", mostItems)
		}
	}
	if r.role == Approver && s.flags["shown"] == nil {
		return "say shown: the digest of what you were shown, as GET …/approval has it"
	}
	if r.unnamed(s) {
		return "say which run is to be done again (run), or name the request (request, or the header Idempotency-Key): what comes twice would be done twice"
	}
	for name, value := range s.parts {
		if value == "" {
			return "the " + name + " is empty"
		}
		if name == "work" && strings.Contains(value, "\t") { // the command reads a saga behind it
			return "a work id with a tab cannot be named here: use the library"
		}
	}
	return ""
}

// told is the error that a verb ended with.
func told(out json.RawMessage, wrong *command.Wrong) *problem {
	status, known := statuses[wrong.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	p := refuse(status, wrong.Code, wrong.Message)
	p.Details = wrong.Details
	if !json.Valid(out) {
		return p
	}
	p.Outcome = out
	var several struct { // a verb that takes several works says of each what is wrong
		Items []struct {
			Error *struct{ Code, Message string } `json:"error"`
		} `json:"items"`
	}
	if err := json.Unmarshal(out, &several); err == nil && len(several.Items) == 1 && several.Items[0].Error != nil {
		p.Detail = several.Items[0].Error.Message
	}
	return p
}

// api answers a route as JSON.
func (h *handler) api(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := h.caller(r)
		if p.Name == "" {
			answerProblem(w, unknownCaller())
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); rt.looks() && site != "" && site != "same-origin" && site != "none" { // or it is on record that a person looked who did not
			answerProblem(w, refuse(http.StatusForbidden, "not-allowed", "another site asked for this: nothing is shown, and nothing is on record"))
			return
		}
		s := &say{parts: map[string]string{}, flags: r.URL.Query()}
		for name := range partsOf(rt.path) {
			s.parts[name] = r.PathValue(name)
		}
		if rt.changes() {
			var err *problem
			if s.flags, err = said(r); err != nil {
				answerProblem(w, err)
				return
			}
		}
		key := r.Header.Get("Idempotency-Key")
		if len(key) > maxKey {
			answerProblem(w, refuse(http.StatusBadRequest, "usage", fmt.Sprintf("an Idempotency-Key has at most %d bytes", maxKey)))
			return
		}
		doc, again, err := h.once(r.Context(), &p, rt, s, key)
		if again {
			w.Header().Set("Idempotency-Replayed", "true")
		}
		if err != nil {
			answerProblem(w, err)
			return
		}
		answer(w, r, rt, doc)
	}
}

// partsOf are the names of the parts of a path.
func partsOf(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok && !yield(strings.TrimSuffix(name, "}")) {
				return
			}
		}
	}
}

// said reads what a request that changes something says: a JSON object, by the names of the flags.
func said(r *http.Request) (map[string][]string, *problem) {
	if r.URL.RawQuery != "" {
		return nil, refuse(http.StatusBadRequest, "usage", "say it in the body, as a JSON object, and not in the address")
	}
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return nil, unread(err)
	case len(body) == 0:
		return map[string][]string{}, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "usage", "the body is application/json")
	}
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, refuse(http.StatusBadRequest, "usage", "the body is no JSON object: "+err.Error())
	}
	flags := map[string][]string{}
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			flags[name] = []string{v}
		case json.Number, bool:
			flags[name] = []string{fmt.Sprint(v)}
		case nil:
		default: // a result or an answer is said as the JSON that it is
			text, _ := json.Marshal(v)
			flags[name] = []string{string(text)}
		}
	}
	return flags, nil
}

// answer writes what a verb printed. What was read has a tag, so that to ask again is cheap.
func answer(w http.ResponseWriter, r *http.Request, rt *route, doc json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !rt.changes() && !rt.looks() && rt.shape != "approval" && rt.shape != "approvals" { // what people wrote is kept on no disk
		sum := sha256.Sum256(doc)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write(doc) // who hung up is told nothing
}

func answerProblem(w http.ResponseWriter, p *problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="amends"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
