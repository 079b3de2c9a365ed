//go:build !linux

package hostlock

import "errors"

// Lock is a file that this process keeps locked.
type Lock struct{}

// Hold makes no lock here.
func Hold(string) (*Lock, error) { return nil, errors.ErrUnsupported }

// Name is what [Gone] takes.
func (*Lock) Name() string { return "" }

// Path is where the file is.
func (*Lock) Path() string { return "" }

// Close gives the lock back.
func (*Lock) Close() error { return nil }

// Release gives the lock back.
func (*Lock) Release() error { return nil }

// Gone proves nothing here.
func Gone(string) (*Lock, bool) { return nil, false }
