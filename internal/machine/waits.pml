/* waits.pml: a model of delays and deadlines, checked by Spin.
 *
 * saga.pml is about what is sent; this model is about what waits: when a wait is over, what a deadline does, and who
 * ends either early. TestModelHolds and TestModelMutants in model_test.go run everything said here.
 *
 * WHAT IS MODELLED
 *
 * One instance with four steps: AUTHORIZE, a delay, CAPTURE (the pivot) and MAIL behind it; a deadline of the whole that
 * compensates before the pivot and asks a person behind it. Two processes claim the instance's row when it is due. People
 * pause it, let it go on, cancel it and wake it, and pause its saga, which is no record of the instance; its source has a newer version. Time is the ledger's, in ticks: a tick may
 * pass at any moment, also while no process lives, and the clock may step back once (-DBACK). The destination of CAPTURE
 * is away at times; what waits for it stands in a line that nothing is claimed from meanwhile.
 *
 * A decision and its append are one statement: what a lost race does is saga.pml's.
 *
 * The rules are W1 to W10 in RULES.md.
 *
 * WHAT MUST HOLD (each is a named assertion; the name is what pan prints)
 *
 *   neverEarly         no wait is over before its time, unless a person ended it
 *   neverRestarted     a wait is begun once, and its end does not move
 *   inTime             when nothing is claimable and nothing is held, no wait is past its end and no deadline is past
 *                      but of what a person has, and nothing that was said is unread
 *   notBehindOnesBack  a deadline that passed while a person had the instance undoes nothing and stops nothing
 *   noWayBackAfterPivot  a deadline turns nothing behind the pivot
 *   heedsPause         what a person holds does not move by a wake
 *   asIsSaid           MAIL, which has a condition, is not sent in a run in which that says no (N1 in RULES.md)
 *   noLostWork         in the end it has ended, a person has it, or it is due some time
 *
 * MUTANTS: each switch removes one rule, and Spin must find a counterexample.
 *
 *   NODUE        a wait is begun without a due row
 *   REASKED      who takes a waiting instance up asks again until when
 *   HURRY        a wait is judged by the latest that the ledger's clock may be
 *   RESTART      a revision begins a wait again
 *   REDONE       a revision begins a wait again that was over
 *   FRESHLINE    a revision sets a deadline that runs again
 *   DEAF         what is said to a sleeping instance waits for its due time
 *   ONLYWAIT     the row of a wait is due at the wait's end alone
 *   INLINE       what waits in a line stays there at its deadline
 *   BEHINDBACK   a deadline that passed while a person had the instance acts once it goes on
 *   SAGABACK     the same of a pause of its saga
 *   PIVOTBACK    a deadline turns the instance behind the pivot
 *   ASKWHEN    a condition is asked again of what may have been sent
 *   WAKEPAUSED   a wake lets go on what is paused
 *
 * BUDGETS: -DCRASHES, -DWORDS (of people, each kind), -DHALTS (pauses of the saga), -DNEWS (of the source), -DAWAY (times the destination goes away).
 *
 * With -DMESSAGES it is another model: what waits for an answer from outside (A1 to A8 in RULES.md).
 *
 * One instance: SUBMIT, whose request carries a token, then a wait for the answer, which comes as a callback by that token
 * or as a message by name and key. Callbacks come early, late, twice, with two bodies, and never; SUBMIT's own answer may be
 * lost. A message comes before the wait, while it begins, and after it; who delivers it may die in between, is not
 * acknowledged then, and delivers it again. The source has a newer version. The wait ends at its time; then SUBMIT is undone.
 *
 *   neverLost          a message that was acknowledged reaches the wait that stands, or will
 *   answeredOnce       one answer ends one wait
 *   ofThisRevision     what answers another revision ends no wait
 *   saidInTime         a wait does not end at its time over the head of what was said before
 *   successKept        a success after the wait was given up brings a person, unless its job was undone by its result
 *   jobStays           no newer version begins over the head of a job that is under way
 *   onRecord           what was acknowledged is on record: more than is kept unread is refused, and comes again
 *   endsInTime         no wait is past its end while what it would ask stands in a destination's line
 *   answerStays        a newer version does not wait again for a message that came (where the step says Once)
 *   notUnasked         nothing is undone for want of an answer that could not be asked for
 *   noLostWork         as above
 *
 *   LOOKFIRST    the wait looks for messages before it can be found
 *   RECORDFIRST  the wait is on record before it can be found
 *   FINDFIRST    who delivers looks for the wait before the message is stored
 *   TWICE        a token is used again
 *   FOREIGN      a token counts for whichever revision waits
 *   RACING       a wait ends at its time without reading what was said
 *   DROPLATE     a late success is only noted
 *   INFLIGHT     a newer version begins while the job is under way
 *   SILENT       what is more than is kept is acknowledged
 *   ENDINLINE    a wait stands in the line behind its end until its lookup can be put
 *   UNPUT        a lookup that could not be put counts as no
 *   PAIDAGAIN    a newer version waits again for a message that the one before it was answered with
 *
 * With -DPAIR two instances of one saga wait for one name and key (A13 in RULES.md).
 *
 * Two messages come, the first under the work id of the first instance. A definition may decline either; which does is chosen
 * at the start. An instance is cancelled, or its time ends. Who delivers looks for rows and posts to one that waits; who begins to wait
 * makes its row and posts to itself what is stored and not used. Who reads a message takes it by one compare-and-set, and then
 * records that; one that it does not take it offers to the others first.
 *
 *   usedOnce           a message ends one wait
 *   notStranded        when nothing is under way, no acknowledged message is unused that a live wait accepts
 *   notRobbed          what was given up takes nothing that others may mean
 *   heard              a message that only what was given up can mean reaches a person
 *
 *   NOCAS        who reads a message takes it, also one that another has
 *   POSTUSES     a message that was posted to one is used
 *   NOOFFER      what is not taken is only noted
 *   LATEOFFER    what is not taken is offered when that is on record
 *   ROBBER       what was given up takes what comes to it
 *   ONELOOK      who loses a message does not look for another
 *   MUTE         what comes to what was given up is only noted
 *
 * With -DVOTES it is a third model: what waits for people (P2, P3, P4, P6, P8, P10 and P11 in RULES.md).
 *
 * One instance that waits at one approval, for two people. Each may approve twice, one may also reject, of what they were
 * shown, which may be long ago. The source has a newer version, which shows the same or not, and which one of the people may
 * have brought. The time ends. With RUNS it is run again, while it waits in a review or behind its end. Who holds the
 * instance may die at any moment: what was appended stays, and what was not is decided again.
 *
 *   byTwo              the next step is armed only when two different people approved
 *   ofWhatIsShown      and of exactly what is shown then
 *   beforeEnd          no vote counts that was posted behind the end
 *   heedsRejection     the next step is not armed behind a rejection that counted
 *   voteKept           two people who approve before the end count, however late that is read, where no rejection and no newer
 *                      version came
 *   notMeanwhile       no vote counts while a newer version is heard and has not begun
 *   ofThisRun          no vote counts that is about what was shown in an earlier run
 *   notOwn             the next step is not armed on the vote of who brought a newer version behind it
 *   noLostWork         as above: it is decided in the end
 *
 *   ANYDIGEST  a vote counts whatever that person was shown
 *   KEEPVOTES  votes stay when what is shown has changed
 *   ONETWICE   one person counts twice
 *   DESPITE    it goes on behind a rejection when enough approve later
 *   ENDFIRST   the end is judged before the votes are read that were posted before it
 *   LATE       a vote counts that was posted behind the end
 *   MEANWHILE  votes count while a newer version is heard
 *   SAMEDIGEST the digest does not know the run
 *   OWNVERSION the votes stand of who brings a newer version
 *   OVERRULED  a person who leaves it at a rejection, which ends it and changes nothing here, has the next step follow (P11)
 */

