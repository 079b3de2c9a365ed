package ledger

import (
	"context"
	"time"
)

// Requests are what was asked under a key of the asker's own, each kept for [RequestsKept]: the same again is answered, not done.
type Requests interface {
	// Request keeps r if nothing is kept under its key, and returns what is: with r's Nonce it is r, and the caller does what it
	// asks for; with another it came before. The same call again returns the same.
	Request(ctx context.Context, r Request) (Request, error)

	// Answer keeps what the request with that key and nonce was answered with. Nil frees the key: nothing was done. One that is
	// not kept any more is no error.
	Answer(ctx context.Context, key string, nonce int64, answer []byte) error
}

// RequestsKept is how long a request is kept.
const RequestsKept = 24 * time.Hour

// Request is something that was asked for under a key.
type Request struct {
	Key    string    // a digest of who asks, and of what that one calls it
	Nonce  int64     // drawn by who asks: it tells the own request from one that came before
	Asks   string    // a digest of what is asked for
	At     time.Time // when it came, by the ledger's clock
	Answer []byte    // nil: there is none yet, and it may have been done or not
}
