// Package faults makes honest servers misbehave the way real ones do.
//
// # The plan
//
// Which request meets which fault is not chance but a Plan: a pure function of
// a seed, the request's key and how often that key has arrived. The key is the
// business name of the request (the order it is about), not its address in
// time. So two programs that ask the same things meet the same faults, in
// whatever order and however often they are killed and restarted.
//
// The rate is the share of arrivals that meet a fault. From the arrival after
// Patience on a key is served honestly, so that any run ends, even at rate 1.
//
// # The faults
//
//	too-many       not executed, told so: HTTP 429 with Retry-After, SMTP 451
//	error-before   HTTP 502, and nothing happened
//	cut-before     the connection is reset, and nothing happened
//	slow           it happens a moment later, then the answer comes
//	error-after    it happened, but the answer is HTTP 502
//	cut-after      it happened, but the connection is reset
//	silent         it happened, but the answer comes only after the caller's
//	               deadline, or never when the caller leaves before
//
// The caller cannot tell error-before from error-after, nor cut-before from
// cut-after: that is the point. A cut is a real reset of the TCP connection.
//
// Lookups can be late as well: Hidden says for how long what a request made
// stays out of them. That is likelier when the answer was lost, which is when
// lookups are made.
//
// # Timing
//
// A caller of these servers needs a deadline below Timing.Silent, and may
// believe a lookup once Timing.Settled has passed since that deadline.
package faults
