package scan

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/asking"
)

// listAll lists parts, several at once. A part that fails keeps no other from being listed.
func (l *listing) listAll(ctx context.Context, parts []Partition) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wait sync.WaitGroup
	var once sync.Once
	var fatal error
	queue := make(chan string)
	for range min(l.Workers, len(parts)) {
		wait.Go(func() {
			for name := range queue {
				if err := l.list(ctx, name); err != nil {
					once.Do(func() { fatal = err })
					stop(err)
				}
			}
		})
	}
	for _, p := range parts {
		select {
		case queue <- p.Name:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wait.Wait()
	if fatal == nil && ctx.Err() != nil {
		fatal = haltError{context.Cause(ctx)}
	}
	return fatal
}

// list lists one part. It returns what ends the whole run.
func (l *listing) list(ctx context.Context, name string) error {
	state := l.states[name]
	for expired := false; !state.Listed; {
		q := state.query(name, l.Page)
		var rows []Sighting
		var seen int
		var next string
		err := l.ask(ctx, func(ctx context.Context) (err error) {
			rows, seen, next, err = l.page(ctx, q)
			return err
		})
		if errors.Is(err, ErrExpired) && !expired && q.Cursor != "" {
			expired = true
			state.again()
			continue
		}
		if err == nil {
			err = state.page(q, next, rows)
		}
		if err != nil {
			return l.fail(ctx, name, err)
		}
		state.Error = ""
		if err := l.store(ctx, name, rows, seen); err != nil {
			return err
		}
	}
	return nil
}

// fail stores why a part could not be listed. It returns what ends the whole run.
func (l *listing) fail(ctx context.Context, name string, why error) error {
	if halt(why) || errors.Is(why, asking.ErrSpent) { // the part is not to blame
		return why
	}
	if errors.Is(why, errNoPart) {
		l.mu.Lock()
		l.report.Violations++
		l.mu.Unlock()
	}
	l.states[name].fail(why)
	return l.store(ctx, name, nil, 0)
}

// store stores a page of a part. There is one writer at a time.
func (l *listing) store(ctx context.Context, name string, rows []Sighting, seen int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen > 0 {
		l.report.Pages++
		l.report.Seen += int64(seen)
	}
	state := l.states[name]
	for i := range rows {
		rows[i].Partition, rows[i].Generation = name, state.Scan
	}
	rows = slices.DeleteFunc(rows, func(s Sighting) bool { return s.Key == "" })
	state.Writer = l.by
	return l.advance(ctx, l.at[name], state, Catch{Name: l.Name, Side: l.side, Sightings: rows})
}
