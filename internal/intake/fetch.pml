/* fetch.pml: a model of how the gate asks the source of truth, checked by Spin.
 *
 * A webhook says that something changed; what it changed to is asked of the source. This model is about the asking:
 * when may an object be called clean, so that no look follows until something new is heard? And when is an object gone,
 * or back?
 * TestModelHolds and TestModelMutants in model_test.go run everything said here.
 *
 * WHAT IS MODELLED
 *
 * One object, its entry at the gate, two workers, and a provider whose reads lag: a read finds any state since the one
 * that everybody is shown by now, in any order, until the provider has caught up. A change is a new state, a deletion, or
 * the return of what was gone; a read within the lag may find nothing where the object is back, and the object where it
 * is gone. Every change sends one message, which may be lost, come late, out of order or more than once: the whole new
 * state, or a deletion that names its version; a hint that names the new version; or a bare hint that names none. With
 * -DNOVERSION the object has no version at all: every message is bare, and states are ordered by their ticket alone.
 *
 * Times are stood for by what the source was then: "settle later" is when every read shows that state or a newer one.
 * This is all that settling promises, and the model waits for no more.
 *
 * The rules:
 *
 *   - An entry's state is ordered by (version, rank, ticket): rank 0 was pushed, rank 1 fetched. Only what is greater
 *     replaces it.
 *   - A hint makes the entry dirty: dirty is counted up. A named version raises newest.
 *   - One worker at a time fetches, under a lease with a fence. It reads dirty before it asks: that is its ticket.
 *     Afterwards clean is the ticket, and not what dirty has become meanwhile.
 *   - A fetch that finds less than newest is behind, and leaves the entry dirty.
 *   - An answer owes another look, settle later, unless it is the answer to one hint, which named what is found; or a
 *     look that was owed and finds what is known, with no hint since. A hint puts off the look that is owed.
 *   - A look that begins before it is owed, because a hint names a newer version, because something is missing or because
 *     hints never end, is not the one that was owed. It is counted as a reason of its own: dirty is counted up for it. So
 *     it is for the look that is owed.
 *   - Nothing found is a deletion when it is found twice, settle apart; once, after an event that says so too about a
 *     state that everybody is shown. Settle later it is looked for once more.
 *   - A deletion that names its version and is newer is believed at once. It leaves the look that is owed.
 *   - An object that was gone is back when it is found twice, settle apart, or when its version is newer than that of the
 *     event that told of its deletion.
 *   - What a worker writes after its lease was given to another is refused.
 *
 * Faults: crash between any two statements, and a lease that ends while its holder lives (-DCRASHES, -DEARLY); copies
 * of messages (-DCOPIES); hints without end, for which a look that is owed does not wait (-DHASTY). -DCHANGES is how
 * often the object changes.
 *
 * WHAT IS LEFT OUT: deltas, fingerprints, times as versions, an object that returns at the version it had, or that no look
 * ever found, failing requests (they leave the entry as it is), rate limits, versions that are not believed, and what the
 * sagas are owed.
 *
 * WHAT MUST HOLD (each is a named assertion; the name is what pan prints)
 *
 *   cleanIsCurrent    a clean entry is not older than anything that was heard
 *   neverBack         the state that is accepted is never older than the one before. Without versions this is said of
 *                     deletions and returns only; and what is newer than a deletion that an event told may have gone again
 *   endsClean         at the end of every execution, whatever crashed, the entry is clean
 *   endsEqual         and if the last change was heard of, it is what the source is: gone if it is gone there, else the
 *                     same state. (The source rests then, and its lag is over.)
 *
 * MUTANTS: each switch removes one rule, and Spin must find a counterexample.
 *
 *   LATETICKET   the ticket is read after the source was asked
 *   STAMPNOW     clean is what dirty is at the time of writing
 *   NOBEHIND     a fetch that finds less than newest is good enough
 *   NOSECOND     an answer owes no second look
 *   EARLYLOOK    a hint does not put off a look that is owed already
 *   FORGETHINT   a hint that comes while a look is owed is answered by that look
 *   SAMETICKET   (NOVERSION) a look that is owed has the ticket of the one before
 *   LATELOOK     a look that begins before it is owed, and whose answer comes later, is the one that was owed
 *   UNCOUNTED    a look that begins before it is owed is not counted
 *   STALENAME    what a hint named before the object was gone counts as what the next one names
 *   ATONCE       nothing found is a deletion at the first look
 *   NOTHIRD      a deletion that two looks confirm is not looked for once more
 *   YOUNG        one look confirms the deletion that an event tells, of however young a state
 *   DROPLOOK     a deletion that names its version cancels the look that is owed
 *   ONESIGHT     what was gone is back at the first look that finds it
 *   NOFENCE      a worker writes although its lease was given to another
 *   KEEPLEASE    the lease of a worker that crashed never ends
 *   LASTWINS     a state that is pushed replaces whatever is there
 *
 * BY HAND
 *
 *   spin -a fetch.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   spin -DNOBEHIND -a fetch.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *   spin -DNOBEHIND -t -p -g fetch.pml                                 (replays the counterexample)
 */
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EARLY
#define EARLY 1
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef HASTY
#define HASTY 0
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#define V (1 + CHANGES)        /* states are 1, which is known from the start, to V: 3 or 4        */
#ifdef NOVERSION
#define VERSION(i) 0           /* of the i-th state, as the gate knows it                          */
#else
#define VERSION(i) (i)
#endif

