// Package reconcile makes source, ledger and destination agree again, within bounds, and rebuilds a
// ledger that was lost.
//
//	r, err := reconcile.New(db, reconcile.Config{
//		Name: "orders", Mapping: "1",
//		Source: shop, Type: "order", All: api.Orders, Changed: api.Changed, // what should be
//		Coordinator: c, Step: "invoice", Fields: fields, // what we did, and what the document of a step should say
//		Destination: reconcile.Destination{Marked: books.Marked, Find: books.Find}, // what is
//	}, nil)
//	jobs := []schedule.Job{
//		{Name: "orders-changed", Schedule: "*/5 * * * *", Approved: true, Work: r.SyncChanges},
//		{Name: "orders", Schedule: "15 3 * * *", Zone: "Europe/Vienna", Work: r.Run},
//	}
//
// Three mistakes that are easily made:
//
//   - A listing that answers a failure with an empty page. Whatever cannot be answered is an error:
//     an empty page says that there is nothing, and what is not there may be made, or be asked
//     about.
//   - A Find that asks a search index. It is behind, and what it does not show yet is made a second
//     time.
//   - Effects that say "not done" for want of evidence. What it says is believed: a mail goes out
//     again.
//
// A run of [Reconciler.Run] belongs to a [schedule.Job]. The pause of the job and its lease are
// asked before every action, and it only plans until a person has approved the job.
//
// # From a listing to a plan
//
//	list      both systems are read from one end to the other (package scan); a listing that is not whole is no listing
//	compare   the two listings and the ledger are merged in the order of their keys; what is plainly in sync is counted
//	judge     if more than half of the documents differ in one same field, the mapping changed, not the documents:
//	          the plan is refused with that diagnosis, before a person is asked about any of them
//	verify    every other difference is looked at once more, because listings are minutes old and the world moves
//	bound     the complete plan is held against its bounds; what is over them is withheld
//	store     findings in the order of their keys, counts, and an id over all of it
//
// A look asks the ledger first, then the source, then the destination. What the other two say is
// then at least as new as the ledger, and an instance that began meanwhile refuses a second start
// by itself. What one side does not have is looked for twice, apart by the time in which the
// destination settles. Where the saga is not done with an instance the others are not asked:
// nothing is planned over its head.
//
// Planning writes to the tables of listings, plans and drift, and nowhere else: not to the source,
// the destination, the ledger or the inbox.
//
// # What proves that an object is gone
//
// Silence is no proof. A document whose object the source does not have is an orphan once all of
// this holds: the listing was whole, without an error and counted; its source did not shrink; the
// source would show the object if it were there (Config.Visible); it was asked by id twice; and an
// earlier run found the same, longer than the grace ago. Even then a person decides.
//
// # From a plan to actions
//
// Each action is looked at once more right before it is done. If its class, its treatment, a
// version, a document or a field is another by then, it is superseded, and nothing is done. So an
// old plan does no harm, and applying one twice does nothing twice. Then
//
//   - a kind with more than fifty actions begins with five, one by one; each is read back when its
//     instance has come to rest, and if it is not as it should be, that kind is stopped;
//   - five failures in a row, or more than a fifth of the last fifty actions, end the run. The next
//     run begins with one action, and what failed goes last, so that a few bad objects do not keep
//     the others from their turn;
//   - what is withheld stays so until a person approves that plan by its id;
//   - what the last run did already, and nothing came of it, is for a person until a version, a
//     document or a field changes: done every night, it would look like success.
//
// Actions go the way of a webhook: what Decide says is applied: a start, a revision, a withdrawal,
// and the saga does the rest with its own keys and lookups. A document is never touched from here.
//
// # What a run says
//
//	ok        everything that was to be done is done, or there was nothing
//	partial   something failed, could not be looked at, or is left for the next run
//	refused   something waits for an approval, or the plan was refused with a diagnosis
//	failed    the run broke off: see its error
//
// What is for a person to decide does not spoil a run; it is listed, with since when
// ([plan.Drifts]).
//
// # Rebuilding
//
// [Reconciler.Rebuild] makes a ledger again from what carries our mark. It creates, sends and
// undoes nothing.
//
//	one document, as it should be               adopted: the saga is done; mails count as sent
//	one, untouched since an older version       adopted as that version left it; the update is left to a coordinator
//	one, of an object that was cancelled since  adopted as it was before; withdrawing it is for a run with bounds
//	one that does not match, or several         in review, so that nothing is started for the key
//	only void ones                              undone: its mail counts as sent, and a newer version makes it again
//	none                                        nothing; the next run starts what is missing
//	one, and the source has no object           nothing; it is an orphan for a person
//
// A mail counts as sent unless Config.Effects says that it was not, which is believed: the next
// version sends it.
//
// Rebuilding twice gives the same ledger, and so does rebuilding after a crash. Then SyncChanges
// begins at the beginning.
//
// # What is not guaranteed
//
//   - A look and the action behind it are two calls. What happens between them is up to the saga:
//     its lookups and keys keep a second document from being made, not this package.
//   - Only a person tells a document that was deleted on purpose from one that was lost.
//   - A source that answers "there is none" for what it has, to a listing and to two questions by
//     id, over the grace, is believed; what follows is a question to a person.
//   - The age of a drift is judged by this machine's clock.
package reconcile
