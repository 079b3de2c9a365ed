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
	"time"

	"github.com/amends-dev/amends/coordinator"
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

// All is a list that has no pages.
type All[T any] struct {
	Items []T `json:"items"`
}

// page reads a page of rows, unless something is wrong with what was asked for. Of rows one more than the limit is read where there are more.
func page[R, T any](wrong []string, in *Limit, read func() ([]R, error), doc func(*R) T, key func(*R) string) (*List[T], error) {
	if err := usage("", wrong); err != nil {
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

// docs are rows as documents; never null.
func docs[R, T any](rows []R, doc func(*R) T) []T {
	all := make([]T, len(rows))
	for i := range rows {
		all[i] = doc(&rows[i])
	}
	return all
}

// first is the first that is so, or nil.
func first[T any](all []T, is func(*T) bool) *T {
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

func (l *Limit) faults() []string {
	if l.N < 1 {
		return []string{"--limit is at least 1"}
	}
	return nil
}

// By is who acts, and why.
type By struct {
	Reason string `json:"reason,omitempty" doc:"why; required, and kept on record"`
	Actor  string `json:"-" flag:"actor" doc:"who says so (default: the user of the operating system)"`

	Wrong []string `json:"-" flag:"-"` // what a door found wrong, to be said with the rest
}

// Who is by whom it is said: a door sets it.
func (b *By) Who() *By { return b }

func (b *By) actor() saga.Actor { return saga.Actor{Name: b.Actor, Reason: b.Reason} }

// faults says what is missing.
func (b *By) faults() (wrong []string) {
	if !said(b.Reason) {
		wrong = append(wrong, `say why: --reason "…"`)
	}
	if !said(b.Actor) {
		wrong = append(wrong, "say who you are: --actor NAME")
	}
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
