package sqlstore

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var order = saga.ID{Saga: "order-to-invoice", Work: "shop:order:10492"}

func key(revision string) string {
	return machine.StepKey(machine.RootKey(order.Saga, order.Work, revision), "invoice", saga.Forward, 0)
}

// Documents are a format: what is written today must read the same in ten years.
func TestDocumentsAreAFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    ledger.Entry
		want string
	}{
		"a start": {ledger.Entry{Record: machine.Record{
			Seq: 1, Kind: machine.KindStarted, Version: 3, Revision: "v7", Nonce: math.MinInt64, Status: saga.Running, Body: []byte(`{}`),
			Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 1, Budget: 30 * time.Second, Key: key("v7")},
		}}, `{"k":"started","rev":"v7","ver":3,"nonce":"-9223372036854775808","a":{"s":"invoice","b":30000}}`},
		"a result": {ledger.Entry{Revision: "v7", Record: machine.Record{
			Seq: 2, Kind: machine.KindDone, Step: "customer", Direction: saga.Forward, Attempt: 1, Status: saga.Running, ExternalID: "cus_1",
			Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 1, Budget: 30 * time.Second, Key: key("v7")},
		}}, `{"k":"done","s":"customer","a":{"s":"invoice","b":30000}}`},
		"a key of another revision": {ledger.Entry{Revision: "v8", Record: machine.Record{
			Seq: 2, Kind: machine.KindDispatched, Status: saga.Running,
			Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 2, Key: key("v7")},
		}}, `{"k":"dispatched","a":{"s":"invoice","n":2,"k":"` + key("v7") + `"}}`},
		"everything": {ledger.Entry{Revision: "v7", Record: machine.Record{
			Seq: 9, Kind: machine.KindUnknown, Version: 2, Revision: "é\n", Nonce: 1, Step: `a"b`, Direction: saga.Undo, Attempt: 0, BodyDropped: true,
			ErrorClass: saga.Unknown, Error: "Zeit <überschritten>", Signals: []int64{3, 99}, Status: saga.Review, Reason: saga.ReasonInDoubt,
			Wait: 1500 * time.Millisecond, Snapshot: []byte(`{}`),
			Dispatch: &machine.Dispatch{Step: "x", Direction: saga.Undo, Attempt: 4, Key: "am-k", Reissue: 5, Budget: time.Millisecond},
		}}, `{"k":"unknown","st":"review","r":"in-doubt","s":"a\"b","d":"undo","n":0,"c":"unknown","e":"Zeit \u003cüberschritten\u003e",` +
			`"rev":"é\n","ver":2,"nonce":"1","sig":[3,99],"w":1500,"x":true,"on":"v7","a":{"s":"x","d":"undo","n":4,"re":5,"b":1,"k":"am-k"}}`},
		"nothing of a step": {ledger.Entry{Record: machine.Record{Seq: 2, Kind: machine.KindNoted, Status: saga.Completed, Attempt: 1, Direction: saga.Forward}},
			`{"k":"noted","st":"completed","d":"forward","n":1}`},
		"no status": {ledger.Entry{Record: machine.Record{Seq: 2, Kind: machine.KindNoted}}, `{"k":"noted","st":""}`},
	} {
		c.e.ID = order
		if got := string(Document(nil, &c.e)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		chain := reading{id: order, revision: c.e.Revision}
		r := c.e.Record // what the columns say
		r = machine.Record{Seq: r.Seq, ExternalID: r.ExternalID, Body: r.Body, Snapshot: r.Snapshot}
		if err := chain.record(&r, c.want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(r, c.e.Record) {
			t.Errorf("%s:\nread    %+v\nwritten %+v", name, r, c.e.Record)
		}
	}
}

// What a newer program wrote is refused, and not misread; so is what no program wrote.
func TestDocumentsOfOthers(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct {
		is   error
		says string
	}{
		`{"v":1,"h":1,"k":"done"}`:              {nil, ""},
		`{"v":2,"k":"done"}`:                    {ledger.ErrSchema, "its document has version 2, this program knows 1"},
		`{"v":2,"k":{"of":"another kind"}}`:     {ledger.ErrSchema, "upgrade this one"},
		`{"k":"done","later":true,"v":3}`:       {ledger.ErrSchema, "version 3"},
		`{"h":2,"k":"done"}`:                    {ledger.ErrSchema, "its hash has encoding 2, this program knows 1"},
		`{"v":0,"k":"done"}`:                    {ledger.ErrSchema, "version 0"},
		`{"k":"done","later":true}`:             {ledger.ErrDamaged, "later"},
		`{"k":1}`:                               {ledger.ErrDamaged, "of type machine.Kind"},
		``:                                      {ledger.ErrDamaged, ""},
		`{"k":"done","sig":"1"}`:                {ledger.ErrDamaged, ""},
		`{"k":"done","nonce":1}`:                {ledger.ErrDamaged, ""},
		`{"k":"done","a":{"s":"x","z":"more"}}`: {ledger.ErrDamaged, "z"},
	} {
		chain := reading{id: order}
		err := chain.record(&machine.Record{Seq: 2}, doc)
		if !errors.Is(err, want.is) || err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v, want %v and %q", doc, err, want.is, want.says)
		}
	}
}

// The head of a chain is its own: a reading goes on from the latest snapshot with the revision that
// it names.
func TestReadingsKnowTheirRevision(t *testing.T) {
	t.Parallel()
	chain := reading{id: order}
	for i, c := range []struct {
		row  recordRow
		want string
	}{
		{recordRow{Seq: 7, Snapshot: "{}", Doc: `{"k":"dispatched","on":"v2","a":{"s":"invoice"}}`}, key("v2")},
		{recordRow{Seq: 8, Doc: `{"k":"dispatched","rev":"v9","a":{"s":"invoice"}}`}, key("v2")},
		{recordRow{Seq: 9, Doc: `{"k":"revised","rev":"v3","a":{"s":"invoice"}}`}, key("v3")},
		{recordRow{Seq: 10, Snapshot: "{}", Doc: `{"k":"dispatched","a":{"s":"invoice"}}`}, key("")},
		{recordRow{Seq: 1, Doc: `{"k":"started","rev":"v1","a":{"s":"invoice"}}`}, key("v1")},
	} {
		c.row.Hash = make([]byte, machine.HashSize)
		if r, err := chain.next(&c.row); err != nil || r.Dispatch.Key != c.want {
			t.Errorf("row %d: key %+v, %v, want %s", i, r.Dispatch, err, c.want)
		}
	}
}

func BenchmarkDocument(b *testing.B) {
	e := ledger.Entry{ID: order, Revision: "v7", Record: machine.Record{
		Seq: 2, Kind: machine.KindDone, Step: "customer", Direction: saga.Forward, Attempt: 1, Status: saga.Running, ExternalID: "cus_1",
		Dispatch: &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 1, Budget: 30 * time.Second, Key: key("v7")},
	}}
	var doc []byte
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			doc = Document(doc[:0], &e)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			chain := reading{id: order, revision: "v7"}
			if err := chain.record(&machine.Record{Seq: 2}, string(doc)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
