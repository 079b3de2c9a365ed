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
// because other users of the machine can read command lines; amends never shows it. AMENDS_KEYS names the file of keys of a
// ledger whose bodies are sealed.
//
// # Verbs
//
//	status      Is anything running, and does everything move?
//	stats       Count all works, by saga, status and reason
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
//	undo        Undo what a work has done that is completed
//	rerun       Run a work again that was undone, given up or completed
//	batch       Show what became of what was said to many works at once
//	start       Start an instance, once for its work id, by the program that runs the saga
//	destination What the sagas talk to: does it work, and who holds it?
//	alerts      What needs people, and were they told?
//	inbox       Show and replay what was heard from sources of truth
//	reconcile   Compare source, ledger and destination, and repair what is safe to repair
//	drift       Show the differences that last, and decide on them
//	schedule    Show, run and pause jobs, and check what a schedule means
//	check       Verify every chain and every head of the ledger
//	export      Write works, record by record, into a file that can be verified without the database
//	verify      Verify what amends export has written, without the database
//	report      Report a month: what was started, how it ended, and what people had to decide
//	retention   Let go of what is kept of instances that have ended
//	hold        Have retention let go of nothing of a work
//	erase       Erase what is kept of a person: of a work, or of all works of a subject
//	catch-up    After the database's clock went back: make due what waits for it to be there again
//	recover     Say what became of the database: restored from a backup, or moved with everything
//	migrate     Bring the database schema up to date, or show where it stands
//	serve       Serve the console: pages, /api/v1 and /metrics
//	token       Make a token for the console, and add it to a file
//	version     Show which amends this is, the schema versions it needs, and what is stable
//
// Start alone needs no database: the program that runs the saga starts the work, by its API (--server or AMENDS_SERVER, and
// the token in AMENDS_TOKEN).
//
// A work is named by its work id. Where several sagas know the id, --saga says which. Retry,
// resolve, skip, pause, resume, wake, complete, fail, extend, approve, reject, cancel, undo and rerun write a signal: who says what, and why. The
// coordinator that holds or takes up the work applies it; amends itself never changes where a work
// stands. All take --dry-run and --wait. All but resolve, approve, reject, cancel and undo take several works, and "-" for
// ids from standard input, a line each as list -o ids prints them (WORK, or WORK, a tab and SAGA).
// Each work is told of in a line of its own, what was refused on stderr; the exit status is that of
// the first that was refused, or 0. Pause and resume speak of more at once with --destination,
// --saga and --all: that is kept in the ledger beside the works, with who and why, and every
// process obeys it.
//
//	destination list  List destinations: which work, which fail, and what waits
//	destination probe Try a destination now, whatever it asked for and however often it failed
//
//	alerts list List what needs people, and whether they were told
//	alerts test Send an alert that says it is a test, and that it is over
//
//	inbox list     List deliveries, newest first
//	inbox show     Show one delivery: what became of it, and what is safe to do next
//	inbox objects  List objects that were heard of, and what is owed to them
//	inbox counts   Count deliveries by source and disposition, and those that were refused
//	inbox replay   Let deliveries go through the gate again
//	inbox release  Let the withdrawals of a source through that are held
//	inbox drop     Drop the withdrawals of a source that are held
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
//	drift decided      List what was decided, and what became of it
//	drift accept       What stands is right, until it or its object changes
//	drift ignore       Leave it alone until a time
//	drift again        Have a document made again that is gone
//	drift ours         Have what it should say written over it
//	drift keep         Keep one of several documents, and void the others
//	drift undo         Undo what stands
//	drift reopen       Say that what was decided does not hold any more
//	schedule list      List jobs: when they run, and whether anything is wrong
//	schedule run       Run a job now
//	schedule backfill  Ask a job for the runs that are missing between two times
//	schedule pause     Keep a job, or all, from acting until it is unpaused
//	schedule unpause   Let a job, or all, run again
//	schedule check     Check what a schedule means, and when it runs next
//	retention plan  Say what would go, and about how many bytes that is
//	retention run   Let go of what is due
//	retention set   Say how long what is kept of sagas that do not say it
//
// A delivery is named by its number, an object as SOURCE:TYPE:ID or SOURCE:TENANT:TYPE:ID, which is
// also the id of the work that comes of it. What was heard lies in the ledger's database. A replay
// changes no state: the process that hears judges the delivery again.
//
// A job is named by its name, a plan by its id or the beginning of it. What runs a user's code
// (plan, apply, rebuild, decisions on findings, schedule run) is only asked for: it is stored as a run, a process that has
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
// JSON says its version, and is stable: amends help json prints the promise and every field; so does
// docs/command.md.
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
// It is in package internal/command: command.go runs one command line and has the table of verbs, the
// common flags and the exit statuses, and verb.go says what a verb is. What verbs say of themselves is
// in help.txt, what their JSON says in json.txt. works.go, orders.go, things.go, jobs.go and drift.go
// have the verbs and how each prints, address.go opens the ledger and migrates it. What is read and
// done is in package internal/desk. The tests are the scripts in testdata: what a person types and
// what comes back.
package main