/* messages */
#define WHOLE 1
#define NAMED 2
#define BARE  3

/* ---- the source ---- */
byte src = 1;                  /* which state the object is in                                     */
byte shown = 1;                /* what a read finds at least                                       */
bit  gone[V + 1];              /* this state is that there is no such object                       */
byte msg[V + 1];               /* the message of each change, under way                            */

/* ---- the entry ---- */
byte ver = VERSION(1);         /* the version of the accepted state; of a deletion that was fetched: the one before */
byte rank = 1, ticket;
bit  deleted;
byte dirty, clean, newest = VERSION(1);
byte missing;                  /* what the source was when nothing, or what was gone, was found first; 0: it was not */
byte reread;                   /* a look is owed: what it must be able to show; 0: none is         */
byte holder;                   /* of the lease: 0 none, w + 1                                      */
bit  fence[2];                 /* the lease of worker w is the latest                              */
bit  alive[2];                 /* worker w has not crashed since                                   */
byte tick[2];                  /* the ticket of worker w; 0: it is idle                            */
byte got[2];                   /* what it found                                                    */

byte crashes = CRASHES, early = EARLY, copies = COPIES, hasty = HASTY;

/* ---- what is unknown, and the assertions ---- */
byte at = 1;                   /* the state that is accepted                                       */
byte heard = 1;                /* the newest change of which anything was heard                    */
hidden byte cleanIsCurrent, neverBack, endsClean, endsEqual;
hidden byte news, only, named; /* within one statement                                             */

#ifdef KEEPLEASE
#define MAYEND false
#else
#define MAYEND true
#endif
#ifdef LASTWINS
#define TAKES true
#else
#define TAKES (VERSION(v) > ver)
#endif
#ifdef NOBEHIND
#define BEHIND false
#else
#define BEHIND (VERSION(got[w]) < newest)
#endif
#ifdef ONESIGHT
#define SEENTWICE true
#else
#define SEENTWICE (missing != 0 && shown >= missing)
#endif
#ifdef ATONCE
#define MISSEDTWICE true
#else
#define MISSEDTWICE (missing != 0 && shown >= missing)
#endif
#ifdef YOUNG
#define EVERYBODYIS(i) true
#else
#define EVERYBODYIS(i) (shown >= i && (got[0] == 0 || got[0] >= i) && (got[1] == 0 || got[1] >= i))
#endif
#ifdef STALENAME
#define NAMES true
#else
#define NAMES (!deleted)
#endif
#if CHANGES == 2
#define pending (msg[2] != 0 || msg[3] != 0)
#else
#define pending (msg[2] != 0 || msg[3] != 0 || msg[V] != 0)
#endif
#define CLEAN (dirty == clean && reread == 0)
#define TIME (shown >= reread) /* for the look that is owed                                        */

