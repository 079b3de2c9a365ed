// Package outside is the outside world of the examples and their tests: a [Shop], its [Books] and a
// [Mailbox], each an HTTP server over maps, as unhelpful as the real ones are, and the people who use
// them.
//
// # The shop
//
//	GET    /orders?status=paid&synced=no&after=CURSOR&limit=N   a Page, oldest first
//	GET    /orders?changedSince=TIME&after=CURSOR&limit=N       a Page, by (updatedAt, id)
//	GET    /orders?createdFrom=TIME&createdTo=TIME&...          a Page, oldest first, with the total
//	GET    /orders/{id}                                         an Order
//	DELETE /orders/{id}                                         204; repeating it is a 404
//	PUT    /orders/{id}/synced   Mark                           an Order; repeating it changes nothing
//	DELETE /orders/{id}/synced                                  204, also when there is no mark
//
// The parameters that choose orders can be combined. A page has 100 orders unless limit is set, and
// 500 at most. CreatedFrom is inclusive and createdTo is not. The shop's times are whole seconds, so
// several orders share an updatedAt; changedSince is inclusive, and an order that changes while a
// client pages moves to the end of that list. A deleted order is as if it had never been: only its
// webhook tells. An order can be edited, cancelled or deleted while a client is working on it and
// after the client marked it, and the mark moves its version and updatedAt as any other change does.
//
// # The books
//
//	PUT  /customers/{ref}      Contact   a Customer; found by our reference or made
//	POST /invoices             Draft     an Invoice
//	GET  /invoices?reference=            a List, oldest first; of all without a reference
//	GET  /invoices?mark=&after=&limit=   a List, oldest first: whose reference begins so
//	GET  /invoices/{id}                  an Invoice
//	PUT  /invoices/{id}        Update    an Invoice; repeating it changes nothing
//	POST /invoices/{id}/void             an Invoice; repeating it changes nothing
//
// The reference is a text on an invoice: a second POST with the same one makes a second invoice, and
// an Idempotency-Key is not looked at unless Keys is set. A void invoice keeps its number and its
// reference, so a lookup still finds it, but it cannot be updated. A list may be behind: an invoice
// can stay out of it for a while after it was made, and show its old content for a while after it
// was updated. People write notes on invoices, change what the API made, post an invoice, which
// closes it, or delete one for good.
//
// # The mailbox
//
//	POST /mails   Letter   a Message
//
// What is accepted twice is there twice, even under one id, and nothing can be looked up: only a
// person who opens the mailbox knows whether a letter arrived.
//
// # Faults
//
// [Faults] makes honest servers misbehave. Which request meets which fault is a pure function of a
// seed, the request's key and how often that key has arrived: two programs that ask the same things
// meet the same faults, in whatever order and however often they are killed. From the arrival after
// Patience on a key is served honestly, so that any run ends.
//
//	too-many       not executed, told so: 429, with Retry-After
//	busy           not executed, told so: 429, without
//	error-before   502, and nothing happened
//	cut-before     the connection is reset, and nothing happened
//	slow           it happens a moment later, then the answer comes
//	error-after    it happened, but the answer is 502
//	cut-after      it happened, but the connection is reset
//	silent         it happened, but the answer comes only after the caller's deadline
//
// The caller cannot tell error-before from error-after, nor cut-before from cut-after: that is the
// point. Lookups can be late as well, likelier when the answer was lost, which is when they are made.
//
// Everything reads the clock of package time, and so runs in the virtual time of a test, too.
package outside
