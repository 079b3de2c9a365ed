package outside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// People says what customers, and the shop's owner, do to orders. Each is the share of orders to
// which it happens.
type People struct {
	// Cancels: as soon as the invoice is in the books and before the sync could mark the order.
	Cancels float64
	// Edits: after the order was marked, some of them twice in quick succession. A quarter as many
	// are edited as soon as their invoice is in the books.
	Edits float64
	// LateCancels: after the order was marked, and after its edits.
	LateCancels float64
	// Deletes: by the shop's owner, after the order was marked, and after its edits and its cancel.
	Deletes float64
	// Pace is how long they think before a change, at most.
	Pace time.Duration
}

// happens reports whether something happens to an order, to a share of which it does.
func (c Config) happens(what, order string, share float64) bool {
	return Draw(c.Seed, what+"/"+order) < share
}

// Cancelled reports whether the world cancels this order once it is invoiced.
func (c Config) Cancelled(order string) bool { return c.happens("cancel", order, c.Cancels) }

// CancelledLate reports whether the world cancels this order once it is marked, after its edits.
func (c Config) CancelledLate(order string) bool {
	return c.happens("late-cancel", order, c.LateCancels)
}

// Deleted reports whether the shop's owner deletes this order once it is marked.
func (c Config) Deleted(order string) bool { return c.happens("delete", order, c.Deletes) }

// Changes is how often orders were changed, early cancels apart.
type Changes struct {
	Meanwhile   int `json:"meanwhile"` // edits between the invoice and the mark
	Edits       int `json:"edits"`     // after the mark
	LateCancels int `json:"lateCancels"`
	Deletes     int `json:"deletes"` // by the shop's owner
}

// crowd are the people at work.
type crowd struct {
	Config
	shop  *Shop
	ctx   context.Context //nolint:containedctx // of all that they do, until close
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	rushed map[string]bool // orders that were edited meanwhile
	met    map[string]bool // orders that were marked
	busy   int             // customers who are not done
	done   Changes
	failed error
}

func newCrowd(c Config, s *Shop) *crowd {
	p := &crowd{Config: c, shop: s, rushed: map[string]bool{}, met: map[string]bool{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

func (c *crowd) count(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// booked is the worst moment to change one's mind: the books have stored the invoice, and their
// answer to the sync has not left yet.
func (c *crowd) booked(inv Invoice) {
	id, ok := strings.CutPrefix(inv.Reference, RefPrefix)
	switch {
	case !ok:
	case c.Cancelled(id):
		_, _ = c.shop.Cancel(id) // refused: the invoice is for no order of this shop
	case c.happens("edit-meanwhile", id, c.Edits/4):
		c.rush(id)
	}
}

// rush edits an order at once, and only once.
func (c *crowd) rush(order string) {
	c.mu.Lock()
	again := c.rushed[order]
	c.rushed[order] = true
	c.mu.Unlock()
	if again {
		return
	}
	o, err := c.shop.Order(order)
	if err == nil {
		err = c.edit(order, c.edited(order, -1, nil, o.Lines), func() { c.done.Meanwhile++ })
	}
	c.count(func() { c.failed = errors.Join(c.failed, err) })
}

// hear is told of every change of an order. The first mark of an order is what its customer waits
// for.
func (c *crowd) hear(w Webhook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Topic != TopicMarked || c.met[w.Order] {
		return
	}
	c.met[w.Order] = true
	c.busy++
	c.tasks.Go(func() {
		err := c.change(w.Order)
		c.count(func() {
			if c.ctx.Err() == nil {
				c.failed = errors.Join(c.failed, err)
			}
			c.busy--
		})
	})
}

// edit edits an order, unless it was cancelled before: the customer who cancels when the invoice is
// booked may be slower than the mark.
func (c *crowd) edit(order string, lines []Line, done func()) error {
	_, err := c.shop.Edit(order, lines)
	if Refused(err, CodeOrderCancelled) {
		return nil
	}
	if err == nil {
		c.count(done)
	}
	return err
}

// change is all that happens to one order after its mark.
func (c *crowd) change(order string) error {
	first, err := c.shop.Order(order)
	if err != nil {
		return err
	}
	lines, edits := first.Lines, 0
	switch draw := Draw(c.Seed, "edit/"+order); {
	case draw < c.Edits*0.4:
		edits = 2
	case draw < c.Edits:
		edits = 1
	}
	for n := range edits {
		if err := c.think(order, n); err != nil {
			return err
		}
		lines = c.edited(order, n, first.Lines, lines)
		if err := c.edit(order, lines, func() { c.done.Edits++ }); err != nil {
			return err
		}
	}
	if c.CancelledLate(order) {
		if err := c.think(order, 0); err != nil {
			return err
		}
		if _, err := c.shop.Cancel(order); err != nil {
			return err
		}
		c.count(func() { c.done.LateCancels++ })
	}
	if c.Deleted(order) {
		if err := c.think(order, 0); err != nil {
			return err
		}
		if err := c.shop.Delete(order); err != nil {
			return err
		}
		c.count(func() { c.done.Deletes++ })
	}
	return nil
}

// think is the pause before the nth change of a kind: up to Pace, and hardly any before the second of
// two edits.
func (c *crowd) think(order string, n int) error {
	most := c.Pace
	if n > 0 {
		most /= 20
	}
	return Pause(c.ctx, time.Duration(Draw(c.Seed, fmt.Sprintf("think/%s/%d", order, n))*float64(most)))
}

// edited is what an order has after its nth edit, counted from 0, or from -1 when it was edited
// meanwhile. A third of the second edits take back the first.
func (c Config) edited(order string, n int, first, now []Line) []Line {
	draw := func(what string) float64 { return Draw(c.Seed, fmt.Sprintf("edit/%s/%d/%s", order, n, what)) }
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
