package rows

import (
	"database/sql"
	"encoding/json"
	goflag "flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/schedule"
)

var rewrite = goflag.Bool("rewrite", false, "write which field stands in which column into testdata")

// filled puts into every field of a value what no other one has.
func filled[T any]() *T {
	v := new(T)
	n := 0
	fill(reflect.ValueOf(v).Elem(), "", &n)
	return v
}

func fill(v reflect.Value, path string, n *int) {
	*n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(int64(*n), 0).UTC()
	case *intake.Digest:
		at[0] = byte(*n)
	case *json.RawMessage:
		*at = json.RawMessage(path)
	default:
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name, n)
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), path, n)
		case reflect.String:
			v.SetString(path)
		case reflect.Bool:
			v.SetBool(true)
		default:
			v.SetInt(int64(*n))
		}
	}
}

// Rows outlive deploys: which field stands in which column is a format.
func TestColumnsAreAFormat(t *testing.T) {
	t.Parallel()
	var lines []string
	add := func(table string, names []string, values []any) {
		if len(names) != len(values) {
			t.Fatalf("%s: %d columns and %d values", table, len(names), len(values))
		}
		for i := range names {
			lines = append(lines, fmt.Sprintf("%s.%s = %T %v", table, strings.TrimSpace(names[i]), values[i], values[i]))
		}
	}
	typed := func(columns []Column) (names []string) {
		for _, c := range columns {
			names = append(names, c.Name+" "+c.Kind)
		}
		return names
	}
	moment := func(at time.Time) any { return at }
	entry, err := Values(filled[intake.Entry]())
	if err != nil {
		t.Fatal(err)
	}
	add("amends_objects", typed(EntryColumns), entry)
	add("amends_objects", typed(KeyColumns), Key(filled[intake.Entry]().Object))
	add("amends_jobs", strings.Split(JobColumns, ","), JobValues(filled[schedule.JobState](), moment))
	add("amends_runs", strings.Split(RunColumns, ","), RunValues(filled[schedule.RunRow](), moment))
	add("amends_inbox", typed(InboxColumns), receive(t, *filled[intake.Event]())[0].Values)
	add("amends_inbox", []string{"number", "disposition", "reason"}, Outcome(filled[intake.Delivery]()))
	none, _ := Values(&intake.Entry{})
	add("none.objects", typed(EntryColumns), none)
	add("none.jobs", strings.Split(JobColumns, ","), JobValues(&schedule.JobState{}, Micros))
	add("none.runs", strings.Split(RunColumns, ","), RunValues(&schedule.RunRow{}, Micros))
	add("none.inbox", typed(InboxColumns), receive(t, intake.Event{Dedupe: intake.Digest{1}})[0].Values)
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	const golden = "testdata/columns.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the columns are\n%s\nnot those of %s; -rewrite writes it", got, golden)
	}
}

// What is written comes back: of every type that rows are read into, each field but those that a
// reader fills in.
func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	entry, event := filled[intake.Entry](), filled[intake.Event]()
	comeBack(t, entry, func(e *intake.Entry) []Field { return append(keyFields(&e.Object), entryFields(e)...) })
	comeBack(t, filled[schedule.JobState](), func(s *schedule.JobState) []Field { return append(jobFields(s), Field{"name", &s.Name}) })
	comeBack(t, filled[schedule.RunRow](), func(r *schedule.RunRow) []Field { return append(runFields(r), Field{"number", &r.Number}) })
	comeBack(t, event, func(e *intake.Event) []Field { return append(eventFields(e), Field{"body", &e.Body}) })
	comeBack(t, filled[intake.Count](), CountFields)
}

func comeBack[T any](t *testing.T, want *T, fields func(*T) []Field) {
	t.Helper()
	got, none := new(T), new(T)
	stored, into, unset := values(fields(want), Micros), fields(got), values(fields(none), Micros)
	scan := func(values []any) {
		for i, f := range into {
			if at, ok := place(f.At).(sql.Scanner); !ok || at.Scan(values[i]) != nil {
				t.Errorf("%T.%s does not take %v", got, f.Name, values[i])
			}
		}
	}
	scan(stored)
	if e, ok := any(want).(*intake.Entry); ok {
		e.Parked[0].Object = e.Object // whatever was stored
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("reads back as\n%+v\nwant\n%+v", got, want)
	}
	scan(unset) // NULL takes away what the row before had
	if again := values(fields(got), Micros); !reflect.DeepEqual(again, unset) {
		t.Errorf("NULL reads as\n%v\nwant\n%v", again, unset)
	}
}
