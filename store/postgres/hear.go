package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// Processes tell each other by NOTIFY that there is something to claim. It is a hint: who does not hear of it, because the connection
// was lost, finds it at the next poll.

// hearing is what a handle has to say to the other processes.
type hearing struct {
	dsn     string
	channel string // of the ledger
	self    string // names this handle, which does not listen to itself

	hears        atomic.Bool // the connection stands by which it hears
	mu           sync.Mutex
	wanted, busy bool
}

const (
	stirEvery = 10 * time.Millisecond // at most: what comes meanwhile is one word
	stirFor   = 5 * time.Second       // for which saying it is tried
	hearEvery = 25 * time.Millisecond // at most, however many stir: who hears claims
)

func newHearing(dsn, schema string, self int64) *hearing {
	sum := sha256.Sum256([]byte(schema))
	return &hearing{dsn: dsn, channel: fmt.Sprintf("amends_%x", sum[:8]), self: fmt.Sprintf("%x", self)}
}

// Stir has the other processes look for what there is to claim. It does not wait for that.
func (db *DB) Stir() {
	h := db.hearing
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wanted = true; !h.busy {
		h.busy = true
		go db.stir()
	}
}

func (db *DB) stir() {
	for db.hearing.next() {
		ctx, cancel := context.WithTimeout(context.Background(), stirFor)
		_ = db.writes.do(ctx, func(ctx context.Context) error { // a poll finds what is not told
			_, err := db.work.ExecContext(ctx, `SELECT pg_notify($1, $2)`, db.hearing.channel, db.hearing.self)
			return err
		})
		cancel()
		time.Sleep(stirEvery)
	}
}

// next reports whether there is something to say.
func (h *hearing) next() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = h.wanted
	h.wanted = false
	return h.busy
}

// Hear calls heard when another handle stirs, and when it may have, until ctx ends.
func (db *DB) Hear(ctx context.Context, heard func()) {
	l := pq.NewListener(db.hearing.dsn, time.Second, time.Minute, func(is pq.ListenerEventType, _ error) {
		db.hearing.hears.Store(is == pq.ListenerEventConnected || is == pq.ListenerEventReconnected)
	})
	defer db.hearing.hears.Store(false)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer func() { _ = l.Close() }()
	if l.Listen(db.hearing.channel) != nil { // closed, or refused: what there is, a poll finds
		return
	}
	heard() // it may have before
	for pause := time.NewTicker(hearEvery); ; {
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		select {
		case n := <-l.NotificationChannel():
			if db.hearing.others(n, l.NotificationChannel()) {
				heard()
			}
		case <-ctx.Done():
		}
	}
}

// Hears reports whether the connection stands by which it hears.
func (db *DB) Hears() bool { return db.hearing.hears.Load() }

// others reports whether n, or what else came, is of another handle, or of a connection that is a new one.
func (h *hearing) others(n *pq.Notification, more <-chan *pq.Notification) (is bool) {
	for {
		is = is || n == nil || n.Extra != h.self
		select {
		case next, open := <-more:
			if n = next; !open {
				return is
			}
		default:
			return is
		}
	}
}
