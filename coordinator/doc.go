// Package coordinator runs sagas over a ledger.
//
// A [Coordinator] is a shell around the machine of package saga. The machine decides; the coordinator makes
// the decision durable and only then acts on it. Nothing here knows a rule of the protocol: what follows from a
// timeout, when a lookup counts, what is undone in which order, all that is in saga and is tested there.
//
// # What one process is
//
// [Coordinator.Run] opens a session: a lease on the ledger under a random token, renewed three times in its
// span. Everything the process arms is judged by that lease, in the database, in the statement that arms it.
// The process itself stops trusting the lease a margin before its end, counted from before the renewal was
// sent, on its own monotonic clock. When the lease is gone it arms nothing, still records what its attempts
// bring back, and opens a new session.
//
// # What one work is
//
// A work in hand is one goroutine. It asks the machine, has the record appended, carries out the one command
// that follows, and asks again:
//
//	act    run the attempt just armed, behind its send gate and until its deadline
//	look   ask the destination whether a step in doubt happened
//	slot   wait for a send slot of the step's destination: rate, concurrency, a Retry-After
//	wait   sleep until a ledger time; for longer than Options.Hold the work goes back into the ledger
//	rest   let go: the work is parked or has ended
//
// New works run in the process that started them. Due works, and works whose process died, are claimed in
// batches by whoever has room.
//
// # The committer
//
// Works hand their records to a committer, which writes whatever is waiting as one batch in one transaction.
// There is no timer. A work alone commits by itself; a thousand in flight share a few commits. Starts have a
// lane of their own, because a caller's open transaction on the same key may hold them up.
//
// # The answers of the ledger, and what follows
//
//	appended, mine   fold the record, do the command
//	stale            load the chain, feed what was learned to the machine again; if its attempt is closed by
//	                 then, post it as a signal
//	no-lease         append the same learning without the arm; the session is lost
//	missing          the database went back: the session is void, a success is posted as a signal
//	exists           the start is a duplicate and is answered from the ledger
//	invalid          record what was learned without its body
//	an error         nothing is known: append the very same record again, and decide nothing meanwhile
//
// # News of the source
//
// [Coordinator.Start] with a newer revision of a known work posts a signal, and so does [Coordinator.Withdraw]: the holder
// consumes it, also behind the work's end. Whether the input says anything new is asked of the definition's identity
// when the signal is consumed, against what the work has heard by then. A revision may take the newest version
// of the definition; the work's goroutine changes its program with the record that begins it.
//
// # Once more
//
// [Coordinator.Again] posts the version that a completed work has as a sub-revision of it: what somebody changed at a
// destination is written again.
//
// # A ledger that was lost
//
// [Coordinator.Adopt] appends, for many works at a time, what stands of them. It needs no session and nobody's room: the
// records arm nothing, and say that nobody wrote them, so that the same adoption is the same chain whoever makes it. A
// work is paused from its first to its last record, and no process takes it meanwhile, whatever is posted to it.
//
// # A database that went back
//
// A chain that the ledger marks as written before the database became another one is taken up with that as its first
// event, and with whether a signal of that time is unread. Successes of attempts that were forgotten are posted as late
// answers, with the key they were sent under.
//
// # Time
//
// Events carry ledger time: the database's clock at its last answer plus the time gone by since, as a lower
// and an upper bound. This machine's time of day decides nothing.
//
// # Stopping
//
// When Run's context ends, nothing new is armed and every send gate is closed: an attempt that has not sent
// is recorded as not sent, and does not count as a try. Attempts that may have been sent are awaited. The
// session is then buried, so that others take over at once. A deploy leaves no review behind.
package coordinator
