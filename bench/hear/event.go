package hear

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// padding makes a body as long as that of a small order.
var padding = `,"status":"paid","total":"119.00","currency":"EUR","note":"` + strings.Repeat("0123456789 ", 45) + `"}`

// event is version v of an object, delivered as event n.
func event(n, object, v int64) intake.Event {
	body := `{"id":` + strconv.FormatInt(object, 10) + `,"version":` + strconv.FormatInt(v, 10) + padding
	return intake.Event{
		Object:      inbox.Object{Source: "shop", Type: "order", ID: strconv.FormatInt(object, 10)},
		Topic:       "order.updated",
		ID:          "evt_" + strconv.FormatInt(n, 10),
		Dedupe:      intake.DigestOf("evt", strconv.FormatInt(n, 10)),
		Payload:     intake.Whole,
		Version:     inbox.Counter(v),
		Body:        json.RawMessage(body),
		Fingerprint: intake.DigestOf(body),
		Received:    time.Now(),
		Secret:      "current",
	}
}