#ifdef MESSAGES

#ifndef CRASHES
#define CRASHES 1
#endif
#define LASTS 2
#define END 5
#define NEVER 99

mtype = { none, waiting, answered, expired };

byte now;

/* the chain, folded */
bool submitted, known, turned, undone, review, ended;
byte rev = 1, until;
mtype wait = none;

/* the row, and the one by which the wait is found */
byte holder, due;
bool row;

/* what was said: callbacks by revision and body, and the message; posted under a key, so once */
bool posted[4], unread[4], messagePosted, messageUnread, newer;
bool told[2];                     /* the token is out */
bool stored, used, acknowledged, paid;  /* the message, and that it was the answer */
byte stage[2], deliver;
byte crashes = CRASHES, versions = 1;
bool away, gone;                  /* the destination of the lookup, and whether it was away before */

#define unreads    (unread[0] + unread[1] + unread[2] + unread[3])
#define said       (unread[0] || unread[1] || unread[2] || unread[3] || messageUnread)
#define inTurn     (said || newer && canBegin)
#define inFlight   (submitted && !turned && !review && (wait == none || wait == waiting))
#ifdef INFLIGHT
#define canBegin   (!turned || ended)
#else
#define canBegin   ((!inFlight && !turned) || ended)
#endif
#define claimable  (holder == 0 && (inTurn || !ended && !review && due <= now))
#define idle       (holder == 0 && !claimable)

bool neverLost = true, answeredOnce = true, ofThisRevision = true, saidInTime = true, successKept = true, jobStays = true,
	answerStays = true, onRecord = true, endsInTime = true, notUnasked = true, noLostWork = true;

inline take(r)
{
	if
#ifndef FOREIGN
	:: r != rev -> skip
#endif
#ifdef TWICE
	:: wait == answered && r == rev -> answeredOnce = false; assert(answeredOnce)
#else
	:: wait == answered && r == rev -> skip
#endif
#ifdef FOREIGN
	:: (wait == none || wait == waiting) && !turned ->
#else
	:: (wait == none || wait == waiting) && !turned && r == rev ->
#endif
		ofThisRevision = r == rev; assert(ofThisRevision);
		wait = answered; submitted = true; row = false; review = false
	:: (wait == expired || turned) && r == rev ->
#ifndef DROPLATE
		if :: undone && !known -> review = true; ended = false :: else fi
#endif
		successKept = !(undone && !known) || review; assert(successKept)
	:: else
	fi
}

