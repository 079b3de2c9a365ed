// Package saga holds definitions of sagas and the machine that decides about them. It is pure: standard
// library only, no input or output, no clock, no log. Times arrive in events. This comment is the design
// document of the package; its numbered rules are quoted by the tests that hold them.
//
// # The words
//
//   - A saga is a named, versioned [Definition]: an ordered list of steps.
//   - A step is one forward action, its compensation (undo), and how it is safe to repeat.
//   - A work is one unit of work, named by saga and work id: order-to-invoice shop:order:10492 ([ID]).
//   - A revision is a version of the source object. The work was started for one; a newer one runs it again.
//   - A [Record] is one line of the ledger. A work's records form a chain.
//   - An attempt is one try of one step in one direction. To arm it is to record the intent to make it.
//   - A key is the idempotency key of a step's effect. It is the same for every attempt.
//   - An external id is what the destination calls the thing we made.
//   - A step is in doubt when it was armed and its outcome is not on record.
//   - The pivot is the point of no return: the step after which the only ways are forward or a person.
//   - A [Signal] is what anyone but the holder of a work has to say to it.
//   - A work in review is parked for a person, with a [Reason].
//
// # A definition
//
// A definition is a list of typed values. It can be validated, hashed, printed and compared; nothing is
// replayed, so an action may be any Go code.
//
//	saga.Define("order-to-invoice", 1,
//		saga.Do("customer", s.ensureCustomer).Idempotent().NoUndo("customers outlive their orders"),
//		saga.Do("invoice", s.createInvoice).Find(s.findInvoice).Undo(s.voidInvoice),
//		saga.Do("mark-synced", s.markSynced).Idempotent().NoID().UndoMaybe(s.clearSynced).Pivot(),
//		saga.Do("receipt", s.sendReceipt).AtMostOnce().NoUndo("the shop tells the customer that the order is cancelled"),
//	)
//
// An order cancelled meanwhile makes mark-synced refuse, and the invoice is voided. A bounced e-mail stands
// behind the pivot and never voids an invoice. [Define] reports every fault at once. A definition's version
// belongs to the work that started with it; [Spec.Structure] says whether two definitions under one number
// are the same.
//
// How a step is safe to repeat, from strongest to weakest:
//
//	said as              means                                           crash between effect and record       guarantee
//	.Idempotent()        upsert, PUT, natural id: repeating changes      repeat                                effectively once
//	                     nothing
//	.Keyed(24*time.Hour) destination remembers our key that long         resend, same key, inside the window;  effectively once in the window
//	                                                                     then as Find or review
//	.Find(fn)            destination can be asked for our reference      settle, ask, adopt, resume or redo    once, under stated timing; else a
//	                                                                                                           duplicate the audit finds
//	.AtMostOnce()        the outcome of a lost attempt is unknown        look for evidence, else review        at most once, never twice unasked
//
// What the guarantees rest on:
//
//	step says    guarantee                                                            rests on
//	Idempotent   effectively once, for ever                                           the destination's own identity for the object
//	Keyed(ttl)   effectively once while now < first armed + ttl − margin;             the destination's dedupe of that key
//	             then as Find if there is one, else review
//	Find         once under A1–A3; otherwise a duplicate the audit finds              A1–A3
//	AtMostOnce   never twice without a person saying so                               nothing: the price is a review now and then
//
// The assumptions:
//
//   - A1: a request's first byte leaves before its recorded deadline or never, and no answer is awaited past it.
//   - A2: a request that was not answered by its deadline takes effect within [Action.Settle] of it, or never.
//   - A3: a lookup made later than that sees the effect. So the settle time covers both: how late a request may
//     arrive, and how long the destination takes to show what it did.
//   - A4: decisions are made on what the primary database says, never on a replica's word.
//   - A5: clocks run at the same rate; that they agree is not assumed. A [Moment] bounds the database's clock
//     from both sides: "settled?" is asked of the lower bound, "expired?" of the upper one.
//
// Two things cannot be had: exactly once at a destination with neither key nor lookup, and exactly once
// against a process that wakes up after its lease and still talks to an unkeyed destination.
//
// # The chain
//
// A work's records form a chain: each carries its number and a hash over its content and its predecessor's
// hash ([Record.Sum]). One record says what was learned and what was thereby set in motion: "invoice made,
// inv_5530; mark-synced attempt 1 armed, deadline 12:00:31". A saga of four steps that goes well is five
// records. Where a work stands is a [Fold] of its chain, which needs no definition.
//
//   - R1: one record for one decision. What an event taught and what follows from it are the same record.
//   - R2: an event that does not fit the chain is an error and makes no record: the caller's view is stale.
//   - R3: [Decide] is a function. The same definition, state and event give the same decision, and the state
//     is not changed.
//   - R4: every decided record folds, and a fold from the first record equals a fold from any record with a
//     snapshot. A snapshot is taken after 64 records without one.
//   - R5: texts in a record are valid UTF-8 without NUL and bounded; a bad byte never makes a record
//     unstorable, least of all after an effect.
//   - R6: the first record says what caused the start, in the starter's words ([Start].Cause).
//
// # The machine
//
// [Decide] turns (structure of the definition, chain so far, event) into (record to append, command to do).
// It never acts. Its caller has these duties, in this order:
//
//  1. Append the record. Nothing of the decision exists before the ledger has stored it. When the answer is
//     lost, append the same record again until it is known, and decide nothing else meanwhile.
//  2. Fold the stored record with [State.Apply] and do the command: run an attempt with
//     [State.Invocation] and [Program.Act], ask with [Program.Look], get a send slot, wait, or let go.
//  3. Feed back what came of it as the next [Event]. An outcome is never dropped. If its attempt is closed by
//     then, post it as a late answer.
//
// Further: pending signals are fed before anything is armed, so an event carries no slot while one is
// pending. The slot in hand must be for the step that the decision arms. The definition's version must be the
// work's, or, for a work that has ended, the newest that this process knows. A process that does not know it leaves the
// work alone: it stays due for one that does. Only one goroutine decides for a work.
//
// What cannot be stored, and what cannot be:
//
//   - M1: bodies are made valid UTF-8 where they enter: results, what lookups find, what signals bring (CORE-10).
//   - M2: an external id is never altered. One that is too long, or no valid text, is left out, and the record says so:
//     asking for it is a fault, as for a body that was dropped (CORE-17).
//   - M3: nothing is appended that its own fold refuses ([State.After]; CORE-1). A record that does not fold, or that the
//     ledger calls invalid, is decided again from the same event with [Event.Invalid]: first without the bodies and words
//     that others gave it, then as a review, poison, with words of the machine alone. That consumes the signal, and
//     leaves an attempt open until its deadline. A work that has ended stays so (CORE-10, 30).
//   - M4: the machine does not panic: what it cannot decide is parked in the same way.
//
// # A step, forward
//
//   - F1: nothing is sent that was not armed by a stored record with its key and deadline. The step that is
//     armed is the first that is not done, and one attempt is open at a time.
//   - F2: no step is armed until its send slot is in hand. Without it the record says what was learned, and
//     the step is armed by a record of its own.
//   - F3: success makes the step done, with external id and result. The same record may arm the next step;
//     after the last one the work is completed.
//   - F4: provably not sent, and no earlier attempt may have happened: ready again after the backoff, whatever
//     the step said about repeating. It spends nothing of the policy, and a key that was never sent has no window yet (CORE-19).
//   - F5: provably not sent, but an earlier attempt may have happened: in doubt.
//   - F6: refused, up to and including the pivot, and no earlier attempt may have happened: the saga turns to
//     compensation, and the step is owed nothing.
//   - F7: refused, but an earlier attempt may have happened: the saga turns, and the step is owed an undo. A
//     refusal of attempt k proves nothing about attempt k−1. Nor does one of an attempt's second request say anything of
//     its first: the gate counts what it lets out (CORE-20). Not sent after a second request is in doubt likewise (F5).
//   - F8: refused behind the pivot: review. There is no automatic way back.
//   - F9: every other end of an attempt (time-out, cut, 5xx, cancelled, a panic behind the gate) leaves the
//     step in doubt. Unknown is not failed.
//   - F10: an open attempt whose process is gone is left alone until its deadline, so that a late answer can
//     land. Then it is lost, and the step in doubt. When every other process is proven gone,
//     the attempt is lost at once.
//   - F11: in doubt and Idempotent, or Keyed inside the window: armed again after the backoff, same key.
//   - F12: Keyed past the window: as Find, else review. The window is asked of the latest time it may be, and
//     a whole attempt must fit into what is left, with the time it takes to settle.
//   - F13: no lookup is made before every unanswered attempt has settled: the earliest time it may be is at or past
//     the latest deadline plus the settle time.
//   - F14: a lookup that found it makes the step done; the finding is adopted with its external id.
//   - F15: a lookup that found it half-made arms the next attempt with what was found, to finish it.
//   - F16: a lookup that found nothing allows the next attempt, after which the step is as never sent.
//   - F17: except for AtMostOnce: there a lookup is evidence and never a licence to send again. What it did not find,
//     or found half-made, is a person's matter, on every path (CORE-29, 31): review, also when a newer version waits or
//     the step is of another version of the definition. On the way back there is nothing to undo, or what was found
//     half-made; but before a newer version begins, a person is asked. So however lookups lie, the step may have
//     happened once, and once more for each person's word that it did not and for each undo.
//   - F18: a lookup that cannot tell is repeated after a backoff, at most 12 times in a row. Then, or as soon as
//     more than one was found: review, with all ids.
//   - F19: AtMostOnce in doubt without a lookup: review.
//   - F20: what was in flight when its process died is mostly a bystander (realworld 2). So from its second crash on a
//     step that may be repeated pauses, 1 s and twice as long each time, to 15 min; and after [Event.MaxCrashes] crashes
//     it is poison: review, with how many other steps were in flight each time. A crash does not count as a try, nor
//     does an announced shutdown, which is no crash.
//   - F21: an action or definition at fault (it asked for a step that is not done) has sent nothing: review.
//   - F22: when the next try comes is the [Retry] policy's: exponential, capped, spread by a jitter derived
//     from key and try. A Retry-After lengthens a wait and never shortens it. None of it decides whether a
//     resend is safe.
//   - F23: a step whose policy is used up goes to review. It turns the saga only where it says Compensate, and never
//     behind the pivot. The policy is asked when something failed, and not by the clock (CORE-19).
//   - F24: a key derives from saga, work, revision, step, direction and reissue. Never from time, attempt or
//     the definition's version.
//   - F25: a key is replaced (reissued) only when nothing happened under the old one: a person said so, or its
//     window is over and a lookup, or the attempts themselves, showed it.
//   - F26: when the database became another one after the work's latest record was written ([Event.Changed]), a
//     live work that was going forward and was not asleep then is not trusted: every step that is not done is put
//     in doubt by a record of its own, with a deadline as if it had been armed now. Its class decides from there
//     (F11 to F19), a late answer closes it, and a pivot that is in doubt counts as one that may have happened. A
//     lookup that finds a step missing, or half-made, takes the doubt from those behind it: they were not armed. But
//     not from one that is AtMostOnce (F17).
//   - F27: a signal that was posted before that change and is unread ([Event.Unread]) may have been consumed by what
//     was forgotten. Then F26 holds for a work that was asleep or in review, too. And a verdict "it did not happen"
//     of that time is stale: it may have been followed already, so a person must look again. Nor does a lookup that finds a
//     step missing take the doubt from those behind it then: a person may have had it skipped, and they were armed.
//   - F28: what failed while the destination served no other work ([Outcome].Outage) spends no attempt and no lookup: an
//     outage is not the work's fault. The waits between grow all the same, and Within ends it (adoption A1).
//   - F29: a panic is the program's fault: it spends an attempt even where nothing was sent, and says nothing of the
//     destination.
//
// # Compensation
//
//   - C1: undos run in strictly the reverse order of arming, one at a time. Over several revisions that is the
//     reverse order of the definition, and a step that this version does not have any more is the last.
//   - C2: owed an undo is a step that is done, in doubt, refused after a maybe, or found half-made, and one that an
//     earlier revision left standing.
//   - C3: skipped is a step that was never armed, was refused with no maybe, was provably not sent every time,
//     was not there when a settled lookup asked, of which a person said so, or that needs no undo.
//   - C4: nothing is undone before every unanswered attempt of it has settled, even when it is done: a late
//     arrival would outlive its undo.
//   - C5: a step in doubt with a lookup is looked up first, to learn its result. So is one whose result is not on record
//     (a person's verdict, an adoption, a result too large to keep), where its undo takes no nil. When that does not tell
//     it: review, undo-failed. Of what an adoption counts as done and a lookup does not find, nothing is owed.
//   - C6: the undo gets the result, or what a lookup found half-made. It gets nil when nothing is known only where the
//     step says UndoMaybe.
//   - C7: an undo is a step of its own: its own key, attempts, retry policy and crashes. In doubt it is
//     repeated under the same key.
//   - C8: an undo that is refused or given up: review, undo-failed. Never silently compensated.
//   - C9: when nothing is left to undo the work is compensated. That there was nothing is success.
//   - C10: nothing is armed forward once compensation began.
//   - C11: there is no automatic way back behind the pivot. Only the source itself can call for one (V13).
//   - C12: a work that has ended changes only by a newer version of its source object, when the source cancels it, or
//     by a person's word on a step that an adoption could not tell of (D10). Every other signal is consumed by a note behind the end, which changes nothing.
//   - C13: the record that turns arms no undo; the next record does. A fail-over that forgets the turn goes
//     forward again, and an undo on its way would undo what stands.
//
// # Signals
//
//   - S1: a signal is consumed once, by a record that names it, and never while an attempt is open. The ledger gives out
//     only what was not consumed; the state remembers the latest 64, so that it does not grow with a work's life (CORE-24).
//   - S2: a person's cancel turns the work, from any place before the pivot may have happened: during a backoff,
//     in doubt, in review. No process reads it that does not know the definition (A0). It takes back a newer version that waits; only a still newer one opens the work again.
//   - S3: a person's cancel when the pivot may have happened, in this revision or an earlier one, comes too late,
//     and is noted. So is one behind the end.
//   - S4: a person's cancel of a work that turned already is noted, unless a newer version waits.
//   - S5: a verdict "it happened" makes the step (or undo) in review done, with the external id it names.
//   - S6: a verdict "it did not happen" makes it ready under a new key, with a fresh policy. Nothing is armed
//     before the attempts of the old key have settled; and when the saga turns meanwhile, the step is still
//     treated as one that may have happened. Only where there is no undo, the word counts at once.
//   - S7: a verdict is stale, and noted, when the work is neither in review nor paused, another step is at issue or another
//     direction, or the attempt has moved on.
//   - S8: a late answer of success closes a step in doubt as done. Evidence is always asked first. It speaks
//     for its own attempt only: others still have to settle before an undo. An answer of an attempt of an earlier
//     revision is noted.
//   - S9: a late answer that names another external id than the recorded one is noted: look for a duplicate.
//   - S10: a conflict is noted. The work goes on with what it was started with.
//   - S13: a wake is noted: the process that reads it looks at the work. It takes up again what the machine gave up (M3), when no
//     step is at issue that a verdict could be about.
//   - S14: a pause holds the work where it is, going forward or back, with who and why. What its source says meanwhile
//     is heard, and waits. A late answer lands. What is in review, or has ended, is not moving, and the pause is noted.
//   - S15: a paused work takes every word of a person that a review takes: a verdict, a retry, a skip, a cancel. It ends the
//     pause, as a resume does. A resume of what is not paused is noted.
//   - S16: a retry tries the step at issue again, or its undo, under the key it has, with a fresh policy and at once: what was
//     refused, given up, poison or at fault, and what only waits. What may have happened still may, so its class decides
//     (F11 to F16). Where it cannot be told whether the step happened (F17, F19, F12), and of what stands in quarantine
//     (D6), it is noted and changes nothing. So is one that speaks of another step or attempt.
//   - S17: a skip says of the step at issue, going forward, in review or paused, that it did not happen and will not. The work
//     goes on; later steps find the result that was given with it, now or later. Nothing is owed but what may still arrive
//     (S6). A newer version of the source object does the step again. It is stale where a verdict is (S7, F27).
//
// # Revisions
//
// A newer version of the source object runs the work again: the same steps, under new keys, each told what it left
// at its destination before. The source may also say that the object is gone.
//
//   - V1: a newer version is a signal, revise, with revision, definition version and input; a cancel with a revision
//     is the source's own. What is not newer than the newest heard is noted and changes nothing. Nor does an input
//     that cannot be kept.
//   - V2: a newer version with the same identity as the one heard before is noted; only what was heard moves on.
//     Not so when the work went back meanwhile, or the source had cancelled it: then it runs again.
//   - V3: a newer version is begun at a step boundary: nothing is open, in doubt or half-made, and the work is not on
//     its way back. It may be running, waiting to repeat what was provably not sent, completed, compensated, or in
//     review without a doubt (refused behind the pivot, given up, at fault).
//   - V4: elsewhere it is heard and waits. A later one replaces it. The work goes on as if nothing had been said, to
//     the next boundary; a work on its way back, until everything is undone. There it begins, by a record of its own.
//   - V5: a step that needs no undo can be left in doubt when everything else is undone. Before the newer version
//     begins it is looked up, or a person asked, unless it is Idempotent: else it would be made a second time.
//   - V6: a revision begins at the first step, with a fresh policy, under keys of its own (F24) and with the newest
//     version of the definition that the signal or the work names or the process that begins it knows (CORE-32). When it
//     does not know that version it lets go of the work, which is due at once for a process that does (CORE-3).
//   - V7: each step is told what an earlier revision left at its destination ([Call.PreviousID], [Previous]) until
//     it is done again or undone. It changes that thing and must not make another. A lookup asks for the effect of
//     this revision: what only an earlier one did is [NotFound]. Of a step that is done once (V9) it asks for the
//     effect of any.
//   - V8: no step is armed before every attempt of earlier revisions on it, forward or undo, has settled. Attempts
//     are counted on over revisions, and a late answer names its key, so none is credited to another revision.
//   - V9: a step that is AtMostOnce, or says [Action.Once], and is done stays done.
//   - V10: when an earlier revision passed the pivot, what is refused or given up goes to review and never back.
//   - V11: the way back owes an undo to what this revision made and to what an earlier one left standing (C2).
//   - V12: a cancel by the source turns the work at once, in doubt or not and behind the pivot or its end, too. Every
//     step says Undo or NoUndo, so there is a way back.
//   - V13: not so behind the pivot when a step stands that this version of the definition does not have: nothing says how
//     it is undone. Then the cancel waits for a boundary as a newer version does.
//   - V14: there the work goes to review, conflict. A verdict that the undo of the step at issue happened by hand leads
//     on, to the next such step or to the undos of the others. To keep sets the cancel aside, and the work goes on as
//     before; what was made good already stays so. A newer version of the source begins as ever.
//   - V15: a sub-revision (17+1, [SubRevision]) runs the work again at the version it has, also when
//     the identity is the same: a person or another program has changed at a destination what the
//     work made. It is newer than its version, and older than the source's next one.
//
// # Adoption
//
// When the ledger was lost, the source still has the objects, and the destinations what the works made. [Adopt] puts on
// record what stands. It makes and sends nothing, so a record that adopts has no arm. The caller first waits until
// everything that was sent has settled (A1 to A3), and only then looks what stands.
//
//   - D1: an adopted chain begins paused, and stays so until its last record says where the work stands. Meanwhile no
//     process moves it: nothing is armed, no signal is consumed, no other record fits. Signals are read behind the last record.
//   - D2: what stands is recorded once for each step. The step is done, with evidence adopted, external id and result. One
//     that shows an older version of the source object is to be brought up to date: it is told what it left (V7), unless
//     it is done once for the whole work (V9).
//   - D3: a step whose outcome is unknown counts as done and is never done again, not by a later
//     revision either, unless it is Idempotent. It is shown as unconfirmed.
//   - D4: a step that the adoption does not name is taken as its class allows. The outcome of an
//     AtMostOnce step, and of a Keyed one without a lookup, is unknown (D3): the time of a key's first
//     use is not known. Another step with a lookup is in doubt, as after a fail-over (F26), and is
//     looked up when the work goes on; that an earlier step was not there proves nothing about it. A
//     lookup sees what this version of the source object made: what an older one left must be named.
//     An Idempotent step without a lookup is still to be done. That a person skipped a step cannot be
//     told.
//   - D5: behind its last record the work is completed when every step is done. Else it goes on.
//   - D6: what stands under our mark and does not match brings the work to review, in-doubt, about that step. A verdict
//     leads on: it happened, then it is ours; it did not, then it is done under a new key. What it says is not known, so
//     the next version of the source object is news, whatever it says (V3).
//   - D7: a work that the source cancelled is compensated when nothing stands; a step whose outcome is
//     unknown is then not owed an undo. Where something stands the work goes back. A step that the
//     adoption does not name is not looked up then.
//   - D8: an adoption that was cut off is repeated. What is on record is not recorded again, what has changed is corrected,
//     a newer version of the source begins a revision (V3, V7), and the same adoption folds to the same state.
//   - D9: adopting a work that is known, and is no adoption that was cut off, changes nothing.
//   - D10: a person may say of an unconfirmed step what happened, at any time, also when the work has ended: the verdict is on
//     record and opens it again (realworld 7). It happened: the step is confirmed, with the external id that is named; if
//     the work went back, it is undone now. It did not: it is done under a new key, before anything behind it that is not
//     done; if the work went back, there is nothing to undo. Not so when its undo was armed: that settles it.
//
// # What a crash can do
//
// Before the arm is stored: nothing; the work is claimed and decided again. After it: the attempt is lost at
// its deadline and the step is in doubt, whether the request left, arrived, took effect, or not; its class
// decides (table above). After the outcome is stored: nothing. During an undo: the undo is repeated under its
// key. Deploys are no crashes: what stands at its send gate ([Gate]) when the process stops is provably not
// sent.
//
// A fail-over that forgets records is weaker than a crash. F26 and F27 hold for what went forward in one revision. Not
// covered is a fail-over that forgets that the work turned, anything about an undo, the record that began a revision,
// the new key that a person allowed for a Keyed step, or a person's signal together with what followed from it: then a
// step that is Find or AtMostOnce, or that very Keyed step, may happen twice, and an undo that was sent may be followed by a
// step forward.
//
// # What we never do
//
// Retry an effect because a write failed. Read a refusal as "failed cleanly" after an unknown attempt. Look
// up without settling. Send again on the strength of a lookup where the step said AtMostOnce. Undo what may
// still arrive. Undo behind the pivot unasked. Send an empty external id. Answer "expired?" or "settled?"
// from a process's own clock.
//
// # The model
//
// The file saga.pml beside this one is a Spin model of these rules, with mutants that break one each. When a
// rule changes, the model changes first, then this list, then the tests that quote it, then the code.
package saga
