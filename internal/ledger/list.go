package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Filter narrows a listing. Zero fields do not narrow.
type Filter struct {
	Saga       string
	Work       string // exact
	Prefix     string // of the work id
	Status     saga.Status
	Reason     saga.Reason
	WaitsFor   string // a destination: works that wait for it
	Step       string // works where it is at issue, see [AtIssue]
	ExternalID string // works that recorded this external id
	Tag        string // works that were started with this tag, name=value
	// Unconfirmed: works whose ledger was lost, and that adopted a step as done that may not have
	// happened.
	Unconfirmed bool

	// Left: works that have ended, are in no hands and have nothing unread, by what is left of them.
	Left Left

	// When a work was started, and when something was recorded that changed where it stands: from
	// since on, and before until.
	CreatedSince, CreatedUntil time.Time
	UpdatedSince, UpdatedUntil time.Time

	// Newest lists those first that were started last. Without it, and without what follows, the
	// order is that of starting. It is no promise between processes that start at the same time.
	Newest bool
	// ByWork lists in the order of work ids, by bytes, those behind AfterWork. So does Work, and so
	// does Prefix. What compares a ledger with other listings reads it so. Newest has no part in
	// it.
	ByWork    bool
	AfterWork string

	After string // the Next of the page before
	Limit int    // 0: 100
}

// Page is a part of a listing.
type Page struct {
	Instances []Instance
	Next      string // the cursor of the next page; empty on the last one
	// Looked is set when the page ended because enough was looked at: when the last work was
	// started that was. Next goes on behind it.
	Looked time.Time
}

// First returns the first f.Limit heads of a listing, however many pages that takes.
func First(ctx context.Context, l interface {
	List(ctx context.Context, f Filter) (Page, error)
}, f Filter,
) ([]Instance, error) {
	f.Limit = f.PageSize()
	var heads []Instance
	for wanted := f.Limit; ; f.Limit = wanted - len(heads) {
		p, err := l.List(ctx, f)
		heads = append(heads, p.Instances...)
		if f.After = p.Next; err != nil || p.Next == "" || len(heads) >= wanted {
			return heads, err
		}
	}
}

// PageSize is how many heads a page has at most.
func (f Filter) PageSize() int { return cmp.Or(max(f.Limit, 0), 100) }

// InOrderOfWork reports whether the listing is in the order of work ids.
func (f Filter) InOrderOfWork() bool { return f.ByWork || f.Work != "" || f.Prefix != "" }

// Position is where a listing stands: at a number, or at a work. The zero value is its beginning.
type Position struct {
	Number int64
	ID     saga.ID
}

// cursorVersion is the first byte of every cursor. What a cursor says is the ledger's own business.
const cursorVersion = "1"

// Behind is the cursor with which f goes on behind p.
func (f Filter) Behind(p Position) string {
	b := f.digest()
	if f.InOrderOfWork() {
		b = append(append(append(b, p.ID.Saga...), 0), p.ID.Work...)
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Number))
	}
	return cursorVersion + base64.RawURLEncoding.EncodeToString(b)
}

// Position is where f goes on. A cursor of another listing, or one that is none, matches
// [ErrCursor].
func (f Filter) Position() (p Position, err error) {
	if f.After == "" {
		return p, nil
	}
	version, text := f.After[:1], f.After[1:]
	b, err := base64.RawURLEncoding.DecodeString(text)
	own := f.digest()
	switch {
	case version != cursorVersion || err != nil || len(b) < len(own):
		return p, fmt.Errorf("%w: %q is no cursor of this program; list again from the beginning", ErrCursor, f.After)
	case !bytes.Equal(b[:len(own)], own):
		return p, fmt.Errorf("%w: the cursor %q belongs to a listing with other filters; go on with those, or list again from the beginning", ErrCursor, f.After)
	}
	b = b[len(own):]
	if name, work, found := bytes.Cut(b, []byte{0}); f.InOrderOfWork() && found {
		return Position{ID: saga.ID{Saga: string(name), Work: string(work)}}, nil
	}
	if !f.InOrderOfWork() && len(b) == 8 {
		return Position{Number: int64(binary.BigEndian.Uint64(b))}, nil
	}
	return p, fmt.Errorf("%w: the cursor %q is damaged; list again from the beginning", ErrCursor, f.After)
}

// digest names what f selects, and in which order.
func (f Filter) digest() []byte {
	b := fmt.Appendf(nil, "%q %t", []string{
		f.Saga, f.Work, f.Prefix, string(f.Status), string(f.Reason), f.WaitsFor, f.Step, f.ExternalID, f.Tag, f.AfterWork, string(f.Left),
	}, []bool{f.Unconfirmed, f.Newest, f.ByWork})
	for _, t := range []time.Time{f.CreatedSince, f.CreatedUntil, f.UpdatedSince, f.UpdatedUntil} {
		b = fmt.Appendf(b, " %d", t.UnixMicro())
	}
	sum := sha256.Sum256(b)
	return sum[:6]
}