inline listen()
{
	if
	:: unread[0] -> unread[0] = false; take(1)
	:: unread[1] -> unread[1] = false; take(1)
	:: unread[2] -> unread[2] = false; take(2)
	:: unread[3] -> unread[3] = false; take(2)
	:: messageUnread -> messageUnread = false;
		if :: (wait == none || wait == waiting) && !turned && submitted -> wait = answered; row = false; review = false; paid = true :: else fi
	:: !said && newer && canBegin -> newer = false;
		jobStays = !inFlight; assert(jobStays);
		rev = 2; submitted = false; known = false; turned = false; undone = false; ended = false; row = false; review = false;
#ifndef PAIDAGAIN
		if :: paid -> wait = answered :: else -> wait = none fi
#else
		wait = none
#endif
	fi
}

inline look()
{
	if :: stored && !used -> used = true; if :: !messagePosted -> messagePosted = true; messageUnread = true :: else fi :: else fi
}

inline record(i)
{
	stage[i] = 0; wait = waiting; until = now + LASTS; holder = 0; due = until
}

/* What begins a wait: it can be found, it has looked, it is on record. */
inline begin(i)
{
	answerStays = !paid; assert(answerStays);
	if
#ifdef LOOKFIRST
	:: stage[i] == 0 -> look(); stage[i] = 1
	:: stage[i] == 1 -> row = true; stage[i] = 2
	:: stage[i] == 2 -> record(i)
#else
#ifdef RECORDFIRST
	:: stage[i] == 0 -> stage[i] = 1; look()
	:: stage[i] == 1 -> record(i)
#else
	:: stage[i] == 0 -> row = true; stage[i] = 1
	:: stage[i] == 1 -> look(); stage[i] = 2
	:: stage[i] == 2 -> record(i)
#endif
#endif
	fi
}

inline decide(i)
{
	if
#ifdef RACING
	:: wait == waiting && now >= until && !turned -> saidInTime = !said; assert(saidInTime); wait = expired; turned = true
	:: !(wait == waiting && now >= until) && stage[i] == 0 && inTurn -> listen()
#else
	:: stage[i] == 0 && inTurn -> listen()
#endif
	:: !inTurn && review -> holder = 0; due = NEVER
	:: !inTurn && ended -> holder = 0; due = NEVER
	:: !inTurn && !review && !ended && turned && !undone -> undone = true
	:: !inTurn && !review && !ended && turned && undone -> ended = true
	:: !inTurn && !turned && !ended && !submitted && wait != answered -> told[rev - 1] = true; submitted = true;
		if :: known = true :: known = false fi
	:: (stage[i] > 0 || !inTurn) && !turned && !ended && submitted && wait == none -> begin(i)
	:: stage[i] > 0 && (turned || ended || wait != none) -> stage[i] = 0
	:: !inTurn && !review && !turned && wait == waiting && now < until -> holder = 0; due = until
	:: !inTurn && !review && !turned && wait == waiting && now >= until ->
		saidInTime = !said; assert(saidInTime);
		if
#ifdef ENDINLINE
		:: away -> holder = 0; due = NEVER
#else
#ifndef UNPUT
		:: away -> review = true
#endif
#endif
		:: else -> notUnasked = !away; assert(notUnasked); wait = expired; turned = true
		fi
	:: !inTurn && !turned && wait == answered && !ended -> ended = true
	fi
}

inline give()
{
	used = true; stored = true; acknowledged = true; deliver = 0;
	if :: !messagePosted -> messagePosted = true; messageUnread = true :: else fi
}

active [2] proctype Process()
{
end:	do
	:: atomic { claimable -> holder = _pid + 1; due = NEVER }
	:: atomic { holder == _pid + 1 -> decide(_pid) }
	:: atomic { holder == _pid + 1 && crashes > 0 -> crashes--; holder = 0; due = now; stage[_pid] = 0 }
#ifdef RECORDFIRST
	:: atomic { wait == waiting && !row -> row = true }
#endif
	od
}

/* Who calls back does so when it likes, as often as it likes, whatever came of it. */
inline call(n)
{
	if
	:: unreads < 2 -> posted[n] = true; unread[n] = true
#ifdef SILENT
	:: else -> posted[n] = true
#endif
	fi;
	onRecord = unread[n]; assert(onRecord)
}

active proctype Caller()
{
end:	do
	:: atomic { told[0] && !posted[0] -> call(0) }
	:: atomic { told[0] && !posted[1] -> call(1) }
	:: atomic { told[1] && !posted[2] -> call(2) }
	:: atomic { told[1] && !posted[3] -> call(3) }
	od
}

active proctype Deliverer()
{
end:	do
#ifdef FINDFIRST
	:: atomic { deliver == 0 && !acknowledged && !row -> deliver = 1 }
	:: atomic { deliver == 0 && !acknowledged && row -> give() }
	:: atomic { deliver == 1 -> stored = true; acknowledged = true; deliver = 0 }
#else
	:: atomic { deliver == 0 && !acknowledged -> stored = true; deliver = 1 }
	:: atomic { deliver == 1 && row -> give() }
	:: atomic { deliver == 1 && !row -> acknowledged = true; deliver = 0 }
	:: atomic { deliver == 1 && crashes > 0 -> crashes--; deliver = 0 }
#endif
	od
}

