// Package saga defines sagas: ordered steps, each an action, how it is safe to repeat, and how it
// is undone.
//
//	type Sync struct{ books *Books; shop *Shop; mail *Mail }
//
//	func (s *Sync) Saga() (*saga.Definition[Order], error) {
//		return saga.Define("order-to-invoice", 1,
//			saga.Do("customer", s.ensureCustomer).Idempotent().NoUndo("customers outlive their orders"),
//			saga.Do("invoice", s.createInvoice).Find(s.findInvoice).Update(s.updateInvoice).Undo(s.voidInvoice),
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
// # More
//
// RULES.md beside this file has the words, what each class guarantees and rests on, what happens after
// a kill, and when a step gives up. A work id, a revision and the names of sagas and steps stay in the
// ledger for ever, in the clear: put no datum of a person into them. Inputs and results are JSON there:
// where one is read into an untyped value, a number is a [json.Number].
package saga
