// Package hooks sends a shop's webhooks as the world sends them: late, out of
// order, more than once, after attempts that never left, to a receiver that may
// be dead, and now and then together with a forged one.
//
// What becomes of a webhook is not chance but a Plan: a pure function of a seed
// and the webhook's id. Only what the receivers answer is theirs.
//
// A webhook is sent until a receiver answers with 2xx. With Options.Once it is
// sent once and never again: then the receivers never learn of a change whose
// webhook is lost, and only a comparison with the shop finds it.
//
// The body is a [shop.Event], signed as Standard Webhooks does. To read it with
// package reconcile/webhook:
//
//	webhook.Standard(webhook.Mapping{
//		Version: "data.version", Deleted: []string{string(shop.TopicDeleted)},
//	})
package hooks
