/* tiny.pml: two processes add to a counter.
 *
 * MUTANTS: each switch removes one rule.
 *
 *   TORN   reading and writing are two statements
 *
 * BY HAND: spin -a tiny.pml
 */
byte n, ended;
hidden byte nothingLost;

proctype Adder() {
  byte seen;
#ifdef TORN
  seen = n; n = seen + 1;
#else
  atomic { seen = n; n = seen + 1 };
#endif
  atomic { ended++; seen = 0; if :: ended == 2 -> nothingLost = (n == 2); assert(nothingLost) :: else fi }
}

init { atomic { run Adder(); run Adder() } }
