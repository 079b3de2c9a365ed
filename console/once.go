package console

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
)

// What is asked for twice under one key is done once. Who asks says the key as Idempotency-Key; a form has one from when its page was made.

// answered is what a request was answered with, as it is kept.
type answered struct {
	Doc     string   `json:"doc,omitempty"` // to the byte
	Problem *problem `json:"problem,omitempty"`
	Notice  *notice  `json:"notice,omitempty"` // the same for a page
}

// A request waits so many times so long for the answer of the same one that is under way.
const twinWaits, twinWait = 30, 100 * time.Millisecond

// keyed runs an operation for a person, once for a key: the same request again is answered as the first was, whatever became of it since.
func (h *handler) keyed(ctx context.Context, p *Person, op *operation, s *said, key string) (was answered, again bool) {
	if key == "" || !op.changes() {
		return h.done(ctx, p, op, s), false
	}
	asks, _ := json.Marshal([]any{op.path, s.parts, s.says}) // texts always marshal
	mine := ledger.Request{Key: digest(p.Name + "\x00" + key), Nonce: 1 + rand.Int64N(1<<62), Asks: digest(string(asks))}
	if op.path == rerunPath && s.says["run"] == "" && s.says["request"] == "" { // this one is kept for as long as the instance
		s.says["request"] = mine.Key
	}
	kept, err := h.db.Request(ctx, mine)
	for range twinWaits {
		if err != nil || kept.Nonce == mine.Nonce || kept.Asks != mine.Asks || kept.Answer != nil {
			break
		}
		time.Sleep(twinWait)
		kept, err = h.db.Request(ctx, mine)
	}
	fails := func(status int, code desk.Code, detail string) (answered, bool) {
		return answered{Problem: refuse(status, code, detail)}, false
	}
	switch {
	case err != nil:
		h.log.WithError(err).Error("a request could not be kept under its key, and nothing was done")
		return fails(http.StatusServiceUnavailable, desk.Failed, "the ledger does not answer: nothing was done; send it again, under the same key")
	case kept.Nonce == mine.Nonce:
		return h.first(ctx, p, op, s, &mine), false
	case kept.Asks != mine.Asks:
		return fails(http.StatusUnprocessableEntity, desk.Misuse, "that key was used to ask for something else within a day; nothing was done")
	case kept.Answer == nil:
		return fails(http.StatusConflict, desk.Conflict, "the same request came at "+kept.At.UTC().Format(time.RFC3339)+
			" and has no answer: it is under way, or its process died over it, and it may be done; look, and use another key to ask again")
	}
	if err := json.Unmarshal(kept.Answer, &was); err != nil {
		was.Problem = refuse(http.StatusInternalServerError, desk.Failed, "the answer that was kept does not decode: "+err.Error())
	}
	if err := h.db.Blocked(ctx, ledger.ByRequest, "", 1); err != nil {
		h.log.WithError(err).Warn("a request that came again is not counted")
	}
	return was, true
}

const rerunPath = "/works/{saga}/{work}/rerun"

// done does what is asked for.
func (h *handler) done(ctx context.Context, p *Person, op *operation, s *said) (was answered) {
	doc, wrong := h.run(ctx, p, op, s)
	if was.Problem, was.Notice = wrong, outcome(doc, wrong); wrong == nil {
		was.Doc = string(written(desk.Versioned(doc)))
	}
	return was
}

// first does what is asked for, also when who asked has hung up, and keeps the answer. What was refused frees the key. Of what failed
// otherwise it is not known whether it was done: it stays without an answer.
func (h *handler) first(ctx context.Context, p *Person, op *operation, s *said, mine *ledger.Request) answered {
	ctx = context.WithoutCancel(ctx)
	was := h.done(ctx, p, op, s)
	var answer []byte
	switch wrong := was.Problem; {
	case wrong == nil || wrong.Done:
		answer, _ = json.Marshal(was) // it was JSON
	case wrong.Status >= http.StatusInternalServerError:
		return was
	}
	if err := h.db.Answer(ctx, mine.Key, mine.Nonce, answer); err != nil {
		h.log.WithError(err).Error("the answer to a request could not be kept under its key")
	}
	return was
}