active proctype World()
{
	do
	:: atomic { now < END -> now++ }
	:: atomic { versions > 0 -> versions--; newer = true }
	:: atomic { !gone -> gone = true; away = true }
	:: atomic { away -> away = false; if :: holder == 0 && !ended && !review && due == NEVER -> due = now :: else fi }
	:: atomic { idle -> endsInTime = !(wait == waiting && !turned && !review && until < now && due > now); assert(endsInTime) }
	:: atomic { idle && deliver == 0 && row && wait == waiting ->
		neverLost = !(acknowledged && !used); assert(neverLost) }
	:: now == END && idle -> break
	od;
	atomic { idle -> noLostWork = ended || review || due != NEVER; assert(noLostWork) }
}

#elif defined(PAIR)

#ifndef CRASHES
#define CRASHES 1
#endif

mtype = { none, waiting, answered, over };

/* the chains, folded */
mtype wait[2] = none;

/* the rows by which the waits are found, who holds the instance, and what was posted to it and is not read: 2 * instance + message */
bool row[2], signal[4], later[4];  /* later: and once more, while that is read */
byte holder[2], stage[2];
byte reading[2];                  /* of each process: the message that it reads, and whether it has taken it */
bool taken[2];
bool cancel[2], cancelled[2];

bool stored[2], acknowledged[2];
byte used[2];                     /* the message is of one instance's wait: by the compare-and-set */
byte deliver[2];
bool declines[4], chosen;
byte crashes = CRASHES;

/* what the assertions need to know */
byte ended[2];                    /* waits that the message ended, and people that it reached */
bool meant;                       /* the first instance was given up when its message came */

#define live(i)      (wait[i] == none || wait[i] == waiting)
#define accepts(i,m) (!declines[2 * i + m])
#define wants(i,m)   (row[i] && live(i) && accepts(i, m))
#define unread(i)    (signal[2 * i] || signal[2 * i + 1])
#define own(i,m)     (i == 0 && m == 0)
#ifdef POSTUSES
#define mine(i,m)    false
#else
#define mine(i,m)    (signal[2 * i + m] && used[m] == i + 1)  /* taken, and so posted before what else is unread: that is read in order */
#endif
#define claimable(i) (holder[i] == 0 && (unread(i) || cancel[i] || wait[i] == none))
#define idle         (holder[0] == 0 && holder[1] == 0 && !claimable(0) && !claimable(1) && deliver[0] == 0 && deliver[1] == 0)

bool usedOnce = true, notStranded = true, notRobbed = true, heard = true;

inline post(i, m)
{
	if :: holder[i] != 0 && reading[holder[i] - 1] == m + 1 -> later[2 * i + m] = true :: else -> signal[2 * i + m] = true fi;
#ifdef POSTUSES
	used[m] = i + 1
#endif
}

/* What is stored and not used: who begins to wait posts it to itself, up to the first that it accepts. */
inline collect(i)
{
	if
	:: stored[0] && used[0] == 0 && accepts(i, 0) -> post(i, 0)
	:: else -> if :: stored[1] && used[1] == 0 && accepts(i, 1) -> post(i, 1) :: else fi
	fi
}

/* To those that wait but x; where none does, to what was given up, if it alone can be meant. */
inline offer(x, m)
{
	if
	:: used[m] > 0
	:: used[m] == 0 && x != 0 && wants(0, m) -> post(0, m)
	:: used[m] == 0 && x != 1 && wants(1, m) -> post(1, m)
	:: used[m] == 0 && !(x != 0 && wants(0, m)) && !(x != 1 && wants(1, m)) ->
		meant = meant || own(0, m) && row[0] && wait[0] == over;
#ifdef ROBBER
		if :: row[0] && wait[0] == over -> signal[m] = true; used[m] = 1 :: else fi
#else
		if :: x != 0 && row[0] && wait[0] == over && own(0, m) -> post(0, m) :: else fi
#endif
	fi
}

/* Who reads takes it, or leaves it to others. */
inline read(p, i, m)
{
	reading[p] = m + 1; taken[p] = false;
	if
	:: live(i) && accepts(i, m) ->
#ifdef NOCAS
		used[m] = i + 1; taken[p] = true
#else
		if
		:: used[m] == 0 || used[m] == i + 1 -> used[m] = i + 1; taken[p] = true
#ifdef ONELOOK
		:: else
#else
		:: else -> collect(i)
#endif
		fi
#endif
	:: else ->
#ifndef LATEOFFER
#ifndef NOOFFER
		offer(i, m)
#endif
#endif
	fi;
	if
	:: wait[i] == over && row[i] ->
		if
		:: used[m] == i + 1 -> taken[p] = true
#ifndef MUTE
		:: own(i, m) && used[m] == 0 && !wants(1 - i, m) -> used[m] = i + 1; taken[p] = true
#endif
		:: else
		fi
	:: else
	fi
}

