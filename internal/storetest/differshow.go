package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// byChance are fields whose values are a store's own: each is shown by the order in which it was
// seen, and those without a letter are not shown.
var byChance = map[string]string{
	"Instance.Number": "work", "Answer.Number": "work", "Finding.Number": "work",
	"Delivery.Number": "delivery",
	"Control.Version": "control", "Lease.Controls": "control", "Claimed.Controls": "control",
	"Lease.Database": "", "Lease.Lock": "", "Lease.Unlocked": "", "Lease.Witness": "", "Lease.Alone": "",
	"Session.Witness": "", "Overview.Log": "", "Overview.Reading": "",
	"Answer.Err": "", // in words of the database
}

// number is a number of a kind that a store draws.
type number struct {
	kind string
	n    int64
}

// named is what is drawn by chance, by the order in which this side saw it.
func (s *side) named(kind string, drawn any, zero bool) string {
	if zero {
		return "0"
	}
	name := s.names[drawn]
	if name == "" {
		name = kind + strconv.Itoa(len(s.names))
		s.names[drawn] = name
	}
	return name
}

// value writes an answer so that equal answers are equal texts.
func (s *side) value(v reflect.Value) {
	switch x := v.Interface().(type) {
	case time.Time:
		if !x.IsZero() {
			s.said.WriteString(x.Sub(era).String())
		}
		return
	case machine.Token:
		s.said.WriteString(s.named("session", x, x == 0))
		return
	case machine.Hash: // a session's token is in it
		s.said.WriteString(s.named("hash", "", x == machine.Hash{}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if s.said.WriteByte('*'); !v.IsNil() {
			s.value(v.Elem())
		}
	case reflect.Struct:
		s.fields(v)
	case reflect.Slice, reflect.Array:
		s.elements(v)
	case reflect.Map:
		s.entries(v)
	case reflect.String:
		fmt.Fprintf(&s.said, "%.80q", v.String())
	default:
		fmt.Fprint(&s.said, v.Interface())
	}
}

// fields writes those fields of a struct that say something.
func (s *side) fields(v reflect.Value) {
	s.said.WriteByte('{')
	for i := range v.NumField() {
		f := v.Type().Field(i)
		drawn, chance := byChance[v.Type().Name()+"."+f.Name]
		empty := v.Field(i).IsZero() || f.Type.Kind() == reflect.Slice && v.Field(i).Len() == 0
		if !f.IsExported() || empty || chance && drawn == "" {
			continue
		}
		s.said.WriteString(" " + f.Name + ":")
		if chance {
			n := v.Field(i).Int()
			s.said.WriteString(s.named(drawn, number{drawn, n}, n == 0))
			continue
		}
		s.value(v.Field(i))
	}
	s.said.WriteString(" }")
}

func (s *side) elements(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		fmt.Fprintf(&s.said, "%.80q", b)
		return
	}
	s.said.WriteByte('[')
	for i := range v.Len() {
		s.said.WriteByte(' ')
		s.value(v.Index(i))
	}
	s.said.WriteString(" ]")
}

func (s *side) entries(v reflect.Value) {
	var lines []string
	for _, key := range v.MapKeys() {
		lines = append(lines, fmt.Sprintf("%v:%v", key.Interface(), v.MapIndex(key).Interface()))
	}
	slices.Sort(lines)
	fmt.Fprint(&s.said, lines)
}

// expected are the classes of error that each method has to meet in a night.
const expected = `Accept error ok; ActChain ok; Acts ok; Advance moved ok; Answer ok; Append appended exists invalid mine missing no-lease ok stale; Approve no-plan ok; AtRest ok; Await invalid ok;
Blocked ok; BlockedDays ok; Bury ok; CatchUp ok; Claim ok session-dead; Controls ok; Count ok; Counts ok; Deeds ok; Definitions ok; Deliveries ok; Delivery no-delivery ok; Describe
definition-changed ok; Did invalid ok; Discard ok; Done no-plan ok; Draft ok; Drifts ok; Duplicates ok; EndHold invalid ok; Entries ok; Entry ok; Find no-plan ok; Findings ok; Finish
no-plan ok; Forget ok; GiveBack ok; History not-found ok; Holdings ok; Jobs ok; Judge ok refused; Keep invalid ok; Latest no-plan ok; Lease ok refused; List cursor ok; Load ok;
Messages ok; OpenSession ok; Overview ok; Paused ok; Plan no-plan ok; Position ok; Positions ok; Post changed invalid not-found ok; Purge ok; Remember
ok; Renew ok session-dead; Replay ok; Request ok; Run no-run ok; Runs ok; Sessions ok; SetControl changed invalid ok session-dead; Shared ok; Sightings ok; Signals
not-found ok; Stopped ok; Tally ok; Totals ok; Turn ok refused; Unwait ok; Update ok refused; Use ok; Uses ok; Waits ok; Weigh ok refused`
