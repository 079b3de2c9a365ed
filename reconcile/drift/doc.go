// Package drift compares what a source of truth says, what a destination has and what the ledger knows, names every
// difference, and says what should be done about it. It is pure: it reads and writes nothing. Nothing acts on it yet;
// the last column below is what an applier is to do.
//
// # The three sides
//
//   - [Truth]: an object of the source, and what its document should say.
//   - [Document]: something at the destination. Ours carries our mark: the object's natural key.
//   - [Known]: where the ledger stands with the work of that key.
//
// Each side is looked up by the natural key, which is the work id: shop:order:10492. Nothing is matched by amount,
// date or name; that only ever suggests.
//
// # The classes
//
//	class             source       destination         ledger              to be done
//	in-sync           wanted       one, as it should   done                nothing
//	missing           wanted       none, twice         none                start the saga
//	ledger-lost       wanted       one, as it should   none                adopt it; mails count as sent
//	adopt-mismatch    wanted       one, but different  none                review
//	in-doubt          wanted       any                 in doubt            the saga settles it, or a person
//	phantom-done      wanted       none, twice         done                review; somebody may have meant it
//	stale             newer        one, older          done                start the newer revision
//	diverged          same         ours changed        done                by policy of the field: enforce, review, ignore
//	diverged-foreign  same         not ours changed    done                nothing: those fields are not ours
//	locked            newer        posted or paid      done                review: credit note and reissue, never an edit
//	duplicate         wanted       several             any                 review: keep what the ledger knows, else the oldest
//	orphan            gone, proven one, our mark       any                 review: compensate
//	foreign           -            one, no mark        -                   nothing, ever
//	source-gone       cancelled    one, our mark       done                withdraw; review when it is locked
//	stuck             wanted       any                 live, overdue       resume
//	dup-ledger        wanted       any                 two works           stop the job: it cannot be
//
// # What is to be done by itself
//
// Creating what a lookup by natural key did not find, twice; updating fields that are ours in a document that may be
// changed; adopting what matches exactly; resuming. Everything that destroys, every mail, and everything about
// a posted document is for a person, or for an explicit policy of that class with a bound of its own.
package drift