/* That is on record. */
inline append(p, i, m)
{
	signal[2 * i + m] = later[2 * i + m]; later[2 * i + m] = false; reading[p] = 0;
	if
	:: taken[p] && live(i) -> ended[m]++; usedOnce = ended[m] <= 1; assert(usedOnce); wait[i] = answered; row[i] = false
	:: taken[p] && wait[i] == over -> notRobbed = own(i, m); assert(notRobbed); ended[m]++
	:: else
	fi;
#ifdef LATEOFFER
	if :: !taken[p] -> reading[p] = m + 3 :: else fi;
#endif
	taken[p] = false
}

inline decide(p, i)
{
	if
	:: stage[i] == 1 -> collect(i); stage[i] = 2
	:: stage[i] == 2 -> if :: wait[i] == none -> wait[i] = waiting :: else fi; stage[i] = 0
	:: stage[i] == 0 && reading[p] == 1 -> append(p, i, 0)
	:: stage[i] == 0 && reading[p] == 2 -> append(p, i, 1)
#ifdef LATEOFFER
	:: stage[i] == 0 && reading[p] == 3 -> offer(i, 0); reading[p] = 0
	:: stage[i] == 0 && reading[p] == 4 -> offer(i, 1); reading[p] = 0
#endif
	:: stage[i] == 0 && reading[p] == 0 && signal[2 * i] && !mine(i, 1) -> read(p, i, 0)
	:: stage[i] == 0 && reading[p] == 0 && signal[2 * i + 1] && !mine(i, 0) -> read(p, i, 1)
	:: stage[i] == 0 && reading[p] == 0 && cancel[i] && !mine(i, 0) && !mine(i, 1) -> cancel[i] = false; if :: live(i) -> wait[i] = over :: else fi
	:: stage[i] == 0 && reading[p] == 0 && !unread(i) && !cancel[i] && wait[i] == none -> row[i] = true; stage[i] = 1
	:: stage[i] == 0 && reading[p] == 0 && !unread(i) && !cancel[i] && wait[i] != none -> holder[i] = 0
	fi
}

active [2] proctype Process()
{
end:	do
	:: atomic { holder[0] != _pid + 1 && holder[1] != _pid + 1 && claimable(0) -> holder[0] = _pid + 1 }
	:: atomic { holder[0] != _pid + 1 && holder[1] != _pid + 1 && claimable(1) -> holder[1] = _pid + 1 }
	:: atomic { holder[0] == _pid + 1 -> decide(_pid, 0) }
	:: atomic { holder[1] == _pid + 1 -> decide(_pid, 1) }
	:: atomic { holder[0] == _pid + 1 && crashes > 0 -> crashes--; holder[0] = 0; stage[0] = 0; reading[_pid] = 0; taken[_pid] = false }
	:: atomic { holder[1] == _pid + 1 && crashes > 0 -> crashes--; holder[1] = 0; stage[1] = 0; reading[_pid] = 0; taken[_pid] = false }
	od
}

active [2] proctype Deliverer()
{
	byte m = _pid - 2;
	do
	:: atomic { deliver[m] == 0 && chosen && !acknowledged[m] -> stored[m] = true; deliver[m] = 1 }
	:: atomic { deliver[m] == 1 -> offer(2, m); acknowledged[m] = true; deliver[m] = 0; break }
	:: atomic { deliver[m] == 1 && crashes > 0 -> crashes--; deliver[m] = 0 }
	od
}

active proctype World()
{
	if :: declines[0] = true :: skip fi;
	if :: declines[1] = true :: skip fi;
	if :: declines[2] = true :: skip fi;
	if :: declines[3] = true :: skip fi;
	chosen = true;
end:	do
	:: atomic { !cancelled[0] -> cancelled[0] = true; cancel[0] = true }
	:: atomic { !cancelled[1] -> cancelled[1] = true; cancel[1] = true }
	:: atomic { idle && acknowledged[0] && acknowledged[1] ->
		notStranded = !(!ended[0] && (wants(0, 0) || wants(1, 0)) || !ended[1] && (wants(0, 1) || wants(1, 1)));
		assert(notStranded);
		heard = !(!ended[0] && meant && wait[0] == over); assert(heard) }
	od
}

#elif defined(VOTES)

#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RUNS
#define RUNS 0
#endif
#define LASTS 1
#define END 2
#define NEVER 99

mtype = { ready, waiting, approved, refused, rejected, charged };

byte now;

/* the chain, folded */
mtype phase = ready;
byte shows = 1;                   /* what the version that has begun shows: the digest */
byte pending;                     /* what a newer version shows that was heard; 0: there is none */
byte digest, until;               /* what is to be decided, and its end; 0: nothing yet */
byte votes, by[2], on[2];         /* those that approve and count */
byte round = 1, pendingBy;        /* who brought the newer version: a person, or the source */

/* the row, and what its holder alone knows */
byte holder, due;
byte asked[2];

/* signals: two approving votes of each person, and a rejection by the second; then the source's */
bool unread[5];
byte saw[5], at[5], news, newsBy;
bool again;                       /* a person runs it again */

/* people: what each was shown, and what they may still say */
byte eyes[2], left[2] = 2;
bool mayReject = true;
byte crashes = CRASHES, versions = 1, runs = RUNS;

/* what the assertions need to know */
bool inTime[2];                   /* this person's approval was posted before the end */
bool counted;                     /* a rejection */
bool oldEyes[2], old[5];          /* what was shown, or a vote, is of an earlier run */
bool own[2];                      /* who gave this vote brought a newer version behind it */

