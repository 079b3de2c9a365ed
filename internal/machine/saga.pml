/* saga.pml: a model of the step protocol, checked by Spin.
 *
 * The protocol itself is written in RULES.md. The comments below name its rules in words, so that a
 * person who wants to change the protocol can change this file first, see what breaks, and only then
 * touch the Go code. TestModelHolds and TestModelMutants in model_test.go run everything said here.
 *
 * WHAT IS MODELLED
 *
 * One unit of work with three steps, two coordinator processes, one database, one network:
 *
 *   step 0  KEYED    has an undo   the destination remembers our key
 *   step 1  LOOKUP   has an undo   no key, but the destination can be asked (Find)
 *   step 2  OPAQUE   needs no undo at most once: no key and no lookup
 *
 * OPAQUE is the pivot. With -DAFTER the pivot is LOOKUP, and OPAQUE is a step behind it that the
 * destination may refuse (the bounced receipt that must never void an invoice).
 *
 * With -DREVISE the source has something to say: at any moment, in any order and more than once, that there is a
 * version 2 or 3 of the object, or that it was cancelled there. A newer version begins the work again under new keys,
 * at a step boundary. Step 0 is then a PUT: repeating it changes nothing, but an old request that comes late
 * overwrites a newer one, which is worse than a key that the destination remembers. What stands from an earlier
 * revision is updated and not made again. content says which version a step's object has; effect counts objects.
 * A compensated work is undone, except for what needs no undo (with -DNEEDLESS that is LOOKUP, too; with -DOPUNDO OPAQUE
 * has an undo). So there is a way back from everywhere when the source cancels the object. Not so with -DREMOVED, where
 * newer versions run under a definition that does not have OPAQUE any more: nothing says how it is undone.
 *
 * With -DDELETED (and REVISE) a person deletes at the destination, at any moment, what an earlier revision left of LOOKUP.
 * The update of it is answered "gone", and so may an update be of what is there. Gone is no refusal: when every attempt
 * has settled, the destination is asked whether anything stands, of whichever revision. Nothing does: it is made again,
 * by a request that is no update.
 *
 * With -DLIES OPAQUE has a lookup, and its answers have nothing to do with what is there: found, found half-made or not
 * found. What it says may end a doubt for good or bring the work to a person; it never lets the step be sent again.
 *
 * With -DTAKEOVER an old program is still at work, which makes the effect of LOOKUP once, at any moment until it rests, or never.
 * So LOOKUP is asked for before its first request, when the old program rests. What is found is adopted. A work that goes back before
 * it asked leaves alone what is there.
 *
 * With -DREBUILD the whole ledger is lost once, while the work goes forward, is in review or has ended, and is rebuilt:
 * a person waits until what was sent has settled, looks at KEYED, perhaps at LOOKUP, and puts on record what stands, one
 * record for each step. That may be cut off between any two records and is then done again. OPAQUE counts as done.
 * People look at it, each whenever it has settled, and say later what they saw, also when the work has ended.
 *
 * With -DKEPT the keyed destination saves some refusals under the key, as it saves a success, and says so: it refuses every request under
 * it, also one that comes late. Such a refusal settles all attempts under the key. Others it forgets, and they speak of their own attempt.
 *
 * With -DPOISON a step that was in flight when its process died is repeated that often (LIMIT), and then a person is
 * asked. Meanwhile a late answer still counts, and a cancel still turns the work.
 *
 * With -DHANDS people lay hands on the work: they pause it and let it go on (WORDS times in all), have a step tried again
 * that a review is about, and say of OPAQUE, when they have looked, that it did not and will not happen.
 *
 * The ledger is a chain. The model keeps its fold (what the records add up to) and, instead of the
 * hash of the tail, one bit per process: fresh[w] says that the tail is the one process w decided on.
 * Any append clears the bit of the other process. A decision that settles or arms is made in one
 * statement and appended in a later one; everything may happen in between, which gives every race
 * and every stall of any length.
 *
 * A session is over in the ledger when its lease is, or when its process is proven gone. Its process has stopped trusting it
 * by then: it sends nothing and awaits nothing under it any more. So what such a session has armed is lost at once, and what
 * is still on its way settles from there. After a fail-over that does not follow: there an attempt's deadline is waited for.
 * Nor does it with -DJUMP, where the ledger's clock runs ahead: the lease is over by it, and its process goes on. The process that
 * takes the work over has heard the clock before, and waits for the deadline by what it showed then and the time gone by.
 *
 * Faults: crash between any two statements; a session that expires while its process lives on (also one that is
 * stopped, and goes on when another has gone on for it); a
 * deadline that passes under a live attempt; request lost, late or out of order; answer lost; refusal by
 * the destination; connection refused (provably not sent); a commit whose answer is lost; cancel by
 * an operator at any moment. With -DREGRESS, one fail-over of the database that forgets the last record,
 * at any moment. With -DVERDICT, two operators who look at the destination and then, later, say whether
 * the effect of OPAQUE happened; one "did not happen" is allowed to reissue the step.
 *
 * WHAT IS LEFT OUT
 *
 *   - Time. A deadline passes when it passes (dl[w]); "settled" is stated as what it stands for: nothing
 *     of that step is under way, and no process may still send (assumptions A1 to A3 taken as given).
 *   - Attempt numbers. moved[w] says that the attempt in the memory of process w is not the one the chain
 *     is in doubt about any more; the implementation learns the same from the hash of the arming record.
 *   - The answers of one work are never mixed with another's: works share no state.
 *   - Backoff, the pauses after crashes, budgets of attempts, the window of a key (it never ends here), an undo that
 *     is refused, an unfinished find, hashes, group commit, several records in the lost window.
 *   - With KEPT: a late refusal of the key, which says no more than another late one. It is combined with AFTER and REGRESS.
 *   - With POISON: a person's verdict on the step. It is combined with AFTER alone.
 *   - A signal that says the same at a newer version, a definition that changes with the revision, and a person who
 *     keeps what the source cancelled. REVISE is not combined with REGRESS, VERDICT or TOMB.
 *   - With DELETED: a late "gone", which says no more than that the outcome is unknown, and a step without a lookup, which
 *     goes to a person. It is combined with AFTER alone.
 *   - With TAKEOVER: an old program that makes what a key names, or what is done at most once. It is combined with AFTER alone.
 *   - With REBUILD: a ledger that is lost on the way back, or while the answer of a commit is outstanding; adoption of a
 *     newer revision or of what the source cancelled; a quarantine; a person's word that OPAQUE happened when the work
 *     went back and OPAQUE has an undo. It is combined with AFTER alone.
 *   - With HANDS: a pause of what is not the work's own (its destination, its saga), a retry of what the policy gave up, and
 *     a step other than OPAQUE that is skipped. It is combined with AFTER alone.
 *   - What a lookup that finds a step missing says of those behind it after a fail-over (F26): here they stay in doubt. So
 *     a skip that a fail-over forgets, which must not be forgotten with it (F27), is left to TestInvariants.
 *   - With LIES: the lookup of LOOKUP tells the truth, a lookup takes no time, and what it says is recorded at once.
 *   - Requests of an undo carry no revision: a late one removes whatever stands. That is more than a destination
 *     would do which is told the external id.
 *   - A decision that neither settles an outcome nor arms a step is one statement: when it is rejected, the
 *     process reloads and decides again, so a split would add nothing.
 *   - A takeover may or may not leave a record in the chain: both are explored.
 *
 * WHAT MUST HOLD (each is a named assertion; the name is what pan prints)
 *
 *   noDoubleEffect        no step takes effect twice, whatever its class
 *   finishedIsFinal       a completed or compensated work is never written again
 *   nothingDropped        an answer that reached a living process is in the chain or in a signal, and what a person
 *                         said of an unconfirmed step was read
 *   noNeedlessReview      an OPAQUE step whose outcome a process was told does not end in doubt, and no review after
 *                         crashes has an answer or a cancel before it that would end it
 *   noLostWork            at the end of every execution the work is terminal or in review
 *   completedIsWhole      completed: every effect once, nothing undone
 *   compensatedIsClean    compensated: the net effect of every step is nothing
 *   chainTellsTheTruth    wherever the work ended: what the chain calls done is there, once, and not undone; what it
 *                         calls ready, refused, undone or skipped has no net effect
 *   noWayBackAfterPivot   no work turns to compensation once its pivot is done, in whichever revision; only a
 *                         cancel by the source may do that
 *   heedsPause            (HANDS) nothing is armed while the work is paused
 *   noCrashLoop           (POISON) no more than LIMIT processes die with the same step in flight
 *
 * and with REVISE, where "once" means one object per step and one effect of OPAQUE over all revisions:
 *
 *   neverOlder            no request of an older revision lands on the content of a newer one
 *                         With LIES what a lookup found may not be there, and what it did not find may: then completed
 *                         and compensated speak of the other steps alone.
 *   newestWins            completed: with the newest version the source ever spoke of, and that was no cancel.
 *                         Compensated: no newer version was left aside, but by an operator's cancel after it
 *
 * BUDGETS: how often each fault may strike in one execution (-DCRASHES=2 and so on; default 1 each)
 *
 *   CRASHES   crashes of a process
 *   EARLY     sessions that expire while their process lives
 *   LOSSES    lost requests, lost answers, refused connections, deadlines that pass under a live attempt
 *   AMBIG     commits whose answer is lost
 *   NEWS      (REVISE) what the source says, default 2
 *   WORDS     (HANDS) pauses, resumes and retries, default 2
 *   PEOPLE    (REBUILD) those who look at the unconfirmed step, 0 to 2, default 1
 *   LIMIT     (POISON) crashes with a step in flight before a person is asked, default 2
 *
 * SWITCHES that change the scene: AFTER, REGRESS, JUMP, VERDICT, HANDS, KEPT, LIES, POISON, REBUILD, TAKEOVER, REVISE with DELETED, OPUNDO, NEEDLESS or REMOVED
 * as above; NOOPERATOR: only the source cancels; TOMB gives the keyed destination a
 * "cancel by key", so that its undo need not settle first; LIVE replaces the assertions at the end by
 * "every fair execution reaches a terminal state or review".
 *
 * MUTANTS: each switch removes one rule, and Spin must find a counterexample. That shows that the model has
 * teeth, and what the rule is for.
 *
 *   NOFENCE       an append is accepted on any tail, from any session
 *   TOKENONLY     (REGRESS) an append is accepted from any live session, whatever the tail
 *   NOINTENT      send first, record afterwards: no armed record before the effect
 *   NOMARGIN      (REGRESS) an attempt may be sent after its deadline
 *   LATEGATE      an attempt may be sent although its session is over: a process is stopped, and goes on later
 *   FALSELOCK     a session counts as over while its process lives: a lock is believed that is another file's, of another
 *                 host or on a network file system, or that a process does not keep which is merely stopped
 *   BELIEVED      (JUMP) what a clock says that ran ahead is taken for the time: deadlines of attempts have passed by it
 *   NOSETTLE      look up and undo without waiting until nothing earlier can still arrive
 *   DONEONLY      undo only the steps recorded as done
 *   BLIND         an at-most-once step in doubt is simply sent again
 *   TRUSTREFUSAL  a refused attempt is taken as proof that no earlier attempt happened
 *   NOQUAR        (REGRESS) the lost window is trusted: what looks ready was never armed
 *   LATECANCEL    a cancel turns the work although the pivot happened or may have
 *   NOWAIT        (REGRESS) the deadline of an armed attempt is not waited for after a fail-over
 *   DROPRESULT    a result is thrown away together with its rejected arm
 *   DROPSTALE     a result is thrown away because the tail moved
 *   DROPLATE      an answer for a closed attempt is thrown away instead of posted as a signal
 *   OLDLATE       a late refusal is believed for whichever attempt is in doubt now
 *   RESEND        a holder that finds its own armed attempt in the chain sends it again
 *   RETRYWRITE    a write whose answer is lost is answered by doing the effect again
 *   FORGETMAYBE   "provably not sent" makes a step ready although an earlier attempt may have happened
 *   UNDOAFTER     (AFTER) a refusal behind the pivot turns the work to compensation
 *   TURNARM       (REGRESS) the record that turns the work to compensation also arms the first undo
 *   TAILONLY      (REGRESS) the lost window puts only the open step in doubt, not the one armed with its result
 *   HASTY         (VERDICT) an operator may answer before the step has settled
 *   OLDVERDICT    (VERDICT) a verdict is applied to whichever attempt is in doubt now
 *   RETRYSENDS    (HANDS) a retry sends an at-most-once step again that is in doubt
 *   OLDSKIP       (HANDS) the word that a step will not happen is applied to whichever attempt is in doubt now
 *   PAUSEUNDO     (HANDS) a pause does not hold the undos
 *   PAUSETURN     (HANDS) what is resumed goes forward although it had turned
 *   CRASHLOOP     (POISON) a step is repeated however often processes die with it
 *   UNDOLOOP      (POISON) the same, but only undos
 *   POISONOUT     (POISON) a step that was given up after crashes counts as one that did not happen
 *   POISONDEAF    (POISON) a late answer does not end a review after crashes
 *
 *   ANYKEPT       (KEPT) any refusal of a keyed step is taken as one that is saved under its key
 *   UNKEPT        (KEPT) the destination says that it saved a refusal, and did not
 *
 *   and with REVISE:
 *
 *   OLDREV        an older version is taken up when it is heard last
 *   REVINDOUBT    a revision begins while it is not known whether a step happened
 *   REVONCOMP     a revision begins while the work goes back
 *   NOREVSETTLE   a step is armed in a new revision before what was sent in older ones has settled
 *   LATEUNDO      the same, but only the undos of older revisions are forgotten
 *   TWINREV       the same, but only of the step that may be repeated beside a late twin of itself
 *   TWINUNDO      such a step is undone before its twins have settled
 *   FORGETPREV    what an earlier revision left at the destination is forgotten
 *   FINDOLD       a lookup answers for whatever stands, not for this revision's content
 *   OLDREVLATE    a late answer of an older revision is believed for the new one
 *   REVOPAQUE     an at-most-once step is done again in each revision
 *   REVBACK       a refusal turns the work although an earlier revision passed the pivot
 *   UNDOONLYNEW   what stands from an earlier revision and was not touched since is owed no undo
 *   GONEBLIND     (REMOVED) a cancel by the source compensates although nothing says how a step that happened is undone
 *   FORGETGONE    (REMOVED) a cancel by the source is dropped when it has to wait for a boundary
 *   REDONEEDLESS  an at-most-once step that needed no undo is done again after the way back
 *   GONETRUSTED   (DELETED) what is gone, as the destination says, is made again without asking whether anything is there
 *   FORGETDOUBT   (NEEDLESS) a step that needed no undo and was left in doubt is armed again without a lookup
 *   DOUBTOPAQUE   the same, but an at-most-once step, of which a person is asked
 *
 *   and with LIES:
 *
 *   LOOKSEND      an at-most-once step is sent again when a lookup does not find it
 *   HALFSEND      an at-most-once step is sent again when a lookup finds it half-made
 *   REVUNFOUND    what a lookup did not find counts as not sent when a newer revision waits
 *   BACKUNFOUND   what a lookup did not find on the way back counts as not sent for the next revision
 *
 *   and with TAKEOVER:
 *
 *   NEVERASK      a step is sent although an old program may have done it, and it was not asked for
 *   EARLYASK      it is asked for while the old program is still at work
 *
 *   and with REBUILD:
 *
 *   BEGINRUNNING  the first record of an adoption leaves the work running instead of paused
 *   MAILAGAIN     an at-most-once step whose outcome is unknown is taken as not done
 *   HURRIED       the destinations are asked before what was sent earlier has settled
 *   UNASKED       a step that can be asked for, and that was not looked at, is taken as not done
 *   OLDWORD       a person's word on an unconfirmed step is applied to what was sent since
 *   WORDSENDS     a person's word that it did not happen is followed before it is on record
 *   WORDDEAF      a person's word is not read once the work has ended
 *   STAYSDONE     a completed work stays so when a person says that an unconfirmed step did not happen
 *
 * BY HAND
 *
 *   spin -a saga.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   spin -DRESEND -a saga.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   spin -DRESEND -t -p -g saga.pml                                    (replays the counterexample)
 *   spin -DLIVE -a saga.pml && gcc -O2 -DCOLLAPSE -DNFAIR=3 -o pan pan.c && ./pan -a -f -m100000
 */
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EARLY
#define EARLY 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef AMBIG
#define AMBIG 1
#endif

