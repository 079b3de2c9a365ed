package whole

import (
	"context"
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

const sagaName = "order-to-invoice"

// desk does the steps of the saga, from one process.
type desk struct {
	*power

	books *books
	post  *post
}

func (d *desk) program() (saga.Program, error) {
	retry := saga.Retry{Attempts: 200, Initial: time.Second, Max: 20 * time.Second}
	return saga.Define(sagaName, 1,
		saga.Identity(func(c content) any { return c.Total }),
		saga.Do("invoice", d.write).Timeout(10*time.Second).Settle(settle).Retry(retry).Find(d.find).Update(d.rewrite).UndoMaybe(d.void),
		saga.Do("receipt", d.mail).Timeout(10*time.Second).Settle(settle).Retry(retry).AtMostOnce().NoUndo("the shop tells the customer"),
	)
}

func (d *desk) rewrite(ctx context.Context, c saga.Call[content], _ string) (paper, error) {
	return d.write(ctx, c)
}

func (d *desk) write(ctx context.Context, c saga.Call[content]) (made paper, err error) {
	if err := c.Sending(); err != nil {
		return made, err
	}
	e := entry{Total: c.Input.Total, Revision: c.Revision, Written: c.Input.Total}
	err = d.around(func() (err error) {
		made, err = d.books.put(ctx, c.PreviousID(), c.Work, e)
		return err
	})
	return made, err
}

// find looks for live invoices of the order. One that an earlier version left counts once it shows
// this one.
func (d *desk) find(ctx context.Context, c saga.Call[content]) (saga.Finding[paper], error) {
	docs, _, err := d.books.documents(ctx, func() []*invoice { return d.books.keys[c.Work] })
	if err != nil {
		return saga.CannotTell[paper](), err
	}
	var live []paper
	for i := range docs {
		if !docs[i].Void && (docs[i].Revision == c.Revision || docs[i].ID != c.PreviousID()) {
			live = append(live, paper{docs[i].ID, docs[i].Fields["total"]})
		}
	}
	return saga.Found(live...), nil
}

func (d *desk) void(ctx context.Context, c saga.Call[content], made *paper) error {
	if err := c.Sending(); err != nil {
		return err
	}
	var id string
	if made != nil {
		id = made.ID
	} else {
		id = c.ExternalID(c.Step)
	}
	return d.around(func() error { return d.books.void(ctx, id) })
}

// letter is what is known of a mail.
type letter struct{ ID string }

func (l letter) ExternalID() string { return l.ID }

func (d *desk) mail(ctx context.Context, c saga.Call[content]) (letter, error) {
	if err := c.Sending(); err != nil {
		return letter{}, err
	}
	err := d.around(func() error { return d.post.send(ctx, c.Work) })
	return letter{"mail-" + c.Work}, err
}

// decide says what the instance of an order should be.
func decide(o inbox.Snapshot) (saga.Change, error) {
	var c content
	if err := json.Unmarshal(o.Body, &c); err != nil {
		return saga.Change{}, err
	}
	switch c.Status {
	case "paid":
		return saga.Change{Input: c}, nil
	case "cancelled":
		return saga.Change{Want: saga.WantWithdrawn, Input: c}, nil
	default:
		return saga.Change{Want: saga.WantNothing, Input: c}, nil
	}
}

// effects says what an invoice shows. Of the mail nobody can tell.
func effects(_ *scan.Listed, live, _ []plan.Document) (map[string]reconcile.Effect, error) {
	es := map[string]reconcile.Effect{}
	for i := range live {
		es["invoice"] = reconcile.Effect{ExternalID: live[i].ID, Output: paper{live[i].ID, live[i].Fields["total"]}}
	}
	return es, nil
}
