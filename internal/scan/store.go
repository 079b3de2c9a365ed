package scan

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/amends-dev/amends/internal/intake"
)

// ErrMoved is matched by the error of an Advance whose position another process has moved on
// meanwhile. Nothing was stored. The caller stops, because the other process sweeps.
var ErrMoved = errors.New("another process has moved this sweep on")

// Store is what sweeps need of a store.
type Store interface {
	// Position returns how far the sweep of that name has come. One that is unknown has Serial 0
	// and no State.
	Position(ctx context.Context, name string) (Position, error)

	// Positions returns the positions whose names begin with prefix, in the order of their bytes.
	Positions(ctx context.Context, prefix string) ([]Position, error)

	// Advance stores what a page brought and how far the sweep has come, in one transaction: a kill
	// repeats one page at most. Events go into the inbox as [intake.Inbox] has it; sightings of one
	// (name, side, key, id) replace each other. It fails with [ErrMoved], and stores nothing,
	// unless the stored Serial is p.Serial; it returns p with the next one. It may be repeated
	// after an error that is not ErrMoved: when the first try was stored after all, with that very
	// State, the second one says so and stores nothing.
	Advance(ctx context.Context, p Position, page Catch) (Position, error)

	// Sightings returns rows of one listing in the order of the bytes of (key, id).
	Sightings(ctx context.Context, q SightingQuery) ([]Sighting, error)

	// Tally counts the sightings of a listing by partition.
	Tally(ctx context.Context, q SightingQuery) (map[string]int64, error)

	// Discard erases at most limit sightings of generations before q.Generation, and answers how
	// many it erased.
	Discard(ctx context.Context, q SightingQuery, limit int) (int, error)
}

// Position is how far a sweep has come. What State holds is the sweep's own.
type Position struct {
	Name   string
	Serial int64 // raised by every Advance
	State  json.RawMessage
}

// Catch is what a page brought.
type Catch struct {
	Events    []intake.Event // to be judged by the gate, like webhooks
	Name      string         // of the sweep that the sightings belong to
	Side      Side
	Sightings []Sighting
}

// SightingQuery selects sightings of a listing.
type SightingQuery struct {
	Name       string // of the sweep
	Side       Side
	Generation int64  // of this one and newer: a row that a listing under way has seen again is still there
	After      string // behind this (key, id); an empty AfterID is behind all rows of the key
	AfterID    string
	Limit      int  // 0: 1,000
	Bare       bool // leave Fields, Generation and Partition out: less to read
}
