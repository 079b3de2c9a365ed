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
 * The rules are W1 to W9 in RULES.md.
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
 */

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