#ifdef REMOVED           /* the definition of newer versions has LOOKUP as its last step, and so as its pivot */
#define AFTER
#endif

#ifndef PEOPLE
#define PEOPLE 1
#endif

#define N 3
#define KEYED  0
#define LOOKUP 1
#define OPAQUE 2
#ifdef AFTER
#define PIVOT LOOKUP
#else
#define PIVOT OPAQUE
#endif

#ifdef REVISE
#ifndef NEWS
#define NEWS 2
#endif
#define NEWEST 3         /* versions are 1 (the work was started with it) to NEWEST                    */
#define GONE   4         /* added to a version: cancelled at the source                                */
#endif

/* directions */
#define F 0
#define C 1

/* states of a step */
#define READY   0
#define STARTED 1        /* armed forward, attempt open            */
#define INDOUBT 2
#define SDONE   3
#define REFUSED 4
#define COMPING 5        /* undo armed (open), or in doubt (closed) */
#define UNDONE  6
#define SKIPPED 7        /* nothing to undo                        */

/* states of the work */
#define RUN    0
#define COMP   1
#define REVIEW 2
#define DONE   3
#define COMPED 4
#define NOWHERE  5       /* REBUILD: the ledger is lost             */
#define ADOPTING 6       /* REBUILD: paused between the records of its adoption */
#define terminal (saga == DONE || saga == COMPED)

/* what a record says; the same words are the content of a late answer */
#define ARM     1
#define OK      2
#define REF     3
#define NOTSENT 4
#define SAVED   6        /* KEPT: refused, and that is saved under the key                             */
#define MISSING 5        /* DELETED: what an earlier revision left is gone, says the destination       */

#define ORPHAN 3
#define code(k, s) (1 + (k) * N + (s))

/* ---- the ledger: the fold of the chain, the head, the sessions, the signals ---- */
byte saga = RUN;
byte st[N];
byte maybe[N];           /* attempts that may have happened; 2 means two or more, or unknown how many */
byte openBy;             /* whose attempt is open: 0 none, w + 1, or ORPHAN: its process forgot it    */
bit  lost;               /* the database went back and no record says so yet                            */
byte holder = 1;         /* the head's session: 0 none, w + 1                                          */
bit  sess[2];            /* the session of process w is live by the database's clock                   */
bit  trust[2];           /* and by its own, which ends earlier                                         */
bit  fresh[2];           /* the tail is the one process w decided on                                   */
bit  cancel;             /* signal: operator's cancel                                                  */
byte late[N];            /* signal: an answer for an attempt the chain has closed                      */

#ifdef REVISE
byte rev = 1;            /* the revision that runs, named by the source's version                      */
byte newest = 1;         /* the newest version heard                                                   */
byte heard;              /* heard, to be switched to at the next boundary; 0 none                      */
bit  gone;               /* the newest version is "cancelled at the source", and nothing was decided   */
bit  passed;             /* the pivot was done in an earlier revision, and was not compensated since   */
bit  prev[N];            /* something stands from an earlier revision, and its external id is known    */
bit  turned;             /* in review after everything was undone                                      */
byte news;               /* signal: a version, or a version + GONE; 0 none                             */
#endif

/* ---- the memory of the two processes ---- */
byte job[2];             /* the attempt in hand: 0 or code(direction, step)                            */
byte ph[2];              /* 1 armed, its gate not passed; 2 sent; 3 over                               */
byte res[2];             /* what came back: 0 nothing yet, 1 success, 2 refusal, 3 cut                 */
bit  dl[2];              /* its deadline has passed                                                    */
bit  landed[2];          /* its record is in the chain, but the commit's answer was lost               */
bit  moved[2];           /* the chain is no longer in doubt about this attempt                         */

