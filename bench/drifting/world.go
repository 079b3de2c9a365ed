package drifting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// each is of how many objects one differs.
const each = 1000

// What is the matter with an object, by its number.
const (
	well    = iota
	missing // neither document nor work
	unknown // a document, and no work
	stale   // the document shows an older version
)

func matter(n int64) int {
	if n%each != 0 {
		return well
	}
	return missing + int(n/each)%3
}

// drifted is how many of n objects differ.
func drifted(n int64) int64 { return (n + each - 1) / each }

const (
	job      = "orders"
	sagaName = "order-to-invoice"
	prefix   = "shop:order:"
)

var (
	then = time.Date(2026, 11, 20, 10, 0, 0, 123e6, time.UTC)
	now  = then.Add(time.Hour)
)

func revision(t time.Time) string { return version(t).Revision() }

func version(t time.Time) inbox.Version { return inbox.At(t, time.Millisecond) }

func numbered(n int64) string { return fmt.Sprintf("%08d", n) }

// content is what an order, and its invoice, says.
func content(n int64, of time.Time) plan.Fields {
	total := n
	if of.Equal(now) {
		total++
	}
	return plan.Fields{"currency": "EUR", "customer": fmt.Sprintf("customer-%04d", n%10_000), "lines": "3", "total": numbered(total)}
}

// object is what the source has at a number.
func object(n int64) *scan.Listed {
	of := then
	if matter(n) == stale {
		of = now
	}
	body, err := json.Marshal(content(n, of))
	if err != nil {
		panic(err) // strings always marshal
	}
	return &scan.Listed{ID: numbered(n), Version: version(of), Changed: of, Body: body}
}

func want(o *scan.Listed) (plan.Truth, error) {
	t := plan.Truth{Key: prefix + o.ID, Revision: o.Version.Revision(), Wanted: true}
	return t, json.Unmarshal(o.Body, &t.Fields)
}

func fetch(_ context.Context, of inbox.Object) (inbox.Fetched, error) {
	n, err := strconv.ParseInt(of.ID, 10, 64)
	o := object(n)
	return inbox.Fetched{Version: o.Version, Body: o.Body}, err
}

func decide(o inbox.Snapshot) (saga.Change, error) {
	var f plan.Fields
	err := json.Unmarshal(o.Body, &f)
	return saga.Change{Input: f}, err
}

func apply(context.Context, saga.Change) error { return errors.New("nothing is done here") }

// documents is what the destination has at a number.
func documents(n int64) []plan.Document {
	if matter(n) == missing {
		return nil
	}
	return []plan.Document{{ID: "inv_" + numbered(n), Key: prefix + numbered(n), Fields: content(n, then), Revision: revision(then), Intact: true, Created: then}}
}

// errNow refuses a second listing, so that the listing at hand stays in use.
var errNow = asking.Permanent(errors.New("the benchmark measures what comes behind the listing"))

// world is the two systems. Its listings are empty; once listed is set, a new listing fails.
type world struct{ listed bool }

func (w *world) parts(context.Context) ([]scan.Partition, error) {
	if w.listed {
		return nil, errNow
	}
	return []scan.Partition{{Name: "all", Count: -1}}, nil
}

// named are the same parts, as a reconciler asks for them.
func (w *world) named(ctx context.Context) ([]reconcile.Partition, error) {
	parts, err := w.parts(ctx)
	var all []reconcile.Partition
	for _, p := range parts {
		all = append(all, reconcile.Partition(p))
	}
	return all, err
}

func noObjects(context.Context, reconcile.Query) ([]reconcile.Listed, string, error) {
	return nil, "", nil
}

func noDocuments(context.Context, reconcile.Query) ([]reconcile.Document, string, error) {
	return nil, "", nil
}

func (w *world) source() scan.Source {
	return scan.Source{
		Object: inbox.Object{Source: "shop", Type: "order"}, Quota: plenty(), Want: want, Partitions: w.parts,
		All: func(context.Context, scan.Query) (scan.Page, error) { return scan.Page{}, nil },
		Get: func(_ context.Context, id string) (*scan.Listed, error) {
			n, err := strconv.ParseInt(id, 10, 64)
			return object(n), err
		},
	}
}

func (w *world) destination() scan.Destination {
	return scan.Destination{
		Limits: inbox.Limits{PerSecond: 1e9}, Settle: time.Nanosecond, Partitions: w.parts,
		Marked: func(context.Context, scan.Query) (scan.Documents, error) { return scan.Documents{}, nil },
		Find: func(_ context.Context, key string) ([]plan.Document, error) {
			n, err := strconv.ParseInt(key[len(prefix):], 10, 64)
			return documents(n), err
		},
	}
}

func plenty() *asking.Quota { return asking.NewQuota(asking.Limits{PerSecond: 1e9}) }
