package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
)

// Pool returns a pool of db, for tests.
func Pool(db *DB, name string) *sqlx.DB {
	return map[string]*sqlx.DB{"work": db.work, "batch": db.batch, "load": db.load, "read": db.read}[name]
}

// Lanes are the names of the lanes that take nothing from each other, and behind a slash that of a
// part.
var Lanes = []string{"records", "claims", "pulse", "writes/blocked", "writes", "starts", "deliveries", "loads/lists", "loads"}

// Occupy takes all the room that is left in a lane, with the connections that are due to it, and
// returns what gives it back.
func Occupy(ctx context.Context, db *DB, name string) (leave func() error, err error) {
	l := map[string]*lane{
		"records": db.records, "claims": db.claims, "pulse": db.pulse, "writes": db.writes, "writes/blocked": db.blocked,
		"starts": db.starts, "deliveries": db.deliveries, "loads": db.loads, "loads/lists": db.lists,
	}[name]
	var taken []func() error
	whole := l.room[len(l.room)-1] // of which a part may be taken already
	for len(l.room[0]) < cap(l.room[0]) && len(whole) < cap(whole) {
		out, err := l.enter(ctx)
		if err != nil {
			return nil, err
		}
		c, err := l.pool.Connx(ctx)
		if err != nil {
			return nil, err
		}
		taken = append(taken, func() error { err := c.Close(); out(); return err })
	}
	return func() (err error) {
		for _, give := range taken {
			err = errors.Join(err, give())
		}
		return err
	}, nil
}

// Isolated returns options with which transactions are isolated at a level.
func Isolated(level string, o Options) *Options { o.level = level; return &o }

// Between returns options with which something stands between the driver and the store.
func Between(put func(driver.Connector) driver.Connector, o Options) *Options {
	o.between = put
	return &o
}

// SetClock makes l's statements take now for the server's time.
func SetClock(l *DB, now time.Time) { l.now = func() any { return now.UnixMicro() } }

// SetRefs makes l draw its references by another clock and without chance.
func SetRefs(l *DB, now func() time.Time) {
	l.refs.now, l.refs.chance = now, func() int64 { return 0 }
}

// SetMost bounds what one statement of l carries.
func SetMost(l *DB, bytes int) { l.most = bytes }

// ClaimText is the statement of a claim, and ReleaseText the one before it that takes works from
// dead sessions, for looking at their plans and for standing still behind them.
var (
	ClaimText   = claimText
	RestText    = restText
	ReleaseText = releaseText
)

// Die gives the process's lock back as its end does.
func Die(db *DB) error { return db.alive.lock.Close() }