/* ---- the destination and the network ---- */
byte orphF[N], orphC[N]; /* requests under way that no process waits for                                 */
byte effect[N], undone[2];
bit  seen, tomb;
#ifdef KEPT
bit  kept;               /* a refusal is saved under the key                                           */
#define KEPT_REFUSAL kept
#else
#define KEPT_REFUSAL false
#endif
#ifdef LIES
bit  absent;             /* OPAQUE is in doubt, and nothing but a lookup says that it is not there     */
#define ABSENT(s) ((s) == OPAQUE && absent)
#else
#define ABSENT(s) false
#endif
#ifdef REVISE
byte content[2];         /* the version of what stands there; effect counts the objects, undone is idle */
byte arev[2];            /* the revision of the attempt in hand                                        */
byte orphV[N * NEWEST];  /* orphF by revision                                                          */
bit  upd[NEWEST];        /* the requests of LOOKUP in this revision update what stands                 */
byte top = 1, tidings = NEWS;
bit  topGone;            /* of all that the source said, the newest: its version, and whether it is gone */
#ifdef DELETED
bit  missing;            /* the destination says that what an earlier revision left of LOOKUP is gone  */
bit  deleted;
#endif
bit  aside;              /* an operator's cancel came after the newest version was heard               */
#define VERSION(x) (arev[x])
#else
#define VERSION(x) 1
#endif

#ifdef TAKEOVER
bit  old = 1;            /* the old program is still at work                                           */
bit  asked;              /* LOOKUP was asked for before its first request, and was not there           */
#endif

#ifdef REBUILD
bit  whole = 1;          /* the ledger was not lost yet                                                */
bit  mine;               /* the tail is the one the adopter decided on                                 */
bit  unconfirmed;        /* OPAQUE counts as done because its outcome is unknown                       */
byte word;               /* signal: a person says of it: 0 nothing, 1 did not happen, 2 happened       */
#define MAILED (effect[OPAQUE] == 1 || unconfirmed)
#ifdef WORDDEAF
#define WORD (word != 0 && (saga == RUN || saga == COMP))
#else
#define WORD (word != 0)
#endif
#elif defined(LIES)
#define MAILED (effect[OPAQUE] <= 1)
#elif defined(HANDS)
#define MAILED (effect[OPAQUE] == (st[OPAQUE] != SKIPPED))
#elif defined(REMOVED)
#define MAILED (effect[OPAQUE] == (st[OPAQUE] == SDONE))
#else
#define MAILED (effect[OPAQUE] == 1)
#endif

#ifndef REBUILD
#define WORD false
#endif

#ifdef POISON
#ifndef LIMIT
#define LIMIT 2
#endif
byte lostWith[2];        /* crashes with the step in flight, in its latest direction, as the chain counts them  */
byte deaths[2];          /* the same as it was, for the assertion only                                 */
#if defined(CRASHLOOP)
#define POISONED(s) false
#elif defined(UNDOLOOP)
#define POISONED(s) ((s) != OPAQUE && st[s] != COMPING && lostWith[s] >= LIMIT)
#else
#define POISONED(s) ((s) != OPAQUE && lostWith[s] >= LIMIT)
#endif
#define CLEARED(s) if :: (s) != OPAQUE -> lostWith[s] = 0; deaths[s] = 0 :: else fi
#else
#define POISONED(s) false
#define CLEARED(s) skip
#endif

byte crashes = CRASHES, early = EARLY, losses = LOSSES, ambig = AMBIG;

/* ---- for the assertions only ---- */
bit told[2];             /* process w knows an outcome that is neither in the chain nor in a signal    */
bit answered;            /* the outcome of OPAQUE's last attempt reached a process that did not crash  */
hidden byte noDoubleEffect, finishedIsFinal, nothingDropped, noNeedlessReview, noLostWork;
hidden byte completedIsWhole, compensatedIsClean, chainTellsTheTruth, noWayBackAfterPivot;
#ifdef POISON
hidden byte noCrashLoop;
#endif
#ifdef REVISE
hidden byte neverOlder, newestWins;
#endif

#ifdef VERDICT
byte verdict;            /* signal: 0 none, 1 did not happen, 2 happened                               */
bit  verdictNow;         /* the verdict speaks of the attempt in doubt now                             */
bit  looked[2];          /* operator j looked, and no attempt was armed since                          */
bit  reissued;
#define JUDGED (verdict != 0)
#else
#define JUDGED false
#endif

#ifdef HANDS
#ifndef WORDS
#define WORDS 2
#endif
#define PAUSE 1
#define GOON  2
#define RETRY 3
byte hand, words = WORDS; /* signal: a person's word; 0 nothing                                         */
bit  skip_, skipNow;    /* signal: OPAQUE will not happen; it speaks of the attempt that is the latest */
bit  sawNone;            /* a person looked, and no attempt was armed since                             */
bit  paused;
hidden byte heedsPause;
#define HANDED (hand != 0 || skip_)
#define PAUSED paused
#ifdef PAUSEUNDO
#define STANDS (saga == COMP)
#else
#define STANDS false
#endif
#define PASSED_OVER (st[OPAQUE] == SKIPPED)
#else
#define HANDED false
#define PAUSED false
#define STANDS true
#define PASSED_OVER false
#endif

#ifdef REGRESS
bit  back = 1, doomed;   /* doomed: the last record will be forgotten; no other commit until then      */
bit  busy[2];
byte was_saga, was_st[N], was_maybe[N], was_openBy, was_late[N], was_holder, was_job, was_w;
bit  was_cancel, was_sess[2], was_fresh[2];
#define UP (!doomed)
#else
#define UP true
#endif

/* ---- the rules that mutants remove ---- */

/* Append rule: accepted only on the tail it was decided on. */
#if defined(NOFENCE)
#define PRED true
#elif defined(TOKENONLY)
#define PRED (sess[w])
#else
#define PRED (fresh[w])
#endif

/* Arming needs a session that is live by the database's clock; recording a result needs only the tail. The send gate
   asks the same of the process's own clock, so that no effect rests on this rule alone. */
#ifdef NOFENCE
#define LIVE_SESSION true
#else
#define LIVE_SESSION (sess[w])
#endif
#define ARMS (rec == ARM || (nxt && rec == OK) || (nxt && TURN_ARMS))
#ifdef TURNARM
#define TURN_ARMS (rec == REF && s > 0)
#else
#define TURN_ARMS false
#endif

/* A1: the first byte leaves before the deadline, and before the session is over by its process's clock, or never. */
#if defined(NOMARGIN)
#define CLOSED(x) (!trust[x])
#elif defined(LATEGATE)
#define CLOSED(x) (dl[x])
#else
#define CLOSED(x) (dl[x] || !trust[x])
#endif

/* Settled: nothing of this step is under way and no process may still send (A2, A3). */
#define UNSENDABLE(x) (dl[x] || !trust[x])
#if defined(NOWAIT) || defined(FALSELOCK) || defined(LATEGATE) || defined(BELIEVED)
#define underway(x, s) (job[x] == code(F, s) && ph[x] == 2)
#else
#define underway(x, s) (job[x] == code(F, s) && (ph[x] == 2 || (ph[x] == 1 && !UNSENDABLE(x))))
#endif
#if (defined(REGRESS) && !defined(NOWAIT)) || (defined(JUMP) && !defined(BELIEVED))
#define GIVEN_UP(x) UNSENDABLE(x)
#else
#define GIVEN_UP(x) true
#endif
#ifdef NOSETTLE
#define SETTLED(s) true
#else
#define SETTLED(s) (orphF[s] == 0 && !underway(0, s) && !underway(1, s))
#endif
#define undoing(x, s) (job[x] == code(C, s) && (ph[x] == 2 || (ph[x] == 1 && !UNSENDABLE(x))))
#if defined(NOREVSETTLE) || !defined(REVISE)
#define FREE(s) true           /* the first attempt of a step in its revision                          */
#elif defined(LATEUNDO)
#define FREE(s) SETTLED(s)
#elif defined(TWINREV)
#define FREE(s) ((s) == KEYED || (SETTLED(s) && orphC[s] == 0 && !undoing(0, s) && !undoing(1, s)))
#else
#define FREE(s) (SETTLED(s) && orphC[s] == 0 && !undoing(0, s) && !undoing(1, s))
#endif
#if defined(TOMB) || defined(TWINUNDO)
#define UNDOABLE(s) ((s) == KEYED || SETTLED(s))
#else
#define UNDOABLE(s) SETTLED(s)
#endif

#if defined(TAKEOVER) && !defined(NEVERASK)
#define UNASKED_FIRST(s) ((s) == LOOKUP && !asked)
#else
#define UNASKED_FIRST(s) false
#endif
#ifdef EARLYASK
#define RESTS true
#else
#define RESTS (!old)
#endif

/* After a fail-over that may have lost commits, the lost window is in doubt before anything else. */
#ifdef NOQUAR
#define LOST false
#else
#define LOST (lost)
#endif

/* ---- words for the guards below ---- */
#define O (1 - w)
#define MOVES ((saga == RUN || saga == COMP) && (!PAUSED || STANDS))
#define due (MOVES || (!terminal && HANDED) || (PAUSED && (SAID || CANCELLED)) || (saga == REVIEW && (late[OPAQUE] != 0 || JUDGED || HEARS)) || TOLD || WORD)
#if defined(POISON) && !defined(POISONDEAF)
#define HEARS (SAID || CANCELLED)                  /* what ends a review after crashes           */
#elif defined(POISON)
#define HEARS CANCELLED
#else
#define HEARS false
#endif
#ifdef REMOVED
#define LACKS (rev > 1)                            /* this version of the definition has no OPAQUE */
#else
#define LACKS false
#endif
#define NEXT (st[0] != SDONE -> 0 : ((st[1] != SDONE || LACKS) -> 1 : 2))
#define over(s) (st[s] == UNDONE || st[s] == SKIPPED || ABSENT(s))
#if defined(OPUNDO)
#define BACK (!over(2) -> 2 : (!over(1) -> 1 : 0))
#define ALL_OVER (over(0) && over(1) && over(2))
#elif defined(NEEDLESS)
#define BACK 0
#define ALL_OVER over(0)
#else
#define BACK (!over(1) -> 1 : 0)
#define ALL_OVER (over(0) && over(1))
#endif
#define open_(s) (st[s] == STARTED || st[s] == COMPING)
#define OPENSTEP (open_(1) -> 1 : (open_(2) -> 2 : 0))
#define SAID (late[0] != 0 || late[1] != 0 || late[2] != 0)
#define AHEAD (PASSED || (st[PIVOT] != READY && st[PIVOT] != REFUSED && !ABSENT(PIVOT)))       /* the pivot, or maybe */
#ifdef LATECANCEL
#define CAN_TURN true
#else
#define CAN_TURN (!AHEAD)
#endif
#define CANCELLED (cancel && CAN_TURN)
#define OPAQUE_OUT (st[OPAQUE] == READY || st[OPAQUE] == REFUSED || ABSENT(OPAQUE))
#ifdef GONEBLIND
#define NO_RETURN false
#else
#define NO_RETURN (LACKS && !OPAQUE_OUT)           /* nothing says how what stands is undone     */
#endif
#define MINE (openBy == w + 1)
#ifdef LIES
#define CAN_ASK SETTLED(OPAQUE)                    /* there is a lookup                          */
#else
#define CAN_ASK true
#endif

