// Package desk is what people and programs read of a ledger and do to it, as typed functions and documents. The command amends, /api/v1 and
// the pages of package console render what it returns, and decide nothing.
//
//	d := desk.New(db, "")
//	l, err := d.List(ctx, &desk.ListIn{Status: "review"})
//	…
//	retry := desk.KindOf("retry").New()
//	*desk.About(retry) = desk.Order{By: desk.By{Actor: "anna", Reason: "mended"}, Which: desk.Which{Work: "order:7"}}
//	out, err := d.Do(ctx, retry)
//
// What a function takes has tags: json, query and path are its names by HTTP, json and query or flag those on a command line, and doc says
// what it is. What it returns is a document, whose JSON is the promise; fields without JSON are words for people. An error is a [*Failure]
// where a person can do something about it.
package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// API is the version of the JSON: of what the command prints with -o json, and of /api/v1. As long as it
// is the same, fields are added, and none is renamed, removed or given another meaning.
const API = "v1"

// Desk reads and acts on one database.
type Desk struct {
	db store.DB
	op *coordinator.Operator

	flag string // that the commands in its words repeat: " --db FILE"
	now  func() time.Time
}

// New returns the desk of a database. flag is what the commands in its words repeat, such as " --db FILE"; "": nothing.
func New(db store.DB, flag string) *Desk {
	return &Desk{db: db, op: coordinator.NewOperator(db), flag: flag, now: time.Now}
}

// show is the command that shows an instance.
func (d *Desk) show(id saga.ID) string {
	return program.Command("show", id.Work, " --saga "+quote(id.Saga)+d.flag)
}

// quote makes s one word of a shell's command line.
func quote(s string) string { return program.Word(s) }

// List is one page. Next is what the next page is asked for with; null on the last one.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"` // what the next page is asked for with, after or before; null on the last page

	// Looked is as far as was looked, where a page may have fewer than there are; zero: at all.
	Looked time.Time `json:"-"`
}

// More is what the next page is asked for with; nil on the last one.
func (l *List[T]) More() *string { return l.Next }

// All is a list that has no pages.
type All[T any] struct {
	Items []T `json:"items"`
}

// page reads a page of rows, unless something is wrong with what was asked for. Of rows one more than the limit is read where there are more.
func page[R, T any](wrong Wrong, in *Limit, read func() ([]R, error), doc func(*R) T, key func(*R) string) (*List[T], error) {
	if err := Usage("", wrong...); err != nil {
		return nil, err
	}
	rows, err := read()
	if err != nil {
		return nil, err
	}
	l := &List[T]{Items: docs(rows[:min(len(rows), in.N)], doc)}
	if len(rows) > in.N {
		next := key(&rows[in.N-1])
		l.Next = &next
	}
	return l, nil
}

// answer is a document, or why there is none.
func answer[T any](doc T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &doc, nil
}

// docs are rows as documents; never null.
func docs[R, T any](rows []R, doc func(*R) T) []T {
	all := make([]T, len(rows))
	for i := range rows {
		all[i] = doc(&rows[i])
	}
	return all
}

// First is the first that is so, or nil.
func First[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// number is how many of all are so.
func number[T any](all []T, is func(*T) bool) (n int) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// howMany of these are so.
func howMany(these ...bool) int { return number(these, func(is *bool) bool { return *is }) }

// Limit is how many a page has.
type Limit struct {
	N int `query:"limit" doc:"at most this many"`
}

// Defaults is what is meant where nothing is said.
func (l *Limit) Defaults() { l.N = 50 }

// Most is how many a page has.
func (l *Limit) Most() int { return l.N }

func (l *Limit) faults() (wrong Wrong) {
	wrong.If(l.N < 1, "--limit is at least 1")
	return wrong
}

// By is who acts, and why.
type By struct {
	Reason string `json:"reason,omitempty" doc:"why; required, and kept on record"`
	Actor  string `json:"-" flag:"actor" doc:"who says so (default: the user of the operating system)"`

	Wrong Wrong `json:"-" flag:"-"` // what a door found wrong, to be said with the rest
}

// Who is by whom it is said: a door sets it.
func (b *By) Who() *By { return b }

func (b *By) actor() saga.Actor { return saga.Actor{Name: b.Actor, Reason: b.Reason} }

// faults says what is missing.
func (b *By) faults() (wrong Wrong) {
	wrong.If(!said(b.Reason), `say why: --reason "…"`)
	wrong.If(!said(b.Actor), "say who you are: --actor NAME")
	return append(wrong, b.Wrong...)
}

// utc puts a moment on its way into a document.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// At is a time of a document; zero for none.
func At(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Versioned is a document whose first field is the version of the JSON.
func Versioned(doc any) any { return versioned{doc} }

type versioned struct{ object any }

func (v versioned) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.object); err != nil {
		return nil, err
	}
	fields, isObject := bytes.CutPrefix(b.Bytes(), []byte("{"))
	if !isObject {
		return nil, fmt.Errorf("a document is an object, not %.20s", b.Bytes())
	}
	if fields[0] != '}' {
		fields = slices.Concat([]byte(","), fields)
	}
	return slices.Concat([]byte(`{"api":"`+API+`"`), fields), nil
}

// How things are called, as in findings.

func iso(t time.Time) string                           { return finding.ISO(t) }
func count(n int, thing string) string                 { return finding.Count(n, thing) }
func standing(s saga.Status, r saga.Reason) string     { return finding.Status(s, r) }
func definition(name string, v int, ended bool) string { return finding.Definition(name, v, ended) }

// With is a text behind what is said before it; "" for none.
func With(before, text string) string { return When(text != "", before+text) }

// When is a text where something is so, and else "".
func When(is bool, text string) string { return Either(is, text, "") }

// Either is the one where something is so, and else the other.
func Either[T any](is bool, one, other T) T {
	if is {
		return one
	}
	return other
}

// Counted is a number of things whose plural is a word of its own.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// clock is a moment in UTC without the day.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// effect names an attempt of a step's action or of its undo.
func effect(step string, d saga.Direction, attempt int) string {
	return When(d == saga.Undo, "undo of ") + step + When(attempt > 0, fmt.Sprintf(" #%d", attempt))
}

// happened says what a resolution says.
func happened(yes bool, externalID string) string {
	return Either(yes, "it happened"+With(", as ", externalID), "it did not happen")
}

// saying is a signal in words.
func saying(s *machine.Signal) string {
	words := string(s.Kind)
	switch {
	case isRerun(*s):
		words = "rerun"
	case s.Kind == machine.SignalCancel && s.ByHand && s.Revision != "": // the source's is not by hand
		words = "undo" + With(" from step ", s.Step)
	case s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate:
		words += fmt.Sprintf(" %s: %s", effect(s.Step, s.Direction, s.Attempt), happened(s.Happened, s.ExternalID))
	case s.Step != "":
		words += " " + effect(s.Step, s.Direction, s.Attempt)
	}
	return words + With(" at revision ", s.Revision) + With(", says ", s.Actor) + With(": ", s.Reason)
}

// PointInTime reads a moment as a person writes it: a time, a day, or how long ago. Empty is no
// moment.
func PointInTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil // without a zone it is meant as UTC, as everything that is printed
		}
	}
	ago := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			ago = strconv.Itoa(24*n) + "h"
		}
	}
	if d, err := time.ParseDuration(ago); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d", text)
}

// Duration is a time.Duration that is said as a text, such as 30s.
type Duration time.Duration

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration, such as 30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText is the text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
