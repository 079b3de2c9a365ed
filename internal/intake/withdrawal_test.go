package intake

import (
	"errors"
	"testing"
	"time"
)

// B1, B2: a withdrawal that undoes something is held beyond both numbers, and with one that is held.
func TestWeigh(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	usual := Bound{}.WithDefaults()
	for name, c := range map[string]struct {
		bound   Bound
		tally   Tally
		through bool
		counted bool
	}{
		"the first":              {usual, Tally{Undoes: true}, true, true},
		"the tenth":              {usual, Tally{Undoes: true, Withdrawn: 9}, true, true},
		"the eleventh":           {usual, Tally{Undoes: true, Withdrawn: 10}, false, false},
		"the eleventh of 109":    {usual, Tally{Undoes: true, Withdrawn: 10, Changed: 98}, false, false},
		"the eleventh of 110":    {usual, Tally{Undoes: true, Withdrawn: 10, Changed: 99}, true, true},
		"behind one that waits":  {usual, Tally{Undoes: true, Held: true, Changed: 1000}, false, false},
		"it undoes nothing":      {usual, Tally{}, true, false},
		"of all that may change": {Bound{Count: 1, Percent: 100}, Tally{Undoes: true, Withdrawn: 99}, true, true},
	} {
		e := Entry{Accepted: 3, Delivered: 2, Changed: now}
		through := e.Weigh(3, now, c.tally, &c.bound)
		if through != c.through || (e.Held == 3) == c.through || (e.Let == 3) != c.counted || e.Withdrawn.Equal(now) != c.counted || e.Changed.IsZero() != c.counted {
			t.Errorf("%s: %v, %+v", name, through, e)
		}
	}
}

// B3: what is held is due for nothing but a fetch; a newer state is due, and once it is delivered
// nothing is held. B4: what is held was not delivered.
func TestHeldEntry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	p := Policy{}.WithDefaults()
	e := Entry{Accepted: 3, Delivered: 2, Held: 3}
	Finish(&e, &Round{Accepted: 3, Withdraws: true, Held: true}, now, &p)
	if e.Delivered != 2 || e.Held != 3 || !e.Due.IsZero() || e.Attempts > 0 || !e.Owing() || !e.Changed.IsZero() {
		t.Errorf("held: %+v", e)
	}
	if e.FetchAgain(); !p.Due(&e, now).Equal(now) || e.Held != 3 {
		t.Errorf("hinted at: %+v", e)
	}
	e.Accepted, e.FetchCompleted = 4, e.FetchRequested
	if !p.Due(&e, now).Equal(now) {
		t.Errorf("in a newer state: %+v", e)
	}
	Finish(&e, &Round{Accepted: 4, Deliver: errors.New("away")}, now, &p)
	if e.Held != 3 || !e.Changed.IsZero() {
		t.Errorf("not delivered: %+v", e)
	}
	Finish(&e, &Round{Accepted: 4}, now, &p)
	if e.Delivered != 4 || e.Held != 0 || !e.Changed.Equal(now) || e.Owing() {
		t.Errorf("delivered: %+v", e)
	}
}
