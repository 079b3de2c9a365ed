package webhook

import (
	"net/http"
	"time"
)

// Reason says why a delivery was refused. Reasons are few and fixed, so they can label a counter.
type Reason string

// The reasons.
const (
	UnknownSource  Reason = "unknown_source"  // 404: no source of this name is open
	WrongMethod    Reason = "wrong_method"    // 405: not a POST
	LargeHeader    Reason = "large_header"    // 413: Options.MaxHeader
	LargeBody      Reason = "large_body"      // 413: Sender.MaxBody, compressed or not
	SlowBody       Reason = "slow_body"       // 408: the body did not come in time
	BrokenBody     Reason = "broken_body"     // 408: the sender went away
	NoSignature    Reason = "no_signature"    // 401
	BadSignature   Reason = "bad_signature"   // 401: it cannot be read, or there are too many
	WrongSignature Reason = "wrong_signature" // 401: no secret of the source made it
	TooOld         Reason = "too_old"         // 401: genuine, and signed longer ago than the tolerance
	TooNew         Reason = "too_new"         // 401: genuine, and signed further in the future than the tolerance
	Busy           Reason = "busy"            // 503: over Sender.Concurrent, its memory, or Sender.PerSecond
	Closed         Reason = "closed"          // 503: the source is Refusing
	NotStored      Reason = "not_stored"      // 503: the inbox failed, or had no time
)

// Status is the answer to a delivery that is refused for the reason. Every one of them makes a sender try
// again, or tells it that its request was never meant for us; none disables a subscription for good.
func (r Reason) Status() int {
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
	reason Reason
	err    error         // of the inbox
	skew   time.Duration // of a genuine delivery that is out of time: how far its time is ahead of ours
}

func refuse(r Reason) *refusal { return &refusal{reason: r} }
