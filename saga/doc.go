// Package saga defines sagas: ordered steps, each an action, how it is safe to repeat, and how it
// is undone.
//
//	type Sync struct{ books *Books; shop *Shop; mail *Mail }
//
//	func (s *Sync) Saga() (*saga.Definition[Order], error) {
//		return saga.Define("order-to-invoice", 1,
//			saga.Do("customer", s.ensureCustomer).Idempotent().NoUndo("customers outlive their orders"),
//			saga.Do("invoice", s.createInvoice).Find(s.findInvoice).Undo(s.voidInvoice),
//			saga.Do("mark-synced", s.markSynced).Idempotent().NoID().UndoMaybe(s.clearSynced).Pivot(),
//			saga.Do("receipt", s.sendReceipt).AtMostOnce().NoUndo("the shop tells the customer that the order is cancelled"),
//		)
//	}
//
//	func (s *Sync) createInvoice(ctx context.Context, c saga.Call[Order]) (Invoice, error) {
//		return s.books.Create(ctx, c.Key, Draft{Customer: c.ExternalID("customer"), Reference: c.Work, Lines: c.Input.Lines})
//	}
//
// An order that is cancelled in the meantime makes mark-synced refuse, and the invoice is voided. A
// bounced e-mail stands behind the pivot and never voids an invoice. A definition is a list of
// values: it can be validated, stored and compared. Nothing is replayed, so an action may be any Go
// code. Package coordinator runs definitions; package sagahttp is the HTTP client for actions.
//
// # Three mistakes
//
//   - Sending without c.Key, or with another body on the next attempt. The destination recognizes a
//     repetition by its key.
//   - A lookup ([Action.Find]) that counts what was voided, or that reads from a replica or a
//     search index which lags more than [Action.Settle]. What it does not see is made a second
//     time.
//   - Returning [Permanent] for a timeout. Unknown is not refused: leave such an error as it is,
//     and the step's class decides.
//
// # The words
//
//   - A saga is a named, versioned [Definition]: an ordered list of steps.
//   - An instance is one unit of work, named by saga and work id: order-to-invoice shop:order:10492
//     ([ID]).
//     A work id, a revision and the names of sagas and steps stay in the ledger for ever, in the clear:
//     put no name, address or other datum of a person into them. What else may hold one (inputs,
//     results, external ids, errors, people's words) is on record so that it can be erased.
//   - An attempt is one try of one step in one direction. It is dispatched by a record in the
//     ledger, before it is made.
//   - A key is the idempotency key of a step's effect. It is the same for every attempt.
//   - An external id is what the destination calls the thing that a step made.
//   - A step is in doubt when an attempt was dispatched and its outcome is not on record.
//   - The pivot is the point of no return: the step after which the only ways are forward or a
//     person.
//   - A revision is a version of the source object. A newer one runs the instance again, under new
//     keys.
//   - An instance in review waits for a person, for a [Reason].
//
// # Numbers
//
// Inputs and results are JSON in the ledger. Where one is read into an untyped value (any, a
// map[string]any, a field of such a type) a number is a [json.Number], which has the digits that were
// written: as a float64, order 9007199254740993 would be 9007199254740992, and another order. A float64
// that was put in comes out as a json.Number, too. Two inputs of which untyped numbers are equal
// (105 and 105.0) are the same input.
//
// # How a step is safe to repeat
//
//	said as              means                                           crash between effect and record       guarantee
//	.Idempotent()        upsert, PUT, natural id: repeating changes      repeat                                effectively once
//	                     nothing
//	.Keyed(24*time.Hour) destination remembers our key that long         resend, same key, inside the window;  effectively once in the window
//	                                                                     then as Find or review
//	.Find(fn)            destination can be asked for our reference      settle, ask, adopt, resume or redo    once, under stated timing; else a
//	                                                                                                           duplicate the audit finds
//	.AtMostOnce()        the outcome of a lost attempt is unknown        look for evidence, else review        at most once, never twice unasked
//
// What the guarantees rest on:
//
//	step says    guarantee                                                            rests on
//	Idempotent   effectively once, permanently                                        the destination's own identity for the object
//	Keyed(ttl)   effectively once while now < first dispatch + ttl − margin;          the destination's dedupe of that key
//	             then as Find if there is one, else review
//	Find         once under A1–A3; otherwise a duplicate the audit finds              A1–A3
//	AtMostOnce   never twice without a person saying so                               nothing: the price is a review now and then
//
// The assumptions:
//
//   - A1: a request's first byte leaves before its recorded deadline, and before the lease of its
//     process is over, or never; and no answer is awaited past that.
//   - A2: a request that was not answered takes effect within [Action.Settle] of when it is no longer
//     awaited, or never. That is its deadline, and where its process died before, when that is
//     proven: by the end of its lease, or by the lock that it held.
//   - A3: a lookup made later than that sees the effect. So the settle time covers both: how late a
//     request may arrive, and how long the destination takes to show what it did.
//   - A4: decisions are made on what the primary database says, never on a replica's word.
//   - A5: clocks run at the same rate; that they agree is not assumed. "Settled?" is asked of the
//     earliest time that it may be at the database, "expired?" of the latest.
//
// Two things cannot be had: exactly once at a destination with neither key nor lookup, and exactly
// once against a process that wakes up after its lease and still talks to an unkeyed destination.
//
// # After a kill
//
// What a process had under way when it died goes on in another, when its end is proven: at once
// where one that starts on the same host finds its lock free (a SQLite ledger; one on Postgres by
// [github.com/amends-dev/amends/store/postgres.Options].LockDir), else when its lease is over, 15
// seconds after its last renewal.
// From then on it takes, at the defaults:
//
//	a step that is            goes on after   because
//	not sent yet              nothing         nothing left
//	Idempotent, Keyed         nothing         a repetition is harmless beside a late twin of itself; but what was sent
//	                                          less than 2 seconds before the end may still be answered, and is given them
//	Find                      30 seconds      a lookup before Settle would miss what is still on its way
//	AtMostOnce                review, or      a person looks
//	                          30 s with Find
//	to be undone, or updated  30 seconds      a late twin would outlive its undo, or overwrite what is newer
//	by a newer revision
//
// The lease is 15 seconds because less would be lost by a hiccup (a database that fails over, a
// machine that swaps), and every loss costs what is under way: nothing is awaited past it, so that
// each AtMostOnce step in flight goes to review. More would have the works of a dead process wait
// for it. Timeout and Settle are the destination's: how long it may take to answer, and how late
// what it did not answer may still arrive. Half a minute each is what gateways and load balancers
// commonly allow; say less where you know your destination, for Settle is what a Find step waits
// after each doubt.
//
// # Retries and giving up
//
// An error of an action says what is known of the effect, and nothing else: [NotSent], [Permanent],
// or unknown. When to try again is the step's [Retry]. A step whose policy is used up goes to
// review; it turns the saga only where it says Retry.Compensate. An outage of a destination spends
// no attempts. The numbered rules of what follows from what are in internal/machine/RULES.md, with
// a checked model beside them.
package saga