#ifdef REVISE
/* A boundary: no attempt is open, and of every step it is known whether it happened. What was compensated is at a
   boundary, unless a step that needs no undo was left in doubt. */
#ifdef REVINDOUBT
#define KNOWN(s) true
#else
#define KNOWN(s) (st[s] == READY || st[s] == SDONE || (st[s] == REFUSED && maybe[s] == 0))
#endif
#define LEFT(s) (st[s] == INDOUBT || (st[s] == REFUSED && maybe[s] > 0))
#ifdef FORGETDOUBT
#define LEFTOVER LEFT(OPAQUE)
#elif defined(DOUBTOPAQUE)
#define LEFTOVER LEFT(LOOKUP)
#else
#define LEFTOVER (LEFT(LOOKUP) || LEFT(OPAQUE))
#endif
#ifdef REVONCOMP
#define UNDID (saga == COMP || saga == COMPED)
#else
#define UNDID (saga == COMPED && !LEFTOVER)
#endif
#define BOUNDARY (openBy == 0 && (UNDID || (saga != COMP && saga != COMPED && !turned && KNOWN(0) && KNOWN(1) && KNOWN(2))))
#define CAN_BACK (!NO_RETURN)
#define SWITCHES (heard > 0 && BOUNDARY)
#define ENDS (gone && (!AHEAD || CAN_BACK || BOUNDARY))
#define TOLD (news != 0 || SWITCHES || (heard > 0 && saga == COMPED) || (ENDS && (saga == DONE || (saga == REVIEW && CAN_BACK))))
#define HEEDED (news == 0)
#define STAYS (!ENDS && !SWITCHES)
#define RESUME if :: saga == REVIEW && turned -> saga = COMPED; turned = 0 :: saga == REVIEW && !turned -> saga = RUN :: else fi
#define LISTENS (!gone && heard == 0)
#define SAME_REVISION (arev[w] == rev || s == OPAQUE)
#define PASSED passed
#define OLDER(s) (prev[s])
#ifdef UNDOONLYNEW
#define NOTHING_OLDER(s) true
#else
#define NOTHING_OLDER(s) (!prev[s])
#endif
#ifdef FINDOLD
#define FOUND (effect[LOOKUP] > 0)
#else
#define FOUND (content[LOOKUP] == rev)
#endif
#ifdef DELETED
#define UNSURE (missing && !FOUND)
#else
#define UNSURE false
#endif
#ifdef GONETRUSTED
#define NOTHING_LEFT true
#else
#define NOTHING_LEFT (effect[LOOKUP] == 0)
#endif
#else
#define TOLD false
#define HEEDED true
#define STAYS true
#define RESUME if :: saga == REVIEW -> saga = RUN :: else fi
#define LISTENS true
#define SAME_REVISION true
#define PASSED false
#define OLDER(s) false
#define NOTHING_OLDER(s) true
#define FOUND (effect[LOOKUP] > 0)
#define UNSURE false
#endif
#ifdef REVBACK
#define MAY_TURN(s) true
#else
#define MAY_TURN(s) (!PASSED && ((s) == PIVOT || st[PIVOT] == READY))       /* a refusal of s turns the work */
#endif

#define HOLDS (UP && PRED && due && !LOST)
#define CALM (openBy == 0 && !SAID && !JUDGED && HEEDED && !WORD && !HANDED)
#define FORWARD (HOLDS && saga == RUN && CALM && STAYS && MOVES)
#define BACKWARD (HOLDS && saga == COMP && CALM && MOVES)

/* ---- the chain ---- */

/* With REGRESS: this commit may be the one that the fail-over forgets. */
inline snapshot() {
#ifdef REGRESS
  if
  :: back && !terminal -> back = 0; doomed = 1; was_w = w;
     was_saga = saga; was_st[0] = st[0]; was_st[1] = st[1]; was_st[2] = st[2];
     was_maybe[0] = maybe[0]; was_maybe[1] = maybe[1]; was_maybe[2] = maybe[2]; was_openBy = openBy;
     was_late[0] = late[0]; was_late[1] = late[1]; was_late[2] = late[2]; was_cancel = cancel;
     was_holder = holder; was_sess[0] = sess[0]; was_sess[1] = sess[1]; was_job = job[w];
     was_fresh[w] = 0; was_fresh[O] = fresh[O]
  :: skip
  fi
#else
  skip
#endif
}

/* One record is appended: the other process's view of the tail is stale. */
inline commit() {
  finishedIsFinal = !terminal; assert(finishedIsFinal);
  extend()
}

/* Only what the source says may follow the end of a chain. */
inline extend() {
  snapshot();
#ifdef REBUILD
  mine = 0;
#endif
  fresh[O] = 0; fresh[w] = 1
}

/* The record arms an attempt: key and deadline are recorded before anything is sent. An attempt that
   is not under a key starts from "nothing happened", so earlier answers speak of a closed matter. */
inline begin(k_, s_) {
#ifdef HANDS
  heedsPause = !PAUSED; assert(heedsPause);
  if :: s_ == OPAQUE -> sawNone = 0; skipNow = 0 :: else fi;
#endif
#ifdef REVISE
  arev[w] = rev;
  if
  :: k_ == F && s_ == LOOKUP ->
       upd[rev - 1] = prev[s_]
  :: else
  fi;
#endif
  if :: k_ == C && st[s_] != COMPING -> CLEARED(s_) :: else fi;
  if :: k_ == F -> st[s_] = STARTED :: else -> st[s_] = COMPING fi;
  openBy = w + 1; job[w] = code(k_, s_); ph[w] = 1; res[w] = 0; dl[w] = 0; moved[w] = 0;
  if
  :: k_ == F && s_ != KEYED -> maybe[s_] = 0; late[s_] = 0;
     if
     :: s_ == OPAQUE -> answered = 0;
#ifdef VERDICT
        looked[0] = 0; looked[1] = 0; verdictNow = 0
#endif
     :: else
     fi;
     if :: job[O] == code(F, s_) -> moved[O] = 1 :: else fi
  :: else
  fi
}

/* The open attempt is closed without an answer: unknown is not failed. When its process is gone, that was a crash. */
inline doubt(s_) {
#ifdef POISON
  if :: !MINE && s_ != OPAQUE -> lostWith[s_]++ :: else fi;
#endif
  openBy = 0;
  if
  :: st[s_] == STARTED -> st[s_] = INDOUBT; if :: maybe[s_] < 2 -> maybe[s_]++ :: else fi
  :: else
  fi
}

/* The work turns to compensation. */
inline turn() {
  noWayBackAfterPivot = (st[PIVOT] != SDONE && !PASSED); assert(noWayBackAfterPivot);
  saga = COMP; cancel = 0
}

#ifdef REVISE
/* An operator's cancel speaks of everything that was heard before it. */
inline setAside() {
  if :: CANCELLED && heard > 0 -> heard = 0; aside = 1 :: else fi
}

/* A source's signal is consumed. An older or equal version is noted, and changes nothing. */
inline hear() {
  if
#ifdef OLDREV
  :: (news % GONE) != rev ->
#else
  :: (news % GONE) > newest ->
#endif
       newest = news % GONE; aside = 0;
       if
       :: news < GONE -> heard = newest; gone = 0
#ifdef FORGETGONE
       :: else -> heard = 0; gone = (saga != COMP && saga != COMPED && !turned && (!AHEAD || CAN_BACK || BOUNDARY))
#else
       :: else -> heard = 0; gone = (saga != COMP && saga != COMPED && !turned);
            if :: saga == REVIEW && turned && !NO_RETURN -> saga = COMPED; turned = 0 :: else fi
#endif
       fi
  :: else
  fi;
  news = 0
}

/* The switch: from the first step again, with what stands. What is done at most once stays done. */
inline again(s_) {
  if
#ifndef FORGETPREV
  :: st[s_] == SDONE -> prev[s_] = 1; st[s_] = READY
#endif
  :: else -> st[s_] = READY
  fi;
  maybe[s_] = 0; late[s_] = 0
}
inline revise() {
#ifdef DELETED
  missing = 0;
#endif
  passed = (saga != COMPED && (passed || st[PIVOT] == SDONE));
  again(0); again(1);
#ifdef REVOPAQUE
  st[OPAQUE] = READY; maybe[OPAQUE] = 0;
#elif defined(REDONEEDLESS)
  if :: saga == COMPED -> st[OPAQUE] = READY; maybe[OPAQUE] = 0 :: else fi;
#elif defined(DOUBTOPAQUE)
  if :: LEFT(OPAQUE) -> st[OPAQUE] = READY; maybe[OPAQUE] = 0 :: else fi;
#endif
  if :: over(OPAQUE) || st[OPAQUE] == REFUSED || st[OPAQUE] == COMPING -> st[OPAQUE] = READY; maybe[OPAQUE] = 0 :: else fi;
  rev = heard; heard = 0; saga = RUN
}
#endif

/* Claim of a work whose session is gone: the session is opened, the head names it, the chain is loaded. */
inline claim() {
  snapshot();
#ifdef REGRESS
  busy[w] = 1;
#endif
  sess[w] = 1; trust[w] = 1; holder = w + 1; fresh[w] = 1;
  if :: fresh[O] -> if :: fresh[O] = 0 :: skip fi :: else fi
}

