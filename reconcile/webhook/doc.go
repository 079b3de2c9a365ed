// Package webhook receives webhooks. It is an http.Handler that verifies each delivery, stores it and
// answers. It decides nothing about objects, fetches nothing and starts nothing: the
// [inbox.Processor] does that. So the answer depends on one insert, and nothing that a delivery says
// can make it late.
//
//	stripe := &inbox.Source{
//		Name: "stripe", Saga: "invoice-charge", Fetch: fetch, Decide: decide, Apply: c.Apply,
//		Webhooks: &webhook.Sender{
//			Provider: webhook.Stripe(),
//			Secrets:  []webhook.Secret{{Name: "2026-11", Text: os.Getenv("STRIPE_WEBHOOK_SECRET")}},
//		},
//	}
//	in, err := inbox.New(db, []*inbox.Source{stripe, shop}, nil)
//	receiver, err := webhook.New(in, nil)
//	err = c.Run(ctx, in, receiver.Server(":8080")) // POST /webhooks/stripe
//
// In a server of your own: mux.Handle("/webhooks/", receiver), with in among the parts of c.Run.
//
// # Four mistakes
//
//   - Mounting the receiver without running the processor: webhooks are stored, and nothing follows.
//   - A middleware that reads or rewrites the body: the signature is over the bytes as they came.
//   - A [Mapping] whose Version is a path within the object, not from the top of the body: each event
//     is then a hint, and costs a Fetch.
//   - Saying by Deleted that an object is cancelled which the source still has. Deleted is for what
//     Fetch finds no more; cancelled is a state, and Decide says [saga.WantWithdrawn] of it.
//
// RULES.md beside this file says how a delivery is received, step by step, and what is logged.
//
// # The answers
//
//	200  stored, or stored before; an unsigned handshake. The body is always empty
//	401  no signature, one that cannot be read, a wrong one, or a signed time beyond the tolerance
//	404  no such source, or a hidden one; the two look alike
//	405  not a POST
//	408  the body did not come in time
//	413  the body, the unpacked body or the header is larger than the limit
//	503  the inbox failed or had no time, the source is full or refusing; with Retry-After
//
// Trouble with the database is ours and never a 4xx. There is no redirect, no 410 (which
// unsubscribes us), no cookie and no text. A crash before the commit sends no 200, and one behind
// it makes the sender come again, to find its event known.
//
// The strictest sender waits for three seconds. The budget of a delivery is 2.3 s from its header
// on, can be shortened, and ends no later than 2.5 s even when the inbox does not come back; a call
// that hangs keeps its place in Sender.Concurrent until it returns.
//
// # What providers promise
//
//	provider           signature                  signed time  the same event by
//	Standard Webhooks  HMAC v1, ed25519 v1a       yes          webhook-id
//	Stripe             HMAC, hex, over time.body  yes          event id
//	WooCommerce        HMAC, base64, over body    no           body
//	Shopify            HMAC, base64, over body    no           shop and body
//	GitHub             HMAC, hex, over body       no           body
//	Xero               HMAC, base64, over body    no           tenant, object, time and type
//	QuickBooks         HMAC, base64, over body    no           event id; before CloudEvents tenant, object,
//	                                                           operation and time
//	Custom             as Auth says: an HMAC, or  as Auth      event id as the Mapping says, else content
//	                   a bearer or basic          says
//	                   credential
//
//	provider           version of an object       a deletion is
//	Standard Webhooks  as the Mapping says        as the Mapping says
//	Stripe             event clock, 1 s: a hint   a hint
//	WooCommerce        date_modified_gmt, 1 s     an id only: a hint
//	Shopify            updated_at, 1 s            an id only: a hint
//	GitHub             updated_at, 1 s            a hint
//	Xero, QuickBooks   none: a hint               a hint
//	Custom             as the Mapping says        as the Mapping says
//
//	provider           waits      repeats                     and then
//	Standard Webhooks  15 to 30 s about 10 times in 75 h      may disable us
//	Stripe             not said   3 days                      stops
//	WooCommerce        60 s       never                       disables us after 5 failures in a row
//	Shopify            5 s        8 times in 4 h              removes the subscription
//	GitHub             10 s       never by itself             nothing
//	Xero               5 s        less and less, 24 h         disables us
//	QuickBooks         3 s        growing waits, many hours   may hold back what comes later
//
// An event keeps the part of the body that is the object, and its fingerprint leaves out
// Provider.Volatile. Who fetches the object in the same shape takes the fingerprint with the same
// list, or each fetch looks like a change.
//
// No provider promises order, or that nothing is lost; behind the last column only a sweep helps. A
// version is a promise of one object of one source and is compared with nothing else. Where an
// event has no id it is known by its content. Digests are made of parts with their lengths, so
// neighbouring fields never run together.
//
// Where no time is signed a captured delivery is genuine for ever. Inbox and gate then know it by
// digest, version and fingerprint, so the gate has to remember longer than the inbox.
//
// # Other senders
//
// [Custom] is for senders without a provider here, for tools as n8n, Make, Zapier and Typeform, and
// for a system of one's own: [Auth] says how a delivery proves where it comes from, and [Mapping]
// where its fields are. Neither needs code.
//
// A credential (bearer, basic) proves less than a signature. It comes with every delivery and
// covers nothing of it, so who sees one, in a proxy's log or in the tool's own history, can make
// any other, at any time. Use it over TLS only, keep it long, and prefer a signature over a time
// where the sender can make one.
//
// # Headers are not signed
//
// WooCommerce, Shopify and GitHub name topic, shop, event and delivery in headers that their
// signature does not cover: with one captured delivery, and without the secret, anything can be
// written there. So what an object is, and what makes a delivery the same event as another, comes
// from the body:
//
//	provider     its type, in the body                       its tenant
//	WooCommerce  _links.self.href: …/orders/10492            there is one: the secret is the shop's
//	Shopify      admin_graphql_api_id: gid://shopify/Order/… stands in no body
//	GitHub       its fields: comment and issue               there is one
//
// Where the header says something else, or the body does not say (a deletion is an id), the event
// is a hint about a type of Sender.Types, and the source is asked; a deletion by header is never
// more. The ids in the header are kept for people. Without Types, or with several tenants, [New]
// refuses such a source unless Sender.Headers says what to make of it: HeadersHint has the source
// asked about each delivery, which is right for an app that many shops have installed;
// HeadersTrusted is for where only the sender can reach the receiver.
//
// # What the operator sets up
//
//   - Secrets: at least one per source, of at least 16 bytes, and none that another source has. To
//     rotate, put the new one first and keep the old one. [Receiver.Secrets] says when the old one
//     was used last; every stored event names the secret that signed it. All faults of all sources
//     are reported at once by [New], and a source that cannot verify is never opened.
//   - Types: which objects are wanted. Other ones are kept as unknown.
//   - Tenants: which accounts of the source are ours. An event of another is kept as unknown, and
//     nothing comes of it until the tenant is added and the delivery replayed.
//   - The clock of the machine: signed times are compared with it. When it is wrong every genuine
//     delivery of such a source fails; Listener.ClockAlarm then says by how much. They are still
//     refused.
//   - Limits: MaxBody above the largest object (GitHub sends up to 25 MB), three times Concurrent
//     times MaxBody within the memory (as much for bodies on their way, for unpacked ones and for
//     what is made of them), and a server whose header limits are set, as [Receiver.Server] does.
//   - State: Ignoring keeps a subscription alive while nothing is to come of it, Refusing makes the
//     sender keep what it has, Hidden acts as if the source did not exist.
//   - Epoch: raised by hand when the source begins to count its versions again. Fetch gives its
//     versions the same epoch: the first event of each object behind it is a hint, because an old
//     delivery that comes late is stamped, too.
//   - The fetch of a source uses the same API version as its webhooks are made with, or fields
//     differ by version.
//
// A middleware in front must leave the body alone, and its ResponseWriter needs an Unwrap method,
// so that slow bodies can be stopped.
//
// Slow bodies take no place from genuine deliveries, and of memory at most twice what was sent, out
// of the half that bodies have until they are verified. A body is read on only while it leaves
// twice its size free there, else it is answered 503: beside a flood of large ones small genuine
// deliveries are stored, and large genuine ones have to come again. Very many small ones can fill it
// all the same. Each costs a connection, or a stream of HTTP/2, and a goroutine for 70 % of the
// budget. In front of the open
// internet belongs a proxy that buffers whole requests, so that this one sees none that is slow. A
// limit of connections per address is no replacement: many streams share one connection, and a
// botnet has many addresses. What buffering costs: each delivery is passed on only when all of it
// has come, the proxy needs memory or disk for what it buffers, and its own limits of size and time
// have to be above MaxBody, or its refusals, which are counted nowhere here, come first.
package webhook
