package play

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// lose kills every process, deletes the ledger with all that was heard, and has the job rebuild it
// from the shop and the books.
func (p *play) lose(ctx context.Context) error {
	if err := p.amends.procs.crash(); err != nil {
		return err
	}
	c, err := count(ctx, p.records)
	if err != nil {
		return err
	}
	if err := settle(ctx, p.amends.procs.place); err != nil { // what was on its way has happened, or never will
		return err
	}
	if err := p.records.lose(ctx); err != nil {
		return err
	}
	if err := p.rebuild(ctx); err != nil {
		return err
	}
	p.Lost = &loss{Works: c.works}
	if p.Lost.Adopted, p.lost, err = adopted(ctx, p.records); err != nil {
		return err
	}
	p.Lost.Unconfirmed, p.quiet = len(p.lost), time.Time{}
	return nil
}

// loss is what became of the works of a ledger that was deleted.
type loss struct {
	Works       int `json:"works"`       // in the ledger when it was deleted
	Adopted     int `json:"adopted"`     // that the rebuilt one knew at once, from shop and books
	Unconfirmed int `json:"unconfirmed"` // of those, with a receipt of unknown outcome
}

// rebuild runs the process that rebuilds the ledger, to its end. It is killed once on the way.
func (p *play) rebuild(ctx context.Context) error {
	p.amends.procs.place.Lost = time.Now()
	procs := &supervisor{role: "rebuild", place: p.amends.procs.place, log: p.amends.procs.log, once: true}
	if err := procs.start(ctx, 1); err != nil {
		return err
	}
	killAfter := time.Duration(p.amends.random.IntN(400)) * time.Millisecond
	for began := time.Now(); ; {
		if ended, err := procs.done(); err != nil || ended {
			return errors.Join(err, procs.stop())
		}
		if killAfter > 0 && time.Since(began) > killAfter {
			procs.kill(p.amends.random)
			killAfter = 0
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return errors.Join(err, procs.stop())
		}
	}
}

// adopted counts the works of a rebuilt ledger, and names those whose receipt has an
// unknown outcome: it counts as sent.
func adopted(ctx context.Context, l ledger.Catalogue) (works int, unconfirmed []string, err error) {
	c, err := count(ctx, l)
	if err != nil {
		return 0, nil, err
	}
	heads, err := ledger.First(ctx, l, ledger.Filter{Unconfirmed: true, Limit: max(c.works, 1)})
	for i := range heads {
		unconfirmed = append(unconfirmed, heads[i].ID.Work)
	}
	return c.works, unconfirmed, err
}
