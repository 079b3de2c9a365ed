/* fetch.pml: a model of how the gate asks the source of truth, checked by Spin.
 *
 * A webhook says that something changed; what it changed to is asked of the source. This model is about the asking:
 * when may an object be called clean, which is to say that nobody will look again until something new is heard?
 * TestModelHolds and TestModelMutants in model_test.go run everything said here.
 *
 * WHAT IS MODELLED
 *
 * One object, its entry at the gate, two workers, and a provider whose reads lag by one version: after a change a read
 * finds the new state or the one before, in any order, until the provider has caught up. Every change sends one
 * message, which may be lost, come late, out of order or more than once: the whole new state; a hint that names the
 * new version; or a bare hint that names none. With -DNOVERSION the object has no version at all: every message is
 * bare, and states are ordered by their ticket alone.
 *
 * The rules:
 *
 *   - An entry's state is ordered by (version, rank, ticket): rank 0 was pushed, rank 1 fetched. Only what is greater
 *     replaces it.
 *   - A hint makes the entry dirty: dirty is counted up. A named version raises newest.
 *   - One worker at a time fetches, under a lease with a fence. It reads dirty before it asks: that is its ticket.
 *     Afterwards clean is the ticket, and not what dirty has become meanwhile.
 *   - A fetch that finds less than newest is behind, and leaves the entry dirty.
 *   - A bare hint names nothing to compare with. So it owes a second look that begins when the time in which the
 *     provider may lag (settle) is over, counted from the last bare hint. A first look may come at once.
 *   - A second look has a ticket of its own: dirty is counted up for it.
 *   - What a worker writes after its lease was given to another is refused.
 *
 * "Settled" is stated as what it stands for: the provider shows what the hints were about.
 *
 * Faults: crash between any two statements, and a lease that ends while its holder lives (-DCRASHES, -DEARLY); copies
 * of messages (-DCOPIES). -DCHANGES is how often the object changes.
 *
 * WHAT IS LEFT OUT: deletion, deltas, fingerprints, times as versions, failing requests (they leave the entry as it
 * is), rate limits, versions that nobody believes, and what the sagas are owed.
 *
 * WHAT MUST HOLD (each is a named assertion; the name is what pan prints)
 *
 *   cleanIsCurrent    a clean entry is not older than anything that was heard
 *   neverDown         the version of the accepted state never goes down
 *   endsClean         at the end of every execution, whatever crashed, the entry is clean
 *
 * MUTANTS: each switch removes one rule, and Spin must find a counterexample.
 *
 *   LATETICKET   the ticket is read after the source was asked
 *   STAMPNOW     clean is what dirty is at the time of writing
 *   NOBEHIND     a fetch that finds less than newest is good enough
 *   NOSECOND     a bare hint owes no second look
 *   EARLYLOOK    a bare hint does not put off a second look that is planned already
 *   SAMETICKET   (NOVERSION) a second look has the ticket of the first
 *   NOFENCE      (NOVERSION) a worker writes although its lease was given to another
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
#ifndef CHANGES
#define CHANGES 2
#endif
#define V (1 + CHANGES)        /* versions are 1, which is known from the start, to V: 3 or 4 */

/* messages */
#define WHOLE 1
#define NAMED 2
#define BARE  3

/* ---- the source ---- */
byte src = 1;                  /* what the object is                                               */
byte shown = 1;                /* what a read finds at least: src, or the version before           */
byte msg[V + 1];               /* the message of each change, under way                            */

/* ---- the entry ---- */
byte ver = 1;                  /* the version of the accepted state; with NOVERSION nobody sees it */
byte rank = 1, ticket;
byte dirty, clean, newest = 1;
bit  owed;                     /* a second look is owed                                            */
bit  planned;                  /* a first look has been: only the second is left                   */
byte holder;                   /* of the lease: 0 none, w + 1                                      */
bit  fence[2];                 /* the lease of worker w is the latest                              */
bit  alive[2];                 /* worker w has not crashed since                                   */

byte crashes = CRASHES, early = EARLY, copies = COPIES;

/* ---- what nobody knows, and the assertions ---- */
byte bare = 1;                 /* the newest change of which a bare hint spoke                     */
byte heard = 1;                /* the newest change of which anything was heard                    */
hidden byte cleanIsCurrent, neverDown, endsClean;

