package webhook

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
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
		name: "QuickBooks", key: plainKey, claim: base64Claim("Intuit-Signature"), several: true,
		parse: func(m message) ([]intake.Event, error) {
			if begins(m.Body, "[") {
				return intuitCloudEvents(m.Body)
			}
			switch version, err := wordAt(m.Body, "specversion"); {
			case err != nil:
				return nil, fmt.Errorf("%w: %w", errQuickBooks, err)
			case version != "":
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
			RealmID         word `json:"realmId"`
			DataChangeEvent struct {
				Entities []raw `json:"entities"`
			} `json:"dataChangeEvent"`
		} `json:"eventNotifications"`
	}
	switch err := object(body, &b); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errQuickBooks, err)
	case b.EventNotifications == nil:
		return nil, errQuickBooks
	}
	total := 0
	for _, n := range b.EventNotifications {
		total += len(n.DataChangeEvent.Entities)
	}
	if err := fits(total); err != nil {
		return nil, err
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
		Name        string `json:"name"`
		Operation   string `json:"operation"`
		ID          word   `json:"id"`
		DeletedID   word   `json:"deletedId"`
		LastUpdated word   `json:"lastUpdated"`
	}
	switch err := reading.Into(body, &b); {
	case err != nil:
		return []intake.Event{malformed(body, fmt.Errorf("%w: %w", errQuickBooks, err))}
	case realm == "":
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
	if err := reading.Into(body, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", errQuickBooks, err)
	}
	events := make([]intake.Event, len(all))
	for i, one := range all {
		events[i] = intuitCloudEvent(one)
	}
	return events, nil
}

// intuitCloudEvent reads one whose type is like qbo.invoice.updated.v1.
func intuitCloudEvent(body raw) intake.Event {
	var b struct {
		ID      word `json:"id"`
		Type    word `json:"type"`
		Time    word `json:"time"`
		Entity  word `json:"intuitentityid"`
		Account word `json:"intuitaccountid"`
	}
	switch err := reading.Into(body, &b); {
	case err != nil:
		return malformed(body, fmt.Errorf("%w: %w", errQuickBooks, err))
	case b.Account == "":
		return malformed(body, errQuickBooks)
	}
	parts := strings.Split(string(b.Type), ".")
	if len(parts) != 4 || parts[0] != "qbo" {
		return malformed(body, errors.New("its type is none of QuickBooks"))
	}
	kind, operation := strings.ToLower(parts[1]), strings.ToLower(parts[2])
	return intake.Event{
		Object: inbox.Object{Tenant: string(b.Account), Type: kind, ID: string(b.Entity)},
		Topic:  kind + "." + operation, ID: string(b.ID), Dedupe: byID(string(b.ID)),
		Payload: intake.Thin, Deleted: operation == "deleted", At: timeOf(b.Time), Body: body,
	}
}
