// Package inbox hears what sources of truth say about their objects, and decides what to believe.
//
// A webhook is a hint with a version. It comes twice, late, out of order, or not at all; sometimes it proves that
// it tells the newest state, and mostly it does not. Here is one rule for all of it: what a version proves is
// accepted as it is, and about everything else the source is asked. Effects hang off what was accepted, never
// off an arrival, so that order, loss and copies of events change when something happens and nothing else.
//
// # The words
//
//	object     one object of one source of truth: shop:order:10492
//	event      what one verified delivery says about one object; it carries the whole object, a change to it
//	           (delta), or nothing but the word that it changed (thin)
//	version    how new the object is, by the source's own word: a counter, a time of some resolution, or nothing
//	inbox      events, stored before they are acted on
//	entry      what is known of an object and what is owed to it: the gate's row
//	verdict    what the gate made of an event
//	hint       a reason to ask the source; Entry.Dirty counts them
//	ticket     what Dirty was before the source was asked: the answer is good for the hints up to it
//	accepted   a state of the object that is believed; Entry.Accepted counts them
//	delivery   the newest accepted state, of which Decide says what follows, as a [Snapshot]
//	tombstone  the entry of an object that is gone; it stays, so that a late event brings nothing back
//	blocked    waits for a person: for news or a replay, or for the source to be right (R10)
//
// # Who does what
//
// The receiver (reconcile/webhook) verifies and stores through an [Inbox], and answers. A [Processor] runs over a
// [Gate]: it judges what is stored, in batches; it leases entries that are due; for each it asks the source when
// Dirty > Clean, and delivers when Accepted > Delivered. Every decision is a pure function of this package,
// [Judge] and [Receive]; a store locks rows, hands them over and stores what it gets back. The verdict, the entry
// and what is owed commit together. This package imports neither coordinator nor ledger.
//
// # Judging an event
//
// The first rule that fits decides. Versions are compared within the coarser of their resolutions.
//
//	J1   a whole object of a newer version, or the first one heard of: applied
//	J2   the id of an earlier event with something else to say: id-conflict, a hint
//	J3   no version: a hint; so is a newer version without the whole object, or of a source with AlwaysFetch
//	J4   a time more than Skew in the future, or a counter beyond 2^53 or, where it is dense, 10,000 ahead: a hint, and
//	     its version counts for nothing
//	J5   the time of the event, not of the object: it fills an empty entry; otherwise a hint
//	J6   a version of another kind than the stored one in the same epoch, or the first of a later epoch: a hint, and its
//	     version counts for nothing; the receiver stamps the epoch on what arrives, however old that is
//	J7   an older version: stale, whatever else it says; but a counter 10,000 behind one that only an event told: a hint
//	J8   the same version: a duplicate if the content is the same, else a tie, which is a hint
//	J9   a deletion of a newer version: a tombstone; a look that is owed (R5, R6) stays owed, it may be of the return
//	J10  a newer version of an object that is gone: a hint; only the source brings an object back
//	J11  a delta: applied if it is the very next one, else parked, bounded in number and time; released in order
//	     when the gap fills, else the source is asked
//	J12  a replay goes through the rules again and lifts a block; what the door had put aside becomes a hint
//	J13  what names no object asks no source, and neither does what the door had put aside beside an id that was heard before
//
// A newer version whose fingerprint is the stored one moves the version and is not delivered. So does what
// Policy.Echo recognises as our own doing.
//
// # Asking the source
//
//	R1   the answer is compared like an event, with a higher rank: a newer version is accepted
//	R2   Clean becomes the ticket, so a hint that came after the question forces one more round; nothing is ever
//	     stamped with the time of writing
//	R3   of the same version the fetched content wins over a pushed one, and a later ticket over an earlier one
//	R4   an answer older than the newest version that was heard of is behind: it may be accepted, it is not clean,
//	     and the source is asked again
//	R5   an answer that no version proves to be the newest is asked for a second time, Step + Settle later and at
//	     least Settle after the last hint; hints wait for that look, so a storm of them costs two fetches. A look that
//	     begins before, because a newer version was named, is one more
//	R6   "there is no such object" is a deletion when it is said twice, Settle apart, or once after an event that
//	     said so too about a state that is not young. Settle later it is looked for once more: a hint that came between
//	     the looks may have been of its return. What no look ever found is looked for once more, much later
//	R7   an object that was gone is back when that is said twice, or when its version is newer than that of the
//	     event that told of its deletion
//	R8   a state of the future is not believed from the source either: it is asked again until the time has come
//	R9   another way of counting is an error for a person: begin a new epoch, and everything older is stale
//	R10  a source that has shown less than was spoken of for an hour, at every look, is right: what was only spoken of is
//	     forgotten; what was accepted has a revision, so the object waits for a person to begin a new epoch. From ten
//	     settle times on it shows as blocked, and is asked about all the same
//
// An error of Fetch is never a deletion. It is tried again after a wait that grows to Policy.Max, with full
// jitter; [Later] holds back the whole source; [Permanent] blocks the object. A panic is an error. The same goes
// for Apply: an event about something that we have not committed yet ourselves is an error there, never a
// reason to drop it.
//
// # Revisions
//
// A [Snapshot] names the delivery that led to it (Snapshot.Cause: shop/4711), and its revision after the version. Two states
// that the source cannot tell apart by version, both of one second, are revisions a nanosecond apart, which still compare as
// equal with what the source says. States of objects without version are numbered. A deletion that the source gave no version
// is named one step after the last state. So revisions of an object always grow.
//
// # Forgetting
//
// A processor forgets what is old, once an hour and in small transactions: bodies after 30 days, because they may be about
// people, verdicts after 90, what recognises a copy after 400 (Options.Retention). Nothing goes that is unjudged or of
// which something is owed. Entries stay: a redelivery years later is still an old version.
//
// # What is guaranteed
//
//   - For every object that the source spoke of at or after its last change, entry and source end equal, in
//     whatever order, number and delay events came, if no event lies about a version that can be believed, reads lag
//     less than Settle, and the source can be asked at last.
//   - Versions never go down. Nothing comes back that the source has not brought back.
//   - The newest accepted state is delivered at least once; older ones may be skipped. A delivery may be repeated
//     with the same revision. One object is never worked on by two at once, on any process, for as long as the
//     user's functions heed their context; a write of who lost his lease matches nothing.
//   - The source is asked at most twice for any number of hints within a second, and once more for each newer version
//     that they name, and where the object is gone.
//
// # What is not
//
//   - An event that never came leaves no trace. Its object is right again with the next event, or with a sweep.
//   - An event that fills an empty entry under J5 is believed until the next one, as is any whole object under J1.
//   - A source that changes an object without changing its version and without telling is not found out.
//   - A user's function that goes on after its context ended may deliver an old state late. A saga refuses it,
//     because its revision is old.
//   - A counter that shows two contents under one number, or that goes on counting after a deletion as if there had
//     been none, gives two states one revision: the saga takes the first.
//   - Times of two sources are never compared. One object that two sources describe is two objects here.
//   - A change feed that numbers commits (a log position and a place in it) has to make one counter of the two.
//   - Lists inside an object that are cut short, and another API version than the webhooks', give fingerprints
//     of their own: the adapter reads every page and pins the version.
//
// Deleting is a proposal: a [Snapshot] with Deleted set carries the last state that was known, and what becomes of
// an invoice that was posted is for the saga and its people to say.
package inbox
