// Package sagahttp is the HTTP client that the actions of a saga use. It sends a request once and says
// what is known afterwards: it was done, it was refused, it was not sent, or its outcome is unknown.
//
//	client, err := sagahttp.New("https://books.example/api/v1", &sagahttp.Options{Authorize: token.Sign})
//
//	func (b *Books) createInvoice(ctx context.Context, c saga.Call[Order]) (Invoice, error) {
//		var made Invoice
//		_, err := b.client.Do(ctx, sagahttp.Request{
//			Method: "POST", Path: "/invoices", Key: c.Key, Body: c.Input, Into: &made,
//		})
//		return made, err
//	}
//
// The action returns the error as it is: [saga.Classify] reads the class from it. An action that knows more,
// for example because the destination explains itself in the body, looks into the [StatusError] and
// marks the error again; the outermost mark wins.
//
// # Mistakes people make
//
//   - An action that sends two requests with effects. What is known then is known of the last one: two
//     effects are two steps.
//   - A body that depends on the time or on chance: a destination that knows keys refuses it on the next
//     attempt, or makes a second one.
//   - A search by POST, a GraphQL query, without [Request.Reads]: it counts as a write, and what fails is
//     in doubt.
//   - A PUT or DELETE of what an earlier revision left, without [Request.Updates]: a 404 counts as a
//     refusal, and the instance turns back.
//   - A DELETE that undoes, without [Request.Undoes]: what was removed before by another is a refusal, and a person is asked.
//   - A destination that refuses with status 200: say so by [Options.CheckResponse].
//
// # More
//
// RULES.md beside this file says how a request is sent once and no more, and why "not sent" can be
// believed.
//
// # Reading
//
// GET, HEAD and OPTIONS have no effect. Nor has what is said to have none by Request.Reads: a
// GraphQL query, a method of JSON-RPC that reads, a search by POST.
//
//	_, err := client.Do(ctx, sagahttp.Request{Method: "POST", Path: "/graphql", Reads: true, Body: query, Into: &orders})
//
// Such a request does not pass the gate, needs no key, and works with and without a gate. Whatever
// goes wrong with it, no answer, a 5xx or an answer that cannot be read, nothing has happened: the
// error is [saga.NotSent], and the step may look again. Only a refusal stays one. So an action that
// looks first and writes second is in doubt only from the second on. Behind a write it is the other
// way round: what a failed read says is no word about the write, so the error is unknown, also
// where the read was refused.
//
// # A RoundTripper of yours
//
// [Options.WrapTransport] puts one around the client's, for tracing or for a library that signs:
//
//	WrapTransport: func(next http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(next) },
//
// The request leaves by next, whatever is around it, so these hold as without:
//
//   - The gate is passed at the first byte. Behind a closed gate, or after its deadline, nothing
//     leaves; nor when the RoundTripper comes late, and Do has returned.
//   - The request is sent once. net/http does not send it again by itself, also where the
//     RoundTripper gave it a body that can be rewound. A second call of next, to retry, to answer a
//     challenge or to follow a redirect, is refused.
//   - Method, host and path are those of the request.
//
// What it does besides cannot be watched. So an answer that did not come from next is no success,
// but unknown. An error of its own is unknown, too, unless it is marked [saga.NotSent] and next
// sent nothing; its text is shown only then. Where the error comes from next it has to wrap that
// error, or "not sent" is lost.
//
// # What an answer means
//
//	status                    class      because
//	2xx                       done       the body is decoded into Request.Into
//	2xx, and empty            done       Request.Into is left as it is. A step whose result needs an external id is not
//	                                     done by it, but unknown: the destination works, and the step spends attempts
//	429                       not sent   Options.NotExecuted lists it by default: "too many" is said before acting
//	401, 403, 407             not sent   the credentials were refused, not the order: an expired token must not
//	                                     roll back every saga in flight
//	421, 423, 425             not sent   defined as "not here", "locked" and "too early": not processed
//	408, 499                  unknown    the server or a proxy gave up on a request it may have passed on
//	409, sent with a key      unknown    another attempt under this key may be running
//	409, without a key        refused
//	400, 422, with a key      unknown    where the answer's words are about idempotency: the key came before with other
//	                                     content, so the first request came in, and this answer is not its result
//	Options.SavedRefusals,    refused    for good, and so is every request under the key: nothing that was sent under it has had an
//	with a key                           effect, or will. So is a refusal with "Idempotent-Replayed: true"
//	412                       unknown    the object was changed since it was read: look, and try again
//	404, 410, to an update    gone       Request.Updates: what an earlier revision left is not there any more; it is
//	                                     made again when a lookup has found nothing
//	404, 410, to an undo      done       Request.Undoes: what the step made is not there any more
//	any other 4xx             refused
//	503                       unknown    until Options.NotExecuted says that this destination's 503 means "not executed"
//	other 5xx                 unknown
//	1xx, 3xx                  unknown    a redirect after a POST often means that it was done; see below
//	timeout, cut, not HTTP    unknown
//	2xx, but unreadable       unknown    see below
//
// The table is that of a request that writes; where it says unknown, one that only reads is not
// sent, and an empty answer is unreadable.
//
// "Not sent", "refused", "gone" and "unknown" are [saga.Unsent], [saga.Refused], [saga.Gone] and
// [saga.Unknown].
//
// Redirects: a 303 answers a POST that was executed, a 308 one that was not, and a 302 either.
// Nothing can be proved from the status alone, so the class is unknown. A destination known to
// redirect without acting can be listed in Options.NotExecuted. Usually the cure is a base URL that
// names the final address.
//
// An unreadable success: the status says that the effect happened, but its body is too large
// ([ErrTooLarge]), cut, or not the JSON that was asked for ([ErrNotJSON]). The error is of class
// unknown, because calling it a success would lose the external id. The [Response] is returned
// beside the error, so an action whose destination puts the id in a header can finish anyway.
//
// Of the JSON of an answer only what Request.Into has a place for is read, and that as it was meant. A
// member that is named exactly as a field wins; without one, a single member that differs only in case
// counts. The charset of the Content-Type is decoded. A text with a byte that is not UTF-8, or with
// half of a surrogate pair, two members that could both be the field, and a charset that is not known
// make the answer unreadable: an id is never altered. What stands in other members, or in a
// json.RawMessage, which is kept as it came, changes nothing. A whole number is read into an integer
// however it is written (105, 105.0, 1.05e2). A json.Number keeps what is written, and one is what a
// number in an untyped value (any, map[string]any) becomes.
//
// The client declines every content encoding (Accept-Encoding: identity). A body that comes in gzip
// or deflate all the same is decoded, up to Options.MaxAnswer; in another it is unreadable.
//
// An error inside a 200, as GraphQL, JSON-RPC and many home-grown ends have it, is found by
// Options.CheckResponse. It is asked about every answer that came whole, before Request.Into is
// decoded; what it returns counts, and where it returns nil the table does.
//
//	CheckResponse: func(r *sagahttp.Response) error {
//		var a struct{ Errors []struct{ Message string; Extensions struct{ Code string } } }
//		if json.Unmarshal(r.Body, &a) != nil || len(a.Errors) == 0 {
//			return nil
//		}
//		err := errors.New(a.Errors[0].Message)
//		switch a.Errors[0].Extensions.Code {
//		case "BAD_USER_INPUT":
//			return saga.Permanent(err)
//		case "THROTTLED":
//			return saga.HoldBack(saga.RetryAfter(2*time.Second, saga.NotSent(err)))
//		}
//		return err // unknown
//	},
//	NotExecutedCodes: []string{"THROTTLED"},
//
// The request was sent, so "not sent" is believed only where the destination itself says that it
// did nothing: by a status of the table, or by a code of Options.NotExecutedCodes that stands in
// the answer. Else it is unknown, and the error says why. On 408, 499, 502 and 504 the hook is not
// asked: they come from who gave up waiting for the destination. An answer whose errors stand
// beside data was executed in part: that is unknown.
//
// Retry-After is honoured on every answer that is not a success, in seconds or as a date; a number
// that can be no wait is the seconds, milliseconds and so on since 1970 that some write. A date is
// taken relative to the answer's own Date header, so that clocks need not agree. The wait is capped
// at one hour, and the error has the header as it came; a longer one means that the destination is
// asked again each hour, not that a work sleeps for a year. On a 429 and a 503 the destination
// speaks of itself: they are marked [saga.HoldBack], and nothing else is sent there meanwhile. On
// any other answer it speaks of this one request ("this order can be invoiced tomorrow"), and only its
// step waits.
//
// # Limits and secrets
//
// Request bodies, answer bodies and answer headers have limits. The context's deadline bounds the
// whole exchange including the answer's body; without one, Options.Timeout applies.
//
// The package logs nothing. Its errors name method, path, status, request id and one bounded line
// of what the destination said ([Options.Explain], which may withhold it), never more of a body, a
// query or a header, and never the bytes of an answer that could not be understood. The host is
// fixed when the client is made; [Path] builds paths from values that came from elsewhere, and Do
// refuses dot segments, empty segments and raw query characters.
package sagahttp
