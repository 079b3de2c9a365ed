// Package coordinator runs sagas over a ledger.
//
// A [Coordinator] is a shell around the machine of package saga. The machine decides; the
// coordinator makes the decision durable and only then acts on it. Nothing here knows a rule of the
// protocol: what follows from a timeout, when a lookup counts, what is undone in which order, all
// that is in saga and is tested there.
//
// # What one process is
//
// [Coordinator.Run] opens a session: a lease on the ledger under a random token, renewed three
// times in its span. Everything the process arms is judged by that lease, in the database, in the
// statement that arms it. The process itself stops trusting the lease a margin before its end,
// counted from before the renewal was sent, on its own monotonic clock; and earlier when the time
// of day says that the machine was suspended. When the lease is gone it arms nothing, still records
// what its attempts bring back, and opens a new session.
//
// The lease is renewed only while the ledger answers: when a record, a claim, the load of a chain
// or a return has had no answer for longer than a lease, the session is let go, so that other
// processes take its works over. Every call has a time-out of its own, also one that does not heed
// its context.
//
// At each renewal the process says which definitions it knows and which works it has in hand. What
// two renewals in a row name as its own on record, and it has not, is given back: an answer was
// lost, or a record landed late.
//
// # What one work is
//
// A work in hand is one goroutine. It asks the machine, has the record appended, carries out the
// one command that follows, and asks again:
//
//	act    run the attempt just armed, behind its send gate and until its deadline
//	look   ask the destination whether a step in doubt happened
//	slot   wait for a send slot of the step's destination: rate, concurrency, a 429 or 503
//	wait   sleep until a ledger time
//	rest   let go: the work is parked, has ended, or goes on in a process that knows its new definition
//
// A record that its own fold refuses is not sent: it counts as one that the ledger calls invalid.
//
// # What is in hand
//
// New works run in the process that started them. Due works, and works whose process died, are
// claimed in batches: what is being undone first, then what has begun, then new ones, for which a
// quarter of the places is kept. A process claims what it knows the definition of, and nothing
// else. When a claim took all the room there was, the next follows as soon as there is some, and
// starts beyond a quarter of the places are stored due.
//
// What is in hand is bounded in number and in bytes, and so are the starts that wait for the
// ledger's answer: further ones are refused with [ErrBusy]. What was not sent yet is withdrawn when
// its caller goes.
//
// Works that want a destination stand in its line: what never failed there before, and of that what
// is being undone, then what is furthest along, then what came first. The head of the line gets the
// slot; waiting reserves nothing. A work that would have to wait for longer than Options.Hold, for a
// destination or for a time, goes back into the ledger, where it takes no place in hand: until then,
// or until a process has room in its line for the destination.
//
// A limit of a destination is shared by all processes of the ledger: each has parts of it, kept in
// the ledger, and who has none gives what wants the destination back, for those that have.
//
// A destination that asks to be left alone (429, 503), or that serves none of those that never
// failed there before, is left alone by every process: its state is kept in the ledger. What wants
// it waits there, however long, and spends neither attempts nor a key's window; one attempt at a
// time finds out when it is back, and then more and more go there. Every step has a destination: the
// one that it names with To, which it shares with others, or one of its own.
//
// What fails again and again where others are served is at fault itself. It stands behind those that
// never failed there, in a line of its own ([RetryPrefix]), and one send in ten is kept for it.
//
// # The committer
//
// Works hand their records to a committer, which writes whatever is waiting as one batch in one
// transaction. There is no timer. A work alone commits by itself; a thousand in flight share a few
// commits. Starts have a lane of their own, because a caller's open transaction on the same key may
// hold them up; those that are held up have another. A batch that takes too long goes on in halves.
//
// # The answers of the ledger, and what follows
//
//	appended, mine   fold the record, do the command
//	stale            load the chain, feed what was learned to the machine again; if its attempt is closed by
//	                 then, post it as a signal
//	no-lease         append the same learning without the arm; the session is lost
//	missing          the database went back: the session is void, a success is posted as a signal
//	exists           the start is a duplicate and is answered from the ledger
//	blocked          append the very same record again, after a pause that grows
//	invalid          decide again without what others gave the event, then without the event
//	an error         nothing is known: append the very same record again, and decide nothing meanwhile
//
// # News of the source
//
// [Coordinator.Start] with a newer revision of a known work posts a signal, and so does
// [Coordinator.Withdraw]: the holder consumes it, also behind the work's end. Whether the input
// says anything new is asked of the definition's identity when the signal is consumed, against what
// the work has heard by then. A revision takes the newest version of the definition that is known
// to the process which begins it; one that does not know the version it has to take hands the work
// on, due now.
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
// # A ledger that was lost
//
// [Coordinator.Adopt] appends, for many works at a time, what stands of them. It needs no session
// and no room: the records arm nothing, and name no session, so that the same adoption is the same
// chain whichever process makes it. A work is adopting from its first to its last record, and no
// process takes it meanwhile, whatever is posted to it.
//
// # A database that went back
//
// A chain that the ledger marks as written before the database became another one is taken up with
// that as its first event, and with whether a signal of that time is unread. Successes of attempts
// that were forgotten are posted as late answers, with the key they were sent under.
//
// # Time
//
// Events carry ledger time: the database's clock at its last answer to a lease or a load plus the
// time gone by since, as a lower and an upper bound. This machine's time of day decides nothing. A
// database's clock that steps is logged. One that ran ahead settles nothing before every attempt
// under way has settled by our own clock; one that stepped back freezes nothing in hand, because a
// work's time is never before its latest record and the time gone by since. What this process armed
// has settled when its own clock says so, too.
//
// # A lease that is over
//
// A process that cannot renew its lease sends nothing in the margin before its end, and stops
// waiting for answers at its end. So the process that takes a work over counts what was armed under
// that lease as lost at once, and goes on by the step's class (saga/RULES.md, After a kill).
//
// # What does not move
//
// Once a minute the log names the definitions of due works that no live session knows, and the
// oldest work that is held or overdue and has no new record for longer than an attempt, its settle
// time and a lease take.
//
// # Stopping
//
// When Run's context ends, nothing new is armed and every send gate is closed: an attempt that has
// not sent is recorded as not sent, and does not count as a try. Attempts that may have been sent
// are awaited. The session is then buried, so that others take over at once. A deploy leaves no
// review behind.
package coordinator
