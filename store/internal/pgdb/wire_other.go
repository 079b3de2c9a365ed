//go:build !linux

package pgdb

import "syscall"

// limitUnacknowledged does nothing where the kernel has no such limit: the contexts of the calls
// bound them all the same.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
