// Package intake is what is known of the objects of sources of truth, and the rules by which an
// event or an answer of the source changes it: pure functions over the rows that a store keeps.
// RULES.md has the rules, and fetch.pml is a checked model of asking.
//
//	entry, disposition, why := intake.Judge(entry, &delivery, now, &policy)      // an event
//	entry, what, err := intake.Receive(entry, &fetched, ticket, now, &policy) // an answer
//
// A store locks rows, hands them to a callback and stores what it leaves ([Gate]). The disposition,
// the entry and what is owed commit together. Package inbox runs this; package webhook stores what
// it judges.
package intake
