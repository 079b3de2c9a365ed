package webhook

import (
	"net/http"
	"time"
)

// Refusal says why a delivery was refused. Reasons are few and fixed, so they can label a counter.
type Refusal string

// The reasons.
const (
	UnknownSource  Refusal = "unknown_source"  // 404: no source of this name is open
	WrongMethod    Refusal = "wrong_method"    // 405: not a POST
	LargeHeader    Refusal = "large_header"    // 413: Options.MaxHeader
	LargeBody      Refusal = "large_body"      // 413: Sender.MaxBody, compressed or not
	SlowBody       Refusal = "slow_body"       // 408: the body did not come in time
	BrokenBody     Refusal = "broken_body"     // 408: the sender went away
	NoSignature    Refusal = "no_signature"    // 401
	BadSignature   Refusal = "bad_signature"   // 401: it cannot be read, or there are too many
	WrongSignature Refusal = "wrong_signature" // 401: no secret of the source made it
	TooOld         Refusal = "too_old"         // 401: genuine, and signed longer ago than the tolerance
	TooNew         Refusal = "too_new"         // 401: genuine, and signed further in the future than the tolerance
	Busy           Refusal = "busy"            // 503: over Sender.Concurrent, its memory, or Sender.PerSecond
	Closed         Refusal = "closed"          // 503: the source is Refusing
	NotStored      Refusal = "not_stored"      // 503: the inbox failed, or had no time
)

// Status is the answer to a delivery that is refused for the reason. Every one of them makes a
// sender try again, or tells it that its request was never meant for us; none disables a
// subscription for good.
func (r Refusal) Status() int {
	switch r {
	case UnknownSource:
		return http.StatusNotFound
	case WrongMethod:
		return http.StatusMethodNotAllowed
	case LargeHeader, LargeBody:
		return http.StatusRequestEntityTooLarge
	case SlowBody, BrokenBody:
		return http.StatusRequestTimeout
	case NoSignature, BadSignature, WrongSignature, TooOld, TooNew:
		return http.StatusUnauthorized
	case Busy, Closed, NotStored:
		return http.StatusServiceUnavailable
	}
	return http.StatusServiceUnavailable
}

// refusal is a reason with what only we may know.
type refusal struct {
	reason Refusal
	err    error         // of the inbox
	skew   time.Duration // of a genuine delivery that is out of time: how far its time is ahead of ours
}

func refuse(r Refusal) *refusal { return &refusal{reason: r} }
