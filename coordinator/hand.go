package coordinator

import (
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// hand is the works that this process has in hand. They are bounded in number and in bytes. When
// the ledger has more than there is room for, new starts hold no more than a share of the places:
// what is beyond it is stored, and claimed in its turn.
type hand struct {
	maxWorks int
	maxBytes int64
	wake     func() // there is room for what the last claim had to leave

	mu      sync.Mutex
	works   map[saga.ID]*work
	bytes   int64   // of their chains' bodies
	started int     // of them, those that were started here
	coming  []int64 // the ledger's numbers of those that were claimed and are being loaded
	cut     bool    // the last claim was cut by the room there was
	closed  bool    // nothing is taken any more
	running sync.WaitGroup
}

func newHand(o *Options, wake func()) *hand {
	return &hand{maxWorks: o.MaxWorks, maxBytes: o.MaxBytes, wake: wake, works: map[saga.ID]*work{}}
}

// share is how many places starts hold while the ledger has more works than there is room for.
func (h *hand) share() int { return max(1, h.maxWorks/4) }

// start takes a work in hand that is being started here, if there is room.
func (h *hand) start(w *work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := len(h.works) >= h.maxWorks || h.bytes+w.bytes > h.maxBytes && len(h.works) > 0
	if h.closed || full || h.works[w.id] != nil || h.cut && h.started >= h.share() {
		return false
	}
	w.startedHere = true
	h.started++
	h.put(w)
	return true
}

// take takes a claimed work in hand. The ledger has given it to us, so room is not asked for.
func (h *hand) take(w *work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.works[w.id] != nil {
		return false
	}
	h.put(w)
	return true
}

func (h *hand) put(w *work) {
	h.works[w.id] = w
	h.bytes += w.bytes
	h.running.Add(1)
}

// letGo is called when a work's goroutine ends. leave tells who has to know before the work can be
// taken in hand again. It reports false when a claim has given the work meanwhile: it stays.
func (h *hand) letGo(w *work, leave func()) bool {
	h.mu.Lock()
	if w.given {
		w.given = false
		h.mu.Unlock()
		return false
	}
	leave()
	delete(h.works, w.id)
	h.bytes -= w.bytes
	if w.startedHere {
		h.started--
	}
	wake := h.cut && h.free() >= min(claimBatch, max(1, h.maxWorks/8))
	h.mu.Unlock()
	h.running.Done()
	if wake {
		h.wake()
	}
	return true
}

// grew counts what a work in hand has learned, and the number it has in the ledger.
func (h *hand) grew(w *work, bytes int) {
	if bytes == 0 && w.number == w.head {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w.number = w.head
	w.bytes += int64(bytes)
	if h.works[w.id] == w {
		h.bytes += int64(bytes)
	}
}

// room is how many works the next claim may take.
func (h *hand) room() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(claimBatch, h.free())
}

// free is how many more works there is room for, should each be as large as an input can be. A work
// that is larger than there is room for altogether is taken alone.
func (h *hand) free() int {
	large := int((h.maxBytes - h.bytes) / program.MaxInput)
	if len(h.works) == 0 {
		large = max(1, large)
	}
	return max(0, min(h.maxWorks-len(h.works), large))
}

// crowded reports whether the ledger has works for which there is no room.
func (h *hand) crowded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut || h.free() == 0
}

// roomy reports whether there is room for works that only may be spoken to soon.
func (h *hand) roomy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.cut && len(h.works) < h.share() && h.bytes < h.maxBytes/4
}

// claimed notes whether a claim of so many works got as many as there was room for, and fewer than
// it would take.
func (h *hand) claimed(limit, got int) {
	h.mu.Lock()
	h.cut = limit < claimBatch && got >= limit
	h.mu.Unlock()
}

// given returns the work in hand that a claim of s has given, and keeps it from leaving before it has looked whether it is ours again.
func (h *hand) given(id saga.ID, s *session) *work {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.works[id]
	if w != nil && w.s == s {
		w.given = true
	}
	return w
}

// looks notes that a work is about to look at what claims have given so far.
func (h *hand) looks(w *work) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.given = false
}

func (h *hand) holding(id saga.ID) *work {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.works[id]
}

// numbers are the ledger's numbers of the works in hand, and of those that are being loaded.
func (h *hand) numbers() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	numbers := make([]int64, 0, len(h.works)+len(h.coming))
	for _, w := range h.works {
		if w.number != 0 {
			numbers = append(numbers, w.number)
		}
	}
	return append(numbers, h.coming...)
}

// expect notes which claimed works are being loaded.
func (h *hand) expect(heads []ledger.Instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.coming = h.coming[:0]
	for i := range heads {
		h.coming = append(h.coming, heads[i].Number)
	}
}

func (h *hand) all() []*work {
	h.mu.Lock()
	defer h.mu.Unlock()
	ws := make([]*work, 0, len(h.works))
	for _, w := range h.works {
		ws = append(ws, w)
	}
	return ws
}

// close lets nothing new in: a work that is taken in hand was taken before, or is not.
func (h *hand) close(closing func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	closing()
}
