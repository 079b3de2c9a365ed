package sqlstore

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// The row of an instance, in one place: what records say to it ([Values]), what becomes of its columns by
// that ([Columns]), and how it is read ([HeadRow]). Both databases make their statements of these.

// A Value is what a record says to its instance's row, NULL where it says nothing.
type Value struct {
	Name string
	Kind string // on Postgres
	of   func(e *ledger.Entry) any
}

// Values are all of them, in the order in which statements take them.
var Values = []Value{
	{"held", "boolean", func(e *ledger.Entry) any { // NULL: the record leaves the schedule alone
		if e.Schedule == nil {
			return nil
		}
		return e.Schedule.Hold && ledger.GoesOn(e.Record.Status, e.Record.Reason)
	}},
	{"class", "smallint", func(e *ledger.Entry) any {
		if e.Schedule == nil {
			return nil
		}
		return int64(e.Schedule.Class)
	}},
	{"status", "text", func(e *ledger.Entry) any { return string(e.Record.Status) }},
	{"reason", "text", func(e *ledger.Entry) any { return Null(string(e.Record.Reason)) }},
	{"wait_ms", "bigint", func(e *ledger.Entry) any { return number(e.Record.Wait.Milliseconds()) }},
	{"revision", "text", func(e *ledger.Entry) any {
		if !begins(&e.Record) {
			return nil
		}
		return Null(e.Record.Revision)
	}},
	{"version", "integer", func(e *ledger.Entry) any { // NULL: it begins no revision
		if !begins(&e.Record) {
			return nil
		}
		return int64(e.Record.Version)
	}},
	{"step", "text", func(e *ledger.Entry) any { return Null(ledger.AtIssue(&e.Record, "")) }},
	{"unconfirmed", "boolean", func(e *ledger.Entry) any {
		if !ledger.Unconfirmed(&e.Record) {
			return nil
		}
		return true
	}},
	{"until_ms", "bigint", func(e *ledger.Entry) any { // since 1970
		if e.Record.Until.IsZero() {
			return nil
		}
		return e.Record.Until.UnixMilli()
	}},
	{"limit_ms", "bigint", func(e *ledger.Entry) any { // NULL: the record leaves the deadline alone; 0: it was missed
		if e.Record.Kind == machine.KindOverdue {
			return int64(0)
		}
		return number(e.Record.Limit.Milliseconds())
	}},
	{"consumes", "integer", func(e *ledger.Entry) any { return number(int64(len(e.Record.Signals))) }},
}

// begins reports whether the record begins a revision of the source object.
func begins(r *machine.Record) bool { return r.Seq == 1 || r.Kind == machine.KindRevised }