inline check() {
  cleanIsCurrent = (!CLEAN || at >= heard); assert(cleanIsCurrent)
}
inline accept(i_, deleted_, rank_, ticket_) {
#ifdef NOVERSION
  neverBack = (i_ >= at || !(deleted || deleted_));
#else
  neverBack = (i_ >= at || (deleted && (deleted_ || (rank == 0 && VERSION(i_) > ver))));
#endif
  assert(neverBack);
  if :: deleted && deleted_ && i_ < at :: else -> at = i_ fi;
  if
  :: deleted_ && rank_ == 1    /* it has no version                                                */
  :: else -> ver = VERSION(i_); if :: ver > newest -> newest = ver :: else fi
  fi;
  deleted = deleted_; rank = rank_; ticket = ticket_; missing = 0
}

proctype Source() {
end:
  do
  :: atomic { src < V ->
       src++;
       if :: !gone[src - 1] -> gone[src] = 1 :: skip fi;
#ifdef NOVERSION
       msg[src] = BARE
#else
       if :: msg[src] = WHOLE :: msg[src] = NAMED :: msg[src] = BARE fi
#endif
     }
  :: atomic { shown < src -> shown++ }
  od
}

/* The inbox hands a message to the gate, in any order; disposition and entry are one transaction. */
inline hint() {
#ifdef FORGETHINT
  if :: missing != 0 || reread != 0 :: else -> dirty++ fi;
#else
  dirty++;
#ifndef EARLYLOOK
  if :: reread != 0 -> reread = src :: else fi;
#endif
#endif
  if                           /* it says that the object is gone: one look may confirm that       */
  :: gone[v] && !deleted && ver != 0 && EVERYBODYIS(ver) -> missing = 1
  :: true
  fi
}
inline judge() {
  if :: v > heard -> heard = v :: else fi;
  if
  :: msg[v] == BARE -> hint()
  :: msg[v] == WHOLE && gone[v] && TAKES -> accept(v, 1, 0, 0);
#ifdef DROPLOOK
       reread = 0
#endif
  :: msg[v] == WHOLE && !gone[v] && TAKES && !deleted -> accept(v, 0, 0, 0)
  :: msg[v] == NAMED && v > ver || msg[v] == WHOLE && !gone[v] && v > ver && deleted ->
       if :: v > newest -> newest = v :: else fi;
       hint()
  :: msg[v] == WHOLE && !gone[v] && v == ver && deleted -> hint()
  :: else                      /* it is old                                                        */
  fi;
  check()
}
proctype Judge() {
  byte v;
end:
  do
  :: atomic { pending ->
       if
       :: msg[2] != 0 -> v = 2
       :: msg[3] != 0 -> v = 3
       :: msg[V] != 0 -> v = V
       fi;
       if
       :: judge(); if :: copies > 0 -> copies-- :: msg[v] = 0 fi
       :: msg[v] = 0                                            /* it is lost */
       fi;
       v = 0 }
  od
}

inline forget() { tick[w] = 0; got[w] = 0; fence[w] = 0 }
#define CRASH atomic { crashes > 0 -> crashes--; alive[w] = 0; forget(); goto idle }

#ifdef LATETICKET
#define LATE tick[w] = dirty
#else
#define LATE skip
#endif

/* A fetch is due: the look that is owed, or because the entry is dirty. What needs a look anyway waits for it. */
#define DUE (dirty == clean -> reread != 0 && TIME : \
  (missing != 0 -> shown >= missing : newest > ver || reread == 0 || TIME))
