package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/rest"
	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Cancelled reports whether the world cancels this order once it is invoiced.
func (c Config) Cancelled(order string) bool {
	return faults.Draw(c.Seed, "cancel/"+order) < c.Cancels
}

// EditedMeanwhile reports whether the world edits this order once it is invoiced:
// a quarter of Edits does.
func (c Config) EditedMeanwhile(order string) bool {
	return !c.Cancelled(order) && faults.Draw(c.Seed, "edit-meanwhile/"+order) < c.Edits/4
}

// EditsOf is how often the world edits this order once it is marked: twice, once
// or never.
func (c Config) EditsOf(order string) int {
	switch draw := faults.Draw(c.Seed, "edit/"+order); {
	case draw < c.Edits*0.4:
		return 2
	case draw < c.Edits:
		return 1
	}
	return 0
}

// CancelledLate reports whether the world cancels this order once it is marked,
// after its edits.
func (c Config) CancelledLate(order string) bool {
	return faults.Draw(c.Seed, "late-cancel/"+order) < c.LateCancels
}

// Deleted reports whether the shop's owner deletes this order once it is marked,
// after its edits and its late cancel.
func (c Config) Deleted(order string) bool {
	return faults.Draw(c.Seed, "delete/"+order) < c.Deletes
}

// meanwhile acts for the customer who changes their mind at the worst moment: the
// books have stored the invoice, and their answer to the sync has not left yet.
func (w *World) meanwhile(ctx context.Context, inv books.Invoice) {
	id, ok := strings.CutPrefix(inv.Reference, shop.Order{}.Ref())
	switch {
	case !ok:
	case w.config.Cancelled(id):
		// A refusal means that the invoice is for no order of this shop.
		_, _ = w.shop.Cancel(ctx, id)
	case w.config.EditedMeanwhile(id):
		w.crowd.rush(ctx, id)
	}
}

// Changes is how often orders were changed, early cancels apart.
type Changes struct {
	Meanwhile   int `json:"meanwhile"` // edits between the invoice and the mark
	Edits       int `json:"edits"`     // after the mark
	LateCancels int `json:"lateCancels"`
	Deletes     int `json:"deletes"` // by the shop's owner
}

// crowd are the customers, who change their minds after their orders were marked,
// and the shop's owner, who tidies up behind them.
type crowd struct {
	config Config
	shop   *shop.Store
	ctx    context.Context //nolint:containedctx // of all that customers do, until close
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	rushed map[string]bool // orders that were edited meanwhile
	met    map[string]bool // orders that were marked
	busy   int             // customers who are not done
	done   Changes
	failed error
}

func newCrowd(ctx context.Context, c Config, s *shop.Store) *crowd {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	return &crowd{config: c, shop: s, ctx: ctx, end: end, rushed: map[string]bool{}, met: map[string]bool{}}
}

// hear is told of every change of an order. The first mark of an order is what
// its customer waits for.
func (c *crowd) hear(w shop.Webhook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Topic != shop.TopicMarked || c.met[w.Order] {
		return
	}
	c.met[w.Order] = true
	c.busy++
	c.tasks.Go(func() {
		err := c.change(c.ctx, w.Order)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ctx.Err() == nil {
			c.failed = errors.Join(c.failed, err)
		}
		c.busy--
	})
}

// rush edits an order at once, and only once.
func (c *crowd) rush(ctx context.Context, order string) {
	c.mu.Lock()
	again := c.rushed[order]
	c.rushed[order] = true
	c.mu.Unlock()
	if again {
		return
	}
	o, err := c.shop.Order(ctx, order)
	edited := false
	if err == nil {
		edited, err = c.edit(ctx, order, c.config.edit(order, -1, nil, o.Lines))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
	if edited {
		c.done.Meanwhile++
	}
}

// edit edits an order, unless it was cancelled before: the customer who cancels when the invoice is
// booked may be slower than the mark.
func (c *crowd) edit(ctx context.Context, order string, lines []shop.Line) (edited bool, err error) {
	_, err = c.shop.Edit(ctx, order, lines)
	var refused *rest.Error
	if errors.As(err, &refused) && refused.Code == shop.CodeOrderCancelled {
		return false, nil
	}
	return err == nil, err
}

// change is all that happens to one order still.
func (c *crowd) change(ctx context.Context, order string) error {
	first, err := c.shop.Order(ctx, order)
	if err != nil {
		return err
	}
	lines := first.Lines
	for n := range c.config.EditsOf(order) {
		if err := c.think(ctx, order, n); err != nil {
			return err
		}
		lines = c.config.edit(order, n, first.Lines, lines)
		edited, err := c.edit(ctx, order, lines)
		if err != nil {
			return err
		}
		if edited {
			c.count(func(done *Changes) { done.Edits++ })
		}
	}
	if c.config.CancelledLate(order) {
		if err := c.think(ctx, order, 0); err != nil {
			return err
		}
		if _, err := c.shop.Cancel(ctx, order); err != nil {
			return err
		}
		c.count(func(done *Changes) { done.LateCancels++ })
	}
	if !c.config.Deleted(order) {
		return nil
	}
	if err := c.think(ctx, order, 0); err != nil {
		return err
	}
	err = c.shop.Delete(ctx, order)
	if err == nil {
		c.count(func(done *Changes) { done.Deletes++ })
	}
	return err
}

// think is the pause before the nth change of a kind: up to Pace, and hardly any
// before the second of two edits.
func (c *crowd) think(ctx context.Context, order string, n int) error {
	most := c.config.Pace
	if n > 0 {
		most /= 20
	}
	timer := time.NewTimer(time.Duration(faults.Draw(c.config.Seed, fmt.Sprintf("think/%s/%d", order, n)) * float64(most)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *crowd) count(change func(*Changes)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.done)
}

// quiet reports whether every customer who has something to change has changed it.
func (c *crowd) quiet() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy == 0, c.failed
}

func (c *crowd) changes() Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// close sends all customers home.
func (c *crowd) close() error {
	c.end()
	c.tasks.Wait()
	return nil
}

// edit is what an order has after its nth edit, counted from 0, or from -1 when
// it was edited meanwhile. A third of the second edits take back the first.
func (c Config) edit(order string, n int, first, now []shop.Line) []shop.Line {
	draw := func(what string) float64 { return faults.Draw(c.Seed, fmt.Sprintf("edit/%s/%d/%s", order, n, what)) }
	if n > 0 && draw("back") < 0.33 {
		return first
	}
	lines := slices.Clone(now)
	at := int(draw("line") * float64(len(lines)))
	switch kind := draw("kind"); {
	case kind < 0.3 && len(lines) > 1:
		return slices.Delete(lines, at, at+1)
	case kind < 0.6:
		line := goods[int(draw("good")*float64(len(goods)))]
		line.Quantity = 1
		return append(lines, line)
	}
	lines[at].Quantity++
	return lines
}
