package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/visible"
	"github.com/amends-dev/amends/saga"
)

const (
	// patience is how long a request may take, and mostWait how long it may ask to wait for the
	// end of what it said: then it is told that it goes on.
	patience = time.Minute
	mostWait = 50 * time.Second
	// maxKey is more than an Idempotency-Key has to say.
	maxKey = 255
	// mostItems is how many a list may have.
	mostItems = 1000
)

// problem is an error as RFC 9457 has it, with what the desk says of it.
type problem struct {
	API     string          `json:"api"` // the version of the JSON
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail"`
	Code    desk.Code       `json:"code"`              // the word of the command's exit status
	Details json.RawMessage `json:"details,omitempty"` // what there is to choose from
	Outcome json.RawMessage `json:"outcome,omitempty"` // where it stands all the same
	Done    bool            `json:"-"`                 // what was asked for is stored all the same
	Plain   string          `json:"-"`                 // Detail without what to type
}

func (p *problem) Error() string { return p.Detail }

// statuses say how a failure is told by HTTP.
var statuses = map[desk.Code]int{
	desk.Failed: http.StatusInternalServerError, desk.Misuse: http.StatusBadRequest, desk.NotFound: http.StatusNotFound,
	desk.NotAllowed: http.StatusForbidden, desk.Conflict: http.StatusConflict, desk.TimedOut: http.StatusAccepted, desk.Interrupted: http.StatusServiceUnavailable,
}

func refuse(status int, code desk.Code, detail string) *problem {
	return &problem{API: desk.API, Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail, Plain: detail}
}

func misuse(format string, args ...any) *problem {
	return refuse(http.StatusBadRequest, desk.Misuse, fmt.Sprintf(format, args...))
}

func unknownCaller() *problem {
	return refuse(http.StatusUnauthorized, desk.NotAllowed, "it is not known who asks: send Authorization: Bearer TOKEN; amends token makes one")
}

// said is what a request says: parts of the path, and what else by its names.
type said struct {
	parts map[string]string
	says  map[string]string
}

// saga is the one saga that a request names; "": none.
func (s *said) saga() string {
	if name, named := s.parts["saga"]; named {
		return name
	}
	return s.says["saga"]
}

// about is the saga for which a person needs a role: of a batch that of its works.
func (h *handler) about(ctx context.Context, s *said) string {
	batch := s.parts["batch"]
	if s.parts["saga"] == coordinator.BatchSaga {
		batch = s.parts["work"]
	}
	return cmp.Or(h.desk.SagaOf(ctx, batch), s.saga())
}

