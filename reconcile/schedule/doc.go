// Package schedule runs jobs by schedules, each instant once, in whichever of many processes, and
// makes up for what was missed. Cron expressions are read by robfig/cron, and nothing else of it is
// used: a timer in a process knows neither what other processes do nor what was missed while none
// was there. Rows in a database do.
//
// # The words
//
//	job       work that is to be done again and again; a [Job] in the program, a [JobState] in the database
//	instant   a moment that a schedule names; [Schedule.Instant] is its key
//	run       one row, for one instant or for several that are made up for at once; it has one result, once
//	attempt   one try of one process at a run, under a lease of its own
//	fence     the number of an attempt, higher than any before it at any run of the job
//	turn      one transaction on a job, in which everything about it is decided
//	result   what became of a run
//
// # A turn
//
// A [Runner] decides nothing by itself. It asks the store for a turn: the store locks the job's
// row, reads the database's clock, and hands out the [Agenda], which is the row and the runs that
// are still open. Pure functions change it, and the store writes what they left:
//
//	plan      the instants since the last one become a run, or are skipped
//	claim     a run is given to this process: one more attempt, a higher fence, a lease
//	renew     the lease is prolonged, and what was reported so far is written down
//	release   the work was cut short by a stop: the run waits for the next process
//	finish    the run has its result
//
// Every turn plans first, that of a renewal and that of an end too: an instant that comes while a
// run goes on is judged while it goes on. What a turn plans is claimed at the next turn at the
// earliest, so a run is a row before it runs. A process takes a turn when an instant comes, by its
// own clock, and every Options.Poll: the clock is a hint, and only that of the database counts.
//
// # The life of a run
//
//	             claim                  finish
//	waiting ──────────────▶ running ──────────────▶ ok, partial, refused, failed, stopped
//	   │ ◀──────────────────   │  │
//	   │        release        │  └─ its process died: claimed again when the lease is over, five times at most
//	   ▼                       ▼
//	skipped                 (a row that ended never changes again)
//
// # What is planned
//
//	S1   The next instant is the first one after the last that has a row, by the schedule that the newest process has
//	     described. So another schedule repeats nothing, and leaves nothing out.
//	S2   Instants longer ago than CatchUp are skipped: one row for all of them. The others are one run, however many
//	     they are; it is that of the last, and From is the first. Never is there one run after another to catch up.
//	S3   While a run is at work, or was given back, an instant is skipped; with [BufferOne] one waits. Behind a run
//	     that waits for its first attempt every instant is skipped.
//	S4   A run that no process began within CatchUp is skipped.
//	S5   While the job or everything is paused nothing is planned and nothing begins. What was missed is made up for
//	     as by S2, so a long pause ends with one run of each job.
//
// What is skipped is a row with the reason. A run must find out by itself what there is to do since
// the last good one, by a cursor of its own: then it does not matter for how many instants it
// stands.
//
// # Leases
//
// A run belongs to an attempt until its lease is over by the database's clock. The attempt trusts
// it for four fifths of that only, counted from before the lease was asked for: however long an
// answer takes, the process has stopped before another may begin. It counts by its monotonic clock,
// and by the wall clock for machines that sleep. Then the context of the work ends, and
// [Run.Proceed] fails. A write of who lost his lease matches nothing, since the fence is another
// one.
//
// Work asks [Run.Proceed] between any two actions. It fails after a pause, too, and when the
// database cannot be asked.
//
// A process that is told to stop ends the context of its work and waits for it. A run whose work
// returns an error then goes on elsewhere at once: it is the same run, one attempt more, with what
// was reported last. So it is after a crash, when the lease is over. A claim whose answer was lost
// is given back at the next look, or by the stop. Work is repeated from there; its own effects are
// to be safe to repeat.
//
// # What counts as success
//
// [OK] does, said by the work and without an error. An error, a panic, no result or an unknown one
// is [Failed]. A good run of the scheduled work moves [JobState].Good and the watermark; what a
// person asked for otherwise, a plan, says nothing about the schedule. [Stale] says when no run
// ended well for more periods than the job allows. A runner says so once, when it begins and when
// it is over.
//
// # By hand
//
// [Request] records a run like any other: it waits for the one at work, and has the same lease and
// the same wrappers. What it asks for is the job's to interpret. [Pause], [Unpause] and [Approve]
// need the database and none of the program's code. A job that changes anything does so from the
// first run on only if the program says so, or a person has approved it.
//
// # What is guaranteed
//
//   - Two processes are never at work on one job at the same time, for as long as the work heeds
//     its context or asks Proceed before it acts, and the clocks of the processes run as fast as
//     that of the database.
//   - An instant that has ended never begins again, whatever crashes and however often the schedule
//     changes.
//   - Every instant since a job was first described is in exactly one row: run, or skipped with the
//     reason.
//
// # What is not
//
//   - That an instant is worked on by one attempt only: the last of them is the one that ended.
//   - That work which neither heeds its context nor asks Proceed is stopped. Its lease is renewed
//     for as long as it goes on, beyond its timeout: better a job that rests, and is told of as
//     stale, than two of it.
//   - That nothing runs in the moment in which an operator pauses it: an action that has begun
//     ends.
//
// # What is accepted
//
// Five fields (minute, hour, day of the month, month of the year, day of the week), the descriptors
// @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, and @every with a whole number
// of seconds, at least ten. The zone is said beside the expression, never within it, and is UTC
// when nothing is said; a machine's local zone is not accepted, because machines differ.
//
// Refused, because the parser takes them silently for something else or never fires: a zone within
// the text, @every with less than ten seconds or with fractions, a date that never comes (the 30th
// of February).
//
// # Wall clocks
//
// A schedule runs once for each civil time that it names, in a zone whose clocks change too:
//
//   - a time that the clocks leap over runs at the moment of the leap;
//   - a time that comes twice runs the first time.
//
// So a daily job runs once a day, on every day. [Schedule.Instant] names the civil time, and is the
// same for both occurrences. The price: a schedule that names many times an hour rests for the hour
// that comes twice; [Schedule.Warnings] says so, and UTC or @every does not have it. @every counts
// from 1970, so that its instants are the same in every process and after every deploy.
package schedule
