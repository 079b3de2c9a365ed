package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
)

// A turn's budget is spent in this order: reading the body, waiting for a place, storing.
const (
	readShare  = 0.7
	enterShare = 0.85
	storeShare = 1.0
)

// turn is the time that one delivery has.
type turn struct {
	began time.Time
	whole time.Duration
	w     http.ResponseWriter
	conn  *http.ResponseController
}

// begin starts a turn. The deadline for the body holds from here on, also for what net/http reads
// of a body that was refused.
func (r *Receiver) begin(w http.ResponseWriter) *turn {
	t := &turn{began: time.Now(), whole: r.opts.Budget, w: w, conn: http.NewResponseController(w)}
	if err := t.conn.SetReadDeadline(t.until(readShare)); errors.Is(err, http.ErrNotSupported) {
		r.log.noDeadline()
	}
	return t
}

// until is when a share of the budget is spent.
func (t *turn) until(share float64) time.Time {
	return t.began.Add(time.Duration(float64(t.whole) * share))
}

// budget is what is left of a share.
func (t *turn) budget(share float64) time.Duration { return time.Until(t.until(share)) }

// read returns the whole body, if it is no longer than limit, comes in time, and there is memory
// for it.
func (t *turn) read(req *http.Request, limit int64, h *hold) ([]byte, *refusal) {
	body, err := h.readAll(http.MaxBytesReader(t.w, req.Body, limit), limit)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		// The connection is watched while we store; that must not end the request.
		_ = t.conn.SetReadDeadline(time.Time{})
		return body, nil
	case errors.As(err, &large):
		return nil, refuse(LargeBody)
	case errors.Is(err, errFull):
		return nil, refuse(Busy)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(SlowBody)
	default:
		return nil, refuse(BrokenBody)
	}
}

// store hands events to the inbox and waits for it, at most until the turn is over. The sender's
// hanging up does not end it: what is stored now is answered when the sender comes again. An inbox
// that overstays keeps its place and the memory of the delivery until it returns, so that such
// calls do not pile up.
func (r *Receiver) store(parent context.Context, t *turn, s *source, h *hold, events []intake.Event) error {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(parent), t.until(storeShare))
	select {
	case s.storing <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return errors.New("earlier deliveries are still being stored")
	}
	done := make(chan error, 1)
	h.share()
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("the inbox panicked: %v", p)
			}
			<-s.storing
			h.release()
			cancel()
		}()
		done <- r.inbox.Accept(ctx, events)
	}()
	<-ctx.Done()
	select {
	case err := <-done: // it is done, and so is the context
		return err
	default:
		return ctx.Err()
	}
}

var errTooLarge = errors.New("the body is too large when it is unpacked")

// unpack returns a body that was verified as it was sent without its content encoding, if that is no
// longer than limit and there is memory for it. It stops one byte behind the limit, whatever would
// come: a bomb does not unfold.
func unpack(header http.Header, body []byte, limit int64, h *hold) ([]byte, error) {
	if len(header["Content-Encoding"]) == 0 {
		return body, nil
	}
	plain, err := reading.Plain(header, bytes.NewReader(body))
	if err != nil {
		return body, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	unpacked, err := h.readAll(io.LimitReader(plain, limit+1), limit)
	switch {
	case int64(len(unpacked)) > limit:
		return nil, errTooLarge
	case err != nil:
		return body, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	return unpacked, nil
}

func headerSize(h http.Header) int {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}
