// Package hooks sends a shop's webhooks as the world sends them: late, out of
// order, more than once, after attempts that never left, to a receiver that may
// be dead, and now and then beside one that somebody forged.
//
// What becomes of a webhook is not chance but a Plan: a pure function of a seed
// and the webhook's id. Only what the receivers answer is theirs.
//
// A webhook is sent until somebody answers with 2xx, or once and never again
// when Options.Once says so. Then a shop that nobody watches loses changes for
// ever, and only who compares finds out.
//
// The body is a [shop.Event], signed as Standard Webhooks does. To read it with
// package reconcile/webhook:
//
//	webhook.Standard(webhook.Mapping{
//		Version: "data.version", Clock: inbox.CounterClock, Deleted: []string{string(shop.TopicDeleted)},
//	})
package hooks