#define ENDLESS (hasty > 0 && missing == 0 && reread != 0)
inline lease() {
  if
  :: reread != 0 && !TIME ->   /* it begins before that look is owed                               */
       if :: DUE :: else -> hasty-- fi;
#ifndef LATELOOK
       reread = 0;
#endif
#ifndef UNCOUNTED
       dirty++
#endif
#ifndef SAMETICKET
  :: reread != 0 && TIME && dirty == clean -> dirty++
#endif
  :: else
  fi;
  tick[w] = dirty
}

inline clear() {               /* what was asked for is answered; is another look owed?            */
#ifdef STAMPNOW
  tick[w] = dirty;
#endif
  if
#ifdef NOSECOND
  :: true -> reread = 0
#else
  :: reread != 0 && TIME && !news && dirty == tick[w] -> reread = 0
  :: only && named -> reread = 0
  :: else -> reread = src
#endif
  fi;
  if :: tick[w] > clean -> clean = tick[w] :: else fi
}
inline found() {               /* a state                                                          */
  if
  :: VERSION(got[w]) > ver || (VERSION(got[w]) == ver && (rank == 0 || tick[w] > ticket)) ->
       news = (deleted || got[w] != at);
       accept(got[w], 0, 1, tick[w])
  :: else
  fi;
  if :: BEHIND :: else -> clear() fi
}
inline receive() {
  news = 0;
  only = (tick[w] == clean + 1 && dirty == tick[w]);
  named = (!gone[got[w]] && newest > ver && newest <= VERSION(got[w]) && NAMES);
  if
  :: gone[got[w]] && deleted -> missing = 0; if :: got[w] > at -> at = got[w] :: else fi; clear()
  :: gone[got[w]] && !deleted ->
       if
       :: MISSEDTWICE -> news = 1; accept(got[w], 1, 1, tick[w]); clear();
#ifdef NOTHIRD
            reread = 0
#endif
       :: else -> if :: missing == 0 -> missing = src :: else fi
       fi
  :: !gone[got[w]] && deleted && (VERSION(got[w]) <= ver || rank == 1) ->
       if
       :: BEHIND
       :: !BEHIND && SEENTWICE -> found()
       :: else -> if :: missing == 0 -> missing = src :: else fi
       fi
  :: else -> found()
  fi;
  check()
}

proctype Worker(byte w) {
end:
idle:
  do
  /* The lease is free, or its holder is gone, or it ends while its holder lives. Idle workers are alike: 0 comes first. */
  :: atomic { (w == 0 || tick[0] != 0) && (holder == 0 || (!alive[holder - 1] && MAYEND) || (early > 0 && holder == 2 - w)) && (DUE || ENDLESS) ->
       if :: holder != 0 && alive[holder - 1] -> early-- :: else fi;
       holder = w + 1; fence[w] = 1; fence[1 - w] = 0; alive[w] = 1;
       lease();
       goto ask }
  od;

ask:                           /* GET */
  if
  :: CRASH
  :: atomic { got[w] = shown; LATE }
  :: atomic { shown < src -> got[w] = src; LATE }
  :: atomic { shown + 1 < src -> got[w] = shown + 1; LATE }
  fi;

write:                         /* one transaction */
  if
  :: CRASH
#ifdef NOFENCE
  :: atomic { true ->
#else
  :: atomic { !fence[w] -> forget(); goto idle }
  :: atomic { fence[w] ->
#endif
       receive();
       if :: holder == w + 1 -> holder = 0 :: else fi;
       forget(); goto idle }
  fi
}

proctype Monitor() {           /* runs when nothing else can: the end of every execution */
  atomic { timeout ->
    endsClean = CLEAN; assert(endsClean);
    endsEqual = (heard < V || (deleted == gone[V] && (deleted || at == V))); assert(endsEqual) }
}

init {
  atomic { run Source(); run Judge(); run Worker(0); run Worker(1); run Monitor() }
}
