// Package witness keeps, outside of a ledger's database, how far the ledger was seen to have come.
package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// Mark is how far a ledger had come.
type Mark struct {
	Database string        `json:"database"`        // the identity of the one that it was in
	Session  machine.Token `json:"session,string"`  // the latest that was opened here; 0: none was yet
	Instance int64         `json:"instance,string"` // of the latest record that was stored; 0: none was
	Seq      int64         `json:"seq"`
	Hash     machine.Hash  `json:"hash"`
	At       time.Time     `json:"at"` // when the later of both was stored, by the ledger's clock
}

// every is how often a mark is written at most: so much of what was done last it may not know.
const every = time.Second

// Keeper writes marks of one database, behind those who store records.
type Keeper struct {
	to ledger.Witness // nil: none

	mu     sync.Mutex
	id     string // of the ledger
	mark   Mark
	dirty  bool
	state  string        // what is to be said of the witness
	ticker chan struct{} // closed to end the loop; nil: it does not run
	over   chan struct{}
}

// Over returns a keeper that writes to w; nil is [Default], but for a ledger in a file that is temporary.
func Over(w ledger.Witness, file string) *Keeper {
	k := &Keeper{to: w}
	if w != nil {
		return k
	}
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err == nil && strings.HasPrefix(file, temp+string(filepath.Separator)) {
		k.state = ledger.WitnessTemp
		return k
	}
	if d, err := Default(); err != nil {
		k.state = err.Error()
	} else {
		k.to = d
	}
	return k
}

// Read returns the mark of a ledger, nil when there is none. It writes it back: a witness that cannot be
// written is none. Then, as where the mark cannot be read, why says so.
func (k *Keeper) Read(ctx context.Context, id string) (m *Mark, why error) {
	if k.to == nil {
		return nil, errors.New(k.State())
	}
	raw, err := k.to.Read(ctx, id)
	if err == nil && raw != nil {
		m = new(Mark)
		if err = json.Unmarshal(raw, m); err != nil {
			err = fmt.Errorf("what is kept of ledger %s cannot be read: %w", id, err)
		}
	}
	if err == nil && raw == nil {
		raw, err = json.Marshal(Mark{})
	}
	if err == nil {
		err = k.to.Write(ctx, id, raw)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Opened notes a session, with what is to be said of the witness. Until Close the keeper writes what it is
// told.
func (k *Keeper) Opened(ctx context.Context, id string, m Mark, state string) {
	k.mu.Lock()
	if k.state = state; state != ledger.WitnessKept && state != ledger.WitnessNew {
		k.mu.Unlock()
		return
	}
	k.id, k.mark, k.dirty = id, m, true
	if k.ticker == nil {
		k.ticker, k.over = make(chan struct{}), make(chan struct{})
		go k.loop(k.ticker, k.over)
	}
	k.mu.Unlock()
	k.write(ctx)
}

// Saw notes a record that was stored.
func (k *Keeper) Saw(instance, seq int64, hash machine.Hash, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ticker != nil {
		k.mark.Instance, k.mark.Seq, k.mark.Hash, k.mark.At, k.dirty = instance, seq, hash, at, true
	}
}

// State is what is to be said of the witness now.
func (k *Keeper) State() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *Keeper) loop(end, over chan struct{}) {
	defer close(over)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			k.write(context.Background())
		case <-end:
			k.write(context.Background())
			return
		}
	}
}

// write writes what was not written yet. What fails is tried again, and said meanwhile.
func (k *Keeper) write(ctx context.Context) {
	k.mu.Lock()
	id, m, dirty := k.id, k.mark, k.dirty
	k.dirty = false
	k.mu.Unlock()
	if !dirty {
		return
	}
	raw, err := json.Marshal(m)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		err = k.to.Write(ctx, id, raw)
		cancel()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		k.dirty, k.state = true, err.Error()
	case k.state != ledger.WitnessNew:
		k.state = ledger.WitnessKept
	}
}

// Close writes what was not written yet.
func (k *Keeper) Close() {
	k.mu.Lock()
	end, over := k.ticker, k.over
	k.ticker = nil
	k.mu.Unlock()
	if end != nil {
		close(end)
		<-over
	}
}