/* ---- the memory of a process ---- */
inline forget() {
  job[w] = 0; ph[w] = 0; res[w] = 0; dl[w] = 0; landed[w] = 0; moved[w] = 0; rec = 0; nxt = 0; s = 0; k = 0;
#ifdef REVISE
  arev[w] = 0
#endif
}
inline leave() {               /* the process lets go of the work; its session ends */
  forget(); sess[w] = 0; trust[w] = 0; fresh[w] = 0;
#ifdef REGRESS
  busy[w] = 0;
#endif
  if :: MINE -> openBy = ORPHAN :: else fi;
  if :: holder == w + 1 -> holder = 0 :: else fi
}
inline letGo() {               /* no process waits for this request any more; it may still arrive */
  if
  :: ph[w] == 2 ->
       if
       :: k == F -> orphF[s]++;
#ifdef REVISE
          orphV[s * NEWEST + arev[w] - 1]++
#endif
       :: else -> orphC[s]++
       fi
  :: else
  fi
}
inline learn(r_) {             /* a definite outcome is known to this process, and to no other */
  rec = r_; res[w] = 0; ph[w] = 3;
  if :: k == F -> told[w] = 1; if :: s == OPAQUE && !moved[w] -> answered = 1 :: else fi :: else fi
}
#ifdef POISON
#define DIES if :: MINE && OPENSTEP != OPAQUE -> deaths[OPENSTEP]++; noCrashLoop = (deaths[OPENSTEP] <= LIMIT); assert(noCrashLoop) :: else fi
#else
#define DIES skip
#endif
#define CRASH atomic { crashes > 0 -> crashes--; DIES; letGo(); \
  if :: told[w] -> told[w] = 0; if :: s == OPAQUE -> answered = 0 :: else fi :: else fi; \
  leave(); goto idle }

/* ---- the destination ---- */
#ifdef REVISE
inline arriveF(s_, v_) {       /* step 0 is a PUT: repeating it changes nothing, but an old one overwrites a new one */
  if
  :: r = 2
  :: s_ == OPAQUE -> effect[s_]++; r = 1
  :: s_ != OPAQUE ->
       neverOlder = (content[s_] <= v_); assert(neverOlder);
       if
       :: s_ == LOOKUP && !upd[v_ - 1] -> effect[s_]++; content[s_] = v_; r = 1
#ifdef DELETED
       :: s_ == LOOKUP && upd[v_ - 1] && effect[s_] == 0 -> r = 4
       :: s_ == LOOKUP && upd[v_ - 1] && effect[s_] > 0 && losses > 0 -> losses--; r = 4     /* it lies */
       :: (s_ != LOOKUP || upd[v_ - 1]) && (s_ != LOOKUP || effect[s_] > 0) -> effect[s_] = 1; content[s_] = v_; r = 1
#else
       :: else -> effect[s_] = 1; content[s_] = v_; r = 1
#endif
       fi
  fi;
  noDoubleEffect = (effect[0] <= 1 && effect[1] <= 1 && effect[2] <= 1); assert(noDoubleEffect)
}
inline arriveC(s_) {
  effect[s_] = 0; r = 1;
  if :: s_ != OPAQUE -> content[s_] = 0 :: else fi
}
#else
inline arriveF(s_, v_) {
  if
  :: s_ == KEYED && tomb -> r = 2
  :: s_ == KEYED && !tomb && seen -> r = 1
#ifdef KEPT
  :: s_ == KEYED && kept -> r = 5
#endif
  :: s_ == KEYED && !tomb && !seen && !KEPT_REFUSAL ->
       if
       :: effect[s_]++; seen = 1; r = 1
       :: r = 2
#ifdef UNKEPT
       :: r = 5
#elif defined(KEPT)
       :: kept = 1; r = 5
#endif
       fi
  :: s_ != KEYED -> if :: effect[s_]++; r = 1 :: r = 2 fi
  fi;
  noDoubleEffect = (effect[0] <= 1 && effect[1] <= 1 && effect[2] <= 1); assert(noDoubleEffect)
}
inline arriveC(s_) {           /* an undo with nothing to undo is a success */
  undone[s_] = effect[s_]; r = 1;
#ifdef TOMB
  if :: s_ == KEYED -> tomb = 1 :: else fi
#endif
}
#endif

proctype Net() {
  byte r, s, w;
#ifdef REVISE
  byte v;
#else
#define v 1
#endif
end:
  do
  :: atomic { ph[0] == 2 || ph[1] == 2 ->                    /* a request that a process waits for */
       if :: ph[0] == 2 -> w = 0 :: ph[1] == 2 -> w = 1 fi;
       s = (job[w] - 1) % N;
       if
       :: job[w] <= N ->
            if
            :: arriveF(s, VERSION(w))
            :: losses > 0 -> losses--; arriveF(s, VERSION(w)); r = 3      /* answer lost  */
            :: losses > 0 -> losses--; r = 3                  /* request lost */
            fi
       :: else ->
            if
            :: arriveC(s)
            :: losses > 0 -> losses--; arriveC(s); r = 3
            :: losses > 0 -> losses--; r = 3
            fi
       fi;
       res[w] = r; ph[w] = 3; r = 0; s = 0; w = 0 }
  :: atomic { orphF[0] + orphF[1] + orphF[2] > 0 ->           /* late ones, in any order */
       if :: orphF[0] > 0 -> s = 0 :: orphF[1] > 0 -> s = 1 :: orphF[2] > 0 -> s = 2 fi;
       orphF[s]--;
#ifdef REVISE
       if
       :: orphV[s * NEWEST] > 0 -> v = 1
       :: orphV[s * NEWEST + 1] > 0 -> v = 2
       :: orphV[s * NEWEST + 2] > 0 -> v = 3
       fi;
       orphV[s * NEWEST + v - 1]--;
#endif
       if :: arriveF(s, v) :: losses > 0 -> losses-- fi; r = 0; s = 0;
#ifdef REVISE
       v = 0
#endif
     }
  :: atomic { orphC[0] + orphC[1] + orphC[2] > 0 ->
       if :: orphC[0] > 0 -> s = 0 :: orphC[1] > 0 -> s = 1 :: orphC[2] > 0 -> s = 2 fi;
       orphC[s]--;
       if :: arriveC(s) :: losses > 0 -> losses-- fi; r = 0; s = 0 }
  od
}

proctype Clock() {             /* a deadline passes while the attempt is under way         */
end:
  do
  :: atomic { losses > 0 && job[0] != 0 && !dl[0] -> losses--; dl[0] = 1 }
  :: atomic { losses > 0 && job[1] != 0 && !dl[1] -> losses--; dl[1] = 1 }
  od
}

/* ---- people ---- */
proctype Operator() {          /* posts a signal; never touches the chain */
  if
  :: atomic { UP && saga == RUN -> cancel = 1 }
  :: skip
  fi
}

#ifdef REVISE
/* The source says what it has, in any order and more than once. Two things said at the same time are two things
   said one after the other. */
proctype Source() {
  byte v;
end:
  do
  :: atomic { UP && tidings > 0 && news == 0 ->
       tidings--;
       if :: v = 2 :: v = 3 fi;
       if :: news = v :: news = v + GONE fi;
       if :: v > top -> top = v; topGone = (news > GONE) :: else fi;
       v = 0 }
  od
}
#endif

#ifdef DELETED
proctype Deleter() {           /* a person, at the destination */
end:
  atomic { saga == RUN && prev[LOOKUP] && effect[LOOKUP] == 1 && content[LOOKUP] != rev && (st[LOOKUP] == READY || st[LOOKUP] == STARTED || st[LOOKUP] == INDOUBT) ->
       effect[LOOKUP] = 0; content[LOOKUP] = 0; deleted = 1 }
}
#endif

#ifdef VERDICT
#ifdef HASTY
#define LOOKABLE true
#else
#define LOOKABLE SETTLED(OPAQUE)
#endif
proctype Judge(byte j) {       /* looks at the destination, and says later what was seen */
  bit saw;
  if
  :: atomic { saga == REVIEW && st[OPAQUE] == INDOUBT && LOOKABLE -> saw = (effect[OPAQUE] > 0); looked[j] = 1 }
  :: goto out
  fi;
  if
  :: atomic { UP && verdict == 0 && !terminal -> verdict = 1 + saw; verdictNow = looked[j] }
  :: skip
  fi;
out:
  atomic { saw = 0; looked[j] = 0 }
}
#endif

#ifdef TAKEOVER
proctype Old() {               /* the program that did this before                                      */
  if
  :: atomic { effect[LOOKUP]++; noDoubleEffect = (effect[LOOKUP] <= 1); assert(noDoubleEffect) }
  :: skip
  fi;
  old = 0
}
#endif

#ifdef HANDS
proctype Hand() {              /* an operator: pauses, lets go on, has it tried again                  */
end:
  do
  :: atomic { UP && words > 0 && hand == 0 && !terminal ->
       words--; if :: hand = PAUSE :: hand = GOON :: hand = RETRY fi }
  od
}
proctype Skipper() {           /* looks at the destination, and says later that it will not happen     */
  if
  :: atomic { saga == REVIEW && (st[OPAQUE] == INDOUBT || st[OPAQUE] == REFUSED) && SETTLED(OPAQUE) && effect[OPAQUE] == 0 -> sawNone = 1 }
  :: goto out
  fi;
  if
  :: atomic { !terminal -> skip_ = 1; skipNow = sawNone }
  :: skip
  fi;
out:
  atomic { sawNone = 0 }
}
#endif

#ifdef REBUILD
#ifdef HURRIED
#define CALMED true
#else
#define CALMED (SETTLED(0) && SETTLED(1) && SETTLED(2))
#endif
#ifdef BEGINRUNNING
#define BEGUN RUN
#else
#define BEGUN ADOPTING
#endif
/* The ledger is lost: no work, no session, no signal. What is in the memory of the processes and on the network stays. */
inline lose() {
  whole = 0; saga = NOWHERE; openBy = 0; holder = 0; cancel = 0; answered = 0;
  st[0] = READY; st[1] = READY; st[2] = READY; maybe[0] = 0; maybe[1] = 0; maybe[2] = 0;
  late[0] = 0; late[1] = 0; late[2] = 0; sess[0] = 0; sess[1] = 0; fresh[0] = 0; fresh[1] = 0;
  moved[0] = 1; moved[1] = 1
}
proctype Adopter() {
  bit there0, there1, looked1;
end:
  atomic { whole && UP && (saga == RUN || saga == REVIEW || saga == DONE) && !landed[0] && !landed[1] && undone[0] == 0 && undone[1] == 0 -> lose() }
look:                          /* also after a crash: what was read is read again */
  atomic { CALMED -> there0 = (effect[KEYED] > 0); there1 = (effect[LOOKUP] > 0); if :: looked1 = 1 :: looked1 = 0 fi }
  if
  :: atomic { crashes > 0 -> crashes--; goto look }
  :: atomic { saga == NOWHERE -> saga = BEGUN; mine = 1 }
  :: atomic { saga == ADOPTING -> mine = 1 }                  /* begun before a crash */
  :: atomic { saga != NOWHERE && saga != ADOPTING -> goto out }
  fi;
  if
  :: atomic { crashes > 0 -> crashes--; goto look }
  :: atomic { mine -> if :: there0 -> st[KEYED] = SDONE :: else fi }
  :: atomic { !mine -> goto out }
  fi;
  if
  :: atomic { crashes > 0 -> crashes--; goto look }
  :: atomic { mine && looked1 -> if :: there1 -> st[LOOKUP] = SDONE; maybe[LOOKUP] = 0 :: else fi }
#ifdef UNASKED
  :: atomic { mine && !looked1 }
#else
  :: atomic { mine && !looked1 -> if :: st[LOOKUP] == READY -> st[LOOKUP] = INDOUBT; maybe[LOOKUP] = 2 :: else fi }
#endif
  :: atomic { !mine -> goto out }
  fi;
  if
  :: atomic { crashes > 0 -> crashes--; goto look }
  :: atomic { mine -> mine = 0;
#ifndef MAILAGAIN
       st[OPAQUE] = SDONE; unconfirmed = 1;
#endif
       saga = (st[0] == SDONE && st[1] == SDONE && st[2] == SDONE -> DONE : RUN) }
  :: atomic { !mine }
  fi;
out:
  atomic { there0 = 0; there1 = 0; looked1 = 0 }
}
#endif

