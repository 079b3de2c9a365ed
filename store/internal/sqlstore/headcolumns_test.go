package sqlstore

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// The classes of statuses are the same in SQL and in Go.
func TestClassesOfStatuses(t *testing.T) {
	t.Parallel()
	for _, s := range []saga.Status{
		saga.Running, saga.Retrying, saga.Compensating, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Compensated,
	} {
		if !s.Valid() {
			t.Errorf("%s is no status", s)
		}
		for class, is := range map[string]bool{
			Live: s.Live(), Ended: s.Terminal(), AtIssue: ledger.AtIssue(&machine.Record{Status: s, Step: "x"}, "") != "",
		} {
			if in := slices.Contains(statusNames.FindAllString(class, -1), "'"+string(s)+"'"); in != is {
				t.Errorf("%s is %s: %t in SQL, %t in Go", s, class, in, is)
			}
		}
	}
}

// Every field of an instance is read: what has its name in a row, and its name and salt.
func TestEveryFieldOfAnInstanceIsRead(t *testing.T) {
	t.Parallel()
	read := []string{"ID", "Salt"}
	instance := reflect.TypeFor[ledger.Instance]()
	for _, f := range alike {
		read = append(read, instance.Field(f.to).Name)
	}
	for f := range instance.Fields() {
		if !slices.Contains(read, f.Name) {
			t.Errorf("%s is read from no column", f.Name)
		}
	}
	for f := range reflect.TypeFor[HeadRow]().Fields() {
		if f.Name == firstExtra {
			break
		}
		if !strings.Contains(HeadColumns, "h."+columnOf(f)) {
			t.Errorf("%s is selected as no column", f.Name)
		}
	}
}
