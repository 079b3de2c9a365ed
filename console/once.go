package console

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// What is asked for twice under one key is done once. Who asks says the key as Idempotency-Key; a form has one from when its page was made.

// answered is what a request was answered with, as it is kept.
type answered struct {
	Doc     string   `json:"doc,omitempty"` // to the byte
	Problem *problem `json:"problem,omitempty"`
}

// A request waits so many times so long for the answer of the same one that is under way.
const twinWaits, twinWait = 30, 100 * time.Millisecond

// once runs a route for a person, once for a key: the same request again is answered as the first was, whatever became of it since.
func (h *handler) once(ctx context.Context, p *Person, rt *route, s *say, key string) (doc json.RawMessage, again bool, wrong *problem) {
	if key == "" || !rt.changes() {
		doc, wrong = h.run(ctx, p, rt, s)
		return doc, false, wrong
	}
	asks, _ := json.Marshal([]any{rt.path, s.parts, s.flags}) // texts always marshal
	mine := ledger.Request{Key: digest(p.Name + "\x00" + key), Nonce: 1 + rand.Int64N(1<<62), Asks: digest(string(asks))}
	if rt.unnamed(s) { // this one is kept for as long as the instance
		s.flags["request"] = []string{mine.Key}
	}
	kept, err := h.db.Request(ctx, mine)
	for range twinWaits {
		if err != nil || kept.Nonce == mine.Nonce || kept.Asks != mine.Asks || kept.Answer != nil {
			break
		}
		time.Sleep(twinWait)
		kept, err = h.db.Request(ctx, mine)
	}
	var was answered
	switch {
	case err != nil:
		h.log.WithError(err).Error("a request could not be kept under its key, and nothing was done")
		return nil, false, refuse(http.StatusServiceUnavailable, "failed", "the ledger does not answer: nothing was done; send it again, under the same key")
	case kept.Nonce == mine.Nonce:
		return h.first(ctx, p, rt, s, &mine)
	case kept.Asks != mine.Asks:
		return nil, false, refuse(http.StatusUnprocessableEntity, "usage", "that key was used to ask for something else within a day; nothing was done")
	case kept.Answer == nil:
		return nil, false, refuse(http.StatusConflict, "conflict", "the same request came at "+kept.At.UTC().Format(time.RFC3339)+
			" and has no answer: it is under way, or its process died over it, and it may be done; look, and use another key to ask again")
	}
	if err := json.Unmarshal(kept.Answer, &was); err != nil {
		return nil, true, refuse(http.StatusInternalServerError, "failed", "the answer that was kept does not decode: "+err.Error())
	}
	return json.RawMessage(was.Doc), true, was.Problem
}

// first does what is asked for, also when who asked has hung up, and keeps the answer. What was refused frees the key. Of what failed
// otherwise it is not known whether it was done: it stays without an answer.
func (h *handler) first(ctx context.Context, p *Person, rt *route, s *say, mine *ledger.Request) (json.RawMessage, bool, *problem) {
	ctx = context.WithoutCancel(ctx)
	doc, wrong := h.run(ctx, p, rt, s)
	var answer []byte
	switch {
	case wrong == nil || wrong.done():
		answer, _ = json.Marshal(answered{string(doc), wrong}) // it was JSON
	case wrong.Status >= http.StatusInternalServerError:
		return doc, false, wrong
	}
	if err := h.db.Answer(ctx, mine.Key, mine.Nonce, answer); err != nil {
		h.log.WithError(err).Error("the answer to a request could not be kept under its key")
	}
	return doc, false, wrong
}

// done reports whether a verb that ended otherwise did what was asked all the same: it stored what was said, or the run of a job.
func (p *problem) done() bool {
	doc := decoded(p.Outcome)
	_, ran := decoded(p.Details)["run"]
	return ran || slices.ContainsFunc(append(items(doc, "items"), doc), func(one document) bool { return one["stored"] == true })
}

// unnamed reports whether it is a rerun, and does not say of which run, nor under which name: what comes twice would be done twice.
func (r *route) unnamed(s *say) bool {
	said := func(flag string) bool { return strings.Join(s.flags[flag], "") != "" }
	return strings.HasPrefix(r.line, "rerun ") && !said("run") && !said("request")
}
