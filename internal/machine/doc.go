// Package machine decides what happens to an instance of a saga. It is a pure function from
// (structure of the definition, chain so far, event) to (record to append, command to do): no input
// or output, no clock, no chance, no log. Times arrive in events. RULES.md has its rules, and
// saga.pml is a checked model of them.
//
//	dec, err := machine.Decide(spec, st, ev) // st is the fold of the chain
//	dec.Record.Seal(id, Salt{}, st.Seq, st.Tail, session)
//	// 1. append dec.Record
//	err = st.Apply(dec.Record)
//	// 2. do dec.Do
//	// 3. feed back what came of it as the next event
//
// # The duties of its caller, in this order
//
//  1. Append the record. Nothing of the decision exists before the ledger has stored it. When the
//     answer is lost, append the same record again until it is known, and decide nothing else in
//     the meantime.
//  2. Fold the stored record with [State.Apply] and do the command: run an attempt with
//     [State.Invocation] and [program.Program].Act, ask with its Look, get a send slot, wait, or
//     let go.
//  3. Feed back what came of it as the next [Event]. An outcome is never dropped. If its attempt is
//     closed by then, post it as a late answer.
//
// Pending signals are fed before anything is dispatched, so an event carries no slot while one is
// pending. The slot in hand must be for the step that the decision dispatches. The definition's
// version must be the instance's, or, for one that has ended, the newest that this process knows. A
// process that does not know it leaves the instance alone: it stays due for one that does. Only one
// goroutine decides for an instance.
package machine