#ifdef REBUILD
/* Looks at the step whose outcome no lookup told, and says later what was seen. */
proctype Person() {
  bit saw;
end:
  atomic { unconfirmed && SETTLED(OPAQUE) -> saw = (effect[OPAQUE] > 0) }
  if
  :: atomic { word == 0 -> word = 1 + saw }
  :: skip
  fi;
  atomic { saw = 0 }
}
#endif

#ifdef REGRESS
/* The database fails over and forgets the last record. Every session is void: its holder notices that the
   database's identity changed, or gets "missing", and arms nothing more. */
inline keepOpen(x) {           /* is the attempt that is open again still in its process's hand? */
  if
  :: openBy != x + 1
  :: openBy == x + 1 && job[x] != 0 && job[x] <= N && st[(job[x] - 1) % N] == STARTED
  :: openBy == x + 1 && job[x] > N && st[(job[x] - 1) % N] == COMPING
  :: else -> openBy = ORPHAN
  fi
}
proctype Failover() {
  byte p;
end:
  atomic { doomed -> doomed = 0; lost = 1; p = openBy;
    saga = was_saga; st[0] = was_st[0]; st[1] = was_st[1]; st[2] = was_st[2];
    maybe[0] = was_maybe[0]; maybe[1] = was_maybe[1]; maybe[2] = was_maybe[2]; openBy = was_openBy;
    late[0] = was_late[0]; late[1] = was_late[1]; late[2] = was_late[2]; cancel = was_cancel;
    fresh[0] = was_fresh[0]; fresh[1] = was_fresh[1];
#if defined(TOKENONLY) || defined(NOVOID)
    sess[0] = (was_sess[0] && busy[0]); sess[1] = (was_sess[1] && busy[1]); holder = was_holder;
#else
    sess[0] = 0; sess[1] = 0; holder = 0;
#endif
    if                         /* the forgotten record's commit was ambiguous: its writer still has it in hand */
    :: landed[was_w] -> landed[was_w] = 0; job[was_w] = was_job;
       if :: was_job != 0 -> ph[was_w] = 3 :: else -> ph[was_w] = 0; dl[was_w] = 0 fi
    :: else
    fi;
    keepOpen(0); keepOpen(1);
    if                         /* an attempt the chain no longer knows proves nothing about those it knows */
    :: p == 1 && openBy != 1 -> moved[0] = 1
    :: p == 2 && openBy != 2 -> moved[1] = 1
    :: else
    fi;
    p = 0;
    was_saga = 0; was_st[0] = 0; was_st[1] = 0; was_st[2] = 0;
    was_maybe[0] = 0; was_maybe[1] = 0; was_maybe[2] = 0; was_openBy = 0;
    was_late[0] = 0; was_late[1] = 0; was_late[2] = 0; was_cancel = 0; was_fresh[0] = 0; was_fresh[1] = 0;
    was_sess[0] = 0; was_sess[1] = 0; was_holder = 0; was_job = 0; was_w = 0 }
}
#endif

