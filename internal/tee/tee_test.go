package tee

import (
	"errors"
	"slices"
	"testing"
)

// Each listener is told, in order, with what was said; one that is nil, or has no such function, is skipped.
func TestOf(t *testing.T) {
	type listener struct {
		Ended func(what string, err error)
		Never func()
	}
	var said []string
	one := func(name string) *listener {
		return &listener{Ended: func(what string, err error) {
			if err != nil {
				what += ": " + err.Error()
			}
			said = append(said, name+" "+what)
		}}
	}
	all := Of(one("first"), nil, &listener{}, one("last"))
	all.Ended("it", nil)
	all.Ended("that", errors.New("no"))
	all.Never()
	if want := []string{"first it", "last it", "first that: no", "last that: no"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
