// Package console shows a ledger in a browser, and lets people and programs act on it by HTTP: what
// needs a person, one saga instance as a timeline, lists, destinations, what was heard, jobs and
// findings, duplicates that were blocked, and what people did. It renders what the command amends
// prints, so that a page, a program and a shell are told the same and do the same.
//
//	tokens, err := console.OpenTokens("/etc/shop/amends-tokens") // amends token --file … writes it
//	…
//	pages, err := console.New(db, &console.Options{Path: "/amends/", Tokens: tokens, Hosts: []string{"ops.example.com"}})
//	…
//	mux.Handle("/amends/", pages)
//
// "amends serve" is the same as a program of its own. Under /api/v1 every read of the pages and
// every verb of the command answers as JSON; /api/v1/openapi.json says how.
//
// # Who may do what
//
// Who asks has roles, by a token or by what [Options.Who] says:
//
//	reader    sees everything but bodies
//	approver  votes on approvals, with the person's other roles (finance, …); sees what a reader sees
//	operator  says what a person says to instances, destinations and jobs, and sees bodies
//	admin     all of that, pauses everything, and votes on everything
//
// Who acts is who the token names, never what a request says. The history keeps it.
//
// # Mistakes people make
//
//   - Hosts is empty and the page is asked for under a name: it is refused, because otherwise any web
//     page could talk to a console on a machine of your network by a name of its own (DNS rebinding).
//   - A proxy's header is trusted from everywhere: say which addresses the proxy has ([Header]).
//   - The server has no time-outs. Set ReadHeaderTimeout at least.
package console
