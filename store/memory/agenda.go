package memory

import (
	"container/heap"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// agenda orders entries by when they can be claimed. An item whose entry has changed since is void.
type agenda []item

type item struct {
	at    time.Time
	entry *intake.Entry
}

// add notes when e can be claimed: when it is due and its lease, if any, is over.
func (a *agenda) add(e *intake.Entry) {
	if e.Due.IsZero() {
		return
	}
	at := e.Due
	if e.Until.After(at) {
		at = e.Until
	}
	heap.Push(a, item{at, e})
}

// due takes up to limit entries from the agenda that can be claimed now.
func (db *DB) due(now time.Time, limit int) []*intake.Entry {
	var due []*intake.Entry
	for len(db.agenda) > 0 && len(due) < limit && !db.agenda[0].at.After(now) {
		e := heap.Pop(&db.agenda).(item).entry //nolint:forcetypeassert // nothing else is in it
		if db.entries[e.Object] == e {
			due = append(due, e)
		}
	}
	return due
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(item)) } //nolint:forcetypeassert // nothing else is in it
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
