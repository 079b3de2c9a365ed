// Package callback lets other systems answer by HTTP what instances wait for: the steps of [saga.Await] that say Callback.
//
//	saga.Do("provision", p.provision).Keyed(24*time.Hour).Once().UndoMaybe(p.release), // sends c.CallbackToken() in a URL
//	saga.Await("provisioned", p.read).Callback("provision").Within(time.Hour, saga.Compensate),
//	…
//	c, err := coordinator.New(db, &coordinator.Options{CallbackSecrets: [][]byte{secret}})
//	mux.Handle("/callbacks/", http.StripPrefix("/callbacks", callback.Handler(c, log)))
//
// # Mistakes people make
//
//   - The URL is logged, by a proxy as well: who has it can answer.
//   - A secret is replaced and the old one removed while requests from before may be answered: put the new one first, and
//     keep the old.
//   - A wait has no Find: a callback that is lost is then waited for until the time is over.
package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/saga"
)

// Completer is a [coordinator.Coordinator], or a [coordinator.Operator], which has no definition to read answers with: what those
// decline it acknowledges all the same.
type Completer interface {
	Complete(ctx context.Context, token string, body []byte) (coordinator.Ack, error)
	Fail(ctx context.Context, token, why string) (coordinator.Ack, error)
}

// Handler answers POST /TOKEN with the answer as its body, and POST /TOKEN/fail with the reason as its body; PUT and a slash at the
// end are the same:
//
//	mux.Handle("/callbacks/", http.StripPrefix("/callbacks", callback.Handler(c, nil)))
//
// The token is what [saga.Call.CallbackToken] gave the other side: put it into the URL that the request names.
//
//	200  the answer is on record, and this is what became of the first one to that request, also when it comes again or late
//	404  there is no such token; every such answer is alike
//	413  the body has more than 64 KiB, or has when it is unpacked
//	415  it cannot be unpacked (gzip and deflate can), or its charset is not known
//	422  the definition declines it, and says why; the instance waits on
//	500  it is on record, and the definition could not read it: a person is asked
//	503  nothing is stored of it: send it again
//
// The answer is put on record unpacked, in UTF-8 and without a byte order mark; [Into] reads it.
//
// Who has the URL can answer, so it belongs into no log. Set timeouts on the server: the handler waits for the body. log is told of
// what is answered with 503; nil is logrus' standard logger.
func Handler(c Completer, log logrus.FieldLogger) http.Handler {
	if log == nil {
		log = logrus.StandardLogger()
	}
	h := &handler{c, log}
	mux := http.NewServeMux()
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		for _, end := range []string{"", "/{$}"} {
			mux.HandleFunc(method+" /{token}"+end, h.complete)
			mux.HandleFunc(method+" /{token}/fail"+end, h.fail)
		}
		mux.HandleFunc(method+" /", func(w http.ResponseWriter, _ *http.Request) { unknown(w) })
	}
	return mux
}

// Into reads the body of an answer into what v points to, as sagahttp reads one: what is read is as the other side meant
// it, 105.0 is a whole number, or it is an error, which quotes no value.
func Into(m saga.Message, v any) error { return reading.Into(m.Body, v) }

type handler struct {
	c   Completer
	log logrus.FieldLogger
}

func (h *handler) complete(w http.ResponseWriter, r *http.Request) {
	if body, ok := read(w, r); ok {
		ack, err := h.c.Complete(r.Context(), r.PathValue("token"), body)
		h.answer(w, ack, err)
	}
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request) {
	if body, ok := read(w, r); ok {
		ack, err := h.c.Fail(r.Context(), r.PathValue("token"), string(body))
		h.answer(w, ack, err)
	}
}

// read reads the body as webhooks and answers to our own requests are read.
func read(w http.ResponseWriter, r *http.Request) (text []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, program.MaxAnswer))
	var large *http.MaxBytesError
	if err != nil && !errors.As(err, &large) {
		w.Header().Set("Retry-After", "5")
		say(w, http.StatusServiceUnavailable, refusal{"the body could not be read; send it again"})
		return nil, false
	}
	plain, unread := reading.Plain(r.Header, bytes.NewReader(body))
	if unread == nil {
		body, unread = io.ReadAll(io.LimitReader(plain, program.MaxAnswer+1))
	}
	if unread == nil {
		text, unread = reading.Text(r.Header.Get("Content-Type"), body)
	}
	switch {
	case large != nil, len(text) > program.MaxAnswer, len(body) > program.MaxAnswer:
		say(w, http.StatusRequestEntityTooLarge, refusal{"the body has more than 64 KiB"})
		return nil, false
	case unread != nil:
		say(w, http.StatusUnsupportedMediaType, refusal{unread.Error()})
		return nil, false
	}
	return text, true
}

// acknowledgement is what the other side is told. It says nothing of the instance.
type acknowledgement struct {
	ReceivedAt time.Time `json:"receivedAt"` // when the first answer came
	Outcome    string    `json:"outcome"`    // what that said: completed or failed
}

type refusal struct {
	Error string `json:"error"`
}

func (h *handler) answer(w http.ResponseWriter, ack coordinator.Ack, err error) {
	switch {
	case err == nil:
		a := acknowledgement{ack.At.UTC(), "completed"}
		if ack.Failed {
			a.Outcome = "failed"
		}
		say(w, http.StatusOK, a)
	case errors.Is(err, coordinator.ErrUnknownToken):
		unknown(w)
	case errors.Is(err, coordinator.ErrBroken):
		h.log.WithError(err).Error("the definition could not read a callback; it is on record, and a person is asked")
		say(w, http.StatusInternalServerError, refusal{"it is on record, and could not be read: a person looks at it"})
	case errors.Is(err, coordinator.ErrDeclined):
		why := err.Error() // from there on: what stands before names the instance
		say(w, http.StatusUnprocessableEntity, refusal{why[strings.Index(why, coordinator.ErrDeclined.Error()):]})
	default:
		h.log.WithError(err).Error("a callback could not be taken; its sender is told to send it again")
		w.Header().Set("Retry-After", "5")
		say(w, http.StatusServiceUnavailable, refusal{"not taken; send it again"})
	}
}

func unknown(w http.ResponseWriter) { say(w, http.StatusNotFound, refusal{"no such callback"}) }

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who hung up is told nothing
}