func number(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// AppendValues appends what e says to its instance's row, in the order of [Values].
func AppendValues(row []any, e *ledger.Entry) []any {
	for i := range Values {
		row = append(row, Values[i].of(e))
	}
	return row
}

// Scheduled is e with a schedule: a new instance has none to keep.
func Scheduled(e *ledger.Entry) *ledger.Entry {
	if e.Schedule != nil {
		return e
	}
	with := *e
	with.Schedule = &ledger.Schedule{}
	return &with
}

// A Column is a column of amends_instances that records write. In its expressions {x} is a value, or
// what else the record has: instance, seq, session, snapshot, and of a start saga, work_id and salt. {at}
// is when the record is stored, {ms} a millisecond, {epoch} 1970; h is the row as it was.
type Column struct {
	Name   string
	insert string // by a start; empty: the column's default
	update string // by a later record; empty: it never changes
}

// Columns are all of them.
var Columns = []Column{
	{"saga", "{saga}", ""},
	{"work_id", "{work_id}", ""},
	{"salt", "{salt}", ""},
	{"created_at", "{at}", ""},
	{"updated_at", "{at}", "{at}"},
	{"version", "{version}", "coalesce({version}, h.version)"},
	{"revision", "{revision}", "CASE WHEN {version} IS NULL THEN h.revision ELSE {revision} END"},
	{"status", "{status}", "CASE WHEN {held} IS NULL THEN h.status ELSE {status} END"},
	{"reason", "{reason}", "CASE WHEN {held} IS NULL THEN h.reason ELSE {reason} END"},
	{"class", "{class}", "coalesce({class}, h.class)"},
	{"step", "CASE WHEN " + stands(AtIssue) + " THEN {step} END", "CASE WHEN " + stands(AtIssue) + " THEN coalesce({step}, h.step) END"},
	{"unconfirmed", "{unconfirmed} IS NOT NULL", "h.unconfirmed OR {unconfirmed} IS NOT NULL"},
	{"deadline_at", until + " + {limit_ms} * {ms}", `CASE
		WHEN {limit_ms} > 0 THEN ` + until + ` + {limit_ms} * {ms}
		WHEN {limit_ms} = 0 THEN NULL
		WHEN {held} IS NULL THEN h.deadline_at
		WHEN h.deadline_at <= {at} AND ` + is("h.status", Parked) + ` AND coalesce(h.reason, '') <> 'hung' AND ` + stands(Live) + ` THEN NULL
		WHEN NOT ` + stands(Turned) + ` THEN h.deadline_at
	END`},
	{"remains", "", "CASE WHEN {version} IS NULL AND {consumes} IS NULL THEN h.remains END"}, // what is said, and a run that begins, bring bodies
	{"consumed", "", "h.consumed + coalesce({consumes}, 0)"},
	{"snapshot_seq", "", "CASE WHEN {snapshot} IS NULL THEN h.snapshot_seq ELSE {seq} END"},
	{"session", "CASE WHEN {held} THEN {session} END", "CASE WHEN {held} IS NULL THEN h.session WHEN {held} THEN {session} END"},
	{"waits_for", "", "CASE WHEN {held} IS NULL THEN h.waits_for END"},
	{"finished_at", "CASE WHEN " + stands(Ended) + " THEN {at} END",
		"CASE WHEN {held} IS NULL THEN h.finished_at WHEN " + stands(Ended) + " THEN coalesce(h.finished_at, {at}) END"},
	{"due_at", "CASE WHEN NOT {held} AND " + stands(Live) + " THEN " + due + " END", `CASE
		WHEN {held} IS NULL THEN h.due_at
		WHEN {held} THEN NULL
		WHEN h.received > h.consumed + coalesce({consumes}, 0) THEN {at}
		WHEN ` + stands(Live) + ` THEN ` + due + `
	END`},
}

const (
	until = "{later}({at}, {epoch} + coalesce({until_ms}, 0) * {ms})"
	due   = "CASE WHEN {until_ms} IS NULL THEN " + wait + " ELSE {sooner}(" + wait + ", " + until + ") END"
	wait  = "{at} + coalesce({wait_ms}, 0) * {ms}"
)

// Classes of statuses, as package saga has them. At issue are those in which a step is,
// turned those that no deadline concerns any more.
const (
	Live    = `IN ('running', 'retrying', 'waiting', 'compensating')`
	Ended   = `IN ('completed', 'compensated')`
	Parked  = `IN ('review', 'paused', 'adopting')`
	Turned  = `IN ('compensating', 'completed', 'compensated')`
	AtIssue = `IN ('retrying', 'waiting', 'compensating', 'review', 'paused')`
)

// GoesOn tells whether an instance goes on by itself when its session is over.
const GoesOn = `(h.status ` + Live + ` OR h.reason = 'hung')`

// stands tells whether the record leaves the instance in a status of a class.
func stands(class string) string { return is("{status}", class) }

// is tells whether a column's status is of a class. It is no IN: SQLite would make a table of the list for each
// record.
func is(column, class string) string {
	var any []string
	for _, status := range statusNames.FindAllString(class, -1) {
		any = append(any, column+" = "+status)
	}
	return "(" + strings.Join(any, " OR ") + ")"
}

var statusNames = regexp.MustCompile(`'\w+'`)

var named = regexp.MustCompile(`\{(\w+)\}`)

// expand puts a database's words for its names into an expression.
func expand(expression string, word func(name string) string) string {
	return named.ReplaceAllStringFunc(expression, func(s string) string { return word(s[1 : len(s)-1]) })
}

// Insert is the list of the columns that a start writes, and that of their values.
func Insert(word func(name string) string) (columns, values string) {
	var names, all []string
	for _, c := range Columns {
		if c.insert != "" {
			names, all = append(names, c.Name), append(all, expand(c.insert, word))
		}
	}
	return strings.Join(names, ", "), strings.Join(all, ",\n\t\t")
}

// Update is what a later record sets, of amends_instances AS h.
func Update(word func(name string) string) string {
	var all []string
	for _, c := range Columns {
		if c.update != "" {
			all = append(all, c.Name+" = "+expand(c.update, word))
		}
	}
	return strings.Join(all, ",\n\t\t")
}

// Numbered is a word for each of names by its number as a parameter, ?1 for the first, beside words.
func Numbered(names []string, words map[string]string) func(name string) string {
	return func(name string) string {
		if w, ok := words[name]; ok {
			return w
		}
		i := slices.Index(names, name)
		if i < 0 { // a mistake in a constant of this module
			panic(fmt.Sprintf("sqlstore: no parameter is named %s", name))
		}
		return "?" + strconv.Itoa(i+1)
	}
}

// HeadColumns are the columns of a [HeadRow], of amends_instances AS h.
var HeadColumns = func() string {
	var names []string
	for f := range reflect.TypeFor[HeadRow]().Fields() {
		if f.Name == firstExtra {
			break
		}
		names = append(names, "h."+columnOf(f))
	}
	return strings.Join(names, ", ")
}()

// NoHead stands for [HeadColumns] in a row without an instance.
var NoHead = strings.TrimSuffix(strings.Repeat("NULL, ", strings.Count(HeadColumns, ",")+1), ", ")

func columnOf(f reflect.StructField) string {
	if tag := f.Tag.Get("db"); tag != "" {
		return tag
	}
	return strings.ToLower(f.Name)
}
