package webhook

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Xero returns the provider for Xero's webhooks; the secret is the webhook's signing key, the
// tenant the organisation. Events are thin: they tell that an object changed and when they
// happened, which is not the version that a fetch finds, so each is a hint. A delivery holds
// several.
//
// The signature covers the body and no time. When a webhook is set up Xero sends deliveries without
// events, some of them signed wrongly on purpose, and expects 200 and 401; they need no special
// case here. It wants an answer within five seconds, without body and cookies, and repeats for 24
// hours.
func Xero() Provider {
	return Provider{
		name: "Xero", key: plainKey, claim: base64Claim("X-Xero-Signature"),
		parse: xeroEvents, several: true,
	}
}

func xeroEvents(m message) ([]intake.Event, error) {
	var b struct {
		Events []raw `json:"events"`
	}
	switch err := object(m.Body, &b); {
	case err != nil:
		return nil, fmt.Errorf("it is no delivery of Xero: %w", err)
	case b.Events == nil:
		return nil, errors.New("it is no delivery of Xero")
	}
	events := make([]intake.Event, len(b.Events))
	for i, body := range b.Events {
		events[i] = xeroEvent(body)
	}
	return events, nil
}

func xeroEvent(body raw) intake.Event {
	var b struct {
		ResourceID    string `json:"resourceId"`
		TenantID      string `json:"tenantId"`
		EventCategory string `json:"eventCategory"`
		EventType     string `json:"eventType"`
		EventDateUTC  word   `json:"eventDateUtc"`
	}
	switch err := reading.Into(body, &b); {
	case err != nil:
		return malformed(body, fmt.Errorf("it is no event of Xero: %w", err))
	case b.TenantID == "":
		return malformed(body, errors.New("it is no event of Xero, or names no tenant"))
	}
	category, kind := strings.ToLower(b.EventCategory), strings.ToLower(b.EventType)
	return intake.Event{
		Object: inbox.Object{Tenant: b.TenantID, Type: category, ID: b.ResourceID},
		Topic:  category + "." + kind, Dedupe: byID(b.ResourceID, string(b.EventDateUTC), category, kind),
		Payload: intake.Thin, Deleted: kind == "delete", At: timeOf(b.EventDateUTC), Body: body,
	}
}
