package storetest

import (
	"context"
	"errors"

	"github.com/amends-dev/amends/internal/ledger"
)

// What breaks the rules of the ledger's listings: filters that are not obeyed, and cursors that
// lose their place.

// mistaken: a listing is that of another filter, whose pages it goes along.
type mistaken struct {
	Store

	change func(*ledger.Filter)
}

func mistakes(change func(*ledger.Filter)) func(Store) Store {
	return func(s Store) Store { return mistaken{s, change} }
}

func (m mistaken) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	at, err := f.Position()
	if err != nil {
		return ledger.Page{}, err
	}
	other := f
	if m.change(&other); f.After != "" {
		other.After = other.Behind(at)
	}
	page, err := m.Store.List(ctx, other)
	if err != nil || page.Next == "" {
		return page, err
	}
	other.After = page.Next
	at, err = other.Position()
	page.Next = f.Behind(at)
	return page, err
}

// misplaced are listings that lose their place.
var misplaced = broken{
	"list-limit":     mistakes(func(f *ledger.Filter) { f.Limit = 0 }),
	"list-order":     mistakes(func(f *ledger.Filter) { f.Newest = true }),
	"cursor-skips":   func(s Store) Store { return skipping{s} },
	"cursor-repeats": func(s Store) Store { return overlapping{s} },
}

// overlapping: a page begins with the last head of the one before.
type overlapping struct{ Store }

func (o overlapping) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	page, err := o.Store.List(ctx, f)
	if n := len(page.Instances); page.Next != "" && n > 1 {
		h := page.Instances[n-2]
		page.Next = f.Behind(ledger.Position{Number: h.Number, ID: h.ID})
	}
	return page, err
}

// skipping: a page begins behind the head that it should begin with.
type skipping struct{ Store }

func (s skipping) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	page, err := s.Store.List(ctx, f)
	if err != nil || page.Next == "" {
		return page, err
	}
	f.After, f.Limit = page.Next, 1
	skipped, err := s.Store.List(ctx, f)
	page.Next = skipped.Next
	return page, err
}

// obliging: a cursor of another listing begins this one.
type obliging struct{ Store }

func (o obliging) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	page, err := o.Store.List(ctx, f)
	if errors.Is(err, ledger.ErrCursor) {
		f.After = ""
		return o.Store.List(ctx, f)
	}
	return page, err
}
