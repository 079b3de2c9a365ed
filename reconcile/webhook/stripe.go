package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Stripe returns the provider for the live events of Stripe. The tenant is the connected account,
// empty for the platform's own. Objects have no version of their own, and an event tells its time
// in whole seconds, in which several may fall: so its body fills what is unknown and otherwise is a
// hint. Thin events (v2) are hints.
func Stripe() Provider { return stripe(true) }

// StripeTest returns the provider for the events of Stripe's test mode. Endpoints of connected
// accounts get both kinds; the other one is stored as unknown.
func StripeTest() Provider { return stripe(false) }

func stripe(live bool) Provider {
	return Provider{
		name: "Stripe", signsTime: true,
		key:   func(secret string) (proof, error) { return hmacKey("v1", []byte(secret)) },
		claim: stripeClaim,
		parse: func(m message) ([]intake.Event, error) {
			e, livemode, err := stripeEvent(m.Body)
			if err != nil {
				return nil, err
			}
			if livemode != live {
				e.Disposition, e.Why = intake.Unknown, "it is of the other mode, live or test, than the source"
			}
			return []intake.Event{e}, nil
		},
	}
}

// stripeClaim reads t=1492774577,v1=5257a8…,v1=…,v0=…. Only v1 counts, as far as it can be read; v0
// is for tests of Stripe's own.
func stripeClaim(h http.Header, body []byte) (claim, error) {
	text, err := one(h, "Stripe-Signature")
	if err != nil {
		return claim{}, err
	}
	var c claim
	signatures := 0
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case name == "t" && c.Signed == nil:
			c.Signed = [][]byte{[]byte(value + "."), body}
			c.At, err = signedTime(value)
		case name == "t":
			err = errBadSignature
		case name == "v1":
			signatures++
			if s, bad := hexSignature("v1", value); bad == nil && signatures <= maxSignatures {
				c.Signatures = append(c.Signatures, s)
			}
		}
		if err != nil {
			return claim{}, err
		}
	}
	if c.Signed == nil || signatures > maxSignatures || signatures > 0 && len(c.Signatures) == 0 {
		return claim{}, errBadSignature
	}
	return c, nil
}

// stripeBody is what we read of an event, of either kind.
type stripeBody struct {
	ID       word   `json:"id"`
	Object   string `json:"object"`
	Type     string `json:"type"`
	Created  word   `json:"created"`
	Livemode bool   `json:"livemode"`
	Account  string `json:"account"` // the connected account, of a snapshot event
	Context  string `json:"context"` // the same of a thin one
	Data     struct {
		Object raw `json:"object"`
	} `json:"data"`
	Related struct {
		ID   word `json:"id"`
		Type word `json:"type"`
	} `json:"related_object"`
}

func stripeEvent(body raw) (intake.Event, bool, error) {
	var b stripeBody
	if err := reading.Into(body, &b); err != nil {
		return intake.Event{}, false, fmt.Errorf("it is no event of Stripe: %w", err)
	}
	e := intake.Event{Topic: b.Type, ID: string(b.ID), Dedupe: byID(string(b.ID)), At: timeOf(b.Created), Body: body}
	switch b.Object {
	case "v2.core.event":
		e.Object = inbox.Object{Tenant: b.Context, Type: string(b.Related.Type), ID: string(b.Related.ID)}
		e.Payload = intake.Thin
	case "event":
		var o struct {
			ID     word   `json:"id"`
			Object string `json:"object"`
		}
		if err := reading.Into(b.Data.Object, &o); err != nil {
			return intake.Event{}, false, fmt.Errorf("the event of Stripe holds no object: %w", err)
		}
		e.Object = inbox.Object{Tenant: b.Account, Type: o.Object, ID: string(o.ID)}
		e.Payload, e.Body = intake.Whole, b.Data.Object
		if e.Version = versionAt(b.Created, time.Second); e.Version.Clock != inbox.NoClock {
			e.Version.Clock = inbox.EventClock
		}
	default:
		return intake.Event{}, false, errors.New("it is no event of Stripe")
	}
	e.Deleted = strings.HasSuffix(b.Type, ".deleted") && b.Type != "customer.subscription.deleted" // that one is cancelled, and stays
	return e, b.Livemode, nil
}
