// Package scan reads a source of truth and a destination, because webhooks get lost: what changed
// since the last time every few minutes, and everything there is every few days.
//
// # The words
//
//	sweep        one source, one destination and one store, by a name
//	incremental  a run over what changed since the last one; what it finds goes into the inbox
//	full         a run over everything one side has; what it finds are sightings
//	pass         one way through what changed, from a lower bound to the end of the listing
//	cursor       the newest change of a pass that came to its end; the provider's word for a place in a listing is one too
//	overlap      how far behind its cursor a pass begins
//	part         one piece of a full listing, listed by itself
//	generation   one full listing of one side, by a number; an object is stamped with the newest that saw it
//	sighting     one row of a listing: key, id, revision, digest of the owned fields, flags, fields
//	position     the stored state of a sweep, or of one part; it moves with every page and knows who is behind
//
// # A sweep is one more sender
//
// An incremental sweep has no say about any object. Each object that it reads becomes an event with
// the topic "sweep", with its version and its whole body, and the gate of package inbox judges it
// as it judges a webhook. The event's identity is what the object says and not when it was read, so
// what is listed again is a copy, and reading too much is never wrong. That is what makes a wide
// overlap cheap, and a repeated page harmless.
//
// A page is stored in one transaction: its events or sightings, and the position behind it.
// Wherever a process is killed, one page at most is read again. The position is a compare-and-set:
// when two processes sweep, one of them gets [ErrMoved] and stops.
//
// # What decides
//
// The state of a sweep is plain data, and the functions that take a page in are pure: cursor.page
// for what changed, part.page and part.count for everything. Around them stands a loop that asks,
// stores and does nothing else. Every call takes its turn from the side's [asking.Quota], is tried
// a few times, and is preceded by Config.Proceed.
//
// # What a provider has to promise, what it may break, and what is done then
//
//	I1  the lower bound is inclusive         an exclusive one loses what shares its time; a sweep cannot tell
//	I2  a change is listed soon              it may be listed minutes late: a pass begins Config.Overlap behind the cursor
//	I3  it has an end                        it may grow while it is read: what changed after the pass began does not move
//	                                         the cursor, and a page of nothing else ends the pass. The cursor is a change
//	                                         that was seen, never our time
//	I5  pages get past one time              where a page is too small for one, it is asked for wider, up to 16 times; where
//	                                         that is not enough, only a full sweep can pass it. A pass never steps over
//	                                         a time that was not seen whole
//	I6  a cursor is no place in the list     an offset or a page number skips what moves while the list is read; a sweep
//	                                         cannot tell. List by time and id, or in parts by the time of creation
//	I7  a cursor lasts for the pass          it may expire ([ErrExpired], or three runs that fail at it): a listing goes
//	                                         on from the last object, one out of order and a part begin again
//	I8  every page leads on                  an empty one that is not the last, or the same one again, ends the run
//	I9  the bound is heeded                  objects before it are counted, and heard all the same
//	I10 its clock goes forward               the cursor never goes back. A step back within the overlap is covered by it;
//	                                         when nothing is listed where something was, a full sweep is wanted
//	    its clock is about right             times further ahead than Skew move nothing: one bogus stamp would hide all
//	                                         changes until its time has come
//	U1  a part holds what is counted for it  a part that shows fewer than were counted at its beginning and at its end is
//	                                         listed again. At the end rows are counted once more in the store, where an
//	                                         object that was listed twice is one
//	U1  an empty page means nothing is there an adapter that answers an error with an empty page, on a side that does not
//	                                         count, is believed. What the plan then finds shrunk it refuses
//	    an object stays in its part          the part that listed it last has it, the other one is short and is listed again
//
// Whatever ends a run early leaves it partial, with the reason: the cursor stands where it stood,
// what was stored stays, and the next run goes on behind it. A partial run is none that counts.
//
// # Full listings
//
// A generation is complete when every part came to its end without an error and held what it
// should. Only then does an object that has an older stamp count as unseen, and even that only
// begins a proof of absence: [Complete] tells when the listing started, and an object that was made
// or changed later is exempt from it. The process that would act asks for the rest of the proof: a
// look by id, twice, and a time of grace. Older sightings go, a few thousand at a time.
//
// A listing is resumed at (part, cursor) by any process. While a generation is open, rows that it
// has seen again are already new, and rows that it has not are still there: reading from the last
// complete generation on shows both, and nothing is missing from it that is there.
//
// Parts are listed side by side, Config.Workers of them, with one writer.
//
// # Reading what was seen
//
// [Read] hands out a listing in the order of the bytes of (key, id), the same in every store, with
// two chunks of it in memory. It ends with an error or at the end, and never short.
//
// # Limits
//
//   - What is shown later than the overlap is found by full sweeps alone.
//   - What is deleted is found by full sweeps alone, unless Changed lists it.
//   - A change that leaves the time of change as it was is found by full sweeps alone.
//   - An object without version or time of change that goes back to what it said before is not
//     heard again.
//   - Calls are limited by process, and those of an adapter that makes several in one function
//     count as one.
//   - A Config belongs to one source, destination and store. Sweeps of two names know nothing of
//     each other.
package scan
