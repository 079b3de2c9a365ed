// Package coordinator runs sagas over a ledger: it starts instances, goes on with what a process left
// behind, and tells how each ended.
//
//	db, err := store.Open(ctx, "ledger.db", nil)
//	…
//	c, err := coordinator.New(db, &coordinator.Options{
//		Destinations: map[string]coordinator.Limit{"books": {Concurrent: 8, PerSecond: 20}},
//	})
//	…
//	err = c.Register(ctx, orderToInvoice)
//	…
//	go func() { stopped <- c.Run(ctx) }()                        // until ctx ends
//	err = orderToInvoice.Start(ctx, c, "shop:order:10492", order) // once for the work id
//	s, err := c.Wait(ctx, "order-to-invoice", "shop:order:10492")
//
// An instance that was started runs to its end in whichever process has the definition, with or
// without its caller. Each decision is a record, which is durable before anything is sent.
//
// # Mistakes people make
//
//   - Nothing calls Run: starts are stored, and nothing follows.
//   - The process ends without the end of Run's context, as by os.Exit in a handler of SIGTERM: what
//     was being sent is in doubt then.
//   - A definition is no longer registered while instances of its version are under way: they wait.
//     Raise the version, and register both until amends list --saga NAME shows none of the old one.
//   - [ErrConflict] of a start is taken for a failure to try again. It says that the work id is known
//     with another input: start it with a newer Revision, or under another work id.
//   - A database is opened twice in one process. One handle serves coordinator, inbox, jobs and console.
//
// # More
//
// RULES.md beside this file says how it works: sessions and leases, what is in hand, the committer, what
// follows from each answer of the ledger, time, and a database that went back.
//
// # By hand
//
// What a person does is a signal with an actor and a reason, posted by an [Operator]: a resolution,
// a cancel, a pause, a resume, a retry, a skip. It speaks of the attempt that the person saw, and
// the process that holds the work notes it when that has moved on. What would only be noted as
// things stand is refused before it is stored, with what is safe instead.
//
// [Operator.Rerun] posts the version that a work has as a sub-revision of it: what was changed at a
// destination is written again, and what was undone or given up is run again.
//
// # Stopping
//
// When Run's context ends, nothing new is armed and every send gate is closed: an attempt that has
// not sent is recorded as not sent, and does not count as a try. Attempts that may have been sent
// are awaited. The session is then buried, so that others take over at once. A deploy leaves no
// review behind.
package coordinator
