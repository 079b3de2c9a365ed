package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/visible"
	"github.com/amends-dev/amends/saga"
)

// start starts an instance, once for its work id. A repeat gets the prior status and body, and a
// header that says so; another input under the same work id is a conflict.
func (h *handler) start(w http.ResponseWriter, r *http.Request) {
	p, refused := h.starter(r)
	if refused != nil {
		answerProblem(w, refused)
		return
	}
	in, refused := readStart(r)
	if in.Saga == desk.AlertSaga { // who may start works may not tell people what needs them
		refused = refuse(http.StatusForbidden, desk.NotAllowed, in.Saga+" is amends' own")
	}
	if here := p.in(in.Saga); refused == nil && !here.may(Starter) {
		refused = refuse(http.StatusForbidden, desk.NotAllowed, p.Name+" may not start "+in.Saga+": it takes the role "+Starter)
	}
	if refused != nil {
		answerProblem(w, refused)
		return
	}
	in.Source = cmp.Or(in.Source, p.Name)
	started, err := h.opts.Coordinator.Start(r.Context(), in.Saga, in.WorkID, in.Input, &saga.StartOptions{
		Revision: in.Revision, Source: in.Source, Cause: in.Cause, Starter: p.Name, NotBefore: in.NotBefore,
	})
	if err != nil {
		answerProblem(w, h.notStarted(err))
		return
	}
	outcome := "started"
	switch {
	case started.Stale:
		outcome = "stale"
	case started.Revised:
		outcome = "revised"
	case started.Duplicate:
		outcome = "known"
		w.Header().Set("Idempotency-Replayed", "true")
	}
	id := saga.ID{Saga: started.Saga, Work: started.WorkID}
	href := h.base + "/api/v1/works/" + url.PathEscape(id.Saga) + "/" + url.PathEscape(id.Work)
	doc, status := desk.Begun{Saga: id.Saga, WorkID: id.Work, Started: started.Started.UTC(), Href: href}, http.StatusCreated
	if in.Wait > 0 {
		var ended bool
		if doc.Ended, ended, err = h.awaited(r.Context(), p, id, time.Duration(in.Wait)); err != nil {
			h.log.WithError(err).Warn("an instance was started by the console, and where it stands could not be read")
			answerProblem(w, refuse(http.StatusServiceUnavailable, desk.Failed, "it is started, and where it stands could not be read: send the same again"))
			return
		} else if !ended {
			status = http.StatusAccepted
		}
	}
	w.Header().Set("Amends-Outcome", outcome)
	w.Header().Set("Location", href)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = visible.JSON(w, desk.Versioned(doc), "")
}

// awaited is where an instance stands when it has ended, is in review or paused, or the time is over. Its results are for who started it, and
// for operators, whose look at them is put on record: a starter learns nothing of another's by starting it once more.
func (h *handler) awaited(ctx context.Context, p *Person, id saga.ID, wait time.Duration) (e *desk.Ended, ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	waits, over := context.WithTimeout(ctx, wait)
	defer over()
	s, err := h.opts.Coordinator.Wait(waits, id.Saga, id.Work)
	if ended = err == nil; !ended && waits.Err() == nil {
		return nil, false, err
	} else if !ended {
		if s, err = h.opts.Coordinator.Show(ctx, id); err != nil {
			return nil, false, err
		}
	}
	mine, err := h.desk.Started(ctx, id, p.Name)
	if here := p.in(id.Saga); err == nil && !mine && here.may(Operator) {
		mine = true
		what, unknown := h.desk.Called(ctx, id)
		if unknown != nil {
			return nil, ended, unknown
		}
		err = h.desk.Looked(ctx, "bodies of "+what, saga.Actor{Name: p.Name, Reason: "in the console"})
	}
	return desk.EndedAs(&s, mine), ended, err
}

// starter is who starts, if that person may start anything and this program can.
func (h *handler) starter(r *http.Request) (*Person, *problem) {
	p := h.caller(r)
	somewhere := p.somewhere()
	switch {
	case p.Name == "":
		return nil, unknownCaller()
	case !somewhere.may(Starter): // its body is not read
		return nil, refuse(http.StatusForbidden, desk.NotAllowed, p.Name+" may not do this: it takes the role "+Starter)
	case h.opts.Coordinator == nil:
		return nil, refuse(http.StatusNotImplemented, desk.Failed, "this console knows no definitions: instances are started by the program that runs the sagas, with Options.Coordinator")
	}
	return &p, nil
}

func readStart(r *http.Request) (in desk.StartIn, refused *problem) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return in, unread(err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, refuse(http.StatusBadRequest, desk.Misuse, "the body is no start: "+err.Error())
	}
	switch key := r.Header.Get("Idempotency-Key"); {
	case in.WorkID == "":
		in.WorkID = key
	case key != "" && key != in.WorkID:
		return in, refuse(http.StatusBadRequest, desk.Misuse, "Idempotency-Key and workId name the same thing, the unit of work: send one of them, or both alike")
	}
	switch {
	case in.Wait < 0 || time.Duration(in.Wait) > mostWait:
		return in, misuse("wait is at most %s here: ask again, it goes on meanwhile", mostWait)
	case in.WorkID == "" || in.Saga == "":
		return in, refuse(http.StatusBadRequest, desk.Misuse, "say saga, and workId or the header Idempotency-Key")
	}
	return in, nil
}

// notStarted is the answer to a start that failed.
func (h *handler) notStarted(err error) *problem {
	switch {
	case errors.Is(err, coordinator.ErrConflict):
		return refuse(http.StatusConflict, desk.Conflict, err.Error())
	case errors.Is(err, coordinator.ErrInvalid):
		return refuse(http.StatusBadRequest, desk.Misuse, err.Error())
	case errors.Is(err, coordinator.ErrUnknownSaga):
		return refuse(http.StatusNotFound, desk.NotFound, err.Error())
	}
	h.log.WithError(err).Error("an instance could not be started by the console; its sender is told to send it again")
	return refuse(http.StatusServiceUnavailable, desk.Failed, "it may or may not be started: send it again, under the same work id")
}
