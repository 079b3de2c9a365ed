// Package inbox turns webhooks into starts, new runs and undos of sagas. Webhooks come twice, late, out
// of order, or not at all. So it compares their versions, and asks the source where a version proves
// nothing.
//
//	shop := &inbox.Source{
//		Name: "shop", Saga: "order-to-invoice",
//		Webhooks: &webhook.Sender{Provider: webhook.Shopify(), Secrets: secrets},
//		Fetch:    api.Order,                                           // asked wherever a webhook proves nothing
//		Decide:   func(o inbox.Snapshot) (saga.Change, error) { … },   // what should be of an order
//		Apply:    c.Apply,                                             // of a coordinator
//	}
//	in, err := inbox.New(db, []*inbox.Source{shop}, nil)
//	receiver, err := webhook.New(in, nil) // an http.Handler
//	err = c.Run(ctx, in, receiver.Server(":8080"))
//
// When the version shows that a webhook is newer than what is known of its object, its body is
// accepted. Else Fetch is called. The saga runs for the newest accepted state, never for an arrival, so
// that order, delay and copies of webhooks change when something happens, and nothing else. A webhook
// that never comes is found by package reconcile. The numbered rules are in internal/intake/RULES.md.
//
// # Three mistakes
//
//   - A Fetch that answers Gone for anything but a plain "not found". A missing permission, a
//     timeout and a page that is late are errors: they are tried again, and are never a deletion.
//   - A Decide that looks at a clock, a database or a feature flag. It is asked again, by any
//     process, and has to say the same of the same state.
//   - Two programs that share a store and have different sources under one name.
//
// # Forgetting
//
// A processor forgets what is old, once an hour and in small transactions: bodies after 30 days,
// because they may be about people, dispositions after 90, what recognizes a copy after 400
// (Options.Retention). Nothing goes that is unjudged or of which something is owed. What is known
// of an object stays: a redelivery years later is still an old version.
//
// # What is guaranteed
//
//   - For every object that the source spoke of at or after its last change, what is known and the
//     source end equal, in whatever order, number and delay webhooks came, if none lies about a
//     version that can be believed, reads lag less than Policy.Settle, and the source can be asked
//     at last.
//   - Versions never go down. Nothing comes back that the source has not brought back.
//   - The newest accepted state is delivered at least once; older ones may be skipped. A delivery
//     may be repeated with the same revision. One object is never worked on by two at once, on any
//     process, for as long as the user's functions heed their context; a write of a process that
//     lost its lease matches nothing.
//   - The source is asked at most twice for any number of hints within a second, and once more for
//     each newer version that they name, and where the object is gone.
//
// # What is not
//
//   - A webhook that never came leaves no trace. Its object is right again with the next one, or
//     with a reconciler.
//   - A webhook with the time of the event, not of the object, is believed about an object that is
//     not known yet, and so is any that carries the whole object at a newer version, until the next
//     one.
//   - A source that changes an object without changing its version and without telling is not found
//     out.
//   - A function that goes on after its context ended may deliver an old state late. A saga refuses
//     it, because its revision is old.
//   - A counter that shows two contents under one number, or that goes on counting after a deletion
//     as if there had been none, gives two states one revision: the saga takes the first.
//   - Times of two sources are never compared. One object that two sources describe is two objects
//     here.
//   - A change feed that numbers commits (a log position and a place in it) has to make one counter
//     of the two.
//   - Lists inside an object that are cut short, and another API version than the webhooks', give
//     fingerprints of their own: the adapter reads every page and pins the version.
//
// Deleting is a proposal: a [Snapshot] with Deleted set carries the last state that was known, and
// what becomes of an invoice that was posted is for the saga and its people to say.
package inbox