// run does an operation for a person, and returns its document.
func (h *handler) run(ctx context.Context, who *Person, op *operation, s *said) (any, *problem) {
	here := who.in(h.about(ctx, s))
	p := &here
	if !p.may(op.role) && !h.own(ctx, p, op, s) {
		return nil, forbidden(who, p, op, s)
	}
	in, wrong := op.taken(s)
	if wrong != nil {
		return nil, wrong
	}
	if wrong := bounded(in); wrong != nil {
		return nil, wrong
	}
	if by, is := in.(interface{ Who() *desk.By }); is {
		by.Who().Actor = strings.TrimSpace(p.Name)
	}
	if vote, is := in.(*desk.Vote); is {
		vote.Roles = p.Roles
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if op.path == "/check" || op.path == "/report" { // they read many chains: one at a time
		select {
		case h.checking <- struct{}{}:
			defer func() { <-h.checking }()
		case <-ctx.Done():
			return nil, refuse(http.StatusServiceUnavailable, desk.Interrupted, "another check or report is under way; ask again when it has ended")
		}
	}
	doc, err := op.do(ctx, h.desk, in)
	if err != nil {
		return nil, told(ctx, doc, err)
	}
	if wrong := h.looked(ctx, p, op, s); wrong != nil {
		return nil, wrong
	}
	return p.withheld(doc), nil
}

func forbidden(who, here *Person, op *operation, s *said) *problem {
	takes := desk.Either(op.role == Approver, "approver or operator, and one of those that the approval names", op.role)
	if all := who.sagas(); len(all) > 0 && s.saga() == "" {
		takes += "; of " + strings.Join(all, ", ") + " there is a role, where the saga is said"
	}
	return refuse(http.StatusForbidden, desk.NotAllowed, fmt.Sprintf("%s may not do this: it takes the role %s", here.Name, takes))
}

// own reports whether who starts instances, and may not read, asks where one of those stands.
func (h *handler) own(ctx context.Context, p *Person, op *operation, s *said) bool {
	if op.method != http.MethodGet || op.path != "/works/{saga}/{work}" || !p.may(Starter) {
		return false
	}
	mine, err := h.desk.Started(ctx, saga.ID{Saga: s.parts["saga"], Work: s.parts["work"]}, p.Name)
	return err == nil && mine
}

// mayBeEmpty are those whose being empty is what they say: a first page, an id that there is not.
var mayBeEmpty = []string{"after", "before", "happened", "reason", "result", "zone"}

// taken is what an operation takes, as a request says it.
func (o *operation) taken(s *said) (any, *problem) {
	in := reflect.ValueOf(o.takes())
	if d, is := in.Interface().(interface{ Defaults() }); is {
		d.Defaults()
	}
	if r, is := in.Interface().(interface{ Patience() *desk.Duration }); is {
		*r.Patience() = min(*r.Patience(), desk.Duration(mostWait))
	}
	if s.says["wait"] != "" && s.says["no-wait"] == "true" {
		return nil, misuse("say wait or no-wait, not both")
	}
	for i, texts := range []map[string]string{s.parts, s.says} {
		for name, text := range texts {
			f := o.field(name)
			switch besides := i == 1; {
			case !besides && text == "":
				return nil, misuse("the %s is empty", name)
			case f == nil, (f.in == "path") == besides: // what the address names is what a role is for
				return nil, misuse("%s %s takes no %q; it takes: %s", o.method, o.path, name, strings.Join(o.names(), ", "))
			case besides && text == "" && !slices.Contains(mayBeEmpty, name): // it would select all there is
				return nil, misuse("%s is empty: leave it out, or say it", name)
			}
			if err := set(in.Elem().FieldByIndex(f.Index), text); err != nil {
				return nil, misuse("%s: %v", name, err)
			}
		}
	}
	return in.Interface(), nil
}

// names are those that a request may say.
func (o *operation) names() (names []string) {
	for _, f := range o.fields() {
		if f.in != "path" {
			names = append(names, f.name)
		}
	}
	return names
}

// set sets a field to what a text says.
func set(field reflect.Value, text string) error {
	if reader, is := reflect.TypeAssert[encoding.TextUnmarshaler](field.Addr()); is {
		return reader.UnmarshalText([]byte(text))
	}
	switch field.Kind() { //nolint:exhaustive // what a request says is of these
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return set(field.Elem(), text)
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		field.SetBool(yes)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no number", text)
		}
		field.SetInt(n)
	default:
		return errors.New("it cannot be said here")
	}
	return nil
}

// bounded refuses lists without an end and what would wait for too long, and says what has to be said here.
func bounded(in any) *problem {
	if v, is := in.(interface{ Patience() *desk.Duration }); is && *v.Patience() > desk.Duration(mostWait) {
		return misuse("wait is at most %s here: ask again, what was said goes on meanwhile", mostWait)
	}
	switch v := in.(type) {
	case interface{ Most() int }:
		if v.Most() > mostItems {
			return misuse("limit is a number of at most %d here: ask for the next page", mostItems)
		}
	case *desk.Vote:
		if v.Shown == "" {
			return misuse("say shown: the digest of what you were shown, as GET …/approval has it")
		}
	case *desk.Rerun:
		if !v.Once() {
			return misuse("say which run is to be done again (run), or name the request (request, or the header Idempotency-Key): what comes twice would be done twice")
		}
	}
	return nil
}

// withheld is a document without what is hidden from the person: what an approval shows, and says about itself, is
// an instance's input, for those who decide about it.
func (p *Person) withheld(doc any) any {
	if p.may(Approver) {
		return doc
	}
	switch d := doc.(type) {
	case *desk.Approval:
		d.About, d.Shown = nil, nil
	case *desk.Instance:
		d.About = nil
	case *desk.All[desk.Approval]:
		for i := range d.Items {
			d.Items[i].About, d.Items[i].Shown = nil, nil
		}
	}
	return doc
}