#ifdef KEEPLEASE
#define MAYEND false
#else
#define MAYEND true
#endif
#define SETTLED (shown >= bare)
#if CHANGES == 2
#define pending (msg[2] != 0 || msg[3] != 0)
#else
#define pending (msg[2] != 0 || msg[3] != 0 || msg[V] != 0)
#endif
#define CLEAN (dirty == clean && !owed)
#ifdef NOVERSION
#define SEEN(v) 0              /* the version as the gate knows it                                 */
#else
#define SEEN(v) (v)
#endif
#define NEWER(v, r, t) (SEEN(v) > SEEN(ver) || (SEEN(v) == SEEN(ver) && ((r) > rank || ((r) == rank && (t) > ticket))))
#ifdef NOBEHIND
#define BEHIND(v) false
#else
#define BEHIND(v) (SEEN(v) < SEEN(newest))
#endif

inline check() {
  cleanIsCurrent = (!CLEAN || ver >= heard); assert(cleanIsCurrent)
}
inline accept(v_, r_, t_) {
#ifndef NOVERSION
  neverDown = (v_ >= ver); assert(neverDown);
#endif
  ver = v_; rank = r_; ticket = t_
}

proctype Source() {
end:
  do
  :: atomic { src < V ->
       src++;
       if :: shown < src - 1 -> shown = src - 1 :: else fi;
#ifdef NOVERSION
       msg[src] = BARE
#else
       if :: msg[src] = WHOLE :: msg[src] = NAMED :: msg[src] = BARE fi
#endif
     }
  :: atomic { shown < src -> shown = src }
  od
}

/* The inbox hands a message to the gate, in any order; verdict and entry are one transaction. */
inline judge() {
  if :: v > heard -> heard = v :: else fi;
  if
  :: msg[v] == WHOLE ->
#ifdef LASTWINS
       accept(v, 0, 0)
#else
       if :: NEWER(v, 0, 0) -> accept(v, 0, 0) :: else fi
#endif
  :: msg[v] == NAMED && v > ver -> dirty++; if :: v > newest -> newest = v :: else fi
  :: msg[v] == NAMED && v <= ver
  :: msg[v] == BARE -> dirty++;
#ifdef EARLYLOOK
       if :: !owed && v > bare -> bare = v :: else fi;
#else
       if :: v > bare -> bare = v :: else fi;
#endif
#ifndef NOSECOND
       owed = 1
#endif
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

inline forget() { s = 0; got = 0; second = 0; fence[w] = 0 }
#define CRASH atomic { crashes > 0 -> crashes--; alive[w] = 0; forget(); goto idle }

#ifdef LATETICKET
#define LATE s = dirty
#else
#define LATE skip
#endif
proctype Worker(byte w) {
  byte s, got;                 /* its ticket, and what it found                                    */
  bit  second;                 /* it began to ask when everything heard had settled                */
end:
idle:
  do
  /* The lease is free, or its holder is gone, or it ends while its holder lives. Due: the entry is dirty, or a second
     look is owed and its time has come. What needs the second look anyway waits for it. */
  :: atomic { (holder == 0 || (!alive[holder - 1] && MAYEND) || (early > 0 && holder == 2 - w)) &&
              ((dirty > clean && (!planned || SEEN(newest) > SEEN(ver) || SETTLED)) || (owed && SETTLED)) ->
       if :: holder != 0 && alive[holder - 1] -> early-- :: else fi;
       holder = w + 1; fence[w] = 1; fence[1 - w] = 0; alive[w] = 1;
       second = SETTLED;
#ifndef SAMETICKET
       if :: dirty == clean -> dirty++ :: else fi;
#endif
       s = dirty;
       goto ask }
  od;

ask:                           /* GET */
  if
  :: CRASH
  :: atomic { got = shown; LATE }
  :: atomic { shown < src -> got = src; LATE }
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
       if :: NEWER(got, 1, s) -> accept(got, 1, s) :: else fi;
       if
       :: BEHIND(got)
       :: else ->
#ifdef STAMPNOW
            s = dirty;
#endif
            clean = s;
            if
            :: second && dirty == s -> owed = 0; planned = 0
            :: else -> planned = owed
            fi
       fi;
       check();
       if :: holder == w + 1 -> holder = 0 :: else fi;
       forget(); goto idle }
  fi
}

proctype Monitor() {           /* runs when nothing else can: the end of every execution */
  atomic { timeout -> endsClean = CLEAN; assert(endsClean) }
}

init {
  atomic { run Source(); run Judge(); run Worker(0); run Worker(1); run Monitor() }
}
