package webhook

import (
	"errors"
	"fmt"
)

// faults collects what is wrong with a configuration, so that all of it is said at once.
type faults []error

func (f *faults) whenf(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f *faults) err() error { return errors.Join(*f...) }