// looked puts on record who sees what is hidden otherwise, before it is shown.
func (h *handler) looked(ctx context.Context, p *Person, op *operation, s *said) *problem {
	if !op.looks() {
		return nil
	}
	what, err := "delivery "+s.parts["number"], error(nil)
	if id := (saga.ID{Saga: s.parts["saga"], Work: s.parts["work"]}); id.Work != "" {
		what, err = h.desk.Called(ctx, id)
	}
	if err == nil {
		err = h.desk.Looked(ctx, "bodies of "+what, saga.Actor{Name: p.Name, Reason: "in the console"})
	}
	if err == nil {
		return nil
	}
	h.log.WithError(err).WithField("actor", p.Name).Error("it could not be put on record that a person looks at bodies, and they were not shown")
	return refuse(http.StatusServiceUnavailable, desk.Failed, "it could not be put on record that you look, so nothing is shown; try again")
}

// told is the error that an operation ended with, and where it stands all the same.
func told(ctx context.Context, doc any, err error) *problem {
	f := desk.FailureOf(ctx, err)
	p := refuse(cmp.Or(statuses[f.Code], http.StatusInternalServerError), f.Code, f.Told().Message)
	p.Plain, p.Done = f.Plain(), f.Done
	if f.Details != nil {
		p.Details = written(f.Details)
	}
	if doc != nil {
		p.Outcome = written(desk.Versioned(doc))
	}
	return p
}

// written is a document as it is answered.
func written(doc any) json.RawMessage {
	var b bytes.Buffer
	if err := visible.JSON(&b, doc, "  "); err != nil {
		return json.RawMessage(`{}`) // documents always marshal
	}
	return b.Bytes()
}

// answer answers an operation as JSON.
func (h *handler) answer(op *operation, w http.ResponseWriter, r *http.Request) {
	p := h.caller(r)
	if p.Name == "" {
		answerProblem(w, unknownCaller())
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); op.looks() && site != "" && site != "same-origin" && site != "none" { // or it is on record that a person looked who did not
		answerProblem(w, refuse(http.StatusForbidden, desk.NotAllowed, "another site asked for this: nothing is shown, and nothing is on record"))
		return
	}
	s, wrong := op.said(r)
	if wrong != nil {
		answerProblem(w, wrong)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		answerProblem(w, misuse("an Idempotency-Key has at most %d bytes", maxKey))
		return
	}
	was, again := h.keyed(r.Context(), &p, op, s, key)
	if again {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	if was.Problem != nil {
		answerProblem(w, was.Problem)
		return
	}
	answer(w, r, op, []byte(was.Doc))
}

// said reads what a request says: of one that changes something a JSON object, of others the query.
func (o *operation) said(r *http.Request) (*said, *problem) {
	s := &said{map[string]string{}, map[string]string{}}
	for _, f := range o.fields() {
		if f.in == "path" {
			if s.parts[f.name] = r.PathValue(f.name); f.name == "work" && strings.Contains(s.parts["work"], "\t") {
				return nil, misuse("a work id with a tab cannot be named here: use the library")
			}
		}
	}
	if !o.changes() {
		for name, values := range r.URL.Query() {
			if len(values) > 1 {
				return nil, misuse("%q is said twice", name)
			}
			s.says[name] = values[0]
		}
		return s, nil
	}
	if r.URL.RawQuery != "" {
		return nil, misuse("say it in the body, as a JSON object, and not in the address")
	}
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return nil, unread(err)
	case len(body) == 0:
		return s, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, desk.Misuse, "the body is application/json")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, misuse("the body is no JSON object: %v", err)
	}
	for name, raw := range fields {
		var text desk.JSONText // a result or an answer is said as the JSON that it is
		if string(raw) != "null" {
			_ = text.UnmarshalJSON(raw) // it takes anything
			s.says[name] = string(text)
		}
	}
	return s, nil
}

// answer writes a document. What was read has a tag, so that to ask again is cheap.
func answer(w http.ResponseWriter, r *http.Request, op *operation, doc []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	people := slices.Contains([]reflect.Type{reflect.TypeFor[desk.Approval](), reflect.TypeFor[desk.All[desk.Approval]]()}, op.answers)
	if !op.changes() && !op.looks() && !people { // what people wrote is kept on no disk
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
