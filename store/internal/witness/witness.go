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
	Beats    int64         `json:"beats"`           // how often it was renewed
	Instance int64         `json:"instance,string"` // of the latest record that was stored; 0: none was
	Seq      int64         `json:"seq"`
	Hash     machine.Hash  `json:"hash"`
	Stored   time.Time     `json:"storedAt"` // when that record was
	At       time.Time     `json:"at"`       // when the latest of them was stored, by the ledger's clock
}

// every is how often a mark is written at most: so much of what was done last it may not know.
const every = time.Second

// Keeper writes marks of one database, behind those who store records.
type Keeper struct {
	to ledger.Witness // nil: none

	mu     sync.Mutex
	id     string // of the ledger
	mark   Mark
	on     bool // the mark is to be written
	dirty  bool
	state  string        // what was said of the witness when the session was opened
	fault  error         // of the latest write
	stop   chan struct{} // ends what writes; nil: nothing does
	writes sync.WaitGroup
}

// Over returns a keeper that writes to w; nil is [Default], but for a ledger in a file that is temporary.
func Over(w ledger.Witness, file string) *Keeper {
	k := &Keeper{to: w}
	if temp, err := filepath.EvalSymlinks(os.TempDir()); w == nil && err == nil && strings.HasPrefix(file, temp+string(filepath.Separator)) {
		k.state = ledger.WitnessTemp
	} else if w == nil {
		d, err := Default()
		if k.to = d; err != nil {
			k.to, k.state = nil, err.Error()
		}
	}
	return k
}

// patience is for one call of a witness.
const patience = 5 * time.Second

// ErrUnread is matched where a mark may be there, and cannot be read.
var ErrUnread = errors.New("the witness cannot be read")

// Read returns the mark of a ledger, nil when there is none. It writes it back: a witness that cannot be
// written is none, and why says so. Where the mark cannot be read it matches [ErrUnread].
func (k *Keeper) Read(ctx context.Context, id string) (m *Mark, why error) {
	if k.to == nil {
		return nil, errors.New(k.State())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	m = new(Mark)
	raw, err := k.to.Read(ctx, id)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnread, k.Where(id), err)
	}
	if why = k.Put(ctx, id, m); m.Session == 0 {
		m = nil
	}
	return m, why
}

// Where says where the mark of a ledger is.
func (k *Keeper) Where(id string) string {
	if d, ok := k.to.(Folder); ok {
		return d.file(id)
	}
	return fmt.Sprintf("a %T", k.to)
}

// Put writes the mark of a ledger, if there is a witness.
func (k *Keeper) Put(ctx context.Context, id string, m *Mark) error {
	raw, err := json.Marshal(m)
	if err != nil || k.to == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return k.to.Write(ctx, id, raw)
}

// Opened notes a session, with what is to be said of the witness. Until Close the keeper writes what it is
// told.
func (k *Keeper) Opened(ctx context.Context, id string, m Mark, state string) {
	k.mu.Lock()
	k.id, k.mark, k.state, k.fault = id, m, state, nil
	k.on = state == ledger.WitnessKept || state == ledger.WitnessNew
	if k.dirty = k.on; k.on && k.stop == nil {
		stop := make(chan struct{})
		k.stop = stop
		k.writes.Go(func() { k.loop(stop) })
	}
	k.mu.Unlock()
	k.write(ctx)
}

// Saw notes a record that was stored.
func (k *Keeper) Saw(instance, seq int64, hash machine.Hash, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.on {
		k.mark.Instance, k.mark.Seq, k.mark.Hash, k.mark.Stored, k.mark.At, k.dirty = instance, seq, hash, at, at, true
	}
}

// Renewed notes that the lease of a session was renewed, which every database that is not behind knows.
func (k *Keeper) Renewed(t machine.Token, beats int64, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.on && k.mark.Session == t {
		k.mark.Beats, k.mark.At, k.dirty = beats, at, true
	}
}

// State is what is to be said of the witness now.
func (k *Keeper) State() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault != nil {
		return k.fault.Error()
	}
	return k.state
}

func (k *Keeper) loop(stop chan struct{}) {
	for t := time.NewTicker(every); ; {
		select {
		case <-t.C:
			k.write(context.Background())
		case <-stop:
			t.Stop()
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
	err := k.Put(ctx, id, &m)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault, k.dirty = err, k.dirty || err != nil
}

// Close writes what was not written yet.
func (k *Keeper) Close() {
	k.mu.Lock()
	if k.stop != nil {
		close(k.stop)
		k.stop = nil
	}
	k.mu.Unlock()
	k.writes.Wait()
	k.write(context.Background())
}
