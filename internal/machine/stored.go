package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// signalIDs are ids of signals in a stored document: texts, as every id is in JSON.
type signalIDs []int64

func (ids signalIDs) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, strconv.FormatInt(id, 10))
	}
	return append(b, ']'), nil
}

func (ids *signalIDs) UnmarshalJSON(b []byte) error {
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		return err
	}
	*ids = make(signalIDs, len(texts))
	for i, text := range texts {
		var err error
		if (*ids)[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("the id of a signal: %w", err)
		}
	}
	return nil
}

// clone returns a copy that can be folded further without touching st.
func (st *State) clone() *State {
	c := *st
	c.Steps = slices.Clone(st.Steps)
	c.ConsumedSignals = slices.Clip(st.ConsumedSignals)
	return &c
}

// scratch are states that are looked at and thrown away.
var scratch = sync.Pool{New: func() any { return &State{Steps: make([]StepState, 0, 8)} }}

// borrowed is clone, until it is returned.
func (st *State) borrowed() *State {
	c := scratch.Get().(*State)
	steps := append(c.Steps[:0], st.Steps...)
	*c = *st
	c.Steps = steps
	c.ConsumedSignals = slices.Clip(st.ConsumedSignals)
	return c
}

func (st *State) giveBack() {
	clear(st.Steps)
	steps := st.Steps[:0]
	*st = State{Steps: steps}
	scratch.Put(st)
}

// Follows reports whether r is the next record, and leaves st alone. r need not be stored yet: its time may be a guess. An error says
// why the fold refuses r, so it must not be appended.
func (st *State) Follows(r *Record) error {
	next := st.borrowed()
	defer next.giveBack()
	return next.Apply(r)
}
