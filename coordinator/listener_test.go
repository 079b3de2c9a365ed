package coordinator_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// A Tee tells each of its listeners everything, in order, and passes by those that do not want it.
func TestTee(t *testing.T) {
	t.Parallel()
	var told []string
	named := func(name string) *coordinator.Listener {
		tell := func(what string) { told = append(told, name+" "+what) }
		return &coordinator.Listener{
			Recorded:      func(r coordinator.Record) { tell("recorded " + r.Kind) },
			Duplicate:     func(id saga.ID, source string) { tell("duplicate " + id.Work + " " + source) },
			Conflict:      func(id saga.ID, source string) { tell("conflict " + id.Work + " " + source) },
			Claimed:       func(id saga.ID) { tell("claimed " + id.Work) },
			Committed:     func(_ int, took time.Duration) { tell("committed in " + took.String()) },
			SessionOpened: func(session string) { tell("opened " + session) },
			SessionLost:   func(session string, why error) { tell("lost " + session + ": " + why.Error()) },
		}
	}
	all := coordinator.Tee(named("first"), nil, &coordinator.Listener{}, named("second"))
	for _, tell := range []func(l *coordinator.Listener){
		func(l *coordinator.Listener) { l.Recorded(coordinator.Record{Kind: "done"}) },
		func(l *coordinator.Listener) { l.Duplicate(saga.ID{Work: "w"}, "webhook") },
		func(l *coordinator.Listener) { l.Conflict(saga.ID{Work: "w"}, "poll") },
		func(l *coordinator.Listener) { l.Claimed(saga.ID{Work: "w"}) },
		func(l *coordinator.Listener) { l.Committed(1, time.Second) },
		func(l *coordinator.Listener) { l.SessionOpened("s") },
		func(l *coordinator.Listener) { l.SessionLost("s", errors.New("expired")) },
	} {
		tell(all)
	}
	var want []string
	for _, what := range []string{"recorded done", "duplicate w webhook", "conflict w poll", "claimed w", "committed in 1s", "opened s", "lost s: expired"} {
		want = append(want, "first "+what, "second "+what)
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for i := range reflect.TypeFor[coordinator.Listener]().NumField() {
		if f := reflect.ValueOf(all).Elem().Field(i); f.IsNil() {
			t.Errorf("Tee does not tell %s", reflect.TypeFor[coordinator.Listener]().Field(i).Name)
		}
	}
}