/* ---- a coordinator ---- */
proctype Worker(byte w) {
  byte s, k, rec;              /* the step and direction in hand, and the record to append             */
  bit  nxt;                    /* the record also sets the next thing in motion                        */
  if :: w == 0 -> goto act :: else fi;        /* process 0 accepted the start of the work              */

idle:                          /* Sessions: a claim buries the expired session; the dead never revive */
end_idle:
  do
  :: atomic { UP && due && (holder == 0 || (holder != w + 1 && !sess[O])) -> claim(); goto act }
  :: atomic { UP && due && holder == O + 1 && sess[O] && early > 0 -> early--; claim(); sess[O] = 0;
#if !defined(FALSELOCK) && !defined(JUMP)
       trust[O] = 0;
#endif
       goto act }
  od;

act:                           /* no attempt in memory: fold the chain, decide */
  if
  :: CRASH
  :: atomic { UP && (!due || !sess[w]) -> leave(); goto idle }              /* nothing to do, or lease lost */
  :: atomic { UP && due && sess[w] && !fresh[w] -> fresh[w] = 1 }           /* stale: load the chain again  */

#ifdef REGRESS
  /* The lost window. The forgotten record may have armed the step at the tail, or settled it and armed the one
     behind it in the same breath: both may have happened, by attempts the chain does not know. */
  :: atomic { UP && PRED && due && LOST ->
       commit(); lost = 0;
       if
       :: saga == RUN -> s = NEXT;
#ifndef TAILONLY
          if
          :: (st[s] == STARTED || st[s] == INDOUBT) && s < 2 && st[s + 1] == READY -> st[s + 1] = INDOUBT; maybe[s + 1] = 2
          :: else
          fi;
#endif
          if
          :: st[s] == READY || st[s] == INDOUBT -> st[s] = INDOUBT; maybe[s] = 2
          :: st[s] == STARTED -> maybe[s] = 2
          :: else
          fi;
          s = 0
       :: else
       fi }
#endif

  /* An armed attempt: mine but not in memory, or left by none, or by a session that is over (after a fail-over: past its
     deadline). In doubt, never resent as if new. Otherwise it is left alone, so that its answer still lands. */
  :: atomic { HOLDS && openBy != 0 && (MINE || openBy == ORPHAN || (openBy == O + 1 && !sess[O] && GIVEN_UP(O))) ->
       s = OPENSTEP;
#ifdef RESEND
       if
       :: MINE -> k = (st[s] == STARTED -> F : C); job[w] = code(k, s); ph[w] = 1; res[w] = 0; dl[w] = 0; goto send
       :: else
       fi;
#endif
       commit(); doubt(s); s = 0 }

  /* Signals are consumed by the holder, by a record. Evidence is asked first. A late success is a success. A
     late refusal, or "not sent", speaks only of its own attempt: it decides when that was the only one. */
  :: atomic { HOLDS && openBy == 0 && SAID ->
#if defined(REVISE) || defined(REBUILD)
       extend();
#else
       commit();
#endif
       s = (late[0] != 0 -> 0 : (late[1] != 0 -> 1 : 2));
       if
       :: terminal -> if :: s == OPAQUE -> answered = 0 :: else fi                /* noted behind the end */
       :: !terminal && st[s] == INDOUBT && late[s] == OK -> st[s] = SDONE; CLEARED(s); RESUME
       :: !terminal && st[s] == INDOUBT && late[s] == REF && maybe[s] == 1 -> st[s] = REFUSED; maybe[s] = 0; RESUME
       :: !terminal && st[s] == INDOUBT && late[s] == NOTSENT && maybe[s] == 1 -> st[s] = READY; maybe[s] = 0; RESUME
       :: else
       fi;
#ifdef LIES
       if :: st[OPAQUE] != INDOUBT -> absent = 0 :: else fi;
#endif
       late[s] = 0; s = 0 }
#ifdef VERDICT
  /* A command is stale when the attempt it speaks of has moved on. */
  :: atomic { HOLDS && openBy == 0 && !SAID && JUDGED ->
       commit();
       if
#ifdef OLDVERDICT
       :: saga == REVIEW && st[OPAQUE] == INDOUBT ->
#else
       :: saga == REVIEW && st[OPAQUE] == INDOUBT && verdictNow ->
#endif
            if
            :: verdict == 2 -> st[OPAQUE] = SDONE; saga = RUN
            :: verdict == 1 && !reissued -> st[OPAQUE] = READY; maybe[OPAQUE] = 0; reissued = 1; saga = RUN
            :: else
            fi
       :: else
       fi;
       verdict = 0; verdictNow = 0 }
#endif
#ifdef HANDS
  /* A pause holds the work at a step boundary, going forward or back. Whatever a person has done ends it. */
  :: atomic { HOLDS && openBy == 0 && !SAID && hand == PAUSE -> commit(); hand = 0;
       if :: saga == RUN || saga == COMP -> paused = 1 :: else fi }
  :: atomic { HOLDS && openBy == 0 && !SAID && hand == GOON -> commit(); hand = 0;
#ifdef PAUSETURN
       if :: paused -> saga = RUN :: else fi;
#endif
       paused = 0 }
  :: atomic { HOLDS && PAUSED && CALM && saga == RUN && CANCELLED -> commit(); paused = 0; turn() }
  /* Tried again under the same key: what was refused, what was given up. What happens at most once and is in doubt is
     not: that takes a person's word that it did not happen. */
  :: atomic { HOLDS && openBy == 0 && !SAID && hand == RETRY -> commit(); hand = 0; paused = 0;
       if
       :: saga == REVIEW && st[NEXT] == REFUSED -> s = NEXT; st[s] = (maybe[s] > 0 -> INDOUBT : READY); s = 0; saga = RUN
#ifdef RETRYSENDS
       :: saga == REVIEW && st[OPAQUE] == INDOUBT -> st[OPAQUE] = READY; maybe[OPAQUE] = 0; saga = RUN
#endif
       :: else
       fi }
  :: atomic { HOLDS && openBy == 0 && !SAID && skip_ ->
       commit();
       if
#ifdef OLDSKIP
       :: saga == REVIEW && (st[OPAQUE] == INDOUBT || st[OPAQUE] == REFUSED) ->
#else
       :: saga == REVIEW && (st[OPAQUE] == INDOUBT || st[OPAQUE] == REFUSED) && skipNow ->
#endif
            st[OPAQUE] = SKIPPED; maybe[OPAQUE] = 0; saga = RUN
       :: else
       fi;
       skip_ = 0; skipNow = 0 }
#endif
#ifdef REBUILD
  /* A person's word on the unconfirmed step, at any time. It did not happen: it is done under a new key. Once it is
     followed, or something else is known of the step, every other such word is stale. */
  :: atomic { HOLDS && openBy == 0 && !SAID && WORD ->
#ifdef WORDSENDS
       if
       :: word == 1 && unconfirmed && saga == RUN ->
            word = 0; k = F; s = OPAQUE; job[w] = code(k, s); ph[w] = 1; res[w] = 0; dl[w] = 0; goto send
       :: else
       fi;
#endif
       extend();
       if
#ifdef OLDWORD
       :: word == 1 && (st[OPAQUE] == SDONE || st[OPAQUE] == INDOUBT) ->
#else
       :: word == 1 && unconfirmed ->
#endif
            unconfirmed = 0; st[OPAQUE] = READY; maybe[OPAQUE] = 0;
#ifndef STAYSDONE
            if :: saga == DONE || saga == REVIEW -> saga = RUN :: else fi
#endif
       :: word == 2 && unconfirmed -> unconfirmed = 0
       :: else
       fi;
       word = 0 }
#endif
#ifdef POISON
  /* After too many crashes a person was asked. A cancel still turns the work. */
  :: atomic { HOLDS && CALM && saga == REVIEW && CANCELLED -> commit(); turn() }
#endif

#ifdef REVISE
  /* The source's signals: the only thing that may change a work that has ended. */
  :: atomic { HOLDS && openBy == 0 && !SAID && news != 0 -> extend(); hear() }
  :: atomic { HOLDS && CALM && SWITCHES -> extend(); revise() }
  /* A newer version was heard, and what needs no undo was left in doubt: it is asked first whether that stands, or a
     person when only a lookup says that it does not, or when there is none. */
#ifdef NEEDLESS
  :: atomic { HOLDS && CALM && saga == COMPED && heard > 0 && LEFTOVER && LEFT(LOOKUP) && SETTLED(LOOKUP) ->
       extend(); maybe[LOOKUP] = 0;
       if :: effect[LOOKUP] > 0 -> st[LOOKUP] = SDONE :: else -> st[LOOKUP] = READY fi }
#endif
#ifdef LIES
  :: atomic { HOLDS && CALM && saga == COMPED && heard > 0 && LEFT(OPAQUE) && !ABSENT(OPAQUE) && CAN_ASK ->
       extend();
       if :: st[OPAQUE] = SDONE; maybe[OPAQUE] = 0 :: absent = 1 fi }
  :: atomic { HOLDS && CALM && saga == COMPED && heard > 0 && LEFT(OPAQUE) && ABSENT(OPAQUE) -> extend(); saga = REVIEW; turned = 1 }
#else
  :: atomic { HOLDS && CALM && saga == COMPED && heard > 0 && LEFTOVER && LEFT(OPAQUE) -> extend(); saga = REVIEW; turned = 1 }
#endif
  /* Cancelled at the source: back at once, in doubt or not, when everything that may have happened says how it is
     undone or why it need not be. Else, behind the pivot, a person, at the next boundary: what is in doubt may turn out
     not to stand. */
  :: atomic { HOLDS && CALM && ENDS && (CAN_BACK || !AHEAD) -> extend(); gone = 0; cancel = 0; saga = COMP }
  :: atomic { HOLDS && CALM && ENDS && !CAN_BACK && AHEAD && (saga == RUN || saga == DONE) -> extend(); saga = REVIEW }
#endif

  /* Forward. A cancel turns the work while the pivot is out of the question; afterwards it is refused. */
  :: atomic { FORWARD && (CANCELLED || (st[NEXT] == REFUSED && NEXT <= PIVOT && MAY_TURN(NEXT))) -> commit();
#ifdef REVISE
       setAside();
#endif
       turn() }
  :: atomic { FORWARD && cancel && (st[PIVOT] == SDONE || PASSED) -> commit(); cancel = 0 }
  :: atomic { FORWARD && st[NEXT] == REFUSED && (NEXT > PIVOT || !MAY_TURN(NEXT)) -> commit();
#ifdef UNDOAFTER
       turn()
#else
       saga = REVIEW
#endif
     }
  :: atomic { FORWARD && !CANCELLED && POISONED(NEXT) && (st[NEXT] == READY || st[NEXT] == INDOUBT) -> commit();
#ifdef POISONOUT
       s = NEXT; st[s] = READY; maybe[s] = 0; s = 0;
#endif
       saga = REVIEW }
#ifdef TAKEOVER
  /* What an old program may have done is asked for before the first request. */
  :: atomic { FORWARD && !CANCELLED && NEXT == LOOKUP && st[LOOKUP] == READY && UNASKED_FIRST(LOOKUP) && RESTS ->
       commit(); if :: effect[LOOKUP] > 0 -> st[LOOKUP] = SDONE :: else -> asked = 1 fi }
#endif
  :: atomic { FORWARD && !CANCELLED && !POISONED(NEXT) && st[NEXT] == READY && FREE(NEXT) && !UNASKED_FIRST(NEXT) -> k = F; s = NEXT;
#ifdef NOINTENT
       job[w] = code(F, s); ph[w] = 1; goto send
#else
       rec = ARM; goto append
#endif
     }
  /* In doubt, by class: resend under the same key; settle, ask, adopt or redo; stop for a person. */
  :: atomic { FORWARD && !CANCELLED && NEXT == KEYED && !POISONED(KEYED) && st[KEYED] == INDOUBT -> rec = ARM; k = F; s = KEYED; goto append }
#ifdef DELETED
  /* It says that what was left is gone: is anything there? The old thing is: it is updated after all. */
  :: atomic { FORWARD && !CANCELLED && NEXT == LOOKUP && st[LOOKUP] == INDOUBT && SETTLED(LOOKUP) && missing && !FOUND ->
       commit(); missing = 0;
       if
       :: NOTHING_LEFT -> prev[LOOKUP] = 0; st[LOOKUP] = READY; maybe[LOOKUP] = 0
       :: else
       fi }
#endif
  :: atomic { FORWARD && !CANCELLED && NEXT == LOOKUP && !POISONED(LOOKUP) && st[LOOKUP] == INDOUBT && SETTLED(LOOKUP) && !UNSURE ->
       k = F; s = LOOKUP;
       if
       :: FOUND -> rec = OK; ph[w] = 3;                       /* adopted; may arm the next step */
            if :: nxt = (st[OPAQUE] == READY && FREE(OPAQUE) && LISTENS && !LACKS) :: nxt = 0 fi
       :: else -> rec = ARM
       fi;
       goto append }
  :: atomic { FORWARD && NEXT == OPAQUE && st[OPAQUE] == INDOUBT && CAN_ASK ->
#ifdef BLIND
       rec = ARM; k = F; s = OPAQUE; goto append
#elif defined(LIES)
       if
       :: commit(); st[OPAQUE] = SDONE; maybe[OPAQUE] = 0      /* found, says the lookup */
       :: skip;                                                /* found half-made        */
#ifdef HALFSEND
            rec = ARM; k = F; s = OPAQUE; goto append
#else
            commit(); saga = REVIEW
#endif
       :: skip;                                                /* not found              */
#ifdef LOOKSEND
            rec = ARM; k = F; s = OPAQUE; goto append
#elif defined(REVUNFOUND)
            commit(); if :: heard > 0 -> st[OPAQUE] = READY; maybe[OPAQUE] = 0 :: else -> absent = 1; saga = REVIEW fi
#else
            commit(); absent = 1; saga = REVIEW
#endif
       fi
#else
       commit(); saga = REVIEW
#endif
     }
  :: atomic { FORWARD && st[0] == SDONE && st[1] == SDONE && (st[2] == SDONE || LACKS || PASSED_OVER) -> commit(); saga = DONE; leave(); goto idle }

  /* Compensation, strictly the reverse of arming. Skipped: never armed, or refused with no maybe, or a settled
     lookup that found nothing. Everything else is owed an undo, after it has settled. */
  :: atomic { BACKWARD && NO_RETURN && ALL_OVER -> commit(); saga = REVIEW;
#ifdef REVISE
       turned = 1
#endif
     }
  :: atomic { BACKWARD && !NO_RETURN && ALL_OVER -> commit(); saga = COMPED; leave(); goto idle }
  :: atomic { BACKWARD && POISONED(BACK) && st[BACK] == COMPING -> commit(); saga = REVIEW }
#ifdef DONEONLY
  :: atomic { BACKWARD && !over(BACK) && (st[BACK] == READY || st[BACK] == REFUSED || st[BACK] == INDOUBT) ->
#elif defined(TRUSTREFUSAL)
  :: atomic { BACKWARD && !over(BACK) && (st[BACK] == READY || st[BACK] == REFUSED) ->
#else
  :: atomic { BACKWARD && !over(BACK) && NOTHING_OLDER(BACK) && (st[BACK] == READY || (st[BACK] == REFUSED && maybe[BACK] == 0)) ->
#endif
       commit(); s = BACK; st[s] = SKIPPED; s = 0 }
#ifdef DONEONLY
  :: atomic { BACKWARD && !(POISONED(BACK) && st[BACK] == COMPING) && UNDOABLE(BACK) && (st[BACK] == SDONE || st[BACK] == COMPING) ->
#else
  :: atomic { BACKWARD && !(POISONED(BACK) && st[BACK] == COMPING) && UNDOABLE(BACK) &&
              (st[BACK] == SDONE || st[BACK] == COMPING || st[BACK] == INDOUBT || (st[BACK] == REFUSED && maybe[BACK] > 0) || OLDER(BACK)) ->
#endif
       s = BACK;
       if
       :: st[s] == INDOUBT && s == LOOKUP && effect[s] == 0 -> commit(); st[s] = SKIPPED; s = 0
#ifdef BACKUNFOUND
       :: st[s] == INDOUBT && s == OPAQUE -> commit(); st[s] = SKIPPED; s = 0
#elif defined(LIES)
       :: st[s] == INDOUBT && s == OPAQUE -> commit(); absent = 1; s = 0
#endif
       :: else -> rec = ARM; k = C; goto append
       fi }
  fi;
  goto act;

append:                        /* one record: what was learned, and what it sets in motion */
  if
  :: CRASH

  /* Ambiguous commit: the same record is appended again, and the answer is "mine". */
  :: atomic { landed[w] -> landed[w] = 0; goto applied }

  :: atomic { UP && !landed[w] && PRED && (!ARMS || LIVE_SESSION) ->                    /* appended */
       commit(); told[w] = 0;
       if
       :: rec == ARM -> begin(k, s)
       :: rec == OK && k == F -> openBy = 0; st[s] = SDONE; CLEARED(s); if :: nxt -> begin(F, s + 1) :: else fi
       :: rec == OK && k == C -> openBy = 0; st[s] = UNDONE;
#ifdef REVISE
            prev[s] = 0;
#endif
            if :: nxt -> begin(C, s - 1) :: else fi
       :: rec == REF -> openBy = 0; st[s] = REFUSED;
            if :: nxt -> turn() :: else fi;
            if :: nxt && TURN_ARMS -> begin(C, s - 1) :: else fi
#ifdef KEPT
       :: rec == SAVED -> openBy = 0; st[s] = REFUSED; maybe[s] = 0;
            if :: nxt -> turn() :: else fi
#endif
#ifdef DELETED
       :: rec == MISSING -> openBy = 0;
            st[s] = INDOUBT; missing = 1; if :: maybe[s] < 2 -> maybe[s]++ :: else fi
#endif
       :: rec == NOTSENT -> openBy = 0;
#ifdef FORGETMAYBE
            if :: k == F -> st[s] = READY :: else fi
#else
            if :: k == F -> st[s] = (maybe[s] > 0 -> INDOUBT : READY) :: else fi
#endif
       fi;
       if
       :: goto applied
       :: ambig > 0 -> ambig--;
#ifdef RETRYWRITE
          if :: rec != ARM && !nxt -> rec = 0; ph[w] = 1; res[w] = 0; goto send :: else -> landed[w] = 1 fi
#else
          landed[w] = 1
#endif
       fi }

  :: atomic { UP && !landed[w] && PRED && ARMS && !LIVE_SESSION ->                      /* no-lease */
       if
       :: rec == ARM -> leave(); goto idle
       :: else ->
#ifdef DROPRESULT
            leave(); goto idle
#else
            nxt = 0                                   /* the result alone */
#endif
       fi }

  :: atomic { UP && !landed[w] && !(PRED) ->                                            /* stale, missing */
       if
       :: rec == ARM || (rec == OK && job[w] == 0) -> forget(); goto act    /* decided, nothing learned */
       :: rec != ARM && job[w] != 0 && MINE && !fresh[w] ->                  /* still open: feed it again */
#ifdef DROPSTALE
            leave(); goto idle
#else
            fresh[w] = 1; nxt = 0
#endif
       :: rec != ARM && job[w] != 0 && !(MINE && !fresh[w]) ->               /* closed: post it as a signal */
#ifndef DROPLATE
            told[w] = 0;
            if
#ifdef OLDLATE
            :: k == F && late[s] != OK -> late[s] = rec
#elif defined(OLDREVLATE)
            :: k == F && late[s] != OK && (rec == OK || !moved[w]) -> late[s] = rec
#else
            :: k == F && late[s] != OK && rec != MISSING && SAME_REVISION && (rec == OK || !moved[w]) -> late[s] = (rec == SAVED -> REF : rec)
#endif
            :: else
            fi;
#endif
            forget();
            if :: sess[w] && holder == w + 1 -> goto act :: else -> leave(); goto idle fi
       fi }
  fi;
  goto append;

applied:                       /* the record stands: now, and not before, do what it armed */
  atomic {
    if
    :: rec == ARM -> rec = 0; goto send
    :: rec == OK && nxt -> s = (k == F -> s + 1 : s - 1); nxt = 0; rec = 0; goto send
    :: rec == REF && nxt && TURN_ARMS -> s = s - 1; k = C; nxt = 0; rec = 0; goto send
    :: else -> forget(); goto act
    fi }

send:                          /* the send gate; any stall may come before it */
  if
  :: CRASH
  :: atomic { !CLOSED(w) -> ph[w] = 2 }
  :: atomic { UNSENDABLE(w) -> learn(NOTSENT); goto append }
  :: atomic { losses > 0 -> losses--; learn(NOTSENT); goto append }
  fi;

  if
  :: CRASH
  :: atomic { res[w] == 1 -> learn(OK);
       if                      /* whether a slot for the next step is in hand is left open */
       :: fresh[w] && !lost && saga == RUN && k == F && s < 2 && st[s + 1] == READY && FREE(s + 1) && !UNASKED_FIRST(s + 1) && LISTENS && !(LACKS && s == 1) -> nxt = 1
       :: fresh[w] && !lost && saga == COMP && k == C && s == 1 && st[0] == SDONE && UNDOABLE(0) -> nxt = 1
       :: nxt = 0
       fi;
       goto append }
  :: atomic { res[w] == 2 -> learn(REF);
       if
       :: fresh[w] && !lost && saga == RUN && s <= PIVOT && MAY_TURN(s) -> nxt = 1;        /* turns the work; arms nothing */
#ifdef TURNARM
          if :: s > 0 && !(st[s - 1] == SDONE && UNDOABLE(s - 1)) -> nxt = 0 :: else fi
#endif
       :: nxt = 0
       fi;
       goto append }
#ifdef KEPT
#ifdef ANYKEPT
  :: atomic { res[w] == 5 || (res[w] == 2 && s == KEYED) ->
#else
  :: atomic { res[w] == 5 ->
#endif
       learn(SAVED);
       if :: fresh[w] && !lost && saga == RUN && s <= PIVOT && MAY_TURN(s) -> nxt = 1 :: nxt = 0 fi;
       goto append }
#endif
#ifdef DELETED
  :: atomic { res[w] == 4 -> learn(MISSING); nxt = 0; goto append }
#endif
  :: atomic { res[w] == 3 || (UNSENDABLE(w) && ph[w] == 2) -> letGo(); forget(); goto act }       /* unknown */
  fi
}

#ifdef LIVE
#ifdef REVISE
ltl everyWorkEnds { <> [] (saga >= REVIEW && !SWITCHES) }
#else
ltl everyWorkEnds { <> (saga >= REVIEW) }
#endif
#else
#ifdef REVISE
#ifdef DELETED
#define UNTOUCHED(s) (effect[s] == prev[s] || ((s) == LOOKUP && deleted && effect[s] == 0))
#else
#define UNTOUCHED(s) (effect[s] == prev[s])
#endif
#define WHOLE(s) (effect[s] == 1 && content[s] == rev)
#define CLEAN(s) (effect[s] == 0)
#else
#define UNTOUCHED(s) (effect[s] == undone[s])
#define WHOLE(s) (effect[s] == 1 && undone[s] == 0)
#define CLEAN(s) (effect[s] == undone[s])
#endif
#ifdef TAKEOVER               /* what an old program made, and was not asked for, is none of the work's */
#define THEIRS(s) ((s) == LOOKUP && !asked && (st[s] == READY || st[s] == SKIPPED))
#else
#define THEIRS(s) false
#endif
#define TRUE_OF(s) ((st[s] != SDONE || WHOLE(s)) && (THEIRS(s) || \
  (st[s] != READY && (st[s] != REFUSED || maybe[s] > 0) && !over(s)) || UNTOUCHED(s)))
#ifdef NEEDLESS
#define IDLE_UNDO true
#else
#define IDLE_UNDO false
#endif
#if defined(LIES)
#define MAY_STAND true
#elif defined(REVISE) || defined(REBUILD)  /* what needs no undo, and the chain says so */
#define MAY_STAND (!OPAQUE_OUT && !over(OPAQUE) && !LACKS)
#else
#define MAY_STAND false
#endif
proctype Monitor() {           /* runs when nothing else can: the end of every execution */
  atomic { timeout ->
    noLostWork = (terminal || saga == REVIEW || PAUSED); assert(noLostWork);
#ifdef REBUILD
    nothingDropped = (!told[0] && !told[1] && word == 0); assert(nothingDropped);
#else
    nothingDropped = (!told[0] && !told[1]); assert(nothingDropped);
#endif
    completedIsWhole = (saga != DONE || (WHOLE(0) && WHOLE(1) && MAILED));
    assert(completedIsWhole);
    compensatedIsClean = (saga != COMPED || (CLEAN(0) && (CLEAN(1) || IDLE_UNDO || THEIRS(1)) && (effect[2] == 0 || MAY_STAND)));
    assert(compensatedIsClean);
    chainTellsTheTruth = (TRUE_OF(0) && TRUE_OF(1) && (st[2] != SDONE || MAILED) && (st[2] != READY || effect[2] == 0) && (!PASSED_OVER || effect[2] == 0));
    assert(chainTellsTheTruth);
#ifdef REVISE
    newestWins = ((saga != DONE || (rev == top && !topGone)) && (saga != COMPED || rev == top || topGone || aside)); assert(newestWins);
#endif
#if !defined(REGRESS) && !defined(VERDICT)
#ifdef POISON
    noNeedlessReview = !(saga == REVIEW && ((st[OPAQUE] == INDOUBT && answered) || SAID || CANCELLED)); assert(noNeedlessReview);
#else
    noNeedlessReview = !(saga == REVIEW && st[OPAQUE] == INDOUBT && answered); assert(noNeedlessReview);
#endif
#endif
  }
}
#endif

init {
  atomic {
    sess[0] = 1; trust[0] = 1; fresh[0] = 1;
#ifdef REGRESS
    busy[0] = 1;
#endif
    run Net(); run Clock(); run Worker(0); run Worker(1);
#ifdef REVISE
    run Source();
#endif
#ifdef DELETED
    run Deleter();
#endif
#ifndef NOOPERATOR
    run Operator();
#endif
#ifdef VERDICT
    run Judge(0); run Judge(1);
#endif
#ifdef TAKEOVER
    run Old();
#endif
#ifdef HANDS
    run Hand(); run Skipper();
#endif
#ifdef REBUILD
    run Adopter();
#if PEOPLE > 0
    run Person();
#endif
#if PEOPLE > 1
    run Person();
#endif
#endif
#ifdef REGRESS
    run Failover();
#endif
#ifndef LIVE
    run Monitor()
#endif
  }
}
