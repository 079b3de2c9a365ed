package webhook

import (
	"errors"
	"io"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// hold is what one delivery has of the memory that its source may use for bodies: what was read of
// it so far, and not what was announced. A sender that is slow, or never comes to an end, costs
// what he has sent.
type hold struct {
	memory *semaphore.Weighted
	bytes  int64
	users  atomic.Int32
}

func (s *source) hold() *hold {
	h := &hold{memory: s.memory}
	h.users.Store(1)
	return h
}

// share makes one more user of the delivery, who releases it, too.
func (h *hold) share() { h.users.Add(1) }

// release gives the memory back when the last user has done so.
func (h *hold) release() {
	if h.users.Add(-1) == 0 {
		h.memory.Release(h.bytes)
	}
}

// errFull ends the reading of a body when the source's memory is used up. No delivery waits for
// memory with a part of it in hand: all of them would wait for each other.
var errFull = errors.New("the memory for bodies is used up")

// firstRead is how much memory a body has before a byte of it has come.
const firstRead = 512

// readAll reads a body of at most limit bytes and takes memory for it as it comes, twice as much
// each time.
func (h *hold) readAll(r io.Reader, limit int64) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			size := min(max(2*int64(cap(body)), firstRead), limit+1) // one more, to be told that there is more
			if !h.memory.TryAcquire(size - int64(cap(body))) {
				return nil, errFull
			}
			h.bytes += size - int64(cap(body))
			body = append(make([]byte, 0, size), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, err
		}
	}
}
