package saga

import (
	"encoding/json"
	"testing"
)

var order = ID{Saga: "order-to-invoice", Work: "shop:order:10492"}

type thing struct {
	ID string `json:"id"`
}

func (t thing) ExternalID() string { return t.ID }

func output(id string) json.RawMessage {
	b, err := json.Marshal(thing{id})
	if err != nil {
		panic(err)
	}
	return b
}

func dump(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
