// Package faults collects what is wrong with a configuration, so that all of it is said at once.
package faults

import (
	"errors"
	"fmt"
)

// List is what is wrong.
type List []error

// Whenf says a fault, where it is one.
func (l *List) Whenf(bad bool, format string, args ...any) {
	if bad {
		*l = append(*l, fmt.Errorf(format, args...))
	}
}

// Err is all of it; nil where nothing is wrong.
func (l *List) Err() error { return errors.Join(*l...) }
