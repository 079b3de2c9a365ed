package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// reading is what a reader saw.
type reading struct {
	newest int64
	all    []ledger.Control
}

// setter sets one control that all share, and one of its own.
type setter struct {
	b        *bench
	store    Store
	token    machine.Token
	name     string // of its own
	own      ledger.Control
	won      int // sets of the shared one
	stored   []ledger.Control
	readings []reading
}

// round reads what there is, as a process does that was told of a change, and sets both.
func (s *setter) round() error {
	told, err := s.store.Claim(s.b.Context(), s.token, ledger.Claim{})
	if err != nil {
		return err
	}
	all, newest, err := s.store.Controls(s.b.Context())
	if err != nil {
		return err
	}
	if newest < told.Controls {
		return fmt.Errorf("read up to version %d, told of %d", newest, told.Controls)
	}
	s.readings = append(s.readings, reading{newest, all})
	var shared ledger.Control
	for _, c := range all {
		if c.Name == sharedName {
			shared = c
		}
	}
	next := after(shared, control(ledger.ControlShare, sharedName, "1"+string(shared.Body))) // a digit for each set
	switch is, err := s.store.SetControl(s.b.Context(), s.token, next); {
	case err == nil:
		s.won++
		s.stored = append(s.stored, is)
	case !errors.Is(err, ledger.ErrChanged):
		return err
	}
	s.own, err = s.store.SetControl(s.b.Context(), s.token, after(s.own, control(ledger.ControlDestination, s.name, `1`)))
	s.stored = append(s.stored, s.own)
	return err
}

const sharedName = "shared"

// tellsAll reports whether the session that sets a control is told of it.
func tellsAll(h Harness) bool { return !h.LosesAnswers }

// Sixteen setters in two processes set one control at once. Of the sets that were decided on one
// version, one succeeds. Versions ascend and no set is lost. A setter that was told of a version
// reads every control as it was then or later.
func controlRace(b *bench) {
	const setters, sets = 16, 6
	stores := []Store{b.Store, b.again()}
	all := make([]*setter, setters)
	var wg sync.WaitGroup
	for i := range all {
		s := &setter{b: b, store: stores[i%2], token: b.session(), name: fmt.Sprint("own ", i)}
		all[i] = s
		wg.Go(func() {
			for s.won < sets && !b.Failed() {
				if err := s.round(); err != nil {
					b.Errorf("%s: %v", s.name, err)
				}
			}
		})
	}
	wg.Wait()
	controls, newest := b.controls()
	readings := []reading{{newest, controls}}
	var stored []ledger.Control
	for _, s := range all {
		stored, readings = append(stored, s.stored...), append(readings, s.readings...)
	}
	slices.SortFunc(stored, func(a, c ledger.Control) int { return int(a.Version - c.Version) })
	for i, c := range stored {
		if c.Version != int64(i)+1 {
			b.Fatalf("set number %d has version %d: there is one for each, and none is lost", i+1, c.Version)
		}
	}
	for _, r := range readings {
		b.checkReading(stored, r)
	}
	at := slices.IndexFunc(controls, func(c ledger.Control) bool { return c.Name == sharedName })
	if at < 0 || len(controls[at].Body) != setters*sets {
		b.Errorf("the controls are %+v, want the shared one set %d times, each time on the one before", controls, setters*sets)
	}
}

// checkReading compares what a reader saw with all that was stored, in the order of versions.
func (b *bench) checkReading(stored []ledger.Control, r reading) {
	b.Helper()
	want := map[string]int64{}
	for _, c := range stored[:min(r.newest, int64(len(stored)))] {
		want[c.Name] = c.Version
	}
	if len(r.all) != len(want) {
		b.Errorf("at version %d %d controls were read, want %d", r.newest, len(r.all), len(want))
	}
	for _, c := range r.all {
		if c.Version != want[c.Name] {
			b.Errorf("at version %d %s has version %d, want %d", r.newest, c.Name, c.Version, want[c.Name])
		}
	}
}

// A session that dies while it sets: what it sets is stored before its death or not at all. So what
// another does when it has buried the session is the last word.
func controlDeath(b *bench) {
	const rounds, setters = 20, 4
	stores := []Store{b.Store, b.again()}
	for round := range rounds {
		t := b.session()
		var late [setters]ledger.Control
		var wg sync.WaitGroup
		for i := range setters {
			wg.Go(func() {
				for {
					is, err := stores[0].SetControl(b.Context(), t, after(late[i], control(ledger.ControlShare, fmt.Sprint(round, ".", i), `1`)))
					if errors.Is(err, ledger.ErrSessionDead) {
						return
					}
					if err != nil {
						b.Errorf("set: %v", err)
						return
					}
					late[i] = is
				}
			})
		}
		if err := stores[1].Bury(b.Context(), t); err != nil {
			b.Errorf("bury: %v", err)
		}
		heir := b.set(0, by(control(ledger.ControlShare, fmt.Sprint(round), `1`), "ann", ""))
		wg.Wait()
		for _, c := range late {
			if c.Version > heir.Version {
				b.Errorf("a dead session stored version %d behind %d, which was stored after its end", c.Version, heir.Version)
			}
		}
	}
}
