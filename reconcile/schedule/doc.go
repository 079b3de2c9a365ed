// Package schedule runs jobs by cron expressions: each instant once, in whichever of many processes, and
// what was missed is made up for.
//
//	jobs, err := schedule.New(db, []schedule.Job{
//		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: r.SyncChanges},
//		{Name: "orders", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: r.Run},
//	}, nil)
//	…
//	err = c.Run(ctx, jobs)
//
// Rows in the database say what has run: a timer in a process knows neither what other processes do nor
// what was missed while none was there.
//
// # Mistakes people make
//
//   - Work that does not heed its context, nor asks [Proceed] before it acts: it cannot be stopped, and
//     the job rests until it ends.
//   - A new job that does nothing: until a person approves it (amends reconcile approve JOB), or
//     [Job.Approved] says so, it only plans.
//   - A zone left out: the expression is in UTC then.
//   - An expression that names many times an hour, in a zone whose clocks change: it rests for the hour
//     that comes twice. UTC and @every do not.
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
//   - An instant that has ended never begins again by itself, whatever crashes and however often the
//     schedule changes.
//   - Every instant since a job was first described is in exactly one row, as soon as it is planned:
//     run, or skipped with the reason. What a backfill asks for has a row of its own.
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
