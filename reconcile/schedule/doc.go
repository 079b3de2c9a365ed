// Package schedule says when a job is to run. It reads cron expressions by robfig/cron, and uses nothing else of it.
// It runs nothing: that one instant is run once, by whichever process, and that a missed one is made up for, is for
// rows in a database to decide and not for a timer in a process. Those do not exist yet; [Schedule.Instant] is the key
// they will have.
//
// # What is accepted
//
// Five fields (minute, hour, day of the month, month of the year, day of the week), the descriptors @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly, @annually, and @every with a whole number of seconds, at least ten. The zone is
// said beside the expression, never within it, and is UTC when nothing is said; a machine's local zone is not
// accepted, because machines differ.
//
// Refused, because the parser takes them silently for something else or never fires: a zone within the text, @every
// with less than ten seconds or with fractions, a date that never comes (the 30th of February).
//
// # Wall clocks
//
// A schedule runs once for each civil time that it names, in a zone whose clocks change too:
//
//   - a time that the clocks leap over runs at the moment of the leap;
//   - a time that comes twice runs the first time.
//
// So a daily job runs once a day, on every day. [Schedule.Instant] names the civil time, and is the same for both
// occurrences. The price: a schedule that names many times an hour rests for the hour that comes twice;
// [Schedule.Warnings] says so, and UTC or @every does not have it. @every counts from 1970, so that its instants
// are the same in every process and after every deploy.
package schedule
