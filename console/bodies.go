package console

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/amends-dev/amends/internal/desk"
)

// What a request may say, before and after it is known who asks.

const (
	// maxStranger is more than a form of a stranger or an answer to a callback has to say, and maxBody
	// than a request has of who is known.
	maxStranger = 64 << 10
	maxBody     = 1 << 20
	// ofStrangers and ofAll bound what all requests together have in hand.
	ofStrangers = 16 << 20
	ofAll       = 64 << 20
)

// errFull ends the reading of a body when others have what there is for bodies.
var errFull = errors.New("there is no room for the body now: send it again")

// room counts the bytes in hand, of those of whom it is not known who they are and of the others.
type room struct{ strangers, known atomic.Int64 }

// inHand is a body that takes room as it is read. What is slow, or never comes to an end, costs what it has sent.
type inHand struct {
	io.ReadCloser

	used        *atomic.Int64
	bytes, most int64
}

// Read leaves twice its own size free: however many large bodies come, there is room for a small one.
func (b *inHand) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.used.Add(int64(n)) > b.most-2*(b.bytes+int64(n)) {
		b.used.Add(-int64(n))
		return 0, errFull
	}
	b.bytes += int64(n)
	return n, err
}

// bound bounds the body of a request, in the one place where all of them come by. done gives back what it took.
func (h *handler) bound(w http.ResponseWriter, r *http.Request) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := r.Body
	b := &inHand{http.MaxBytesReader(w, body, maxStranger), &h.room.strangers, 0, ofStrangers}
	if r.Body = b; h.person(r).Name != "" && b.bytes == 0 { // Options.Who may look at the body, and is a stranger's until then
		b = &inHand{http.MaxBytesReader(w, body, maxBody), &h.room.known, 0, ofAll - ofStrangers}
		r.Body = b
	}
	return func() { b.used.Add(-b.bytes) }
}

// unread is why a body could not be read.
func unread(err error) *problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, desk.Misuse, "the body is larger than 64 KiB, or 1 MiB with a token")
	case errors.Is(err, errFull):
		return refuse(http.StatusServiceUnavailable, desk.Failed, err.Error())
	}
	return refuse(http.StatusBadRequest, desk.Misuse, "the body could not be read")
}
