package webhook

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// room is what a source may use for bodies. Those that proved nothing yet have a share of it, and
// each of them leaves twice its own size free there: however many large ones come, and however
// slowly, there is room for a small one.
type room struct {
	mu       sync.Mutex
	free     int64 // of all
	unproven int64 // of the share: what is free
}

// newRoom is for so many bodies of one size, at least four of them: three on their way, so that
// the largest fits while others come, and one unpacked.
func newRoom(bodies int, size int64) *room {
	bodies = max(4, bodies)
	return &room{free: int64(bodies) * size, unproven: max(int64(bodies)/2, 3) * size}
}

// grow takes n more for a body that has size with them, and reports whether there was room.
func (m *room) grow(n, size int64, proved bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.free || !proved && m.unproven-n < 2*size {
		return false
	}
	m.free -= n
	if !proved {
		m.unproven -= n
	}
	return true
}

// give gives back, to all, what was taken, and to the share what proved nothing until then.
func (m *room) give(all, unproven int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += all
	m.unproven += unproven
}

// hold is what one delivery has of the memory that its source may use for bodies: what was read of
// it so far, and not what was announced. A sender that is slow, or never comes to an end, costs
// what he has sent.
type hold struct {
	memory *room
	bytes  int64
	proved bool
	users  atomic.Int32
}

func (s *source) hold() *hold {
	h := &hold{memory: s.memory}
	h.users.Store(1)
	return h
}

// share makes one more user of the delivery, who releases it, too.
func (h *hold) share() { h.users.Add(1) }

// prove moves what the delivery has out of the share of those that proved nothing.
func (h *hold) prove() {
	h.memory.give(0, h.bytes)
	h.proved = true
}

// release gives the memory back when the last user has done so.
func (h *hold) release() {
	switch {
	case h.users.Add(-1) > 0:
	case h.proved:
		h.memory.give(h.bytes, 0)
	default:
		h.memory.give(h.bytes, h.bytes)
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
			more := size - int64(cap(body))
			if !h.memory.grow(more, size, h.proved) {
				return nil, errFull
			}
			h.bytes += more
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
