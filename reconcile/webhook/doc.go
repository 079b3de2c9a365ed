// Package webhook is the door of the hearing half: an HTTP handler that verifies what senders claim, stores it in
// a [reconcile.Inbox] and answers. It decides nothing else.
package webhook