#define spoken     (unread[0] || unread[1] || unread[2] || unread[3] || unread[4] || news || again)
#define decided    (phase == rejected || phase == charged)
#define claimable  (holder == 0 && (spoken || pending || !decided && due <= now))
#define idle       (holder == 0 && !claimable)

#ifdef ANYDIGEST
#define fits(v)    true
#else
#define fits(v)    (saw[v] == digest)
#endif
#ifdef SAMEDIGEST
#define document   (shows)
#else
#define document   (shows + 2 * (round - 1))
#endif
#ifdef ONETWICE
#define voted(p)   false
#else
#define voted(p)   (votes > 0 && by[0] == p || votes > 1 && by[1] == p)
#endif
#ifdef MEANWHILE
#define settled    true
#else
#define settled    (!pending)
#endif
#ifdef LATE
#define before(v)  true
#else
#define before(v)  (at[v] < until)
#endif
#define counts(v)  (phase == waiting && before(v) && fits(v) && settled)

bool byTwo = true, ofWhatIsShown = true, beforeEnd = true, heedsRejection = true, voteKept = true, notMeanwhile = true,
	ofThisRun = true, notOwn = true, noLostWork = true;

inline count(v)
{
	notMeanwhile = !pending; assert(notMeanwhile);
	beforeEnd = at[v] < until; assert(beforeEnd);
	ofThisRun = !old[v]; assert(ofThisRun)
}

inline forget(v)
{
	unread[v] = false; saw[v] = 0; at[v] = 0; old[v] = false
}

inline approve(v, p)
{
	if
	:: counts(v) && !voted(p) && votes < 2 -> count(v);
		by[votes] = p; on[votes] = saw[v]; own[votes] = false; votes++;
		if :: votes == 2 -> phase = approved :: else fi
	:: else
	fi;
	forget(v)
}

inline reject(v)
{
	if
	:: counts(v) -> count(v); counted = true;
#ifndef DESPITE
		phase = refused
#endif
	:: else
	fi;
	forget(v)
}

inline void()
{
	votes = 0; by[0] = 0; by[1] = 0; on[0] = 0; on[1] = 0; own[0] = false; own[1] = false
}

/* It is run again: everybody is asked again. */
inline startOver()
{
	round++; void(); digest = 0; until = 0; counted = false; phase = ready; asked[0] = 0; asked[1] = 0;
	inTime[0] = false; inTime[1] = false; oldEyes[0] = eyes[0] > 0; oldEyes[1] = eyes[1] > 0;
	old[0] = unread[0]; old[1] = unread[1]; old[2] = unread[2]; old[3] = unread[3]; old[4] = unread[4]
}

/* They are read in any order: that is more than the ledger does. */
inline listen()
{
	if
	:: unread[0] -> approve(0, 0)
	:: unread[1] -> approve(1, 0)
	:: unread[2] -> approve(2, 1)
	:: unread[3] -> approve(3, 1)
	:: unread[4] -> reject(4)
	:: news -> if :: phase != charged -> pending = news; pendingBy = newsBy :: else fi; news = 0; newsBy = 0
	:: again -> again = false; if :: (phase == waiting || decided) && !pending -> startOver() :: else fi
	fi
}

/* The votes of who brought a newer version are void. */
inline voidOf(p)
{
	if
	:: votes > 1 && by[1] == p -> votes = 1; by[1] = 0; on[1] = 0
	:: votes > 1 && by[0] == p -> votes = 1; by[0] = by[1]; on[0] = on[1]; own[0] = own[1]; by[1] = 0; on[1] = 0; own[1] = false
	:: votes == 1 && by[0] == p -> void()
	:: else
	fi
}

/* A newer version begins; what was rejected is decided again, from the start. */
inline begin(i)
{
	if :: phase == rejected -> void(); digest = 0; until = 0 :: else fi;
	own[0] = own[0] || votes > 0 && by[0] == pendingBy;
	own[1] = own[1] || votes > 1 && by[1] == pendingBy;
#ifndef OWNVERSION
	voidOf(pendingBy);
#endif
	shows = pending; pending = 0; pendingBy = 0; counted = false; phase = ready; asked[i] = 0
}

inline open(i)
{
	if
	:: digest == asked[i]
	:: else -> digest = asked[i]; until = now + LASTS;
#ifndef KEEPVOTES
		void()
#endif
	fi;
	asked[i] = 0; phase = waiting
}

/* The next step, charge, is armed. */
inline arm()
{
	heedsRejection = !counted; assert(heedsRejection);
	byTwo = votes == 2 && by[0] != by[1]; assert(byTwo);
	ofWhatIsShown = on[0] == document && on[1] == document; assert(ofWhatIsShown);
	notOwn = !own[0] && !own[1]; assert(notOwn);
	phase = charged
}

inline lapse()
{
	voteKept = !(inTime[0] && inTime[1] && mayReject && versions > 0); assert(voteKept);
	phase = refused
}

