package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// QuickBooks returns the provider for QuickBooks Online; the secret is the app's verifier token,
// the tenant the company (realm). Events are thin and so hints. Both formats are read:
// eventNotifications, and CloudEvents with one event per object. A delivery holds several; a merge
// is told of both objects.
//
// The signature covers the body and no time. QuickBooks waits three seconds, the shortest of all,
// and may hold back later events until the first is acknowledged.
func QuickBooks() Provider {
	return Provider{
		name: "QuickBooks", key: plainKey, claim: base64Claim("Intuit-Signature"),
		parse: func(m message) ([]intake.Event, error) {
			switch {
			case bytes.HasPrefix(bytes.TrimLeft(m.Body, " \t\r\n"), []byte("[")):
				return intuitCloudEvents(m.Body)
			case wordAt(m.Body, "specversion") != "":
				return []intake.Event{intuitCloudEvent(m.Body)}, nil
			}
			return intuitNotifications(m.Body)
		},
	}
}

var errQuickBooks = errors.New("it is no delivery of QuickBooks")

func intuitNotifications(body raw) ([]intake.Event, error) {
	var b struct {
		EventNotifications []struct {
			RealmID         word
			DataChangeEvent struct{ Entities []raw }
		}
	}
	if !isObject(body) || json.Unmarshal(body, &b) != nil || b.EventNotifications == nil {
		return nil, errQuickBooks
	}
	var events []intake.Event
	for _, n := range b.EventNotifications {
		for _, entity := range n.DataChangeEvent.Entities {
			events = append(events, intuitEntity(string(n.RealmID), entity)...)
		}
	}
	return events, nil
}

func intuitEntity(realm string, body raw) []intake.Event {
	var b struct {
		Name, Operation            string
		ID, DeletedID, LastUpdated word
	}
	if json.Unmarshal(body, &b) != nil || realm == "" {
		return []intake.Event{malformed(body, errQuickBooks)}
	}
	kind, operation := strings.ToLower(b.Name), strings.ToLower(b.Operation)
	e := intake.Event{
		Object: inbox.Object{Tenant: realm, Type: kind, ID: string(b.ID)},
		Topic:  kind + "." + operation, Dedupe: byID(kind, string(b.ID), operation, string(b.LastUpdated)),
		Payload: intake.Thin, Deleted: operation == "delete", At: timeOf(b.LastUpdated), Body: body,
	}
	events := []intake.Event{e}
	if b.DeletedID != "" { // merged into the other
		e.Object.ID, e.Deleted = string(b.DeletedID), true
		e.Dedupe = byID(kind, string(b.DeletedID), operation, string(b.LastUpdated))
		events = append(events, e)
	}
	return events
}

func intuitCloudEvents(body raw) ([]intake.Event, error) {
	var all []raw
	if json.Unmarshal(body, &all) != nil {
		return nil, errQuickBooks
	}
	events := make([]intake.Event, len(all))
	for i, one := range all {
		events[i] = intuitCloudEvent(one)
	}
	return events, nil
}

// intuitCloudEvent reads one whose type is like qbo.invoice.updated.v1.
func intuitCloudEvent(body raw) intake.Event {
	var b struct{ ID, Type, Time, IntuitEntityID, IntuitAccountID word }
	if json.Unmarshal(body, &b) != nil || b.IntuitAccountID == "" {
		return malformed(body, errQuickBooks)
	}
	parts := strings.Split(string(b.Type), ".")
	if len(parts) != 4 || parts[0] != "qbo" {
		return malformed(body, errors.New("its type is none of QuickBooks"))
	}
	kind, operation := strings.ToLower(parts[1]), strings.ToLower(parts[2])
	return intake.Event{
		Object: inbox.Object{Tenant: string(b.IntuitAccountID), Type: kind, ID: string(b.IntuitEntityID)},
		Topic:  kind + "." + operation, ID: string(b.ID), Dedupe: byID(string(b.ID)),
		Payload: intake.Thin, Deleted: operation == "deleted", At: timeOf(b.Time), Body: body,
	}
}
