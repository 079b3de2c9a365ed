// Command amends reads the ledger of sagas and lets a person act on it. It needs the database only,
// not the program that runs the sagas, and works while that program runs: reading takes no lock,
// creates no file and migrates nothing.
//
//	amends VERB [WORK] [flags]
//
// # Which ledger
//
// --db, else the environment variable AMENDS_DB, read as the library reads it: the path of a SQLite
// file, sqlite:PATH or file:PATH; postgres://user@host/database, or the pairs of lib/pq: host=db
// dbname=shop. What is not plainly one of these is refused. A password belongs in the environment (AMENDS_DB, PGPASSWORD),
// because other users of the machine can read command lines; amends never shows it.
//
// # Verbs
//
//	status      Is anything running, and does everything move?
//	list        List works, oldest first
//	show        Show one work: its input, its steps, and what is safe to do next
//	history     Show everything that happened to a work, record by record
//	duplicates  Count the duplicates that were blocked, most recent first
//	acts        List what people did, latest first
//	retry       Try the step at issue again, under the key it has
//	resolve     Decide on a step in review: it happened, or it did not
//	skip        Say that the step at issue did not happen and will not, and go on without it
//	pause       Hold a work where it is, or a destination, a saga or everything, until it is resumed
//	resume      Let what was paused go on where it was
//	wake        End the wait of a work for a time: it goes on now
//	complete    Answer by hand what a work waits for
//	fail        Say by hand that what a work waits for has failed
//	extend      Have works wait longer for their answers, or for a decision
//	deliver     Bring a message to the works that wait for it
//	approvals   List what waits for people to decide, oldest first
//	approve     Look at what a work wants approved, and approve of it
//	reject      Look at what a work wants approved, and reject it
//	cancel      Give a work up: undo what it has done
//	rerun       Run a work again that was undone, given up or completed
//	destination What the sagas talk to: does it work, and who holds it?
//	inbox       Show and replay what was heard from sources of truth
//	reconcile   Compare source, ledger and destination, and repair what is safe to repair
//	drift       Show the differences that last
//	schedule    Show, run and pause jobs, and check what a schedule means
//	check       Verify every chain and every head of the ledger
//	catch-up    After the database's clock went back: make due what waits for it to be there again
//	migrate     Bring the database schema up to date, or show where it stands
//	serve       Serve the console: pages, /api/v1 and /metrics
//	token       Make a token for the console, and add it to a file
//	version     Show which amends this is, and the schema versions it needs
//
// A work is named by its work id. Where several sagas know the id, --saga says which. Retry,
// resolve, skip, pause, resume, wake, complete, fail, extend, approve, reject, cancel and rerun write a signal: who says what, and why. The
// coordinator that holds or takes up the work applies it; amends itself never changes where a work
// stands. All take --dry-run and --wait. All but resolve, approve, reject and cancel take several works, and "-" for
// ids from standard input, a line each as list -o ids prints them (WORK, or WORK, a tab and SAGA).
// Each work is told of in a line of its own, what was refused on stderr; the exit status is that of
// the first that was refused, or 0. Pause and resume speak of more at once with --destination,
// --saga and --all: that is kept in the ledger beside the works, with who and why, and every
// process obeys it.
//
//	destination list  List destinations: which work, which fail, and what waits
//	destination probe Try a destination now, whatever it asked for and however often it failed
//
//	inbox list     List deliveries, newest first
//	inbox show     Show one delivery: what became of it, and what is safe to do next
//	inbox objects  List objects that were heard of, and what is owed to them
//	inbox counts   Count deliveries by source and disposition
//	inbox replay   Let deliveries go through the gate again
//	migrate up     Apply what is missing
//	migrate status Compare the schema with what this program needs
//
//	reconcile plan     Ask a job what differs, and what it would do; nothing is changed
//	reconcile show     Show a plan that was made, and what became of it
//	reconcile apply    Let a job carry out a plan, within its bounds
//	reconcile approve  Let a new job change things, from its next run on
//	reconcile runs     List runs of jobs, newest first
//	reconcile rebuild  Let a job rebuild a lost ledger from what stands
//	drift list         List differences, those that last longest first
//	schedule list      List jobs: when they run, and whether anything is wrong
//	schedule run       Run a job now
//	schedule pause     Keep a job, or all, from acting until it is unpaused
//	schedule unpause   Let a job, or all, run again
//	schedule check     Check what a schedule means, and when it runs next
//
// A delivery is named by its number, an object as SOURCE:TYPE:ID or SOURCE:TENANT:TYPE:ID, which is
// also the id of the work that comes of it. What was heard lies in the ledger's database. A replay
// changes no state: the process that hears judges the delivery again.
//
// A job is named by its name, a plan by its id or the beginning of it. What runs a user's code
// (plan, apply, rebuild, schedule run) is only asked for: it is stored as a run, a process that has
// the job does it, and the command waits for its end, for ten minutes unless --wait or --no-wait
// say otherwise. Jobs, runs, plans and drift lie in the ledger's database, too.
//
// # Output
//
// What was asked for goes to stdout: as a table on a terminal, as plain aligned text elsewhere, and
// with -o json as one JSON document. Hints, progress and errors go to stderr. Inputs and results
// are shown by size and hash only, except by history and inbox show with --bodies. Texts from
// elsewhere are printed with control characters escaped. There are no colours. An act that could do
// harm needs a flag that says so. Only reconcile rebuild asks for a confirmation, and without a
// terminal it refuses.
//
// JSON is stable: fields are added, never renamed or removed. Numbers count; what names or numbers
// a thing is a text, even where it has digits only, because JavaScript and jq lose the end of long
// numbers. Times are RFC 3339 in UTC, null where there is none. Fields that hold nothing are "", 0,
// null or [], except where a line says "only".
//
//	status      at (the ledger's clock), sessions[]: session, label, openedAt, renewedAt, expiresAt, holds (works),
//	            knows[]: saga, version
//	            unknown[]: saga, version, ended (they have a signal to be read: a newer version will do), works (1000
//	            at most are counted), oldestDueAt: what waits for a definition that no live session knows
//	            oldest[]: the fields of list, of the live works whose latest record is oldest, held or overdue
//	            findings[]: kind (no-coordinator, unknown-definition, still, ahead, destination, paused,
//	            overdue, unreadable), words, next
//	            review, paused (works that wait for a person), waiting (for a time or an answer; 1000 at most of each are counted)
//	list        items[]: number, workId, saga, version, revision, status, reason, session (who holds it),
//	            pendingSignals (a count), waitsFor (a destination, retry:DESTINATION when that failed it, all or
//	            saga:NAME), unknown (no live process knows its definition), startedAt, updatedAt, dueAt, finishedAt,
//	            deadlineAt (null: none, or it was looked at)
//	            next: what to give to --after; null on the last page
//	approvals   items[]: workId, saga, step, digest (a vote says it), shown (what is decided about), roles (who may vote now),
//	            votesNeeded, votes[]: by, roles, approve, reason, at; since, until (without a decision by then it is
//	            rejected), outcome ("": it is to be decided). "approve WORK" and "reject WORK" without --shown: one of them
//	show        workId, saga, version, idempotencyKey (the root of the steps' keys), status, reason,
//	            note (only in review: why, in words), revision (the version of the source it runs for),
//	            pendingRevision (only when one waits), input: sha256, bytes
//	            steps, an object by step name: done (the effect is there), status, externalId, attempts, error,
//	            key (only once armed), repeat, evidence (only when done: done, found, resolved, adopted, answered or wait-over),
//	            unconfirmed (only when true: counts as done although its outcome is unknown),
//	            undo (only once begun; the same fields)
//	            order: the names of the steps as defined
//	            next: what happens by itself, and what is safe to do
//	            startedAt, updatedAt, dueAt (only if due), deadlineAt, deadlinePassed, finishedAt, number, session; of a step
//	            that only waits: waitsUntil, and for an answer waitsSince and waitsFor[]
//	            pendingSignals[]: id, at, kind, key, actor, reason, step, direction, attempt, revision (only where
//	            the signal is about a version of the source), happened (null where it does not speak of it),
//	            externalId
//	            duplicates[]: as below
//	            waitsFor: as in list
//	            unknown: no live process knows the definition that it waits for
//	            seq (of the latest record: what --seen says of a work that was looked at)
//	            advice: next without what the choices say
//	            choices[]: when (that is right), verb, flags[]: name, value, example (of what only a person can say); then[]: what follows
//	            also[]: what else it takes, as choices
//	            sourceObject: the fields of inbox objects, of the object the work is named by; null when nothing is known
//	history     workId, saga
//	            records[]: seq, hash, session, at, kind, words (what happened, for people), version and revision (only where a version of the source
//	            is spoken of), nonce (only of the first record), step, direction, attempt, externalId,
//	            body: sha256, bytes, content (only with --bodies),
//	            bodyDropped, errorClass, error, signals[] (the ids it consumed), status, reason, dueAt, until,
//	            dispatch (null, or the attempt it set in motion): step, direction, attempt, key, reissue, deadlineAt,
//	            snapshot: as body
//	duplicates  items[]: saga (empty where no work was started), workId, source, by (start, receiver, version: what
//	            stopped it), count, firstAt, lastAt
//	            more: whether --limit left some out
//	            days[]: day (UTC), by, count: all that was blocked in the last 90 days, whatever narrows items
//	acts        items[]: at, actor, act (a kind of signal; pause, resume, probe; run; look: at what is hidden), saga, workId, what (where
//	            it was no work: all, saga:NAME, destination:NAME, job:NAME, or what was looked at), reason
//	            next: what to give to --before; null on the last page
//	resolve     workId, saga, signal: as in pendingSignals, plan[] (what follows), unknown (no live process knows the
//	            definition: the signal stays posted until one does), dryRun, stored,
//	cancel      applied (only with --wait can it be true), answer (the words of the record that read it),
//	            status, reason, next: where the work stands now
//	retry       items[], one for each work: the fields of resolve, and error: null, or as errors are with -o json. Where
//	skip        nothing was stored: workId and error alone
//	pause       with --destination, --saga or --all: scope (all, saga:NAME, destination:NAME), dryRun, stored, before and
//	resume      paused (who had, and who has by now paused it: null, or scope, at, actor, reason)
//	rerun
//	destination list  items[]: destination, state (healthy, limited, failing, paused), since, until, evidence (failing: why
//	            it counts as that), why, actor, servedAt (to ten seconds), waiting and oldestDueAt (works in the
//	            ledger that wait to be sent there), failed (those that failed there and wait for another try; of both
//	            up to 1000 are counted), parts (of its limit, 0: none), shares: session to parts
//	            paused[]: sagas, or all: scope, at, actor, reason
//	destination probe  destination, stateBefore, failed (works that failed there, and are due now)
//	inbox list  items[]: number, receivedAt, workId, object: source, tenant, type, id; topic, eventId, occurredAt
//	            (by the event's own word), payloadKind (full, delta, thin), deleted, version, signedBy (the secret's
//	            name), copies, lastAt (of the latest copy), processedAt, disposition (while processedAt is null the
//	            former one, or ""), reason, body: as in history, null where none is kept
//	            next: what to give to --before; null on the last page
//	inbox show  the fields of inbox list
//	            entry (null: nothing is known of the object): the fields of inbox objects
//	            works[]: the fields of list, of the works named by the object
//	            next: what happens by itself, and what is safe to do
//	inbox objects  items[]: workId, object, state (known, gone, not known, blocked), version, newestVersion (that
//	            that was spoken of), origin (event, fetch), fingerprint, body, accepted and delivered (counts of
//	            states), fetchOwed, deliveryOwed, pendingEvents (a count), dueAt, leaseHolder, leasedUntil,
//	            failedAttempts (in a row), lastError, blockedReason, firstSeenAt, updatedAt
//	            next: what to give to --after; null on the last page
//	inbox counts   items[]: source, disposition ("": not processed yet), count, lastAt
//	inbox replay   deliveries (selected), objects (they are about), dispositions (an object: how many had which; "":
//	            none yet), actor, reason, dryRun, replayed
//	reconcile plan  findings[], and the plan, as the package internal/plan writes them: equal plans are equal bytes. With
//	            --no-wait, or when no plan was made: the fields of a run
//	reconcile show  plan: as above; number, finishedAt, approved (the bounds were lifted; null, or at, actor, reason),
//	            items[]: key, class, action, reason, changes[], sourceRevision, ledgerRevision, documents[], suggestion
//	            (of these, from changes on, only those that hold something); outcome ("": nothing yet), error,
//	            outcomeAt
//	            next: what to give to --after; null on the last page
//	reconcile apply  plan (its id), overLimit (some of it is), run: the fields of a run, null when nothing was
//	            left to do
//	reconcile runs  items[]: job, number (within it), scheduledFor, scheduledAt, firstScheduledAt and scheduledTimes (it stands for), dueAt,
//	            createdAt, requested ("": what the schedule does), actor ("": the schedule), reason, status (waiting,
//	            running or the result), result, startedAt, endedAt, attempts, crashes, leaseHolder, leasedUntil,
//	            cursorBefore, cursorAfter, seen, planned, applied, overLimit, errors, calls, plan (an id), note, error
//	            next: what to give to --before; null on the last page
//	reconcile rebuild, schedule run  the fields of a run
//	reconcile approve  job, approved, before: at, actor, reason; before: null when it was not yet
//	drift list  items[]: job, the fields of a finding as in reconcile show, firstAt, lastAt, runs (in a row)
//	            next: what to give to --after; null on the last page
//	schedule list  now (by the database's clock), paused (all jobs: null, or at, actor, reason)
//	            items[]: job, schedule, timeZone, next[] (five, with the offset of the zone, as if it were not paused),
//	            overlap, catchUpSeconds, createdAt, describedAt, plannedUntil, lastSuccess, lastSuccessEndedAt,
//	            failures (runs since then), watermark, alarm (why a person should look), paused, approved
//	schedule pause  job ("": all), paused (now), before, all (the pause of all jobs): null, or at, actor, reason
//	schedule unpause
//	schedule check  schedule, timeZone, next[], warnings[]
//	check       sound, works, records, moving (works that never stood still, whose head was not compared)
//	            findings[]: saga, workId, number, seq (0: about the work as a whole), what, do
//	migrate     ledger, database, before, after; status: ledger, database, version, latest, upToDate
//	version     version, commit, date, modified, go, platform, schema: postgres, sqlite
//
// # Exit status
//
//	  0  done         done; a list may be empty
//	  1  failed       failed: no connection, no ledger there, a schema that does not fit; a run that failed
//	  2  usage        the command line is wrong, or does not say which of several is meant; a question was not answered
//	  3  not-found    no such work, delivery, object, job or plan
//	  4  not-allowed  not allowed: credentials, permissions, a read-only database
//	  5  conflict     refused: things do not stand as the command takes for granted, or a person decides
//	  6  findings     check found something; other commands only with --exit-code
//	  7  timed-out    --wait ran out; what was asked for is stored, and goes on without the command
//	130  interrupted  stopped by Ctrl-C or a signal
//
// An error is one line on stderr, "amends: what happened; why; what to do next", or with -o json an
// object with code (the word above), exit, message, and details where there is something to choose
// from.
//
// # Reading the source
//
// It is in package internal/command: command.go runs one command line, app.go has the table of
// verbs and the common flags, exit.go the table of exit statuses. Each verb is a file. A verb with verbs of its own has
// its table in the file of its name (inbox.go, reconcile.go, drift.go, schedule.go); inbox_select.go says how
// deliveries are selected, jobs.go how a job is found, request.go how a run is asked for and waited
// for, plans.go and runs.go how plans and runs are shown. What the verbs share that say something
// to a work is in speak.go, and for several works in several.go; what names and reads one work in
// work.go, and address.go opens the ledger. The tests are the scripts in testdata: what a person
// types and what comes back.
package main
