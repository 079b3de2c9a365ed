// Package plan compares what a source of truth says, what a destination has and what the ledger
// knows, names every difference, says what should be done about it, and makes a plan of that. It is
// pure: it reads and writes nothing but the streams it is handed, and it has no clock. Package
// repair looks closer, and acts.
//
// # The three sides
//
//   - [Truth]: an object of the source, and what its document should say.
//   - [Document]: something at the destination. Ours carries our mark: the object's natural key.
//   - [Known]: where the ledger stands with the work of that key.
//
// Each side is looked up by the natural key, which is the work id: shop:order:10492. Nothing is
// matched by amount, date or name; that only ever suggests.
//
// # The classes
//
//	class             source       destination         ledger              to be done
//	in-sync           wanted       one, as it should   done, or on its way nothing
//	missing           wanted       none, twice         none                start the saga
//	ledger-lost       wanted       one, as it should   none                adopt it; mails count as sent
//	                  newer        one, untouched      none                adopt it as the older version; the next run revises it
//	adopt-mismatch    wanted       one, but different  none                review
//	in-doubt          wanted       any                 in doubt, review    the saga settles it, or a person
//	phantom-done      wanted       none, twice         done                review, it may have been deleted on purpose; by policy: again
//	stale             newer        one, older          done                start the newer revision
//	diverged          same         ours changed        done                by policy of the field: again, review, ignore
//	diverged-foreign  same         not ours changed    done                nothing: those fields are not ours
//	locked            newer        posted or paid      done, or none       review: credit note and reissue, never an edit
//	duplicate         wanted       several             any                 review: keep what the ledger knows, else the oldest
//	orphan            gone, proven one, our mark       any                 review: compensate
//	foreign           -            one, no mark        -                   nothing, ever
//	source-gone       cancelled    one, our mark       done                withdraw; review when it is locked
//	stuck             wanted       any                 live, overdue       resume; review when a person has paused it, or a rebuild takes it over
//	unreadable        unclear      any                 ended, or none      review; the document is left alone
//	no-source         none, silent none                any                 nothing, and it was compared with nothing
//	accepted          any          any                 any                 nothing: a person has decided that it may stay, until it changes
//	dup-ledger        wanted       any                 two works           stop the job: it cannot be
//
// [Classify] is total: whatever the three sides say, there is a class, with words. To "rerun" a
// work is to run it once more at the version it has; a revise at the same version would be a
// repetition, which the saga answers with what it did before.
//
// # From listings to a plan
//
// [Comparison.Compare] merges the three sides, each in the order of the bytes of its keys, in one
// pass that holds one key at a time. What is plainly in sync is counted and costs no memory: about
// 100 ns a key. What is not goes to Classify. A side out of order, or one that cannot be read to
// its end, is an error; otherwise a row that comes late would be taken for one that is not there.
//
// Listings are minutes old, so what Compare yields is no plan. Its counts are judged first: a
// source that shrank ([Bounds.Shrunk]), a mapping that changed under everything
// ([Bounds.Diagnose]). Then each finding is looked at once more (package reconcile), and what
// remains goes to a [Planner] in the order of keys. It holds none of them: the findings lie in a
// store ([Drafts]), the plan has their tallies and a digest over all of them, its id. Equal
// findings under equal bounds make an equal plan, byte for byte, so an approval names an id and
// nothing else.
//
// # What is to be done by itself
//
// Creating what a lookup by natural key did not find, twice; updating fields that are ours in a
// document that may be changed; adopting what matches exactly; resuming. Everything that destroys,
// every mail, and everything about a posted document is for a person, or for an explicit policy of
// that class with a bound of its own.
//
// # How much
//
// [Bounds] are checked on the complete plan, before the first action: for what makes, what changes
// and what undoes documents a count and a percentage of all keys, each. A kind that is over its
// bound is withheld whole, the others go on, and a person may approve the plan by its id. A plan
// that is refused is not lifted by an approval: there something is wrong that is not a matter of
// how much.
package plan
