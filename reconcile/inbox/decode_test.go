package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/amends-dev/amends/reconcile/inbox"
)

// A state is read as the source meant it, or not at all.
func TestDecode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		id    int
		wrong string
	}{
		`{"id":102,"ID":5}`:              {102, ""},
		`{"Id":102.0,"note":"\ud83d"}`:   {102, ""},
		`{"id":1.02e2,"x":1,"x":2}`:      {102, ""},
		`{"id":102,"id":5}`:              {0, "the body of shop:order:102: .id: one name stands there twice"},
		`{"Id":102,"ID":5}`:              {0, "either could be it"},
		`{"id":"secret"}`:                {0, ".id: it is a string"},
		`{"id":102,"status":"\ud83d"}`:   {0, ".status: a text"},
		"{\"id\":102,\"note\":\"\xdc\"}": {102, ""},
	} {
		s := inbox.Snapshot{Object: inbox.Object{Source: "shop", Type: "order", ID: "102"}, Body: json.RawMessage(body)}
		var order struct {
			ID     int    `json:"id"`
			Status string `json:"status"`
		}
		err := s.Decode(&order)
		if want.wrong == "" && (err != nil || order.ID != want.id) || want.wrong != "" && (err == nil || !strings.Contains(err.Error(), want.wrong) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %d, %v", body, order.ID, err)
		}
	}
	for _, n := range []string{"9007199254740993", "616581622363398142", "105.0", "5"} {
		var order map[string]any
		s := inbox.Snapshot{Body: json.RawMessage(`{"id":` + n + `}`)}
		if err := s.Decode(&order); err != nil || order["id"] != json.Number(n) {
			t.Errorf("%s: %v, %v", n, order["id"], err)
		}
	}
}
