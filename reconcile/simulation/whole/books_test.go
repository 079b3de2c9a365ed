package whole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/saga"
)

// books is where invoices are made. They keep whatever they are given: nothing in them is unique
// but an id.
type books struct {
	mood

	invoices []*invoice // by id
	ids      map[string]*invoice
	keys     map[string][]*invoice
	writes   int
	broken   []string // what was done to them and never should be
}

// invoice is a document and all it ever said.
type invoice struct {
	id, key string
	says    []entry
}

// entry is what an invoice says from some time on.
type entry struct {
	at       time.Time
	Total    string `json:"total"`
	Revision string `json:"revision"` // of our mark
	Written  string `json:"written"`  // a digest of what we wrote, of our mark
	Void     bool   `json:"void,omitempty"`
}

// paper is an invoice as a step of the saga returns it.
type paper struct {
	ID    string `json:"id"`
	Total string `json:"total"`
}

func (p paper) ExternalID() string { return p.ID }

// now is what the invoice says in truth.
func (i *invoice) now() *entry { return &i.says[len(i.says)-1] }

// lag is for how long the books may show an old state, and settle is longer.
const (
	booksLag = 1500 * time.Millisecond
	settle   = 2 * time.Second
)

// as is what the invoice said at some time; nil: nobody could see it.
func (i *invoice) as(t time.Time) *entry {
	for n := len(i.says) - 1; n >= 0; n-- {
		if !i.says[n].at.After(t) {
			return &i.says[n]
		}
	}
	return nil
}

var errCut = errors.New("connection reset by peer")

// request is one call that changes something. The answer may get lost, before or behind the effect,
// and the effect may come a while later than the caller has the patience to wait.
func (m *mood) request(ctx context.Context, effect func()) error {
	took, luck, fault := m.draw()
	if err := pause(ctx, took); err != nil {
		if luck < 0.5 {
			effect() // it was on its way
		}
		return err
	}
	switch {
	case errors.Is(fault, errBusy), errors.Is(fault, errAway):
		return saga.NotSent(fault)
	case fault != nil && luck < 0.4:
		return errCut
	case fault != nil && luck < 0.7:
		effect()
		return errCut
	case fault != nil:
		time.AfterFunc(time.Duration(luck*float64(settle/2)), effect)
		return errCut
	}
	effect()
	return nil
}

// live are the invoices of a key that count.
func (b *books) live(key string) (live []*invoice) {
	for _, i := range b.keys[key] {
		if !i.now().Void {
			live = append(live, i)
		}
	}
	return live
}

// put makes an invoice, or changes the one with an id.
func (b *books) put(ctx context.Context, id, key string, e entry) (paper, error) {
	made := paper{Total: e.Total}
	err := b.request(ctx, func() {
		defer b.lock()()
		b.writes++
		e.at = time.Now()
		i := b.ids[id]
		if i == nil {
			i = &invoice{id: fmt.Sprintf("inv_%06d", len(b.invoices)+1), key: key}
			b.invoices, b.ids[i.id], b.keys[key] = append(b.invoices, i), i, append(b.keys[key], i)
		} else if saga.CompareRevisions(e.Revision, i.now().Revision) < 0 {
			b.broken = append(b.broken, fmt.Sprintf("I-4: %s of %s showed %s and was put back to %s", i.id, key, i.now().Revision, e.Revision))
		}
		i.says = append(i.says, e)
		made.ID = i.id
		if n := len(b.live(key)); n > 1 {
			b.broken = append(b.broken, fmt.Sprintf("I-1: %s has %d invoices", key, n))
		}
	})
	if err != nil {
		return paper{}, err
	}
	return made, nil
}

func (b *books) void(ctx context.Context, id string) error {
	return b.request(ctx, func() {
		defer b.lock()()
		b.writes++
		if i := b.ids[id]; i != nil {
			e := *i.now()
			e.at, e.Void = time.Now(), true
			i.says = append(i.says, e)
		}
	})
}

// documents are invoices as somebody sees them who asks now.
func (b *books) documents(ctx context.Context, among func() []*invoice) ([]plan.Document, float64, error) {
	took, luck, fault := b.draw()
	if err := pause(ctx, took); err != nil || fault != nil {
		return nil, luck, errors.Join(err, fault)
	}
	defer b.lock()()
	as := time.Now().Add(-time.Duration(luck * float64(booksLag)))
	var docs []plan.Document
	for _, i := range among() {
		e := i.as(as)
		if e == nil {
			continue
		}
		body, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		docs = append(docs, plan.Document{
			ID: i.id, Key: i.key, Fields: plan.Fields{"total": e.Total}, Void: e.Void, Created: i.says[0].at,
			Revision: e.Revision, Intact: e.Written == e.Total, Body: body,
		})
	}
	return docs, luck, nil
}

// under are the invoices with one mark.
func (b *books) under(ctx context.Context, key string) ([]plan.Document, error) {
	docs, _, err := b.documents(ctx, func() []*invoice { return b.keys[key] })
	return docs, err
}

func (b *books) partitions(ctx context.Context) ([]reconcile.Partition, error) {
	docs, _, err := b.documents(ctx, func() []*invoice { return b.invoices })
	parts := []reconcile.Partition{{Name: "0"}, {Name: "1"}, {Name: "2"}}
	for i := range docs {
		parts[partOf(docs[i].ID)[0]-'0'].Count++
	}
	return parts, err
}

// marked lists a part by id. An invoice that nobody can see yet is left out, and the listing goes
// on behind it.
func (b *books) marked(ctx context.Context, q scan.Query) (p scan.Documents, err error) {
	next := ""
	docs, luck, err := b.documents(ctx, func() (part []*invoice) {
		for _, i := range b.invoices {
			switch {
			case i.id <= q.Cursor || partOf(i.id) != q.Partition:
			case len(part) == q.Limit:
				next = part[q.Limit-1].id
				return part
			default:
				part = append(part, i)
			}
		}
		return part
	})
	if err != nil {
		return p, err
	}
	if len(docs) == 0 && next != "" { // nobody can see any of that page yet: these books give no empty page before the last
		q.Cursor = next
		return b.marked(ctx, q)
	}
	p.Documents, p.Next = cut(&b.mood, luck, docs, next)
	return p, nil
}

// post is the mail server. It remembers nothing; we count.
type post struct {
	mood

	mails  map[string]int // by key
	broken []string
}

func (p *post) send(ctx context.Context, key string) error {
	return p.request(ctx, func() {
		defer p.lock()()
		if p.mails[key]++; p.mails[key] > 1 {
			p.broken = append(p.broken, fmt.Sprintf("I-2: %d mails about %s", p.mails[key], key))
		}
	})
}

func (p *post) sent(key string) bool {
	defer p.lock()()
	return p.mails[key] > 0
}

// totals are what the live invoices of a key say.
func (b *books) totals(key string) (totals []string) {
	defer b.lock()()
	for _, i := range b.live(key) {
		totals = append(totals, i.now().Total)
	}
	slices.Sort(totals)
	return totals
}