/* While a newer version is heard it may not begin yet, for a step that asks is under way: then only signals are read. */
inline decide(i)
{
	if
#ifdef ENDFIRST
	:: phase == waiting && now >= until && votes < 2 -> lapse()
#endif
	:: spoken -> listen()
	:: pending && phase != refused -> begin(i)
	:: phase == refused && !spoken -> phase = rejected
	:: phase == ready && !pending && !asked[i] -> asked[i] = document
	:: phase == ready && !pending && asked[i] -> open(i)
	:: phase == approved && !pending -> arm()
	:: phase == waiting && !spoken && !pending && votes == 2 -> phase = approved
	:: phase == waiting && !spoken && !pending && votes < 2 && now < until -> holder = 0; due = until
	:: phase == waiting && !spoken && !pending && votes < 2 && now >= until -> lapse()
	:: decided && !spoken && !pending -> holder = 0; due = NEVER
	fi
}

active [2] proctype Process()
{
end:	do
	:: atomic { claimable -> holder = _pid + 1; due = NEVER }
	:: atomic { holder == _pid + 1 -> decide(_pid) }
	:: atomic { holder == _pid + 1 && crashes > 0 -> crashes--; holder = 0; due = now; asked[_pid] = 0 }
	od
}

inline post(v, p)
{
	unread[v] = true; saw[v] = eyes[p]; at[v] = now; old[v] = oldEyes[p]
}

/* A person votes on what they were shown, which may be long ago. */
inline vote(p)
{
	if :: now < until && eyes[p] == digest -> inTime[p] = true :: else fi;
	post(2 * p + 2 - left[p], p); left[p]--
}

active proctype People()
{
end:	do
	:: atomic { eyes[0] != digest || oldEyes[0] -> eyes[0] = digest; oldEyes[0] = false }
	:: atomic { eyes[1] != digest || oldEyes[1] -> eyes[1] = digest; oldEyes[1] = false }
	:: atomic { eyes[0] && left[0] > 0 -> vote(0) }
	:: atomic { eyes[1] && left[1] > 0 -> vote(1) }
	:: atomic { eyes[1] && mayReject -> mayReject = false; post(4, 1) }
#ifdef OVERRULED
	:: atomic { phase == rejected && counted && holder == 0 && !pending -> phase = approved; due = now }
#endif
	od
}

active proctype World()
{
	do
	:: atomic { now < END || idle && !decided && due != NEVER -> now++ }
	:: atomic { versions > 0 && now < END -> versions--; if :: news = 1 :: news = 2 fi; if :: newsBy = 0 :: newsBy = 1 :: newsBy = 2 fi }
	:: atomic { runs > 0 && now < END && digest -> runs--; again = true }
	:: now >= END && idle && (decided || due == NEVER) -> break
	od;
	atomic { idle -> noLostWork = decided; assert(noLostWork) }
}

#else

#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef WORDS
#define WORDS 1
#endif
#ifndef HALTS
#define HALTS 1
#endif
#ifndef NEWS
#define NEWS 1
#endif
#ifndef AWAY
#define AWAY 1
#endif
#ifdef BACK
#define STEPS 1
#else
#define STEPS 0
#endif

#define LASTS 3   /* ticks */
#define DEADLINE 4
#define END 8
#define NEVER 99

mtype = { none, waiting, over };
mtype = { unheld, paused, review };

byte now;

/* the chain, folded */
bool authorized, captured, turned, ended, passed;
byte says;              /* what the condition of MAIL said: 1 yes, 2 no */
bool mailed;
mtype wait = none, held = unheld;
byte until, deadline = DEADLINE;

/* the row */
byte holder, due;
bool line;

/* signals that were posted and not read */
bool cancelled, woken, pause, resume, news;

bool halted;            /* its saga is paused */
bool heldPast;          /* until behind the deadline */
bool away;
byte crashes = CRASHES, pauses = WORDS, wakes = WORDS, cancels = WORDS, halts = HALTS, versions = NEWS, outages = AWAY, back = STEPS;

/* what the assertions need to know */
byte begun, first;      /* waits begun, and the end of the first */
bool ripened;           /* the deadline passed while a person had it */
bool early;             /* a person ended the wait */

#define unread     (cancelled || woken || pause || resume || news)
#define claimable  (holder == 0 && !ended && !halted && due <= now && !(line && away))
#define idle       (holder == 0 && !claimable)

/* Each is true until it is broken: then pan prints its name. */
bool neverEarly = true, neverRestarted = true, inTime = true, notBehindOnesBack = true, noWayBackAfterPivot = true,
	heedsPause = true, asIsSaid = true, noLostWork = true;

inline onTime()
{
	inTime = ended || halted || STEPS > 0 && due <= now + STEPS || !unread && (held != unheld ||
		(wait != waiting || now <= until) && (turned || passed || now <= DEADLINE));
	assert(inTime)
}

inline isOver()
{
	neverEarly = now >= until || early;
	assert(neverEarly);
	wait = over
}

inline once()
{
	neverRestarted = begun <= 1 && until == first;
	assert(neverRestarted)
}

inline sleep(t)
{
	holder = 0;
	due = t;
	if
	:: due > deadline && !passed && !turned ->
#ifndef ONLYWAIT
		due = deadline
#endif
	:: else
	fi
}

/* A person lets go of it: a deadline that is past by then is over (W6). */
inline letGo()
{
	held = unheld;
#ifndef BEHINDBACK
	if :: now >= deadline -> passed = true :: else fi
#endif
}

