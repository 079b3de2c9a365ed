package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// object is the one with that id.
func (c *config) object(id string) inbox.Object {
	return inbox.Object{Source: c.Source.Name, Tenant: c.Tenant, Type: c.Type, ID: id}
}

// side is the source as it is listed.
func (c *config) side() scan.Source {
	return scan.Source{
		Object: c.object(""), Quota: c.Source.Quota(), Changed: pages(c.Changed), All: pages(c.All), Partitions: c.Partitions, Visible: c.Visible, Volatile: c.Source.Policy.Volatile,
		Get: c.get, Want: c.want,
	}
}

// get asks for one object. nil: the source answered, and has none.
func (c *config) get(ctx context.Context, id string) (*scan.Listed, error) {
	f, err := c.Source.Fetch(ctx, c.object(id))
	if err != nil || f.Gone {
		return nil, err
	}
	return &scan.Listed{ID: id, Version: f.Version, Body: f.Body}, nil
}

// want says what the document of an object should be: what Decide says of the object, in the words
// of Fields.
func (c *config) want(o *scan.Listed) (plan.Truth, error) {
	ch, err := c.Source.Change(change(c.object(""), o, o.Version.Revision()))
	t := plan.Truth{Key: ch.ID.Work, Revision: ch.Revision, Wanted: ch.Want == saga.WantRun || ch.Want == saga.WantHeld, Held: ch.Want == saga.WantHeld}
	switch {
	case err != nil || ch.Input == nil:
		return t, err
	case ch.ID.Saga != c.Source.Saga:
		return t, fmt.Errorf("it is decided that the saga %s runs for it, and %s is compared here", ch.ID.Saga, c.Source.Saga)
	}
	input, err := json.Marshal(ch.Input)
	if err != nil {
		return t, fmt.Errorf("the input of the saga: %w", err)
	}
	t.Fields, err = c.Fields(input)
	return t, err
}

// change is an object as an inbox hands it to Decide.
func change(of inbox.Object, o *scan.Listed, revision string) inbox.Snapshot {
	of.ID = o.ID
	return inbox.Snapshot{Object: of, Version: o.Version, Revision: revision, Deleted: o.Deleted, Body: o.Body}
}

// deliver applies what Decide says of a state.
func (c *config) deliver(ctx context.Context, state inbox.Snapshot) error {
	ch, err := c.Source.Change(state)
	if err != nil {
		return err
	}
	ch.Actor = cmp.Or(ch.Actor, "reconcile "+c.Name)
	return c.Source.Apply(ctx, ch)
}

// input is the saga's for a state of an object; the body of one that cannot be read, which is
// adopted in review.
func (c *config) input(state inbox.Snapshot) any {
	ch, err := c.Source.Change(state)
	if err != nil || ch.Input == nil {
		return state.Body
	}
	return ch.Input
}

// pages is a listing as a scan asks for it. Nil stays nil.
func pages(list func(context.Context, Query) ([]Listed, string, error)) func(context.Context, scan.Query) (scan.Page, error) {
	if list == nil {
		return nil
	}
	return func(ctx context.Context, q scan.Query) (scan.Page, error) {
		page, next, err := list(ctx, Query(q))
		return scan.Page{Objects: page, Next: next}, err
	}
}

// side is the destination as it is listed.
func (d *Destination) side() scan.Destination {
	return scan.Destination{
		Limits: d.Limits, Partitions: d.Partitions, Find: d.Find, Settle: d.Settle,
		Marked: func(ctx context.Context, q scan.Query) (scan.Documents, error) {
			page, next, err := d.Marked(ctx, Query(q))
			return scan.Documents{Documents: page, Next: next}, err
		},
	}
}
