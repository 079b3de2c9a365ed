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
 *
 * With -DVOTES it is a third model: what waits for people (P2, P3, P4, P6, P8 and P10 in RULES.md).
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
bool stored, used, acknowledged;  /* the message */
byte stage[2], deliver;
byte crashes = CRASHES, versions = 1;

#define said       (unread[0] || unread[1] || unread[2] || unread[3] || messageUnread)
#define inTurn     (said || newer && canBegin)
#define inFlight   (submitted && !turned && (wait == none || wait == waiting))
#ifdef INFLIGHT
#define canBegin   (!turned || ended)
#else
#define canBegin   ((!inFlight && !turned) || ended)
#endif
#define claimable  (holder == 0 && (inTurn || !ended && !review && due <= now))
#define idle       (holder == 0 && !claimable)

bool neverLost = true, answeredOnce = true, ofThisRevision = true, saidInTime = true, successKept = true, jobStays = true,
	noLostWork = true;

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
		wait = answered; submitted = true; row = false
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
		if :: (wait == none || wait == waiting) && !turned && submitted -> wait = answered; row = false :: else fi
	:: !said && newer && canBegin -> newer = false;
		jobStays = !inFlight; assert(jobStays);
		rev = 2; submitted = false; known = false; turned = false; undone = false; ended = false; wait = none; row = false
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
	:: !inTurn && !turned && wait == waiting && now < until -> holder = 0; due = until
	:: !inTurn && !turned && wait == waiting && now >= until -> saidInTime = !said; assert(saidInTime); wait = expired; turned = true
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
	posted[n] = true; unread[n] = true
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
	:: atomic { idle && deliver == 0 && row && wait == waiting ->
		neverLost = !(acknowledged && !used); assert(neverLost) }
	:: now == END && idle -> break
	od;
	atomic { idle -> noLostWork = ended || review || due != NEVER; assert(noLostWork) }
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
	heedsPause = true, noLostWork = true;

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
	:: captured -> ended = true; holder = 0
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
	:: atomic { holder == _pid + 1 && crashes > 0 -> crashes--; holder = 0; due = now }
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