inline begin()
{
	wait = waiting;
	until = now + LASTS;
	begun++;
	if :: begun == 1 -> first = until :: else fi;
	once()
}

inline listen()
{
	if
	:: cancelled -> cancelled = false;
		if :: !captured && !turned && !ended -> turned = true; passed = true; held = unheld :: else fi
	:: !cancelled && pause -> pause = false;
		if :: held == unheld && !ended -> held = paused :: else fi
	:: !cancelled && !pause && resume -> resume = false;
		if :: held != unheld -> letGo() :: else fi
	:: !cancelled && !pause && !resume && woken -> woken = false;
		if
#ifdef WAKEPAUSED
		:: wait == waiting && !turned -> heedsPause = held == unheld; assert(heedsPause); early = true; wait = over; held = unheld
#else
		:: wait == waiting && !turned && held == unheld -> early = true; wait = over
#endif
		:: else
		fi
	:: !cancelled && !pause && !resume && !woken && news -> news = false;
		if
		:: !turned && held == unheld && !captured ->
			authorized = false;
#ifdef RESTART
			if :: wait == waiting -> begin() :: else fi;
#endif
#ifdef REDONE
			if :: wait == over -> wait = none :: else fi;
#endif
#ifdef FRESHLINE
			deadline = now + DEADLINE
#endif
		:: else
		fi
	fi
}

inline forward()
{
	if
	:: !authorized -> authorized = true
	:: authorized && wait == none -> begin();
#ifdef NODUE
		holder = 0; due = NEVER
#else
		sleep(until)
#endif
	:: authorized && wait == waiting ->
#ifdef REASKED
		if :: now < until -> until = now + LASTS; once() :: else fi;
#endif
		if
#ifdef HURRY
		:: now + 1 >= until -> isOver()
#else
		:: now >= until -> isOver()
#endif
		:: else -> sleep(until)
		fi
	:: authorized && wait == over && !captured ->
		if
		:: away -> holder = 0; due = now; line = true
		:: else -> captured = true
		fi
	:: captured && says == 0 ->
		if
		:: says = 1
		:: says = 2; asIsSaid = !mailed; assert(asIsSaid); ended = true; holder = 0
		fi
	:: captured && says == 1 && !mailed -> mailed = true
	:: captured && says == 1 && mailed -> ended = true; holder = 0
	fi
}

/* What was declared follows the deadline. */
inline act()
{
	notBehindOnesBack = !ripened;
	assert(notBehindOnesBack);
	if
#ifdef PIVOTBACK
	:: true -> noWayBackAfterPivot = !captured; assert(noWayBackAfterPivot); turned = true
#else
	:: captured -> held = review
	:: else -> turned = true
#endif
	fi
}

inline decide()
{
	if
	:: unread -> listen()
	:: !unread && held != unheld -> holder = 0; due = NEVER
	:: !unread && held == unheld && turned -> ended = true; holder = 0
	:: !unread && held == unheld && !turned && !passed && now >= deadline ->
		passed = true;
#ifndef SAGABACK
		if :: !heldPast -> act() :: else fi
#else
		act()
#endif
	:: !unread && held == unheld && !turned && (passed || now < deadline) -> forward()
	fi
}

active [2] proctype Process()
{
end:	do
	:: atomic { claimable -> holder = _pid + 1; line = false; due = NEVER }
	:: atomic { holder == _pid + 1 && !halted -> decide() }
	:: atomic { holder == _pid + 1 && crashes > 0 -> crashes--; holder = 0; due = now;
#ifdef ASKWHEN
		says = 0
#endif
		}
	od
}

inline post()
{
#ifndef DEAF
	if :: holder == 0 -> due = now; line = false :: else fi
#else
	skip
#endif
}

active proctype People()
{
end:	do
	:: atomic { cancels > 0 && !ended -> cancels--; cancelled = true; post() }
	:: atomic { pauses > 0 && !ended -> pauses--; pause = true; post() }
	:: atomic { held == paused && !ended && !resume -> resume = true; post() }
	:: atomic { wakes > 0 && !ended -> wakes--; woken = true; post() }
	:: atomic { halts > 0 && !halted && !ended -> halts--; halted = true }
	:: atomic { halted -> halted = false; heldPast = now >= deadline }
	:: atomic { versions > 0 && !ended -> versions--; news = true; post() }
	od
}

active proctype World()
{
	do
	:: atomic { now < END && !ended ->
		if :: idle -> onTime() :: else fi;
		now++;
		if :: (held != unheld || halted) && now >= deadline && !passed -> ripened = true :: else fi;
#ifndef INLINE
		if :: line && now >= deadline && !passed -> line = false; due = now :: else fi
#endif
		}
	:: atomic { outages > 0 && !away -> outages--; away = true }
	:: atomic { away -> away = false }
	:: atomic { back > 0 && now > 0 -> back--; now--; ripened = ripened && now >= deadline }
	:: ended || now == END && idle && !away && !halted -> break
	od;
	if
	:: atomic { idle && !away && !halted -> onTime(); noLostWork = ended || held != unheld || due != NEVER; assert(noLostWork) }
	:: ended
	fi
}

#endif
